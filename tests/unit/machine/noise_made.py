"""A record of A/A rounds that a test changes."""

from __future__ import annotations

from typing import Any

from llamasweep.machine.noise_record import NoiseCell, NoiseRecord

FINGERPRINT = "0123456789abcdef"


def noise_cell(**changes: Any) -> NoiseCell:
    """Fourteen rounds of tg128 on a model of 1.9 GiB that scatter by a few tenths of a percent."""
    a = tuple(100.0 + 0.1 * (r % 5) for r in range(14))
    plain: dict[str, Any] = {
        "cell_id": "cell",
        "model_label": "tiny",
        "test_label": "tg128",
        "test_kind": "tg",
        "model_size_bytes": 2_000_000_000,
        "build_label": "b11434",
        "measured_at": "2026-11-29T14:00:00+00:00",
        "a_tps": a,
        "b_tps": tuple(v * (1 + 0.002 * (-1) ** r) for r, v in enumerate(a)),
    }
    return NoiseCell(**{**plain, **changes})


def noise_record(**changes: Any) -> NoiseRecord:
    """One such cell on a machine."""
    return NoiseRecord(fingerprint=FINGERPRINT, cells=(noise_cell(**changes),))
