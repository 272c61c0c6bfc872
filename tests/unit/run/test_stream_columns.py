"""Columns of rows with several streams: ceiling, estimate, share, and no alarm that is made for one stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fakes.models import write_model

from llamasweep.ceilings.assumptions import Peak
from llamasweep.ceilings.concurrency import NO_COMPUTE_LINE
from llamasweep.ceilings.stream_cell import OVERLAPPING
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.header import read_model
from llamasweep.run.ceiling_columns import PENCIL_IS_OF_ONE, ceiling_columns, describe_ceiling
from llamasweep.sweep.cell import Cell, Test
from llamasweep.sweep.subjects import Build, ModelSource

BUILD = Build(label="b", path="/b", content_hash="0" * 32, argv_prefix=("/b",), options=frozenset())
TG, PG = Test(n_prompt=0, n_gen=8), Test(n_prompt=8, n_gen=8)
PEAK = Peak(flop_per_s=1e12, basis="spec")


@pytest.fixture
def facts(tmp_path: Path) -> ModelFacts:
    return read_model(write_model(tmp_path / "m.gguf"))


def kept(
    facts: ModelFacts, test: Test, n_streams: int, peak: Peak | None, engine: str = "llama-server"
) -> dict[str, Any]:
    params = (("concurrency", n_streams),)
    return describe_ceiling(
        Cell(model=ModelSource(label="m"), test=test, params=params, engine=engine),
        facts,
        BUILD,
        bandwidth_bytes_per_s=1e9,
        bandwidth_source="given in the sweep",
        peak=peak,
        peak_source="given in the sweep",
    )


def test_the_share_of_several_streams_is_one_of_their_own_ceiling(facts: ModelFacts) -> None:
    one, four = kept(facts, TG, 1, PEAK), kept(facts, TG, 4, PEAK)
    assert four["ceiling_tps"] > one["ceiling_tps"]
    assert four["estimate_tps"] < four["ceiling_tps"]
    assert one["estimate_tps"] is None
    columns, reasons, flags = ceiling_columns(four, "tg", four["ceiling_tps"] / 2)
    assert columns["ceiling_fraction"] == pytest.approx(0.5)
    assert columns["estimate_tps"] == four["estimate_tps"]
    assert reasons == {"pencil_ceiling_tps": PENCIL_IS_OF_ONE}
    assert flags == []


def test_without_a_compute_line_nothing_is_estimated_and_no_alarm_raised(
    facts: ModelFacts,
) -> None:
    found = kept(facts, TG, 4, None)
    columns, reasons, flags = ceiling_columns(found, "tg", found["ceiling_tps"] / 100)
    assert (columns["estimate_tps"], reasons["estimate_tps"]) == (None, NO_COMPUTE_LINE)
    assert flags == []
    one = kept(facts, TG, 1, None)
    assert ceiling_columns(one, "tg", one["ceiling_tps"] / 100)[2] == ["far_below_ceiling"]


def test_a_rate_above_the_ceiling_of_several_streams_is_flagged(facts: ModelFacts) -> None:
    found = kept(facts, TG, 4, PEAK)
    assert ceiling_columns(found, "tg", 1.1 * found["ceiling_tps"])[2] == ["above_ceiling"]


def test_requests_that_overlap_have_no_ceiling_and_batches_one_after_another_do(
    facts: ModelFacts,
) -> None:
    served = kept(facts, PG, 4, PEAK)
    columns, reasons, _ = ceiling_columns(served, "pg", 10.0)
    assert (columns["ceiling_tps"], columns["ceiling_fraction"]) == (None, None)
    assert reasons["ceiling_tps"] == reasons["estimate_tps"] == OVERLAPPING
    batched = kept(facts, PG, 4, PEAK, engine="llama-batched-bench")
    assert batched["ceiling_tps"] > 0
