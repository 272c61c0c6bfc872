"""Checks of settings and builds: the physical batch of prompts, and instructions that the build was not compiled for."""

from __future__ import annotations

from collections.abc import Iterator

from llamasweep.results.findings import Finding, make_finding
from llamasweep.results.measured_rows import (
    MeasuredRows,
    fastest,
    is_faster,
    measured_once,
    median,
    ran_on_cpu,
    whole_in_force,
)
from llamasweep.results.records import Attempt

DEFAULT_N_UBATCH = 512
LARGER_UBATCH_RATIO = 1.05

_TELLING_FEATURES = (
    *("avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_int8"),
    *("asimddp", "i8mm", "sve"),
)
"""Instructions whose absence in a build costs much, as Linux names them; only such as a build tells of itself."""

_LEFT_OUT_ON_PURPOSE = "amx_int8"
"""Missing alone it is no fault: virtual machines show AMX and trap on it, and builds for them are made without."""


def check(run: MeasuredRows) -> Iterator[Finding]:
    """Row by row."""
    for row in run.rows:
        yield from _ubatch(run, row)
        yield from _instructions(run, row)


def n_ubatch(row: Attempt) -> int:
    """In force, else the engine's default."""
    return whole_in_force(row, "n_ubatch") or DEFAULT_N_UBATCH


def _ubatch(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    if row.test_kind != "pp" or n_ubatch(row) >= row.n_prompt:
        return
    evidence: dict[str, int | float | str | None] = {
        "n_ubatch": n_ubatch(row),
        "n_prompt": row.n_prompt,
        "n_passes_over_the_weights": -(-row.n_prompt // n_ubatch(row)),
        "median_tps": median(row),
    }
    larger = fastest(r for r in run.comparable(row, "n_ubatch") if n_ubatch(r) > n_ubatch(row))
    if larger is not None:
        if is_faster(larger, row, LARGER_UBATCH_RATIO):
            evidence |= {"n_larger_ubatch": n_ubatch(larger), "with_it_tps": median(larger)}
            evidence |= measured_once(larger, row)
            yield make_finding("small_ubatch", evidence, [row.attempt_id])
    elif row.ceiling_bound == "memory" and row.ceiling_tps:
        evidence["bound_by_the_ceiling"] = "memory"
        yield make_finding("small_ubatch", evidence, [row.attempt_id])


def _instructions(run: MeasuredRows, row: Attempt) -> Iterator[Finding]:
    build, here = run.build(row), run.machine.words("cpu_features")
    if not isinstance(build.plain.get("cpu_features"), list | tuple) or not ran_on_cpu(row):
        return
    built_for = build.words("cpu_features")
    missing = [name for name in _TELLING_FEATURES if name in here and name not in built_for]
    if missing and missing != [_LEFT_OUT_ON_PURPOSE]:
        evidence = {
            "missing_in_the_build": ", ".join(missing),
            "build_number": str(row.build_number) if row.build_number else None,
        }
        yield make_finding("missing_instructions", evidence, [row.attempt_id])
