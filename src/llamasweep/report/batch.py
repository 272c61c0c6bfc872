"""Prompt reading against the physical batch, under the roofs of memory and compute at each size. Rows in, plain data out.

A larger batch moves fewer bytes per token, so the memory roof rises with it; the compute roof stays level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.panels import Panel, Series, panels
from llamasweep.report.roofline import is_reference, peak_of
from llamasweep.report.rows import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One row at a batch of n_ubatch tokens. memory_tps: bandwidth ÷ bytes per token.

    compute_tps: peak ÷ FLOP per token, None where no peak is known.
    """

    row: Row
    n_ubatch: float
    tps: float
    memory_tps: float
    compute_tps: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Batches:
    """One model. lines: (what tells the series apart, its steps by size)."""

    panel: Panel
    lines: tuple[tuple[str, tuple[Step, ...]], ...]


def batches(rows: Sequence[Row]) -> tuple[Batches, ...]:
    """One per model whose prompts were read at several physical batches, with known traffic."""
    found = []
    for panel in panels(rows, "n_ubatch"):
        if panel.kind != "pp" or not panel.is_numeric:
            continue
        lines = [(series.label, _steps(series)) for series in panel.series]
        lines = [line for line in lines if len(line[1]) > 1]
        if lines:
            found.append(Batches(panel=panel, lines=tuple(lines)))
    return tuple(found)


def title(view: Batches) -> str:
    """What limits small and large batches, without a full stop."""
    label, steps = max(view.lines, key=lambda line: max(step.tps for step in line[1]))
    first, last = steps[0], steps[-1]
    whose = f"{label}: " if len(view.lines) > 1 else ""
    small, large = (figures.count(int(step.n_ubatch)) for step in (first, last))
    low, high = first.tps / first.memory_tps, last.tps / last.memory_tps
    text = f"{whose}prompts use {figures.percent(low)} of the memory roof at ubatch {small}, {figures.percent(high)} at {large}"
    if last.compute_tps:
        roof = "reference peak" if is_reference(last.row) else "compute roof"
        text += f" and {figures.percent(last.tps / last.compute_tps)} of the {roof} there"
    return text[0].upper() + text[1:]


def step_words(step: Step) -> str:
    """The sentence of a step's mark."""
    text = (
        f"ubatch {figures.count(int(step.n_ubatch))}: {figures.rate(step.tps)}; "
        f"memory would allow {figures.rate(step.memory_tps)}"
    )
    return text + (
        f", compute {figures.rate(step.compute_tps)}" if step.compute_tps is not None else ""
    )


def _steps(series: Series) -> tuple[Step, ...]:
    """The peak is the machine's: what one row tells of it holds for all of them."""
    peaks = [peak for point in series.points if (peak := peak_of(point.row)) is not None]
    peak = max(peaks, default=None)
    made = [_step(point.row, float(point.x), peak) for point in series.points]
    return tuple(step for step in made if step is not None)


def _step(row: Row, n_ubatch: float, peak_flop_per_s: float | None) -> Step | None:
    attempt = row.attempt
    bandwidth, n_bytes = attempt.ceiling_bandwidth_bytes_per_s, attempt.bytes_per_token
    if row.rates is None or not bandwidth or not n_bytes or n_ubatch <= 0:
        return None
    flop = attempt.flop_per_token
    return Step(
        row=row,
        n_ubatch=n_ubatch,
        tps=row.rates.median,
        memory_tps=bandwidth / n_bytes,
        compute_tps=peak_flop_per_s / flop if peak_flop_per_s and flop else None,
    )
