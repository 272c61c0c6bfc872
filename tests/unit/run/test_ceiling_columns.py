"""Ceilings of cells: with the engine's defaults, with reasons, and with the doubts that a share raises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.models import write_model

from llamasweep.ceilings.assumptions import Peak
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.header import read_model
from llamasweep.run.ceiling_columns import (
    LATER_TURN,
    NO_BANDWIDTH,
    WARM_PROMPT,
    ceiling_columns,
    describe_ceiling,
)
from llamasweep.sweep.cell import Cell, Test
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build, ModelSource

BUILD = Build(
    label="b",
    path="/b",
    content_hash="0" * 32,
    argv_prefix=("/b",),
    options=frozenset({"-fa"}),
    option_help=(("-fa", "<on|off|auto> (default: auto)"),),
)


@pytest.fixture
def facts(tmp_path: Path) -> ModelFacts:
    return read_model(write_model(tmp_path / "m.gguf"))


def _cell(test: Test, **params: Scalar) -> Cell:
    return Cell(model=ModelSource(label="m"), test=test, params=tuple(params.items()))


TG = Test(n_prompt=0, n_gen=8)
PP = Test(n_prompt=8, n_gen=0)


def test_generation_is_bounded_by_what_is_read_per_token(facts: ModelFacts) -> None:
    kept = describe_ceiling(
        _cell(TG), facts, BUILD, bandwidth_bytes_per_s=1e9, bandwidth_source="measured, 2 threads"
    )
    assert kept["pencil_ceiling_tps"] == pytest.approx(1e9 / facts.size_bytes)
    assert kept["ceiling_tps"] == pytest.approx(1e9 / kept["bytes_per_token"])
    assert kept["ceiling_bound"] == "memory"
    assert any("measured" in text for text in kept["ceiling_assumptions"])


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"turn": 1}, None),
        ({"turn": 1, "prompt_cache": "warm"}, None),  # nothing was said before
        ({"turn": 2}, LATER_TURN),
        ({"turn": 2, "prompt_cache": "warm"}, LATER_TURN),
        ({"prompt_cache": "warm"}, WARM_PROMPT),
    ],
)
def test_a_prompt_that_is_not_the_tests_own_has_no_ceiling(
    facts: ModelFacts, asked: dict[str, Scalar], reason: str | None
) -> None:
    kept = describe_ceiling(
        _cell(TG, **asked), facts, BUILD, bandwidth_bytes_per_s=1e9, bandwidth_source=None
    )
    assert kept["reason"] == reason
    assert (kept.get("ceiling_tps") is None) == (reason is not None)


@pytest.mark.parametrize(
    ("source", "basis"),
    [
        ("measured at the start, 2 threads", "measured"),
        ("calibrated 3 days ago, 4 threads", "measured"),
        ("specification of a card: NVML", "spec"),
        ("given in the sweep", "given"),
    ],
)
def test_the_row_says_what_its_bandwidth_rests_on(
    facts: ModelFacts, source: str, basis: str
) -> None:
    kept = describe_ceiling(
        _cell(TG), facts, BUILD, bandwidth_bytes_per_s=1e9, bandwidth_source=source
    )
    assert f"memory is read at 1.00 GB/s ({basis})" in kept["ceiling_assumptions"]


def test_depth_lowers_the_ceiling(
    facts: ModelFacts,
) -> None:
    def ceiling_tps(**params: Scalar) -> float:
        kept = describe_ceiling(
            _cell(TG, **params), facts, BUILD, bandwidth_bytes_per_s=1e9, bandwidth_source=None
        )
        return float(kept["ceiling_tps"])

    assert ceiling_tps() > ceiling_tps(n_depth=512) > ceiling_tps(n_depth=2048)


def test_without_a_bandwidth_or_a_peak_there_is_a_reason(facts: ModelFacts) -> None:
    nothing = describe_ceiling(
        _cell(TG), facts, BUILD, bandwidth_bytes_per_s=None, bandwidth_source=None
    )
    columns, reasons, flags = ceiling_columns(nothing, "tg", 10.0)
    assert (columns["ceiling_fraction"], flags) == (None, [])
    assert reasons == {"ceiling_tps": NO_BANDWIDTH, "pencil_ceiling_tps": NO_BANDWIDTH}
    prompt = describe_ceiling(
        _cell(PP), facts, BUILD, bandwidth_bytes_per_s=1e9, bandwidth_source=None
    )
    _, reasons, _ = ceiling_columns(prompt, "pp", 10.0)
    assert "peak" in reasons["ceiling_tps"]


def test_an_old_build_without_auto_runs_without_flash_attention(facts: ModelFacts) -> None:
    old = replace(BUILD, option_help=(("-fa", "<0|1> (default: 0)"),))
    kept = describe_ceiling(_cell(TG), facts, old, bandwidth_bytes_per_s=1e9, bandwidth_source=None)
    auto = describe_ceiling(
        _cell(TG), facts, BUILD, bandwidth_bytes_per_s=1e9, bandwidth_source=None
    )
    assert not any("taken to be on" in text for text in kept["ceiling_assumptions"])
    assert any("taken to be on" in text for text in auto["ceiling_assumptions"])


@pytest.mark.parametrize(
    ("median_tps", "flags"),
    [(102.0, []), (102.1, ["above_ceiling"]), (15.0, []), (14.9, ["far_below_ceiling"])],
)
def test_a_share_beyond_belief_is_a_flag(median_tps: float, flags: list[str]) -> None:
    _, _, found = ceiling_columns({"ceiling_tps": 100.0, "reason": None}, "tg", median_tps)
    assert found == flags


def test_a_prompt_has_a_ceiling_where_a_peak_is_known(facts: ModelFacts) -> None:
    peak = Peak(flop_per_s=1e9)

    kept = describe_ceiling(
        _cell(PP),
        facts,
        BUILD,
        bandwidth_bytes_per_s=1e12,
        bandwidth_source=None,
        peak=peak,
        peak_source="given in the sweep",
    )
    columns, reasons, flags = ceiling_columns(kept, "pp", 1.1 * kept["ceiling_tps"])

    assert kept["ceiling_tps"] == pytest.approx(1e9 / kept["flop_per_token"])
    assert columns["ceiling_bound"] == "compute"
    assert columns["ceiling_is_reference"] is False
    assert columns["ceiling_peak_flop_per_s"] == 1e9
    assert columns["ceiling_peak_source"] == "given in the sweep"
    assert columns["ceiling_fraction"] == pytest.approx(1.1)
    assert (reasons, flags) == ({}, ["above_ceiling"])


@pytest.mark.parametrize("fraction", [0.01, 1.0, 9.0])
def test_a_share_of_a_reference_is_no_reason_to_doubt_a_row(
    facts: ModelFacts, fraction: float
) -> None:
    peak = Peak(flop_per_s=1e9, basis="measured", is_reference=True)

    kept = describe_ceiling(
        _cell(PP), facts, BUILD, bandwidth_bytes_per_s=1e12, bandwidth_source=None, peak=peak
    )
    columns, _, flags = ceiling_columns(kept, "pp", fraction * kept["ceiling_tps"])

    assert columns["ceiling_is_reference"] is True
    assert columns["ceiling_fraction"] == pytest.approx(fraction)
    assert flags == []


def test_a_prompt_that_memory_bounds_is_bounded_whatever_the_reference(facts: ModelFacts) -> None:
    peak = Peak(flop_per_s=1e15, basis="measured", is_reference=True)

    kept = describe_ceiling(
        _cell(PP), facts, BUILD, bandwidth_bytes_per_s=1e9, bandwidth_source=None, peak=peak
    )
    _, _, flags = ceiling_columns(kept, "pp", 1.1 * kept["ceiling_tps"])

    assert (kept["ceiling_bound"], kept["ceiling_is_reference"]) == ("memory", False)
    assert flags == ["above_ceiling"]


def test_generation_takes_a_peak_that_bounds_and_no_reference(facts: ModelFacts) -> None:
    def kept(peak: Peak) -> dict[str, object]:
        return describe_ceiling(
            _cell(TG), facts, BUILD, bandwidth_bytes_per_s=1e12, bandwidth_source=None, peak=peak
        )

    bound, reference = kept(Peak(flop_per_s=1e6)), kept(Peak(flop_per_s=1e6, is_reference=True))

    assert (bound["ceiling_bound"], bound["ceiling_peak_flop_per_s"]) == ("compute", 1e6)
    assert (reference["ceiling_bound"], reference["ceiling_peak_flop_per_s"]) == ("memory", None)
    _, reasons, _ = ceiling_columns(reference, "tg", 1.0)
    assert "held against the memory" in reasons["ceiling_peak_flop_per_s"]
