"""The exception tree: a message for people, a hint that says what to do next, an exit code; and quoting in messages.

Every error that llamasweep raises on purpose descends from `LlamasweepError`; `cli` turns it into one
sentence and ends with its exit code. Nothing else exits.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

EXIT_OK = 0
EXIT_CELLS_FAILED = 1
EXIT_USAGE = 2
EXIT_NO_ENGINE = 3
EXIT_LOCKED = 4
EXIT_STORE = 5
EXIT_MACHINE = 6
EXIT_INTERRUPTED = 130

EXIT_STEP_BAD = 1
EXIT_STEP_SKIP = 125
EXIT_STEP_ABORT = 255
"""Of `bisect-step`, as `git bisect run` reads them: slow, cannot be told, and end the search (so every error)."""

EXIT_SLOWER = 3
"""Of verbs that compare, under --gate: a cell is slower or newly failing."""
EXIT_UNDECIDED = 4
"""Of verbs that compare, under --strict: a cell is undecided or not comparable."""


def quoted(value: object, *, max_characters: int = 80) -> str:
    """A value from outside as it may stand in a message: in quotes if it is text, what does not print escaped, cut."""
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= max_characters else text[: max_characters - 1] + "…"
    return repr(cut) if isinstance(value, str) else cut


class LlamasweepError(Exception):
    """Base of all errors made here. `hint` is one sentence on what to do next, or None."""

    exit_code: int = EXIT_CELLS_FAILED

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(LlamasweepError):
    """The command line asks for something that makes no sense."""

    exit_code = EXIT_USAGE


class SweepProblem(NamedTuple):
    """One thing wrong in a sweep file.

    file: path as given. line: 1-based, None where no line is known. where: the path in the document,
    such as `matrix.depth[2]`. message: what is wrong. suggestion: nearest known key, or None.
    """

    file: str
    line: int | None
    where: str
    message: str
    suggestion: str | None = None


class SweepFileError(LlamasweepError):
    """A sweep file cannot be used; `problems` holds every fault found, not only the first."""

    exit_code = EXIT_USAGE

    def __init__(self, problems: list[SweepProblem], *, hint: str | None = None) -> None:
        super().__init__(
            "\n".join(
                f"{p.file}:{p.line if p.line is not None else '?'}: {p.where}: {p.message}"
                + (f" (did you mean {p.suggestion!r}?)" if p.suggestion else "")
                for p in problems
            ),
            hint=hint,
        )
        self.problems = problems


class ModelFileError(LlamasweepError):
    """A model file cannot be read or is not what it claims to be."""


class NotModelledError(LlamasweepError):
    """The arithmetic of ceilings does not cover this architecture or setting; nothing is guessed instead."""


class ModelSynthError(LlamasweepError):
    """A model cannot be generated (unknown shape, type that cannot be written, no room)."""

    exit_code = EXIT_USAGE


class EngineNotFoundError(LlamasweepError):
    """No llama-bench, or not the one that was asked for."""

    exit_code = EXIT_NO_ENGINE


class BuildError(LlamasweepError):
    """A build of llama.cpp could not be fetched, compiled or understood."""

    exit_code = EXIT_NO_ENGINE


class BrokenBuildError(BuildError):
    """This one version cannot be used: it does not compile, or what it compiles to does not run. Another one may."""


class LockedError(LlamasweepError):
    """Another sweep is measuring on this machine."""

    exit_code = EXIT_LOCKED


class StoreError(LlamasweepError):
    """Results cannot be written or read (disk, permissions, a newer schema)."""

    exit_code = EXIT_STORE


class MachineError(LlamasweepError):
    """The machine is not in a state in which measuring makes sense (`--only-if-quiet`)."""

    exit_code = EXIT_MACHINE


_REASONS: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((UnicodeError,), "it is no UTF-8 text"),
    ((RecursionError,), "nested too deeply"),
    ((TypeError, AttributeError), "a value is of another kind than it must be"),
)
"""Problems that Python words for programmers, in other words."""


def plain_reason(problem: BaseException) -> str:
    """Why something went wrong, in the system's or our own words; Python's own wording is left out."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    if isinstance(problem, json.JSONDecodeError):
        return f"no JSON from line {problem.lineno}, column {problem.colno} on"
    if isinstance(problem, KeyError):
        return f"{quoted(str(problem.args[0]))} is missing" if problem.args else "a key is missing"
    for kinds, words in _REASONS:
        if isinstance(problem, kinds):
            return words
    lines = re.sub(r"\[Errno \d+\] ", "", str(problem)).strip().splitlines()
    return lines[0][:200] if lines else "no reason was given"
