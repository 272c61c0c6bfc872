"""Rows of two builds measured by turns, with rates that a test chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llamasweep.results.records import Attempt

BASE_TPS = (100.0, 101.0, 99.5, 100.4, 100.9, 99.2, 100.1, 100.3, 99.8, 100.6)
WOBBLE = (1.001, 0.999, 1.0005, 0.9985, 1.0015, 0.9995, 1.0, 1.0008)


def row(round_index: int, tps: float | None, **changes: Any) -> Attempt:
    """tg128 of a small model; failed where there is no rate."""
    plain: dict[str, Any] = {
        "run_id": "run",
        "attempt_id": f"{changes.get('build_label', 'a')}-{round_index}",
        "cell_id": "cell",
        "group_id": "g",
        "round_index": round_index,
        "attempt_index": 0,
        "sweep_name": "made",
        "engine": "llama-bench",
        "status": "failed" if tps is None else "ok",
        "error_message": "it crashed" if tps is None else None,
        "machine_fingerprint": "0123456789abcdef",
        "model_label": "tiny",
        "model_hash": "h",
        "model_size_bytes": 2_000_000_000,
        "test_kind": "tg",
        "test_label": "tg128",
        "n_prompt": 0,
        "n_gen": 128,
        "n_depth": 0,
        "median_tps": tps,
    }
    return Attempt(**{**plain, **changes})


def rows(
    rounds: Sequence[int], factor: float = 1.0, *, wobble: bool = False, **changes: Any
) -> list[Attempt]:
    """One row per round, `factor` times the base rate of that round; wobble: a tenth of a percent of noise on top."""
    return [
        row(
            r,
            BASE_TPS[r % len(BASE_TPS)] * factor * (WOBBLE[r % len(WOBBLE)] if wobble else 1.0),
            **changes,
        )
        for r in rounds
    ]
