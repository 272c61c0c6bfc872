"""Checks of rates against ceilings: the alarm, broken assumptions, depth, small active sets, kernels and old builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llamasweep.results.contenders import BROKEN_ABOVE
from llamasweep.results.decode_alarm import DEPTH_MOST, EXCESS_ABOVE_MS, SHARE_BELOW
from llamasweep.results.findings import Finding, make_finding
from llamasweep.results.machine_record import positive_number
from llamasweep.results.measured_rows import (
    MEASURED_HERE,
    MeasuredRows,
    Numbers,
    backends,
    fastest,
    has_several_streams,
    is_alarming,
    is_disturbed,
    is_faster,
    measured_once,
    median,
    ran_on_cpu,
    reference_share,
    share,
    shortfall,
    whole_in_force,
)
from llamasweep.results.records import Attempt

SUSPICIOUS_BELOW = 0.15
CACHE_REACH = 2.0
"""Weights up to twice the last-level cache are partly read from it."""

WIDE_MEMORY_BYTES_PER_S = 150e9
SMALL_WITHIN_MS = 5.0
"""Reading that takes no longer than this by the ceiling is a small active set on that memory."""

DEPTH_LOSS = 0.95
STEADY_SHARE = 0.90
OTHER_EXCESS = 0.5
FASTER_BUILD = 1.3
SAME_MEMORY_WITHIN = 0.02
OLD_BUILD_BELOW = 3100
"""June 2024: CLBlast was removed, and CUDA's matrices moved to int8 tensor cores."""

_OPENCL_DEVICES = ("adreno", "intel")
"""What the OpenCL backend of since 2024-12 runs on; on others it is the one that was removed."""


def check(run: MeasuredRows) -> Iterator[Finding]:
    """Row by row, then the depths of a question against each other."""
    for row in run.rows:
        yield from _above(run, row)
        yield from _above_reference(row)
        yield from _far_below(row)
        yield from _small_active_set(row)
        yield from _dequantisation(run, row)
        yield from _slower_build(run, row)
        yield from _old_build(row)
    for group in run.groups("n_depth"):
        yield from _depth(group)


def shortfall_numbers(row: Attempt) -> Numbers:
    """The rate, its ceiling, the share and the excess of a generation row."""
    lack = shortfall(row)
    return {
        "median_tps": median(row),
        "ceiling_tps": row.ceiling_tps,
        "share_of_the_ceiling_fraction": share(row),
        "over_the_ceiling_per_token_ms": None if lack is None else lack.excess_ms,
    }


def _above(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    fraction = share(row)
    if fraction is None or fraction <= BROKEN_ABOVE:
        return
    cache_bytes = run.machine.count("last_level_cache_bytes")
    n_bytes = positive_number(row.bytes_per_token)
    evidence: dict[str, int | float | str | None] = {
        "share_of_the_ceiling_fraction": fraction,
        "assumption": _assumption(row),
        "bandwidth_source": row.ceiling_bandwidth_source,
    }
    in_cache = (
        n_bytes is not None and cache_bytes is not None and n_bytes <= CACHE_REACH * cache_bytes
    )
    if in_cache and ran_on_cpu(row):
        yield make_finding(
            "above_ceiling",
            evidence | {"read_per_token_bytes": n_bytes, "last_level_cache_bytes": cache_bytes},
            [row.attempt_id],
            severity="warning",
            cause="The weights fit in the processor's cache, or nearly, so they are not read from memory as the ceiling assumes.",
            next_step="Do not read the share of such small models; a larger one shows what the memory does.",
        )
        return
    yield make_finding("above_ceiling", evidence, [row.attempt_id], cause=_broken(row))


def _above_reference(row: Attempt) -> Iterator[Finding]:
    fraction = reference_share(row)
    if fraction is None or fraction <= BROKEN_ABOVE:
        return
    evidence = {
        "share_of_the_reference_fraction": fraction,
        "reference_flop_per_s": row.ceiling_peak_flop_per_s,
        "achieved_flop_per_s": row.achieved_flop_per_s,
        "peak_source": row.ceiling_peak_source,
    }
    yield make_finding("above_reference", evidence, [row.attempt_id])


def _broken(row: Attempt) -> str:
    source = row.ceiling_bandwidth_source or ""
    if row.ceiling_bound == "compute":
        return "The peak that the ceiling was made with is too low: faster units did the work."
    if source.startswith("given"):
        return "The bandwidth given in the sweep is too low for this memory."
    if source.startswith(MEASURED_HERE):
        return (
            "The measured bandwidth is too low: the memory was busy when it was measured, or the engine reads it "
            "in more streams at once than the calibration does."
        )
    return (
        "The specification that the ceiling rests on is too low for this device: another variant of it, "
        "or memory that runs above its specification."
    )


def _assumption(row: Attempt) -> str:
    """The sentence of the row's own assumptions that a rate above the ceiling breaks first."""
    start = "compute runs at" if row.ceiling_bound == "compute" else "memory is read at"
    told = [text for text in row.ceiling_assumptions if text.startswith(start)]
    return told[0] if told else "the bandwidth that the ceiling rests on"


def _far_below(row: Attempt) -> Iterator[Finding]:
    fraction, lack = share(row), shortfall(row)
    if fraction is None or fraction >= SUSPICIOUS_BELOW or has_several_streams(row):
        return
    evidence = {**shortfall_numbers(row), "bandwidth_source": row.ceiling_bandwidth_source}
    if lack is not None and lack.excess_ms <= EXCESS_ABOVE_MS:
        yield make_finding(
            "far_below_ceiling",
            evidence,
            [row.attempt_id],
            severity="note",
            cause="The model is so small for this memory that fixed costs per token are nearly all of its time.",
            next_step="Do not read the share of such small models; is it the device that you mean, all the same?",
        )
        return
    yield make_finding("far_below_ceiling", evidence, [row.attempt_id])


def _small_active_set(row: Attempt) -> Iterator[Finding]:
    lack, ceiling_tps = shortfall(row), positive_number(row.ceiling_tps)
    bandwidth = positive_number(row.ceiling_bandwidth_bytes_per_s)
    is_wide = ran_on_cpu(row) is False or (
        bandwidth is not None and bandwidth >= WIDE_MEMORY_BYTES_PER_S
    )
    if lack is None or ceiling_tps is None or not is_wide or row.n_depth > DEPTH_MOST:
        return
    reading_ms = 1000 / ceiling_tps
    if reading_ms > SMALL_WITHIN_MS:
        return
    if SUSPICIOUS_BELOW <= lack.fraction < SHARE_BELOW and lack.excess_ms <= EXCESS_ABOVE_MS:
        evidence = {
            **shortfall_numbers(row),
            "reading_takes_ms": reading_ms,
            "read_per_token_bytes": row.bytes_per_token,
        }
        yield make_finding("small_active_set", evidence, [row.attempt_id])


# -- kernels and builds
def _dequantisation(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    if not is_alarming(row):
        return
    quant = row.model_quant or ""
    other = _quant_with_less_excess(run, row)
    on_cpu = ran_on_cpu(row)
    is_known = on_cpu is True and quant.startswith("IQ")
    if other is None and not is_known:
        return
    evidence = {"quantisation": quant or None, **shortfall_numbers(row)}
    evidence["n_threads"] = whole_in_force(row, "n_threads") if on_cpu else None
    if other is not None:
        evidence |= {
            "other_quantisation": other.model_quant,
            "its_share_of_the_ceiling_fraction": share(other),
        }
    if on_cpu:
        yield make_finding("dequantisation_bound", evidence, [row.attempt_id])
    else:
        yield make_finding(
            "dequantisation_bound",
            evidence,
            [row.attempt_id],
            cause="The kernels of this build need longer to unpack this quantisation than to read it on this device.",
            next_step="Take another quantisation of about the same size, or measure with a newer build.",
        )


def _quant_with_less_excess(run: MeasuredRows, row: Attempt) -> Attempt | None:
    """Another quantisation of the model that loses less than half of this row's time; that with the highest share."""
    lack = shortfall(row)
    if lack is None or row.model_arch is None or row.model_n_params is None:
        return None
    better: list[tuple[float, Attempt]] = []
    for other in run.comparable(row, "quant"):
        theirs = shortfall(other)
        if other.model_quant == row.model_quant or theirs is None:
            continue
        if theirs.excess_ms < OTHER_EXCESS * lack.excess_ms and theirs.fraction > lack.fraction:
            better.append((theirs.fraction, other))
    return max(better, key=lambda pair: pair[0], default=(None, None))[1]


def _slower_build(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    if not is_alarming(row):
        return
    best = fastest(o for o in run.comparable(row, "build") if _is_same_memory(o, row))
    if best is None or not is_faster(best, row, FASTER_BUILD):
        return
    evidence = {
        **shortfall_numbers(row),
        "backend": row.build_backends,
        "faster_build_tps": median(best),
        "faster_build_share_of_the_ceiling_fraction": share(best),
        "faster_backend": best.build_backends,
        **measured_once(best, row),
    }
    yield make_finding("slower_build", evidence, [row.attempt_id])


def _is_same_memory(a: Attempt, b: Attempt) -> bool:
    """By its bandwidth, and only where both are known."""
    one, two = (positive_number(row.ceiling_bandwidth_bytes_per_s) for row in (a, b))
    return one is not None and two is not None and abs(one / two - 1) <= SAME_MEMORY_WITHIN


def _old_build(row: Attempt) -> Iterator[Finding]:
    if not is_alarming(row):
        return
    number, gpu = row.build_number, (row.gpu_name or "").lower()
    is_old = number is not None and 0 < number < OLD_BUILD_BELOW
    has_old_opencl = (
        "OpenCL" in backends(row) and bool(gpu) and not any(d in gpu for d in _OPENCL_DEVICES)
    )
    if is_old or has_old_opencl:
        evidence = {
            "llama.cpp_build": str(number) if number is not None else None,
            "backend": row.build_backends,
            "gpu": row.gpu_name if has_old_opencl else None,
        }
        yield make_finding("old_build", {**evidence, **shortfall_numbers(row)}, [row.attempt_id])


# -- depth
def _depth(group: Sequence[Attempt]) -> Iterator[Finding]:
    """The least and the greatest depth of one question, by their medians over the rounds."""
    alone = (row for row in group if not has_several_streams(row))
    sound = [row for row in alone if share(row) is not None and not is_disturbed(row)]
    ordered = sorted(sound, key=lambda row: row.n_depth)
    if not ordered or ordered[0].n_depth == ordered[-1].n_depth:
        return
    shallow = _middle([r for r in ordered if r.n_depth == ordered[0].n_depth])
    deep = _middle([r for r in ordered if r.n_depth == ordered[-1].n_depth])
    share_deep, share_shallow = share(deep), share(shallow)
    if share_deep is None or share_shallow is None:
        return
    kept = share_deep / share_shallow
    rate_kept = median(deep) / median(shallow)
    evidence = {
        "n_depth": deep.n_depth,
        "rate_kept_fraction": rate_kept,
        "ceiling_kept_fraction": rate_kept / kept,
        "share_shallow_fraction": share_shallow,
        "share_deep_fraction": share_deep,
    }
    ids = [shallow.attempt_id, deep.attempt_id]
    if kept < STEADY_SHARE:
        yield make_finding("depth_loss", evidence, ids)
    elif kept <= 1 / STEADY_SHARE and rate_kept < DEPTH_LOSS and deep.test_kind == "tg":
        yield make_finding("kv_growth", evidence, ids)


def _middle(rows: Sequence[Attempt]) -> Attempt:
    return sorted(rows, key=median)[len(rows) // 2]
