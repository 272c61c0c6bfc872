"""The block that `ollama run --verbose` writes to stderr, read from the bytes as they really are.

Driven by labels: any subset of lines, in any order, between cursor codes and spinner frames; lines that it does not know are
kept. Rates are computed again from counts and durations, and the printed ones held against them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

_NS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
_MOST_NS = 2**63 - 1
"""What Go's time.Duration holds, 292 years."""
_MICRO = str.maketrans({"µ": "u", "μ": "u"})
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
_DURATION_SHAPE = rf"-?(?:[0-9]{{1,18}}h)?(?:[0-9]{{1,18}}m(?!s))?(?:{_NUMBER}(?:s|ms|[uµμ]s|ns))?"
_DURATION = re.compile(_DURATION_SHAPE)
_PART = re.compile(rf"({_NUMBER})(h|ms|m|s|us|ns)")

_CURSOR = re.compile(r"\x1b\[(?:[0-9]*G|[0-9]*A|2K)|\r")
"""Back to the first column, up a line, line erased: what follows stands on a line of its own."""
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\^_]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_END = r"(?![\w.])"
_VALUE_KINDS = {
    "duration": re.compile(rf"[\s*]*({_DURATION_SHAPE}){_END}"),
    "count": re.compile(r"[\s*]*([0-9]{1,18}) token(?:s|\(s\))"),
    "rate": re.compile(rf"[\s*]*({_NUMBER}) tokens/s{_END}"),
}
_LABELS = {
    "total duration": ("total_duration_ns", "duration"),
    "load duration": ("load_duration_ns", "duration"),
    "prompt eval count": ("prompt_eval_count", "count"),
    "prompt eval cached": ("prompt_eval_cached_count", "count"),
    "prompt eval duration": ("prompt_eval_duration_ns", "duration"),
    "prompt eval rate": ("printed_prompt_eval_rate_tps", "rate"),
    "eval count": ("eval_count", "count"),
    "eval duration": ("eval_duration_ns", "duration"),
    "eval rate": ("printed_eval_rate_tps", "rate"),
}
"""Label -> field and kind of value."""
_LINE = re.compile(rf"[^\w:]*({'|'.join(_LABELS)}):")
"""A label with nothing before it but spaces and signs (spinner frames, a quotation's >)."""

MAX_UNKNOWN_LINES = 1_000
MAX_LINE_CHARACTERS = 1_000
_ROUNDING_TPS = 0.005
"""Rates are printed with two decimals."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VerboseBlock:
    """What the block says; a field is None where its line is absent or cannot be read.

    Durations in ns. prompt_eval_cached_count: tokens of the prompt that were in the cache already (from v0.33.3 on).
    printed_…: rates as printed, tokens per second. unknown_lines: every other line that holds a word, without cursor codes,
    the last 1,000 at most, each cut to 1,000 characters. n_blocks: how often a block began; the fields are of the last.
    """

    total_duration_ns: int | None = None
    load_duration_ns: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_cached_count: int | None = None
    prompt_eval_duration_ns: int | None = None
    eval_count: int | None = None
    eval_duration_ns: int | None = None
    printed_prompt_eval_rate_tps: float | None = None
    printed_eval_rate_tps: float | None = None
    unknown_lines: tuple[str, ...] = ()
    n_blocks: int = 0

    @property
    def prompt_eval_rate_tps(self) -> float | None:
        """(prompt_eval_count - cached) / prompt_eval_duration; None where one of the two lines is absent.

        Where a version counts cached tokens without telling them, this is as inflated as what it prints.
        """
        if self.prompt_eval_count is None:
            return None
        n_read = self.prompt_eval_count
        if self.prompt_eval_cached_count is not None:
            n_read -= self.prompt_eval_cached_count
        return _rate(n_read, self.prompt_eval_duration_ns)

    @property
    def eval_rate_tps(self) -> float | None:
        """eval_count / eval_duration, as Ollama prints it: N tokens over the time of N - 1."""
        return _rate(self.eval_count, self.eval_duration_ns)

    @property
    def disagreements(self) -> tuple[str, ...]:
        """A sentence for each printed rate that is not the one computed from count and duration."""
        pairs = (
            ("prompt eval rate", self.printed_prompt_eval_rate_tps, self.prompt_eval_rate_tps),
            ("eval rate", self.printed_eval_rate_tps, self.eval_rate_tps),
        )
        return tuple(
            f"{name}: printed {printed:.2f} tokens/s, count / duration is {computed:.2f}"
            for name, printed, computed in pairs
            if printed is not None and computed is not None and not _agree(printed, computed)
        )


def _rate(n_tokens: int | None, duration_ns: int | None) -> float | None:
    if n_tokens is None or duration_ns is None or duration_ns <= 0 or n_tokens < 0:
        return None
    return n_tokens / duration_ns * 1e9


def _agree(printed: float, computed: float) -> bool:
    return abs(printed - computed) <= _ROUNDING_TPS * 1.01 + abs(computed) * 1e-9


def parse_go_duration(text: str) -> int | None:
    """Nanoseconds of a duration as Go prints it (1h2m3.5s, 73ms, 891.933µs, 0s); None for anything else.

    A bare 5m is five minutes. Fractions of a nanosecond are rounded; beyond what Go can hold it is None.
    """
    text = text.translate(_MICRO)
    if not _DURATION.fullmatch(text) or not text.strip("-"):
        return None
    parts = _PART.findall(text)
    total = sum((Decimal(number) * _NS[unit] for number, unit in parts), start=Decimal(0))
    n_ns = int(total.to_integral_value())
    return None if n_ns > _MOST_NS else -n_ns if text.startswith("-") else n_ns


def parse_verbose(stderr: bytes) -> VerboseBlock:
    """Read the last block in the stderr of `ollama run --verbose`; raises nothing, whatever the bytes are."""
    reader = _Reader()
    for line, is_whole in _lines(stderr):
        reader.take(line, is_whole=is_whole)
    return VerboseBlock(
        **reader.found,
        unknown_lines=tuple(reader.unknown[-MAX_UNKNOWN_LINES:]),
        n_blocks=reader.n_blocks,
    )


def _lines(stderr: bytes) -> Iterator[tuple[str, bool]]:
    """Lines without cursor codes, and whether their end was seen."""
    text = _ESCAPE.sub("", _CURSOR.sub("\n", stderr.decode("utf-8", "replace")))
    *whole, rest = text.split("\n")
    for line in whole:
        yield line, True
    yield rest, False


@dataclass(slots=True)
class _Reader:
    """Lines into fields. A label that comes again begins a new block."""

    found: dict[str, Any] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    n_blocks: int = 0

    def take(self, line: str, *, is_whole: bool) -> None:
        line = line[:MAX_LINE_CHARACTERS].strip()
        match = _LINE.match(line)
        if match is None:
            self._keep(line)
            return
        label = match[1]
        if label in self.seen or not self.seen:
            self.found, self.seen = {}, set()
            self.n_blocks += 1
        self.seen.add(label)
        name, kind = _LABELS[label]
        value = _value(line[match.end() :], kind, is_whole=is_whole)
        if value is None:
            self._keep(line)
        else:
            self.found[name] = value

    def _keep(self, line: str) -> None:
        if any(character.isalnum() for character in line):
            self.unknown.append(line)
            if len(self.unknown) > 2 * MAX_UNKNOWN_LINES:
                del self.unknown[:MAX_UNKNOWN_LINES]


def _value(text: str, kind: str, *, is_whole: bool) -> int | float | None:
    match = _VALUE_KINDS[kind].match(text)
    if match is None or not match[1]:
        return None
    if kind == "count":
        return int(match[1])
    if kind == "rate":
        return float(match[1])
    if not is_whole and match[1].endswith(("m", "h")) and match.end() == len(text):
        return None  # cut off there: 53m may be the beginning of 53ms
    return parse_go_duration(match[1])
