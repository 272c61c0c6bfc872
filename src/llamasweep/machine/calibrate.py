"""Measuring a machine once, properly: RAM over threads and pages, disk, matrices, specification.

Each part that cannot be measured leaves a reason, and the others go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from llamasweep.cache import cache_root
from llamasweep.machine.bandwidth import NO_SCANNER, Bandwidth, buffer_for, measure_once
from llamasweep.machine.calibration import NEIGHBOUR_BELOW, Calibration
from llamasweep.machine.disk_reads import DiskReads, measure_disk
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.matrix_peak import MatrixPeak, measure_matrix_peak
from llamasweep.machine.memory_curve import MemoryCurve, measure_curve, thread_counts
from llamasweep.machine.readers import Pages, page_kinds
from llamasweep.machine.scanners import choose_scanners
from llamasweep.machine.spec_bandwidth import SpecFigure, gpu_specs, ram_spec
from llamasweep.machine.words import thread_words
from llamasweep.results.contenders import BROKEN_ABOVE
from llamasweep.units import format_bytes_per_s

OnStep = Callable[[str], None]
OnReason = Callable[[str], None]

FULL_PASSES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """How long is measured: passes over all settings, and rounds of each in a pass."""

    n_passes: int
    n_rounds: int
    round_s: float
    matrix_s: float


FULL = Effort(n_passes=FULL_PASSES, n_rounds=4, round_s=0.15, matrix_s=2.0)
QUICK = Effort(n_passes=1, n_rounds=5, round_s=0.06, matrix_s=0.4)


def measure_ram(
    facts: MachineFacts, *, is_quick: bool, on_step: OnStep, on_reason: OnReason
) -> MemoryCurve | None:
    """Read bandwidth at 1, 2, 4 … threads; None, with the reason told, where it cannot be measured.

    Quickly: small pages with all threads only, and no search between the powers of two.
    """
    size = buffer_for(facts, is_quick=is_quick, on_reason=on_reason)
    if size is None:
        return None
    scanners = choose_scanners()
    if not scanners:
        on_reason(NO_SCANNER)
        return None
    effort = QUICK if is_quick else FULL

    def measure(n_threads: int, pages: Pages) -> tuple[Bandwidth, ...]:
        return measure_once(
            scanners,
            n_threads=n_threads,
            buffer_bytes=size,
            pages=pages,
            n_rounds=effort.n_rounds,
            round_s=effort.round_s,
            limit_s=4 * len(scanners) * effort.n_rounds * effort.round_s,
        )

    try:
        return measure_curve(
            measure,
            _settings(thread_words(facts)["physical"], is_quick=is_quick),
            n_passes=effort.n_passes,
            is_bisecting=not is_quick,
            on_step=lambda text: on_step(f"reading RAM: {text}"),
        )
    except (MemoryError, OSError) as problem:
        on_reason(f"no memory to read could be had: {str(problem) or type(problem).__name__}")
        return None


def _settings(n_cores: int, *, is_quick: bool) -> list[tuple[int, Pages]]:
    settings: list[tuple[int, Pages]] = []
    for number, pages in enumerate(page_kinds()):
        counts = (n_cores,) if is_quick and number > 0 else thread_counts(n_cores)
        settings += [(n_threads, pages) for n_threads in counts]
    return settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Instruments:
    """What measures; stand-ins may take their place."""

    ram: Callable[..., MemoryCurve | None] = measure_ram
    disk: Callable[..., DiskReads | None] = measure_disk
    matrix: Callable[[float], MatrixPeak] = measure_matrix_peak
    spec_ram: Callable[[MachineFacts], SpecFigure] = ram_spec
    spec_gpus: Callable[[MachineFacts, SpecFigure], tuple[SpecFigure, ...]] = gpu_specs
    load_average: Callable[[], float | None] | None = None
    now: Callable[[], datetime] | None = None


def calibrate(
    facts: MachineFacts,
    *,
    is_quick: bool = False,
    disk_folder: Path | None = None,
    before: Calibration | None = None,
    on_step: OnStep = lambda _: None,
    instruments: Instruments | None = None,
) -> Calibration:
    """Measure everything; half a minute or more, quickly about five seconds. Stores nothing.

    disk_folder: on the disk to measure, by default the user's cache. before: what was known of this machine, to
    compare with.
    """
    use = instruments or Instruments()
    reasons: dict[str, str] = {}
    warnings = _load_warnings(facts, (use.load_average or _load_average)())
    folder = cache_root() if disk_folder is None else disk_folder
    on_step("asking for the specification")
    spec = use.spec_ram(facts)
    gpus = use.spec_gpus(facts, spec)
    ram = use.ram(
        facts,
        is_quick=is_quick,
        on_step=on_step,
        on_reason=lambda why: reasons.setdefault("ram", why),
    )
    disk = use.disk(
        folder,
        is_quick=is_quick,
        on_step=lambda text: on_step(f"disk: {text}"),
        on_reason=lambda why: reasons.setdefault("disk", why),
    )
    matrix = _matrix(use, is_quick, reasons, on_step)
    warnings += [] if ram is None else ram.warnings()
    warnings += [] if disk is None else disk.warnings
    warnings += [s.warning for s in (spec, *gpus) if s.warning is not None]
    warnings += _beyond_spec(ram, spec)
    warnings += _below_before(ram, before)
    return Calibration(
        fingerprint=facts.fingerprint,
        measured_at=(use.now or _now)().isoformat(timespec="seconds"),
        is_quick=is_quick,
        llamasweep_version=version("llamasweep"),
        ram=ram,
        spec_ram=spec,
        spec_gpus=gpus,
        disk=disk,
        disk_folder=None if disk is None else str(folder),
        matrix=matrix,
        warnings=tuple(warnings),
        reasons=tuple(sorted(reasons.items())),
    )


def _matrix(
    use: Instruments, is_quick: bool, reasons: dict[str, str], on_step: OnStep
) -> MatrixPeak | None:
    on_step("multiplying matrices")
    try:
        return use.matrix((QUICK if is_quick else FULL).matrix_s)
    except (ImportError, MemoryError) as problem:
        reasons["matrix"] = f"NumPy cannot be used: {str(problem) or type(problem).__name__}"
        return None


def _load_warnings(facts: MachineFacts, load: float | None) -> list[str]:
    """The load average is of the minute before, so it is asked before our own work."""
    n_cpus = facts.n_cores_logical or os.cpu_count() or 1
    if load is None or load <= n_cpus:
        return []
    return [
        f"the load average was {load:.1f} on {n_cpus} CPUs when the calibration began: "
        "others were at work, and the figures may be too low"
    ]


def _beyond_spec(ram: MemoryCurve | None, spec: SpecFigure) -> list[str]:
    if ram is None or spec.bytes_per_s is None:
        return []
    share = ram.best.best_bytes_per_s / spec.bytes_per_s
    if share <= BROKEN_ABOVE:
        return []
    return [
        f"{share:.0%} of the specified bandwidth was measured: the specification read here is too low "
        "(channels or speed not told in full), or a cache answered"
    ]


def _below_before(ram: MemoryCurve | None, before: Calibration | None) -> list[str]:
    if ram is None or before is None or before.ram is None:
        return []
    share = ram.best.best_bytes_per_s / before.ram.best.best_bytes_per_s
    if share >= NEIGHBOUR_BELOW:
        return []
    known = format_bytes_per_s(before.ram.best.best_bytes_per_s)
    return [
        f"this is {share:.0%} of the {known} of the calibration before ({before.measured_at[:10]}), which it replaces: "
        "others used the memory, or the machine is slower now; calibrate again when it is quiet"
    ]


def _load_average() -> float | None:
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def _now() -> datetime:
    return datetime.now(tz=UTC)
