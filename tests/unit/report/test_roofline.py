"""The roofline: where spots lie by hand, its roofs, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import BANDWIDTH, READ_SHARE, Part, measured, run_of, sweep_parts

from llamasweep.report.figures import THIN
from llamasweep.report.roofline import MAX_MODELS, Roofline, memory_share, rooflines, title
from llamasweep.report.roofline_chart import roofline_chart
from llamasweep.report.rows import rows_of

SIZE = 1_900_000_000
FLOP = 2 * SIZE * 1.8


def _pp(number: int = 2, tps: float = 500.0, **changes: Any) -> Part:
    return measured(number, [tps], test_kind="pp", n_prompt=512, n_gen=0, **changes)


def _only(*parts: Part) -> Roofline:
    (view,) = rooflines(rows_of([run_of(parts)]))
    return view


def test_a_spot_lies_at_its_work_per_byte_and_rate_times_work() -> None:
    view = _only(measured(1, [17.0]), _pp())
    tg, pp = view.spots
    assert tg.flop_per_byte == pytest.approx(FLOP / (SIZE * READ_SHARE))
    assert tg.flop_per_s == pytest.approx(17.0 * FLOP)
    assert pp.flop_per_byte == pytest.approx(tg.flop_per_byte * 512)
    assert pp.flop_per_s == pytest.approx(500.0 * FLOP)
    assert memory_share(tg, view) == pytest.approx(17.0 * SIZE * READ_SHARE / BANDWIDTH)


def test_the_title_tells_the_share_of_memory_and_what_prompts_reach() -> None:
    assert title(_only(measured(1, [17.0]), _pp())) == (
        f"Generation uses 73{THIN}% of the memory; prompts reach 3.42{THIN}TFLOPS with 512 times the work per byte"
    )
    assert title(_only(measured(1, [40.0]), _pp())).startswith(
        "Generation lies above the memory roof;"
    )


@pytest.mark.parametrize("parts", [[measured(1, [17.0])], [_pp()], []])
def test_one_kind_alone_is_no_roofline(parts: list[Part]) -> None:
    assert rooflines(rows_of([run_of(parts)])) == ()


def test_rows_without_figures_are_no_spots() -> None:
    bare, samples = _pp()
    parts = [measured(1, [17.0]), (replace(bare, flop_per_token=None), samples)]
    assert rooflines(rows_of([run_of(parts)])) == ()


def test_each_bandwidth_has_its_own_roof() -> None:
    other, samples = measured(3, [20.0], run_id="b", model_label="n")
    prompt, its = _pp(4, run_id="b", model_label="n")
    second = [
        (replace(row, ceiling_bandwidth_bytes_per_s=2 * BANDWIDTH), own)
        for row, own in ((other, samples), (prompt, its))
    ]
    views = rooflines(rows_of([run_of([measured(1, [17.0]), _pp(), *second])]))
    assert [view.bandwidth_bytes_per_s for view in views] == [BANDWIDTH, 2 * BANDWIDTH]


def test_the_compute_roof_is_the_peak_that_the_prompt_ceiling_rests_on() -> None:
    row, samples = _pp()
    bound = (replace(row, ceiling_tps=1000.0, ceiling_bound="compute"), samples)
    view = _only(measured(1, [17.0]), bound)
    assert view.peak_flop_per_s == pytest.approx(1000.0 * FLOP)
    assert "50\u202f% of the compute" in title(view)
    ridge = 1000.0 * FLOP / BANDWIDTH
    (roof,) = [
        layer["data"]["values"]
        for layer in roofline_chart(view)["layer"]
        if layer["mark"]["type"] == "line"
    ]
    assert roof[1] == {"x": pytest.approx(ridge), "y": pytest.approx(1000.0 * FLOP)}
    assert roof[2]["y"] == roof[1]["y"]


def test_without_a_peak_only_memory_is_drawn_and_all_spots_lie_in_the_chart() -> None:
    view = _only(*sweep_parts())
    spec = roofline_chart(view)
    (roof,) = [
        layer["data"]["values"] for layer in spec["layer"] if layer["mark"]["type"] == "line"
    ]
    assert [point["y"] / point["x"] for point in roof] == [pytest.approx(BANDWIDTH)] * 2
    encoding = spec["layer"][0]["encoding"]
    for axis, value in (("x", "flop_per_byte"), ("y", "flop_per_s")):
        assert encoding[axis]["scale"]["type"] == "log"
        low, high = encoding[axis]["scale"]["domain"]
        assert all(low < getattr(spot, value) < high for spot in view.spots)


def test_many_models_are_bounded_and_counted() -> None:
    parts: list[Part] = []
    for n in range(MAX_MODELS + 3):
        name: dict[str, Any] = {"model_label": f"m{n}", "model_quant": None}
        parts += [measured(10 * n, [17.0], **name), _pp(10 * n + 1, **name)]
    view = _only(*parts)
    assert len(view.spots) == 2 * MAX_MODELS
    assert view.n_left_out == 3


def test_a_reference_peak_is_named_so_and_not_as_the_compute() -> None:
    part, samples = _pp(flop_per_token=FLOP, ceiling_bound="compute", ceiling_tps=400.0)
    part = replace(part, ceiling_is_reference=True, ceiling_tps=400.0, ceiling_bound="compute")
    (view,) = rooflines(rows_of([run_of([measured(1, [15.0, 15.1]), (part, samples)])]))
    assert view.is_peak_reference
    assert "of the reference peak" in title(view)
    assert "of the compute" not in title(view)
