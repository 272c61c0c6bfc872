"""The file with people's notes on the history, beside the runs: read whole or refused, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from llamasweep.errors import StoreError, plain_reason
from llamasweep.results.annotations import Annotation, plain_annotations, read_annotations
from llamasweep.store.files import FileOps, put

NOTES_NAME = "history-notes.json"
_MOST_BYTES = 4 << 20


def load_notes(root: Path) -> tuple[Annotation, ...]:
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


def save_notes(root: Path, notes: Sequence[Annotation]) -> Path:
    """Write the notes beside the runs; where they are. Raises StoreError."""
    path = root / NOTES_NAME
    text = json.dumps(plain_annotations(notes), indent=1, ensure_ascii=False) + "\n"
    put(path, text.encode("utf-8", "backslashreplace"), FileOps())
    return path
