"""Made-up calibrations and bandwidths, for tests."""

from __future__ import annotations

from typing import Any

from llamasweep.machine.bandwidth import Bandwidth
from llamasweep.machine.calibration import Calibration
from llamasweep.machine.disk_reads import DiskReads
from llamasweep.machine.matrix_peak import MatrixPeak
from llamasweep.machine.memory_curve import MemoryCurve
from llamasweep.machine.readers import Pages
from llamasweep.machine.spec_bandwidth import SpecFigure

FINGERPRINT = "0123456789abcdef"
MEASURED_AT = "2026-10-01T12:00:00+00:00"


def bandwidth(
    gb_per_s: float, *, n_threads: int = 4, pages: Pages = "huge", median: float | None = None
) -> Bandwidth:
    return Bandwidth(
        best_bytes_per_s=gb_per_s * 1e9,
        median_bytes_per_s=(0.95 * gb_per_s if median is None else median) * 1e9,
        n_threads=n_threads,
        buffer_bytes=2**30,
        n_rounds=12,
        pages=pages,
        huge_fraction=1.0 if pages == "huge" else 0.0,
    )


def calibration(**changes: Any) -> Calibration:
    """Four cores, the knee at two threads, 40 of 51.2 GB/s."""
    points = (
        bandwidth(22, n_threads=1),
        bandwidth(39, n_threads=2),
        bandwidth(40, n_threads=4),
        bandwidth(36, n_threads=4, pages="4 KiB"),
    )
    values: dict[str, Any] = {
        "fingerprint": FINGERPRINT,
        "measured_at": MEASURED_AT,
        "is_quick": False,
        "llamasweep_version": "0.1.0",
        "ram": MemoryCurve(points=points, is_bisected=True),
        "spec_ram": SpecFigure(of="RAM", bytes_per_s=51.2e9, source="udev"),
        "spec_gpus": (SpecFigure(of="a card", bytes_per_s=None, reason="nobody tells"),),
        "disk": DiskReads(
            sequential_bytes_per_s=3e9,
            random_bytes_per_s=6e7,
            random_latency_s=6.5e-5,
            file_bytes=2**30,
            n_random_reads=20_000,
            method="direct reads (O_DIRECT)",
            filesystem="ext4",
        ),
        "disk_folder": "/home/somebody/.cache/llamasweep",
        "matrix": MatrixPeak(
            best_flop_per_s=4e11,
            median_flop_per_s=3.9e11,
            matrix_size=2048,
            n_calls=40,
            blas="openblas",
        ),
        "warnings": (),
        "reasons": (),
    }
    return Calibration(**{**values, **changes})
