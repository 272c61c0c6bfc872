"""What was measured of this machine: the record, where it is kept, and which bandwidth a run uses.

One file per machine fingerprint in the user's cache, replaced whole by the next calibration. The
measuring itself is in `calibrate`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from llamasweep.cache import cache_root
from llamasweep.machine.bandwidth import Bandwidth, measure_quickly
from llamasweep.machine.disk_reads import DiskReads
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.matrix_peak import MatrixPeak
from llamasweep.machine.memory_curve import MemoryCurve
from llamasweep.machine.plain_records import read_record
from llamasweep.machine.spec_bandwidth import SpecFigure
from llamasweep.machine.words import thread_words
from llamasweep.units import format_bytes_per_s, format_seconds

FORMAT = 1
FOLDER = "calibrations"
MAX_FILE_BYTES = 4 * 2**20
OLD_AFTER_S = 30 * 86400.0

NEIGHBOUR_BELOW = 0.8
"""The start of a run below this share of the calibration: something else uses the memory."""

OUTDONE_ABOVE = 1.05
"""The start of a run above this share: the calibration was disturbed, or the machine has changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """A machine as measured.

    fingerprint: of the machine. measured_at: UTC, ISO 8601. ram, disk, matrix: None where it could
    not be measured, with the reason in `reasons` under that name. spec_ram, spec_gpus: by
    specification. warnings: what makes figures doubtful, as sentences.
    """

    format: int = FORMAT
    fingerprint: str
    measured_at: str
    is_quick: bool
    llamasweep_version: str
    ram: MemoryCurve | None
    spec_ram: SpecFigure
    spec_gpus: tuple[SpecFigure, ...] = ()
    disk: DiskReads | None = None
    disk_folder: str | None = None
    matrix: MatrixPeak | None = None
    warnings: tuple[str, ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()

    @property
    def knee_threads(self) -> int | None:
        """Fewest threads that reach 95 % of the best; None where that is not known."""
        return None if self.ram is None else self.ram.knee_threads

    @property
    def ram_fraction_of_spec(self) -> float | None:
        """Best measured / specification; None where either is not known."""
        if self.ram is None or not self.spec_ram.bytes_per_s:
            return None
        return self.ram.best.best_bytes_per_s / self.spec_ram.bytes_per_s

    def age_s(self, now: datetime | None = None) -> float:
        """Seconds since it was measured; 0 where the clock was set back meanwhile."""
        passed = (now or datetime.now(tz=UTC)) - datetime.fromisoformat(self.measured_at)
        return max(0.0, passed.total_seconds())

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what follows from the points stands beside them for readers."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        plain["reasons"] = dict(self.reasons)
        if self.ram is not None:
            best = self.ram.best
            plain["ram"] |= {
                "best_bytes_per_s": best.best_bytes_per_s,
                "median_bytes_per_s": best.median_bytes_per_s,
                "n_threads": best.n_threads,
                "pages": best.pages,
                "method": best.method,
                "knee_threads": self.knee_threads,
                "fraction_of_spec": self.ram_fraction_of_spec,
            }
        return plain


class RunBandwidth(NamedTuple):
    """RAM bandwidth for the ceilings of a run; None where there is none. source: a sentence."""

    bytes_per_s: float | None
    source: str | None
    warnings: tuple[str, ...]


def calibration_path(fingerprint: str) -> Path:
    """Where the calibration of a machine is kept. Raises ValueError for what is no fingerprint."""
    if not re.fullmatch(r"[0-9a-f]{8,64}", fingerprint):
        raise ValueError(f"{fingerprint!r:.60} is no fingerprint")
    return cache_root() / FOLDER / f"{fingerprint}.json"


def load_calibration(fingerprint: str) -> Calibration | None:
    """The newest calibration of that machine; None where there is none that this version can read."""
    try:
        path = calibration_path(fingerprint)
        with path.open("rb") as file:
            plain = json.loads(file.read(MAX_FILE_BYTES))
        reasons = {"reasons": [list(pair) for pair in plain["reasons"].items()]}
        found = read_record(Calibration, plain | reasons)
        datetime.fromisoformat(found.measured_at).astimezone(UTC)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_whole = found.ram is None or bool(found.ram.points)
    is_ours = found.format == FORMAT and found.fingerprint == fingerprint
    return found if is_whole and is_ours else None


def store_calibration(calibration: Calibration) -> Path:
    """Keep it in place of the one before, in one step. Raises OSError."""
    path = calibration_path(calibration.fingerprint)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(calibration.to_dict(), indent=1) + "\n"
    descriptor, draft = tempfile.mkstemp(prefix=".", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise
    return path


def bandwidth_for_run(
    facts: MachineFacts,
    *,
    measure: Callable[..., Bandwidth | None] = measure_quickly,
    load: Callable[[str], Calibration | None] = load_calibration,
    now: datetime | None = None,
) -> RunBandwidth:
    """What a run takes for this machine's RAM: the calibration, looked at again in two seconds.

    The ceiling is that of a quiet machine: a lower figure at the start is a warning and no other
    ceiling, a higher one replaces the calibration's. measure, load and now: stand-ins.
    """
    stored = load(facts.fingerprint)
    before = None if stored is None else _fastest(stored, thread_words(facts)["physical"])
    told: list[str] = []
    n_threads = None if before is None else before.n_threads
    method = None if before is None else before.method
    today = measure(facts, n_threads=n_threads, method=method, on_reason=told.append)
    why = told[0] if told else "the reason is not known"
    if stored is None or before is None:
        return _uncalibrated(today, why)
    age = "just now" if stored.age_s(now) < 60 else f"{_age(stored.age_s(now))} ago"
    source = f"calibrated {age}, {_threads(before)}{_noise(before)}"
    warnings = _age_warnings(stored, now)
    if today is None:
        warnings.append(f"the memory bandwidth was not measured again at the start: {why}")
        return RunBandwidth(before.best_bytes_per_s, source, tuple(warnings))
    share = today.best_bytes_per_s / before.best_bytes_per_s
    shown = format_bytes_per_s(today.best_bytes_per_s)
    calibrated = format_bytes_per_s(before.best_bytes_per_s)
    if share > OUTDONE_ABOVE:
        warnings.append(
            f"at the start of the run the memory gave {shown}, more than the {calibrated} calibrated {age}: "
            "the higher figure is used; calibrate again on a quiet machine (`llamasweep calibrate`)"
        )
        source = f"measured at the start, {_threads(today)}{_noise(today)}; {calibrated} calibrated {age}"
        return RunBandwidth(today.best_bytes_per_s, source, tuple(warnings))
    if share < NEIGHBOUR_BELOW:
        warnings.append(
            f"at the start of the run the memory gave {shown}, {share:.0%} of the {calibrated} calibrated {age}: "
            "something else uses it, or the machine is slower now; ceilings stay those of the calibration"
        )
    source = f"{source}; {shown} at the start ({share:.0%})"
    return RunBandwidth(before.best_bytes_per_s, source, tuple(warnings))


def _fastest(stored: Calibration, n_threads_allowed: int) -> Bandwidth | None:
    """The best point that this process may repeat; None where there is none."""
    points = () if stored.ram is None else stored.ram.points
    usable = [point for point in points if point.n_threads <= n_threads_allowed]
    return max(usable, key=lambda point: point.best_bytes_per_s, default=None)


def _uncalibrated(today: Bandwidth | None, why: str) -> RunBandwidth:
    if today is None:
        return RunBandwidth(None, None, (f"memory bandwidth is not measured: {why}",))
    warnings = []
    if today.is_noisy:
        warnings.append(
            "memory bandwidth varied while it was measured; ceilings made from it are uncertain"
        )
    source = (
        f"measured at the start, {_threads(today)}{_noise(today)}; "
        "never calibrated (`llamasweep calibrate`)"
    )
    return RunBandwidth(today.best_bytes_per_s, source, tuple(warnings))


def _age_warnings(stored: Calibration, now: datetime | None) -> list[str]:
    if stored.age_s(now) <= OLD_AFTER_S:
        return []
    return [
        f"the calibration of this machine is {_age(stored.age_s(now))} old; "
        "`llamasweep calibrate` renews it"
    ]


def _age(age_s: float) -> str:
    days = int(age_s // 86400)
    return f"{days} day{'s' if days > 1 else ''}" if days else format_seconds(round(age_s))


def _threads(point: Bandwidth) -> str:
    return f"{point.n_threads} thread{'s' if point.n_threads > 1 else ''}"


def _noise(point: Bandwidth) -> str:
    """The median beside a best that lies far above it: then the memory was never seen quiet for long."""
    if not point.is_noisy:
        return ""
    return f", the best of rounds whose median is {format_bytes_per_s(point.median_bytes_per_s)}"
