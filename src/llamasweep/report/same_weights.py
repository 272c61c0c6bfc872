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
_FAR_APART = 1.5
"""Fastest repetition over the slowest from which a median says little of the speed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One row. bench_tps: llama-bench's median on the same file. share: the row's median over it."""

    row: Row
    label: str
    bench_tps: float
    share: float

    @property
    def bench_range(self) -> tuple[float, float] | None:
        """llama-bench's slowest and fastest repetition; None where they were not kept or there was one."""
        times = _times(self.row)
        low, high = times.same_weights_min_tps, times.same_weights_max_tps
        return (low, high) if low is not None and high is not None and 0 < low < high else None

    @property
    def is_steady(self) -> bool:
        """Whether the repetitions of either side lie near each other."""
        rates = self.row.rates
        own = (rates.low, rates.high) if rates is not None else (None, None)
        return not any(
            low is not None and high is not None and high > _FAR_APART * low
            for low, high in (own, self.bench_range or (None, None))
        )


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
    steady = [pair for pair in view.pairs if pair.is_steady]
    doubt = "" if steady else ", with repetitions far apart"
    shares = [pair.share for pair in steady or view.pairs]
    engine = shown(view.pairs[0].row.attempt.engine, 24).capitalize()
    low, high = min(shares), max(shares)
    if abs(low - 1) <= _SAME_WITHIN and abs(high - 1) <= _SAME_WITHIN:
        return f"{engine} {verb} as fast as llama-bench on the same file (within 3 %){doubt}"
    span = figures.span(figures.percent(low), figures.percent(high))
    return f"{engine} {verb} at {span} of llama-bench's speed on the same file{doubt}"


def pair_words(pair: Pair) -> str:
    """The sentence of llama-bench's mark."""
    times = _times(pair.row)
    build = shown(str(times.same_weights_build or "llama-bench"), 40)
    text = f"{shown(pair.row.subject, 60)}, {pair.row.test}: llama-bench {build} {figures.rate(pair.bench_tps)}"
    if pair.bench_range is not None:
        text += f" ({figures.span(*map(figures.number, pair.bench_range))})"
    text += f", the server {figures.percent(pair.share)} of it"
    if times.same_weights_settings:
        text += f"; {shown(times.same_weights_settings, 160)}"
    return text


def explanation(view: SameWeights) -> str:
    """What differs between the two, from the rows' own columns, in sentences."""
    times = [_times(pair.row) for pair in view.pairs]
    told = [_builds(times)]
    windows = sorted({t.server_context_tokens for t in times if t.server_context_tokens})
    if windows:
        span = figures.span(figures.count(windows[0]), figures.count(windows[-1]))
        told.append(f"Context: a window of {span} tokens, llama-bench's is as long as its test.")
    is_split = any("cpu_gpu_split" in pair.row.flags for pair in view.pairs)
    placement = "part of the model is on a GPU there" if is_split else "the same"
    told.append(
        f"Placement: {placement}. Threads, batch and cache types: as the server applied them."
    )
    if any(str(t.request_mode).endswith("own") for t in times):
        told.append("Template: the model's own.")
    n_unsteady = sum(not pair.is_steady for pair in view.pairs)
    if 0 < n_unsteady < len(view.pairs):
        told.append(
            f"The title leaves out {figures.counted(n_unsteady, 'row')} with repetitions far apart."
        )
    if view.kind == "tg":
        told.append(
            "Sampling: the server picks each token and makes text of it; llama-bench does not."
        )
    else:
        told.append(
            "Requests: each brings a new prompt to the server; llama-bench reads as many tokens again and again."
        )
    return " ".join(told)


def _builds(times: Sequence[RequestTimes]) -> str:
    """Which llama.cpp is on either side, and how to have the same one."""
    bench = sorted({value_word(t.same_weights_build) for t in times if t.same_weights_build})
    versions = sorted({value_word(t.server_version) for t in times if t.server_version})
    inside = sorted({value_word(t.server_build) for t in times if t.server_build})
    server = f"the server {', '.join(versions) or 'does not tell its version'}"
    if not inside:
        return f"Builds: llama-bench {', '.join(bench)}, {server}."
    if inside == bench:
        return f"Builds: {', '.join(bench)} on both sides, {server}."
    text = f"Builds: llama-bench {', '.join(bench)}, {server} with {', '.join(inside)}"
    return text + "; naming that build in `same_weights` leaves one difference less."


def _bench_tps(row: Row) -> float | None:
    tps = _times(row).same_weights_tps
    return tps if tps is not None and tps > 0 else None


def _times(row: Row) -> RequestTimes:
    return row.attempt.requests or RequestTimes()


def _label(row: Row, names: Sequence[str]) -> str:
    parts = [row.subject, *(setting_word(name, axis_value(row, name)) for name in names)]
    return ", ".join(value_word(part) for part in parts if part)
