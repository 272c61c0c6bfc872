"""What llama-batched-bench prints with `--output-format jsonl`: a line for each cell that it measured once. Pure.

Its rates are totals over all streams; here are only counts and times. A cell that does not fit the context has no line at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from llamasweep.engines.llama_bench_output import MAX_LINE_BYTES, read_object
from llamasweep.sweep.cell import TestKind

_COUNTS = ("pp", "tg", "pl")
_TIMES = ("t_pp", "t_tg", "t")
_MOST_TOKENS = 2**31 - 1
_MOST_S = 1e7
_SWITCHES = (0, 1, False, True)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchedRow:
    """One cell.

    n_prompt: of each stream. n_gen: of each stream. is_prompt_shared: `-pps`: the prompt was read once, for all. prompt_s,
    generation_s: wall time of the whole batch; 0 where nothing was asked. whole_s: both. n_threads: None where it does not tell.
    """

    n_prompt: int
    n_gen: int
    n_streams: int
    is_prompt_shared: bool
    prompt_s: float
    generation_s: float
    whole_s: float
    n_threads: int | None

    def n_tokens(self, kind: TestKind) -> int:
        """Of all streams, that were read or generated: for pp the prompts, for tg the answers, for pg both."""
        prompts = self.n_prompt * (1 if self.is_prompt_shared else self.n_streams)
        answers = self.n_gen * self.n_streams
        return {"pp": prompts, "tg": answers, "pg": prompts + answers}[kind]

    def duration_ns(self, kind: TestKind) -> int:
        """What they took; 0 where the program's clock did not move."""
        seconds = {"pp": self.prompt_s, "tg": self.generation_s, "pg": self.whole_s}[kind]
        return round(seconds * 1e9)


def parse_batched_row(text: bytes) -> BatchedRow | None:
    """The cell that a line of stdout holds, None where it holds none.

    A rate of nothing is printed as `nan`, which is no JSON and is read as absent.
    """
    if not text.startswith(b"{") or len(text) > MAX_LINE_BYTES:
        return None
    found = read_object(text)
    if found is None or found.get("is_pp_shared") not in _SWITCHES:
        return None
    counts = [n for name in _COUNTS if (n := _count(found.get(name))) is not None]
    times = [s for name in _TIMES if (s := _seconds(found.get(name))) is not None]
    if len(counts) < len(_COUNTS) or len(times) < len(_TIMES):
        return None
    n_prompt, n_gen, n_streams = counts
    prompt_s, generation_s, whole_s = times
    if not n_streams:
        return None
    return BatchedRow(
        n_prompt=n_prompt,
        n_gen=n_gen,
        n_streams=n_streams,
        is_prompt_shared=bool(found["is_pp_shared"]),
        prompt_s=prompt_s,
        generation_s=generation_s,
        whole_s=whole_s,
        n_threads=_count(found.get("n_threads")) or None,
    )


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value <= _MOST_TOKENS else None


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value < _MOST_S else None
