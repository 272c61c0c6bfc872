"""The roofline: work per byte against calculations per second, under what memory and compute allow. Rows in, plain data out.

A compute roof is known where a row tells the peak that its ceiling rests on, or where an exact ceiling of prompts is bound by
compute: then ceiling x FLOP per token is that peak. What else is known of the memory, measured or by its specification, is a
roof of its own beside the one that the ceilings rest on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.comparison import median
from llamasweep.report.headline import BROKEN_ABOVE
from llamasweep.report.rows import Row
from llamasweep.report.strips import per_model
from llamasweep.results.machine_record import MachineRecord
from llamasweep.results.measured_rows import MEASURED_HERE, ran_on_cpu
from llamasweep.results.records import RunData

MAX_MODELS = 6
SAME_ROOF_WITHIN = 0.01
"""Bandwidths closer than this are one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """One row: FLOP per byte, and FLOP per second = tokens per second x FLOP per token."""

    row: Row
    flop_per_byte: float
    flop_per_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Roof:
    """A bandwidth of the same memory that the ceilings do not rest on. word: `measured` or `specification`."""

    bytes_per_s: float
    word: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Roofline:
    """Spots under one memory. peak_flop_per_s: None where no compute peak is known. source: of the bandwidth, in words.

    other_roofs: what else is known of the memory. is_peak_reference: kernels may beat it. n_left_out: models beyond the bound.
    """

    spots: tuple[Spot, ...]
    bandwidth_bytes_per_s: float
    source: str
    other_roofs: tuple[Roof, ...]
    peak_flop_per_s: float | None
    is_peak_reference: bool
    n_left_out: int


def rooflines(rows: Sequence[Row], runs: Sequence[RunData] = ()) -> tuple[Roofline, ...]:
    """One per bandwidth, each with at least one tg and one pp spot; models in their fastest setting at the least depth."""
    by_bandwidth: dict[float, list[Row]] = {}
    for row in rows:
        bandwidth = row.attempt.ceiling_bandwidth_bytes_per_s
        if row.rates is not None and bandwidth is not None:
            by_bandwidth.setdefault(bandwidth, []).append(row)
    found = []
    for bandwidth, of_it in by_bandwidth.items():
        pairs = per_model(of_it)
        spots = [
            spot for pair in pairs[:MAX_MODELS] for row in pair if row and (spot := _spot(row))
        ]
        if {"tg", "pp"} <= {spot.row.kind for spot in spots}:
            source = next(r.attempt.ceiling_bandwidth_source for r in of_it)
            found.append(
                Roofline(
                    spots=tuple(spots),
                    bandwidth_bytes_per_s=bandwidth,
                    source=source or "source not recorded",
                    other_roofs=_other_roofs(spots[0].row, bandwidth, source or "", runs),
                    peak_flop_per_s=_peak(of_it),
                    is_peak_reference=any(is_reference(row) for row in of_it),
                    n_left_out=max(0, len(pairs) - MAX_MODELS),
                )
            )
    return tuple(found)


def title(view: Roofline) -> str:
    """What it shows: how much of the memory roof generation uses, and what prompts reach."""
    tg = max(_of_kind(view, "tg"), key=lambda spot: memory_share(spot, view))
    pp = max(_of_kind(view, "pp"), key=lambda spot: spot.flop_per_s)
    share = memory_share(tg, view)
    used = (
        f"Generation uses {figures.percent(share)} of the memory"
        if share <= BROKEN_ABOVE
        else "Generation lies above the memory roof"
    )
    reached = f"prompts reach {figures.compute(pp.flop_per_s)}"
    if view.peak_flop_per_s:
        whole = "reference peak" if view.is_peak_reference else "compute"
        reached += f", {figures.percent(pp.flop_per_s / view.peak_flop_per_s)} of the {whole}"
    return f"{used}; {reached} with {figures.number(pp.flop_per_byte / tg.flop_per_byte)} times the work per byte"


def memory_share(spot: Spot, view: Roofline) -> float:
    """Bytes per second that the spot moves / bandwidth."""
    return spot.flop_per_s / spot.flop_per_byte / view.bandwidth_bytes_per_s


def _of_kind(view: Roofline, kind: str) -> list[Spot]:
    return [spot for spot in view.spots if spot.row.kind == kind]


def _spot(row: Row) -> Spot | None:
    intensity, flop = row.attempt.arithmetic_intensity, row.attempt.flop_per_token
    if row.rates is None or not intensity or not flop:
        return None
    return Spot(row=row, flop_per_byte=intensity, flop_per_s=median(row) * flop)


def peak_of(row: Row) -> float | None:
    """The compute peak that the row's ceiling rests on, in FLOP per second; None where none is known."""
    told = getattr(row.attempt, "ceiling_peak_flop_per_s", None)
    if isinstance(told, int | float) and told > 0:
        return float(told)
    flop, is_bound = row.attempt.flop_per_token, row.attempt.ceiling_bound == "compute"
    if row.kind != "pp" or not is_bound or not row.ceiling.value or not flop:
        return None
    return row.ceiling.value * flop


def is_reference(row: Row) -> bool:
    """Whether the row's compute peak is only a line to compare with."""
    return bool(row.attempt.ceiling_is_reference)


def _peak(rows: Sequence[Row]) -> float | None:
    return max((peak for row in rows if (peak := peak_of(row)) is not None), default=None)


def _other_roofs(
    row: Row, bandwidth: float, source: str, runs: Sequence[RunData]
) -> tuple[Roof, ...]:
    """Measured and specified bandwidth of the memory that holds the weights, without the one in use."""
    machine = next((run.info.machine for run in runs if run.info.run_id == row.run_id), {})
    record = MachineRecord(plain=machine)
    is_cpu = ran_on_cpu(row.attempt)
    if is_cpu is None:
        return ()
    measured = record.number("calibration", "ram", "best_bytes_per_s") if is_cpu else None
    spec = record.spec_ram_bytes_per_s if is_cpu else record.spec_gpu_bytes_per_s
    roofs = []
    if measured and not source.startswith(MEASURED_HERE):
        roofs.append(Roof(bytes_per_s=measured, word="measured"))
    if spec and not source.startswith("specification"):
        roofs.append(Roof(bytes_per_s=spec, word="specification"))
    return tuple(roof for roof in roofs if abs(roof.bytes_per_s / bandwidth - 1) > SAME_ROOF_WITHIN)
