"""`llamasweep history`: every run of the folder, the page beside the reports, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.report.test_history import _run, _stepped

from llamasweep.cli.history import command
from llamasweep.errors import StoreError
from llamasweep.store.parquet import RunStore


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _store() -> None:
    for run in _stepped():
        RunStore.create(Path("results"), run.info).write_group("00001-g", run.attempts)


def _history(*words: str) -> Result:
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def test_changes_are_told_and_the_page_is_written(folder: Path) -> None:
    _store()
    text = _history().output
    assert "1 of 1 series changed; the largest fall is decode of tiny" in text
    assert "tiny · tg128: 12 builds, b10000 to b11100" in text
    assert "  step at b10600: −10." in text
    assert text.splitlines()[-1] == "reports/history.html"
    assert (folder / "reports" / "history.html").read_text(encoding="utf-8").startswith("<!DOCTYPE")


def test_json_alone_writes_no_page_when_asked_not_to(folder: Path) -> None:
    _store()
    told = json.loads(_history("--json", "--no-page").output)
    assert told["page"] is None
    assert len(told["series"][0]["points"]) == 12
    assert not (folder / "reports").exists()


def test_a_run_that_cannot_be_read_is_told_and_the_others_are_used(folder: Path) -> None:
    _store()
    (folder / "results" / "20261129T010101Z-broken-ab12cd").mkdir()
    (folder / "results" / "20261129T010101Z-broken-ab12cd" / "run.json").write_text("{")
    ended = _history("--no-page")
    assert "left out 20261129T010101Z-broken-ab12cd" in ended.output
    assert "1 of 1 series changed" in ended.output


def test_one_build_is_no_history() -> None:
    run = _run(10000, 100.0)
    RunStore.create(Path("results"), run.info).write_group("00001-g", run.attempts)
    with pytest.raises(StoreError, match="was measured on two builds"):
        _history()
