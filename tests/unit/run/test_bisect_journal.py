"""What a bisection remembers besides its rows: written whole, read again, refused where it is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamasweep.errors import StoreError
from llamasweep.run.bisect_journal import JOURNAL_NAME, open_journal


def test_what_was_told_is_read_again(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, ["a", "b", "c"])
    journal.tell("b", "skip", "it does not compile")
    journal.choose("0123", 0.03)
    assert journal.add_facts({"label": "a", "number": 1})
    assert not journal.add_facts({"label": "a", "number": 1})

    again = open_journal(tmp_path, ["others"])

    assert again == journal
    assert again.names == ["a", "b", "c"]
    assert again.told == {"b": ("skip", "it does not compile")}
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL_NAME]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"told": {"b": ["fine", "x"]}},
        {"told": {"b": "skip"}},
        {"names": 3},
        {"practical_floor": "much"},
        {"facts": [1]},
    ],
)
def test_a_journal_that_is_damaged_is_refused_with_what_to_do(
    tmp_path: Path, change: dict[str, object]
) -> None:
    open_journal(tmp_path, ["a", "b"])
    path = tmp_path / JOURNAL_NAME
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, **change}), encoding="utf-8")

    with pytest.raises(StoreError, match="cannot be understood") as caught:
        open_journal(tmp_path, ["a", "b"])
    assert "--fresh" in (caught.value.hint or "")


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, ["a", "b"])
    journal.path = tmp_path / "missing" / JOURNAL_NAME
    with pytest.raises(StoreError, match="cannot write"):
        journal.tell("a", "good", "x")
