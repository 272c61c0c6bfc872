"""The file with people's notes on the history, beside the runs: read whole or refused, written whole or not at all.

Who changes it holds a lock from the reading to the writing, so that of two at a time none loses a note.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from llamasweep.errors import StoreError, plain_reason
from llamasweep.file_lock import waited_lock
from llamasweep.results.annotations import Annotation, plain_annotations, read_annotations
from llamasweep.store.files import FileOps, put, store_error

NOTES_NAME = "history-notes.json"
_LOCK_NAME = f".{NOTES_NAME}.lock"
_MOST_BYTES = 4 << 20
_PATIENCE_S = 10.0

Notes = tuple[Annotation, ...]


def load_notes(root: Path) -> Notes:
    """The notes of a results folder; () where nobody wrote any. Raises StoreError where the file cannot be understood."""
    path = root / NOTES_NAME
    try:
        with path.open("rb") as file:
            return read_annotations(json.loads(file.read(_MOST_BYTES)))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as problem:
        raise StoreError(
            f"the notes in {path} cannot be read: {plain_reason(problem)}",
            hint="Mend or move that file; `llamasweep history --annotate` writes a new one.",
        ) from problem


def change_notes(root: Path, change: Callable[[Notes], Notes]) -> Notes:
    """Write what `change` makes of the notes that are there now; the notes as they are then.

    Raises StoreError, also where others write for longer than ten seconds, and what `change` raises; then nothing is written.
    """
    path = root / NOTES_NAME
    try:
        with waited_lock(root / _LOCK_NAME, patience_s=_PATIENCE_S) as is_ours:
            if not is_ours:
                raise StoreError(
                    f"somebody else is writing the notes in {path}",
                    hint="Try again in a moment.",
                )
            notes = change(load_notes(root))
            text = json.dumps(plain_annotations(notes), indent=1, ensure_ascii=False) + "\n"
            put(path, text.encode("utf-8", "backslashreplace"), FileOps())
    except OSError as problem:
        raise store_error(path, problem) from problem
    return notes
