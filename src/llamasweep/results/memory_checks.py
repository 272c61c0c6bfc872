"""Checks of RAM, disk and swap, and of memory that is slower than it should be."""

from __future__ import annotations

from collections.abc import Iterator

from llamasweep.results.findings import Finding, make_finding
from llamasweep.results.measured_rows import MeasuredRows, figures, ran_on_cpu
from llamasweep.results.records import Attempt

PAGED_FROM_BYTES = 16 * 2**20
SWAP_FROM_BYTES = 64 * 2**20
RAM_FULL_FROM = 0.90
FITS_BELOW = 0.90
BELOW_RATED = 0.60
ONE_CHANNEL_MOST = 1.10
"""Measured bandwidth against one channel's specification: above it, more than one channel works."""

HALF_OF_SPEC = 0.55
GPU_CLOCK_BELOW = 0.90


def check(run: MeasuredRows) -> Iterator[Finding]:
    """Row by row, then what is true of the machine's memory."""
    least_swap = min(
        (peak for row in run.rows if (peak := figures(row).swap_peak_bytes) is not None), default=0
    )
    for row in run.rows:
        yield from _paged(run, row)
        yield from _swapping(run, row, least_swap)
        yield from _gpu_memory_clock(run, row)
    yield from _ram(run)


def _paged(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    told = figures(row)
    if not told.n_major_faults or told.disk_read_bytes is None:
        return
    if told.disk_read_bytes < PAGED_FROM_BYTES:
        return
    ram_bytes, model_bytes = run.machine.count("ram_bytes"), row.model_size_bytes
    evidence = {
        "n_major_faults": told.n_major_faults,
        "read_from_disk_bytes": told.disk_read_bytes,
        "model_bytes": model_bytes,
        "ram_bytes": ram_bytes,
    }
    if ram_bytes is not None and model_bytes is not None and model_bytes > FITS_BELOW * ram_bytes:
        yield make_finding(
            "paged_from_disk",
            evidence,
            [row.attempt_id],
            cause="The model does not fit in RAM beside the system, so weights are read from disk again and again.",
            next_step="Take a smaller quantisation or model; a faster disk helps only a little.",
        )
        return
    yield make_finding("paged_from_disk", evidence, [row.attempt_id])


def _swapping(run: MeasuredRows, row: Attempt, least_bytes: int) -> Iterator[Finding]:
    """Swap that was in use all along says nothing, so it must have grown, or RAM must be nearly full."""
    told = figures(row)
    swap_bytes, used_bytes = told.swap_peak_bytes, told.ram_peak_system_bytes
    ram_bytes = run.machine.count("ram_bytes")
    if swap_bytes is None or swap_bytes < SWAP_FROM_BYTES:
        return
    growth_bytes = swap_bytes - least_bytes
    is_full = (
        used_bytes is not None and ram_bytes is not None and used_bytes >= RAM_FULL_FROM * ram_bytes
    )
    if growth_bytes >= SWAP_FROM_BYTES or is_full:
        evidence = {
            "swap_peak_bytes": swap_bytes,
            "swap_growth_bytes": growth_bytes,
            "ram_in_use_bytes": used_bytes,
            "ram_bytes": ram_bytes,
        }
        yield make_finding("swapping", evidence, [row.attempt_id])


def _gpu_memory_clock(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    gpus, clock_mhz = run.machine.gpus, figures(row).gpu_memory_clock_mean_mhz
    highest_mhz = gpus[0].number("memory_clock_max_mhz") if len(gpus) == 1 else None
    if row.test_kind != "tg" or clock_mhz is None or highest_mhz is None or ran_on_cpu(row):
        return
    if clock_mhz < GPU_CLOCK_BELOW * highest_mhz:
        yield make_finding(
            "memory_below_rated",
            {"gpu_memory_clock_mhz": clock_mhz, "highest_gpu_memory_clock_mhz": highest_mhz},
            [row.attempt_id],
            cause="The GPU did not raise its memory clock: a power limit, heat, or a power profile holds it down.",
            next_step="Look at the GPU's power limit and profile, and at the clock over time.",
        )


def _ram(run: MeasuredRows) -> Iterator[Finding]:
    """One finding for all rows that read their weights from RAM."""
    ids = [row.attempt_id for row in run.rows if ran_on_cpu(row)]
    measured, spec = run.ram_bandwidth_bytes_per_s, run.machine.spec_ram_bytes_per_s
    if not ids or measured is None:
        return
    yield from _one_channel(run, ids, measured)
    if spec is None or measured >= BELOW_RATED * spec:
        return
    n_channels = run.machine.count("ram_channels")
    evidence = {
        "measured_bytes_per_s": measured,
        "specification_bytes_per_s": spec,
        "share_of_specification_fraction": measured / spec,
        "module_speed_mts": run.machine.count("ram_speed_mts"),
        "n_memory_channels": n_channels,
    }
    is_half = n_channels == 2 and measured <= HALF_OF_SPEC * spec
    yield make_finding(
        "memory_below_rated",
        evidence,
        ids,
        cause="It is as fast as one channel, although modules are listed on two: one of them may not work as it should."
        if is_half
        else None,
    )


def _one_channel(run: MeasuredRows, ids: list[str], measured: float) -> Iterator[Finding]:
    one = run.machine.one_channel_bytes_per_s
    if one is None or run.machine.count("ram_channels") != 1 or measured > ONE_CHANNEL_MOST * one:
        return
    evidence = {
        "n_memory_channels": 1,
        "module_speed_mts": run.machine.count("ram_speed_mts"),
        "specification_of_one_channel_bytes_per_s": one,
        "measured_bytes_per_s": measured,
        "with_a_second_module_up_to_bytes_per_s": 2 * measured,
    }
    yield make_finding("one_memory_channel", evidence, ids)
