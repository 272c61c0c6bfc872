"""Runs of conversations for the report's tests: cold ones wait longer at each turn, warm ones hardly."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.report.factory import Part, measured
from tests.unit.report.wide import streamed

TURNS = (1, 2, 4, 8)


def talk_parts(*, kind: str = "pg", caches: tuple[str, ...] = ("cold", "warm")) -> list[Part]:
    """TTFT of 0.1 s a turn cold, and of 0.1 s and 10 ms a turn warm; the rate is what the whole prompt makes of that."""
    parts: list[Part] = []
    for cache in caches:
        for turn in TURNS:
            ttft_s = 0.1 * turn if cache == "cold" else 0.1 + 0.01 * turn
            rate = 96 * turn / ttft_s
            base, samples = measured(
                len(parts), [rate * (1 + step / 1000) for step in (-1, 0, 1)], engine="llama-server",
                test_kind=kind, test_label={"pg": "pp96+tg16", "pp": "pp96"}[kind], n_prompt=96,
                n_gen=16 if kind == "pg" else 0, requested={"prompt_cache": cache, "turn": turn},
            )  # fmt: skip
            base = replace(base, ceiling_tps=None, ceiling_fraction=None)
            part = (base, samples)
            parts.append(
                streamed(part, n_requests=3, ttft_median_s=ttft_s, ttft_p95_s=ttft_s * 1.1)
            )
    return parts
