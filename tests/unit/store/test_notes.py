"""Notes beside the runs: two that write at a time lose nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from llamasweep.errors import StoreError, UsageError
from llamasweep.file_lock import waited_lock
from llamasweep.results.annotations import Annotation
from llamasweep.store import notes as room
from llamasweep.store.notes import change_notes, load_notes

WRITER = """
import sys
from pathlib import Path
from llamasweep.results.annotations import Annotation
from llamasweep.store.notes import change_notes

print("ready", flush=True)
sys.stdin.readline()
for number in range(15):
    text = f"{sys.argv[2]} {number}"
    change_notes(Path(sys.argv[1]), lambda notes: (*notes, Annotation(at="b1", text=text)))
"""


def _note(text: str) -> Annotation:
    return Annotation(at="b1", text=text)


def test_two_processes_that_write_at_a_time_lose_no_note(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0

    wanted = {f"{name} {number}" for name in ("one", "two") for number in range(15)}
    assert {note.text for note in load_notes(tmp_path)} == wanted


def test_who_comes_in_between_waits_and_sees_what_the_first_wrote(tmp_path: Path) -> None:
    second = Thread(target=change_notes, args=(tmp_path, lambda notes: (*notes, _note("second"))))

    def first(notes: room.Notes) -> room.Notes:
        second.start()
        second.join(0.1)
        assert second.is_alive()
        return (*notes, _note("first"))

    change_notes(tmp_path, first)
    second.join(60)
    assert [note.text for note in load_notes(tmp_path)] == ["first", "second"]


def test_who_waits_too_long_is_told_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_PATIENCE_S", 0.0)
    with waited_lock(tmp_path / f".{room.NOTES_NAME}.lock", patience_s=0.0) as is_ours:
        assert is_ours
        with pytest.raises(StoreError, match="somebody else is writing the notes"):
            change_notes(tmp_path, lambda notes: (*notes, _note("x")))
    assert load_notes(tmp_path) == ()
    assert change_notes(tmp_path, lambda notes: (*notes, _note("y"))) == (_note("y"),)


def test_a_change_that_is_refused_lets_the_lock_go(tmp_path: Path) -> None:
    def refused(_: room.Notes) -> room.Notes:
        raise UsageError("no such build")

    with pytest.raises(UsageError):
        change_notes(tmp_path, refused)
    assert change_notes(tmp_path, lambda notes: notes) == ()


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot write .*history-notes"):
        change_notes(tmp_path / "none", lambda notes: notes)
