"""llama-bench's two streams, read as they come: JSON rows on stdout, progress and library log on stderr. Our drivers speak alike.

Pure state machines: bytes of one line in, events and facts out. Rows pair with cells by their index, never by the order in which
the two pipes arrive.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from llamasweep.engines.base import EngineEvent

MAX_LINE_BYTES = 1 << 20
"""A longer line is no result of llama-bench; it is cut and counted as garbage."""

_NOT_A_NUMBER = re.compile(rb"(?<=[:,\[])\s*-?(?:nan|inf)(?=\s*[,\]}])", re.IGNORECASE)
_N = "[0-9]{1,9}"
_PROGRESS = re.compile(
    rf"^(?:llama-bench: benchmark|llamasweep: test) (?P<index>{_N})/(?P<count>{_N}): (?:"
    r"(?P<starting>starting)|(?P<warmup>warmup (?:prompt|generation)) run"
    rf"|(?P<step>depth|prompt|generation) run (?P<rep>{_N})/(?P<reps>{_N})(?P<cached> \(cached\))?)$"
)
_NEEDED_INTS = ("n_prompt", "n_gen")
_MAX_INT = 2**63 - 1
_GARBAGE_SHOWN = 200


@dataclass(slots=True)
class RowReader:
    """stdout, line by line; the n-th row belongs to the n-th cell."""

    n_rows: int = 0

    def feed(self, line: bytes) -> EngineEvent | None:
        """An event for one line without its newline; None for an empty one."""
        text = line.strip()
        if not text:
            return None
        row = parse_row(text)
        if row is None:
            shown = text[:_GARBAGE_SHOWN].decode("utf-8", "replace")
            return EngineEvent(kind="garbage", text=shown)
        event = EngineEvent(kind="row", cell_index=self.n_rows, row=row)
        self.n_rows += 1
        return event


def parse_row(text: bytes) -> dict[str, Any] | None:
    """One jsonl row, or None if the line is none.

    A row needs n_prompt, n_gen and a list of positive integers in samples_ns; `nan`, which llama-bench prints for a deviation
    whose square came out negative, is read as None.
    """
    if not text.startswith(b"{") or len(text) > MAX_LINE_BYTES:
        return None
    row = read_object(text)
    if row is None or not all(_is_count(row.get(key)) for key in _NEEDED_INTS):
        return None
    samples = row.get("samples_ns")
    if not isinstance(samples, list) or not samples:
        return None
    if not all(_is_count(ns) and ns > 0 for ns in samples):
        return None
    return row


def read_object(text: bytes) -> dict[str, Any] | None:
    """The JSON object of a line, `nan` and `inf` in it read as None; None where it is no object."""
    found = _loaded(text)
    if found is None:
        found = _loaded(_NOT_A_NUMBER.sub(b" null", text))
    return found if isinstance(found, dict) else None


def _loaded(text: bytes) -> Any:
    try:
        return json.loads(text, parse_constant=lambda _word: None)
    except (ValueError, RecursionError):
        return None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_INT


@dataclass(slots=True)
class LogFacts:
    """What the library's log said while one cell was set up; None where it said nothing."""

    n_ctx: int | None = None
    n_batch: int | None = None
    n_ubatch: int | None = None
    flash_attn: str | None = None
    n_layers_offloaded: int | None = None
    n_layers_total: int | None = None
    buffers_mib: dict[str, float] = field(default_factory=dict)
    load_mode: str | None = None
    is_unpinned: bool = False


_INTS = tuple(
    (re.compile(rf"^\S+: {name}\s+= ([0-9]{{1,18}})$"), name)
    for name in ("n_ctx", "n_batch", "n_ubatch")
)
_FLASH_SET = re.compile(r"^\S+: flash_attn\s+= (enabled|disabled|auto|0|1)")
_FLASH_RESOLVED = re.compile(
    r"Flash Attention (?:was |is )?(?:auto, set to |set to )?(enabled|disabled)", re.IGNORECASE
)
_FLASH_WORD = {"enabled": "on", "1": "on", "disabled": "off", "0": "off"}
_OFFLOADED = re.compile(rf"offloaded ({_N})/({_N}) layers to GPU")
_BUFFER = re.compile(
    r"^\S+:\s+(\S+)\s+(model|KV|compute|output|RS) buffer size =\s+([0-9]{1,15}(?:\.[0-9]{1,9})?) MiB"
)
_LOAD_MODE = re.compile(r"\(load_mode = (\S+)\)")
_OLD_LOAD_MODE = re.compile(r"\(mmap = (true|false)(?:, direct_io = (true|false))?\)")
_UNPINNED = "failed to set affinity mask"


@dataclass(slots=True)
class LogReader:
    """stderr, line by line: progress as events, and the library's facts per cell and for the model load."""

    load: LogFacts = field(default_factory=LogFacts)
    cells: dict[int, LogFacts] = field(default_factory=dict)
    current: int | None = None
    count: int | None = None

    def feed(self, line: str) -> EngineEvent | None:
        """An event if the line is a progress line; otherwise the line may add a fact."""
        match = _PROGRESS.match(line)
        if match is None or not _is_possible(match):
            self._learn(line)
            return None
        self.current = int(match["index"]) - 1
        self.count = int(match["count"])
        if match["starting"]:
            return EngineEvent(
                kind="step", cell_index=self.current, step="starting", count=self.count
            )
        if match["warmup"]:
            step = match["warmup"].replace(" ", "_")
            return EngineEvent(kind="step", cell_index=self.current, step=step)
        return EngineEvent(
            kind="step",
            cell_index=self.current,
            step=match["step"],
            repetition_index=int(match["rep"]) - 1,
            is_cached=match["cached"] is not None,
        )

    def facts(self, index: int) -> LogFacts:
        return self.cells.setdefault(index, LogFacts())

    def _learn(self, line: str) -> None:
        facts = self.load if self.current is None else self.facts(self.current)
        for pattern, name in _INTS:
            if match := pattern.match(line):
                setattr(facts, name, int(match[1]))
                return
        if match := _FLASH_SET.match(line):
            facts.flash_attn = _FLASH_WORD.get(match[1])
        elif match := _FLASH_RESOLVED.search(line):
            facts.flash_attn = _FLASH_WORD[match[1].lower()]
        elif match := _BUFFER.match(line):
            key = f"{match[1]} {match[2]}"
            facts.buffers_mib[key] = facts.buffers_mib.get(key, 0.0) + float(match[3])
        elif match := _OFFLOADED.search(line):
            self.load.n_layers_offloaded, self.load.n_layers_total = int(match[1]), int(match[2])
        elif match := _LOAD_MODE.search(line):
            self.load.load_mode = match[1]
        elif match := _OLD_LOAD_MODE.search(line):
            mapped = "mmap" if match[1] == "true" else "none"
            self.load.load_mode = "dio" if match[2] == "true" else mapped
        elif _UNPINNED in line:
            facts.is_unpinned = True


def _is_possible(progress: re.Match[str]) -> bool:
    """Whether test and repetition are among those that the line itself counts."""
    is_repetition = progress["step"] is not None
    return 1 <= int(progress["index"]) <= int(progress["count"]) and (
        not is_repetition or 1 <= int(progress["rep"]) <= int(progress["reps"])
    )
