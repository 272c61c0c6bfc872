"""`llamasweep history`: every run of the folder, the page beside the reports, and what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.report.test_history import _run, _stepped

from llamasweep.cli.history import command
from llamasweep.errors import StoreError, UsageError
from llamasweep.store.parquet import RunStore


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _store(n_builds: int = 12) -> None:
    for run in _stepped()[:n_builds]:
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


def test_a_run_whose_table_is_rubbish_is_told_and_the_others_are_used(folder: Path) -> None:
    _store()
    broken = sorted((folder / "results").iterdir())[-1]
    for part in (broken / "cells.parquet").glob("*.parquet"):
        part.write_bytes(b"rubbish")
    ended = _history("--no-page")
    assert f"left out {broken.name}: no row" in ended.output
    assert "11 builds, b10000 to b11000" in ended.output


def test_a_run_that_cannot_be_read_is_told_and_the_others_are_used(folder: Path) -> None:
    _store()
    (folder / "results" / "20261129T010101Z-broken-ab12cd").mkdir()
    (folder / "results" / "20261129T010101Z-broken-ab12cd" / "run.json").write_text("{")
    ended = _history("--no-page")
    assert "left out 20261129T010101Z-broken-ab12cd" in ended.output
    assert "12 builds, b10000 to b11100" in ended.output
    assert "1 of 1 series changed" in ended.output


def test_one_build_is_no_history() -> None:
    run = _run(10000, 100.0)
    RunStore.create(Path("results"), run.info).write_group("00001-g", run.attempts)
    with pytest.raises(StoreError, match="was measured on two builds"):
        _history()


def test_notes_are_kept_beside_the_runs_and_told_everywhere(folder: Path) -> None:
    _store()
    text = _history("--annotate", "b10300", "more memory").output
    assert text.splitlines()[1] == "note at b10300: more memory"
    assert "  note at b10300: more memory" in text
    kept = json.loads((folder / "results" / "history-notes.json").read_text(encoding="utf-8"))
    assert [(note["at"], note["text"]) for note in kept["notes"]] == [("b10300", "more memory")]
    assert "more memory" in (folder / "reports" / "history.html").read_text(encoding="utf-8")
    told = json.loads(_history("--json", "--no-page", "--annotate", "2026-11-29", "day").output)
    assert [note["text"] for note in told["notes"]] == ["more memory", "day"]
    assert {note["text"] for note in told["series"][0]["notes"]} == {"more memory", "day"}
    assert "more memory" not in _history("--no-page", "--annotate", "b10300", "").output


def test_a_note_is_not_repeated_for_series_without_a_change() -> None:
    for run in _stepped(factor=1.0):
        RunStore.create(Path("results"), run.info).write_group("00001-g", run.attempts)
    text = _history("--no-page", "--annotate", "b10300", "more memory").output
    assert text.count("more memory") == 1


@pytest.mark.parametrize(
    ("at", "text", "said"),
    [
        ("b9", "x", "no result is of a build 'b9', and it is no day"),
        ("2026-02-30", "x", "and it is no day"),
        ("b10100", "a\nb", "cannot be a note"),
        ("b10100", "\u202e", "cannot be a note"),
        ("b10100", "x" * 501, "cannot be a note"),
        ("b10100", " ", "there is no note at 'b10100'"),
    ],
)
def test_a_note_that_cannot_be_is_refused_and_nothing_is_kept(
    folder: Path, at: str, text: str, said: str
) -> None:
    _store(2)
    with pytest.raises(UsageError, match=said):
        _history("--annotate", at, text)
    assert not (folder / "results" / "history-notes.json").exists()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"kind": "llamasweep history notes", "format": 2, "notes": []}',
        '{"kind": "llamasweep history notes", "format": 1, "notes": [{"at": "b1"}]}',
        '{"kind": "llamasweep history notes", "format": 1, "notes": [{"at": "b1", "text": 3}]}',
        "[" * 100_000,
    ],
)
def test_a_file_of_notes_that_cannot_be_understood_is_named(folder: Path, text: str) -> None:
    _store(2)
    (folder / "results" / "history-notes.json").write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"history-notes\.json cannot be read"):
        _history("--no-page")


def test_a_note_of_a_hand_written_file_does_not_move_the_cursor(folder: Path) -> None:
    _store(2)
    note = {"at": "b10100", "text": "a\u001b[2Jb\u202e", "written_at": None}
    plain = {"kind": "llamasweep history notes", "format": 1, "notes": [note]}
    path = folder / "results" / "history-notes.json"
    path.write_text(json.dumps(plain), encoding="utf-8")
    said = _history().output
    page = (folder / "reports" / "history.html").read_text(encoding="utf-8")
    for text in (said, page):
        assert "a\\x1b[2Jb\\u202e" in text.replace("\\\\", "\\")
        assert not {"\u001b", "\u202e"} & set(text)
