"""run.json from outside: what readers rely on is there in its kind, or the file is refused in words."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.unit.store.records import run_info

from llamasweep.errors import StoreError
from llamasweep.store.info import info_from_text, info_text


@pytest.mark.parametrize(
    ("name", "value"),
    [("machine", None), ("machine", []), ("builds", 5), ("models", [1]), ("groups", None), ("notes", "x"),
     ("notes", [1]), ("sweep_resolved", []), ("started_at", 5), ("run_id", None), ("n_cells_planned", "8"),
     ("versions", None)],
)  # fmt: skip
def test_a_field_of_the_wrong_kind_is_refused_by_name(name: str, value: Any) -> None:
    document = json.loads(info_text(run_info()))
    document[name] = value
    with pytest.raises(StoreError, match=rf"run.json is damaged: {name} cannot be so"):
        info_from_text(json.dumps(document), "run.json")


def test_what_was_written_is_read_back() -> None:
    assert info_from_text(info_text(run_info()), "run.json") == run_info()


def test_a_text_that_is_nested_too_deeply_is_damaged() -> None:
    with pytest.raises(StoreError, match=r"run\.json is damaged: nested too deeply"):
        info_from_text("[" * 200_000, "run.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "run.json is damaged: it holds no object"),
        ("{", "run.json is damaged: no JSON from line 1, column 2 on"),
        ("{}", "run.json is damaged: 'schema_version' is missing"),
        ('{"schema_version": 1}', "run.json is incomplete: llamasweep_version, run_id, "),
    ],
)
def test_damage_is_told_without_pythons_words(text: str, said: str) -> None:
    with pytest.raises(StoreError) as problem:
        info_from_text(text, "run.json")
    assert problem.value.message.startswith(said)
    assert not re.search("indices|__init__|Errno|argument", problem.value.message)
