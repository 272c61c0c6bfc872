"""Notes that people write at a build or a day of the history: plain JSON values to notes and back, bounded.

What somebody else's file says is refused where it is no list of notes, never guessed. Knows no file and no clock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from llamasweep.errors import UsageError, quoted

NOTES_KIND = "llamasweep history notes"
NOTES_FORMAT = 1
MOST_NOTES = 1_000
MOST_CHARACTERS = 500
_MOST_PLACE_CHARACTERS = 200
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotation:
    """at: name or number of a build, or a day as YYYY-MM-DD. text: one line. written_at: UTC, ISO 8601, None where not known."""

    at: str
    text: str
    written_at: str | None = None

    @property
    def day(self) -> str | None:
        """The day that it stands at, None where it stands at a build."""
        return self.at if is_day(self.at) else None

    def is_of_build(self, label: str, number: int | None) -> bool:
        """Whether its place is this build's name, or its number with or without a b."""
        return self.at == label or (number is not None and self.at.removeprefix("b") == str(number))


def is_day(text: str) -> bool:
    """Whether the text is a day of the calendar, as 2026-11-29."""
    if _DAY.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def annotated(
    notes: Sequence[Annotation], at: str, text: str, written_at: str
) -> tuple[Annotation, ...]:
    """The notes with one more at the end; an empty text takes away those that stand at the place.

    Raises UsageError where place or text cannot be written, where there is no note to take away, or too many are there.
    """
    if not text.strip():
        left = tuple(note for note in notes if note.at != at)
        if len(left) == len(notes):
            raise UsageError(
                f"there is no note at {quoted(at)} to take away",
                hint="A text that is not empty writes one.",
            )
        return left
    _check_line("the place of a note", at, _MOST_PLACE_CHARACTERS)
    _check_line("a note", text, MOST_CHARACTERS)
    if len(notes) >= MOST_NOTES:
        raise UsageError(
            f"there are {len(notes)} notes already", hint="Take some out of the file by hand."
        )
    return (*notes, Annotation(at=at, text=text.strip(), written_at=written_at))


def _check_line(what: str, text: str, most: int) -> None:
    if not text.isprintable() or not text.strip() or len(text) > most:
        raise UsageError(
            f"{quoted(text)} cannot be {what}",
            hint=f"Use one line of 1 to {most} characters that print.",
        )


def plain_annotations(notes: Sequence[Annotation]) -> dict[str, Any]:
    """Plain JSON values in the order of writing, so that a diff shows what came."""
    return {
        "kind": NOTES_KIND,
        "format": NOTES_FORMAT,
        "notes": [{"at": n.at, "text": n.text, "written_at": n.written_at} for n in notes],
    }


def read_annotations(plain: Any) -> tuple[Annotation, ...]:
    """The notes of plain JSON values. Raises ValueError where they are none, of another format, or too many."""
    if not isinstance(plain, dict) or plain.get("kind") != NOTES_KIND:
        raise ValueError(f"it does not say that it is {NOTES_KIND!r}")
    if plain.get("format") != NOTES_FORMAT:
        raise ValueError(f"format {quoted(plain.get('format'))} is not known here")
    notes = plain.get("notes")
    if not isinstance(notes, list) or len(notes) > MOST_NOTES:
        raise ValueError(f"`notes` is no list of at most {MOST_NOTES}")
    return tuple(_read(note) for note in notes)


def _read(note: Any) -> Annotation:
    if not isinstance(note, dict):
        raise ValueError("a note is no object")
    at, text, written_at = (note.get(name) for name in ("at", "text", "written_at"))
    for name, value, most in (("at", at, _MOST_PLACE_CHARACTERS), ("text", text, MOST_CHARACTERS)):
        if not isinstance(value, str) or not value.strip() or len(value) > most:
            raise ValueError(f"`{name}` of a note is no text of 1 to {most} characters")
    if written_at is not None and (not isinstance(written_at, str) or len(written_at) > 40):
        raise ValueError("`written_at` of a note is no time")
    return Annotation(at=str(at), text=str(text), written_at=written_at)
