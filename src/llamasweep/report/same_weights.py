"""A server beside llama-bench on the same file: both rates, and what the gap can come from. Rows in, plain data out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.comparison import median
from llamasweep.report.names import shown, value_word
from llamasweep.report.rows import Row, axis_value, varying
from llamasweep.report.strips import setting_word
from llamasweep.results.request_times import RequestTimes

MAX_PAIRS = 16
_KINDS = ("tg", "pp")
_SAME_WITHIN = 0.03


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One row. bench_tps: llama-bench's median on the same file. share: the row's median over it."""

    row: Row
    label: str
    bench_tps: float
    share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SameWeights:
    """Pairs of one kind, the largest gap first. n_left_out: pairs beyond the bound."""

    kind: str
    pairs: tuple[Pair, ...]
    n_left_out: int


def same_weights(rows: Sequence[Row]) -> tuple[SameWeights, ...]:
    """tg and pp, as far as some row has both rates."""
    found = []
    for kind in _KINDS:
        of_kind = [row for row in rows if row.kind == kind and row.rates is not None]
        both = [(row, tps) for row in of_kind if (tps := _bench_tps(row)) is not None]
        names = [name for name in varying([row for row, _ in both]) if name != "run_id"]
        pairs = sorted(
            (
                Pair(row=row, label=_label(row, names), bench_tps=tps, share=median(row) / tps)
                for row, tps in both
            ),
            key=lambda pair: pair.share,
        )
        if pairs:
            found.append(
                SameWeights(
                    kind=kind,
                    pairs=tuple(pairs[:MAX_PAIRS]),
                    n_left_out=max(0, len(pairs) - MAX_PAIRS),
                )
            )
    return tuple(found)


def title(view: SameWeights) -> str:
    """Which share of llama-bench's speed is left, without a full stop."""
    verb = {"tg": "writes", "pp": "reads"}[view.kind]
    shares = [pair.share for pair in view.pairs]
    engine = shown(view.pairs[0].row.attempt.engine, 24)
    low, high = min(shares), max(shares)
    if abs(low - 1) <= _SAME_WITHIN and abs(high - 1) <= _SAME_WITHIN:
        return f"{engine} {verb} as fast as llama-bench on the same file (within 3 %)"
    span = figures.span(figures.percent(low), figures.percent(high))
    return f"{engine} {verb} at {span} of llama-bench's speed on the same file"


def pair_words(pair: Pair) -> str:
    """The sentence of llama-bench's mark."""
    times = _times(pair.row)
    build = shown(str(times.same_weights_build or "llama-bench"), 40)
    text = f"{shown(pair.row.subject, 60)}, {pair.row.test}: llama-bench {build} {figures.rate(pair.bench_tps)}"
    text += f", the server {figures.percent(pair.share)} of it"
    if times.same_weights_settings:
        text += f"; {shown(times.same_weights_settings, 160)}"
    return text


def explanation(view: SameWeights) -> str:
    """What differs between the two, from the rows' own columns, in sentences."""
    times = [_times(pair.row) for pair in view.pairs]
    builds = sorted({str(t.same_weights_build) for t in times if t.same_weights_build})
    versions = sorted({str(t.server_version) for t in times if t.server_version})
    told = [
        f"Builds: llama-bench {', '.join(map(value_word, builds))}, "
        f"the server {', '.join(map(value_word, versions)) or 'does not tell'}."
    ]
    windows = sorted({t.server_context_tokens for t in times if t.server_context_tokens})
    if windows:
        span = figures.span(figures.count(windows[0]), figures.count(windows[-1]))
        told.append(f"Context: a window of {span} tokens, llama-bench's is as long as its test.")
    is_split = any(0 < (t.server_vram_bytes or 0) < (t.server_size_bytes or 0) for t in times)
    placement = "part of the model counts as GPU memory there" if is_split else "the same"
    told.append(
        f"Placement: {placement}. Threads, batch and cache types: as the server applied them."
    )
    if any(str(t.request_mode).endswith("own") for t in times):
        told.append("Template: the model's own.")
    if view.kind == "tg":
        told.append(
            "Sampling: the server picks each token and makes text of it; llama-bench does not."
        )
    return " ".join(told)


def _bench_tps(row: Row) -> float | None:
    tps = _times(row).same_weights_tps
    return tps if tps is not None and tps > 0 else None


def _times(row: Row) -> RequestTimes:
    return row.attempt.requests or RequestTimes()


def _label(row: Row, names: Sequence[str]) -> str:
    parts = [row.subject, *(setting_word(name, axis_value(row, name)) for name in names)]
    return ", ".join(value_word(part) for part in parts if part)
