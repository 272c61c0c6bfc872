"""Checks of power and heat: throttling, battery, governors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from llamasweep.results.findings import Finding, make_finding
from llamasweep.results.measured_rows import MeasuredRows, figures, ran_on_cpu
from llamasweep.results.records import Attempt

THROTTLED_FROM = 0.05

_SLOW_GOVERNORS = frozenset({"powersave", "conservative"})
_SELF_GOVERNING = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose `powersave` is the normal mode; there the energy preference decides."""

_SLOW_PREFERENCES = frozenset({"power", "balance_power"})

_POWER_BITS = 0x4 | 0x80
_HEAT_BITS = 0x20 | 0x40
_HARDWARE_BIT = 0x8
"""Reasons for a lower clock as NVML names them: SW power cap, HW power brake; SW and HW thermal slowdown; HW slowdown."""


def check(run: MeasuredRows) -> Iterator[Finding]:
    """Row by row, then what is true of the machine."""
    for row in run.rows:
        yield from _throttled(run, row)
    ids = [row.attempt_id for row in run.rows]
    if not ids:
        return
    power = run.machine.word("power_source")
    if power == "battery":
        yield make_finding("on_battery", {"power_source": power}, ids)
    yield from _governor(run, [row.attempt_id for row in run.rows if ran_on_cpu(row) is not False])


def _throttled(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    told = figures(row)
    fraction = told.throttled_fraction
    if fraction is None or fraction < THROTTLED_FROM:
        return
    on_gpu = ran_on_cpu(row) is False
    limit = _limit(run, row) if on_gpu else None
    evidence = {
        "throttled_readings_fraction": fraction,
        "limit": limit,
        "cpu_clock_mhz": told.cpu_clock_mean_mhz,
        "cpu_temperature_peak_c": told.cpu_temperature_peak_c,
        "gpu_clock_mhz": told.gpu_clock_mean_mhz,
        "gpu_temperature_peak_c": told.gpu_temperature_peak_c,
        "gpu_power_w": told.gpu_power_mean_w,
    }
    if limit == "power":
        yield make_finding(
            "throttled",
            evidence,
            [row.attempt_id],
            severity="note",
            cause="The GPU ran at its power limit, which is usual for prompts and no fault of cooling.",
            next_step="A higher power limit gives a higher clock, where the maker allows it.",
        )
        return
    yield make_finding("throttled", evidence, [row.attempt_id])


def _limit(run: MeasuredRows, row: Attempt) -> str | None:
    """Which limit NVML named while the row was measured: power, heat, or both; None where it is not told."""
    if row.started_at is None or row.finished_at is None:
        return None
    start_ns, end_ns = (int(t.timestamp() * 1e9) for t in (row.started_at, row.finished_at))
    masks = [int(value) for time_ns, value in run.throttle_masks if start_ns <= time_ns <= end_ns]
    mask = reduce(int.__or__, masks, 0)
    has_power, has_heat = bool(mask & _POWER_BITS), bool(mask & _HEAT_BITS)
    if mask & _HARDWARE_BIT and not has_heat:
        return "hardware"
    if has_power and has_heat:
        return "power and heat"
    return "power" if has_power else "heat" if has_heat else None


def _governor(run: MeasuredRows, ids: list[str]) -> Iterator[Finding]:
    governor, driver = run.machine.word("governor"), run.machine.word("frequency_driver")
    preference = run.machine.word("energy_preference")
    governs_itself = (driver or "").startswith(_SELF_GOVERNING)
    names = {name.strip() for name in (governor or "").split(",")}
    is_slow = bool(names & _SLOW_GOVERNORS) and not governs_itself
    if ids and (is_slow or preference in _SLOW_PREFERENCES):
        evidence = {"governor": governor, "driver": driver, "energy_preference": preference}
        yield make_finding("slow_governor", evidence, ids)
