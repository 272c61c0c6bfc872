"""Rigs side by side."""

from __future__ import annotations

import pytest
from tests.unit.ceilings.reference import quantised

from llamasweep.ceilings.answer import answer
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import rig_of, with_sizes
from llamasweep.ceilings.what_if import WhatIf, WhatIfRow, compare_rigs

QUESTION = Question(n_prompt=8192, n_gen=512, n_streams=8)


def compared(shape: str, *names: str) -> dict[str, WhatIfRow]:
    rigs = [rig_of([name]) for name in names]
    found: WhatIf = compare_rigs(quantised(shape, "Q4_K_M"), QUESTION, rigs)
    return dict(zip(names, found.rows, strict=True))


def test_each_row_is_the_answer_for_that_rig() -> None:
    facts = quantised("Qwen3-8B", "Q4_K_M")
    row = compared("Qwen3-8B", "RTX 4090")["RTX 4090"]
    alone = answer(facts, QUESTION._replace(n_streams=1), rig_of(["RTX 4090"]))

    assert row.decode_ceiling_tps == alone.decode.ceiling_tps
    assert row.prefill_ceiling_tps == alone.prefill.ceiling_tps
    assert (row.ttft_s, row.e2e_s) == (alone.workload.ttft_s, alone.workload.e2e_s)


def test_users_stand_behind_their_prompts_and_need_memory_for_them() -> None:
    rows = compared("Qwen3-8B", "RTX 4090", "RTX 3060 12GB")
    facts = quantised("Qwen3-8B", "Q4_K_M")
    deep = QUESTION._replace(n_depth=8192, n_ctx=8 * (8192 + 512))
    streams = answer(facts, deep, rig_of(["RTX 4090"])).concurrency

    assert rows["RTX 4090"].streams_ceiling_tps == streams.ceiling_tps
    assert rows["RTX 4090"].fits_streams is True
    assert rows["RTX 3060 12GB"].fits is True
    assert rows["RTX 3060 12GB"].fits_streams is False
    assert rows["RTX 3060 12GB"].reasons["streams_ceiling_tps"] == "8 users do not fit"


def test_what_does_not_fit_has_no_rate_and_says_what_lacks() -> None:
    row = compared("Qwen3-32B", "RTX 3060 12GB")["RTX 3060 12GB"]

    assert (row.fits, row.where, row.decode_ceiling_tps) == (False, None, None)
    assert row.missing_bytes is not None
    assert row.missing_bytes > 8e9


def test_with_a_host_each_rig_gets_its_best_layout() -> None:
    rig = with_sizes(
        rig_of(["RTX 3060 12GB", "DDR5-5600x2"]), ram_bytes=64 * 2**30, vram_bytes=None
    )
    (row,) = compare_rigs(quantised("Qwen3-30B-A3B", "Q4_K_M"), QUESTION, [rig]).rows

    assert row.where == "experts on the host"
    assert row.decode_ceiling_tps is not None
    assert "several devices" in row.reasons["prefill_ceiling_tps"]


def test_more_bandwidth_is_never_slower() -> None:
    rows = compared("Qwen3-4B", "RTX 3060 12GB", "RTX 3090", "RTX 4090", "RTX 5090")
    rates = [row.decode_ceiling_tps or 0.0 for row in rows.values()]
    assert rates == sorted(rates)


def test_pencil_and_exact_stand_side_by_side() -> None:
    row = compared("Qwen3-30B-A3B", "M4 Pro")["M4 Pro"]
    assert row.decode_ceiling_tps is not None
    assert row.decode_pencil_ceiling_tps == pytest.approx(14.7, rel=0.01)
    assert row.decode_ceiling_tps > 100
    assert row.prefill_is_reference is True
