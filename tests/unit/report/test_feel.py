"""What it feels like: seconds by hand, the best setting, and absence where a rate is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import Part, measured, run_of, sweep_parts

from llamasweep.report.feel import MAX_MODELS, Feel, feel
from llamasweep.report.figures import THIN
from llamasweep.report.rows import rows_of


def _pp(number: int, tps: float, **changes: Any) -> Part:
    kind: dict[str, Any] = {"test_kind": "pp", "test_label": "pp512", "n_prompt": 512, "n_gen": 0}
    return measured(number, [tps, tps], **kind, **changes)


def _at_rate(tps: float) -> Part:
    row, samples = measured(1, [10.0])
    return replace(row, median_tps=tps), samples


def _feel(*parts: Part) -> Feel:
    view = feel(rows_of([run_of(parts)]))
    assert view is not None
    return view


def test_seconds_are_prompt_by_pp_then_answer_by_tg() -> None:
    (model,) = _feel(measured(1, [19.9, 19.9]), _pp(2, 500.0)).models
    short, long = model.waits
    assert (short.n_prompt, long.n_prompt) == (1000, 12000)
    assert short.first_token == f"2.0{THIN}s"
    assert short.whole == f"12.0{THIN}s"  # 1000 / 500 + 199 / 19.9
    assert long.first_token == f"24.0{THIN}s"
    assert long.end == 1.0
    assert long.prefill == pytest.approx(24 / 34)
    assert short.end == pytest.approx(12 / 34)
    assert "first token after 2.0" in short.words
    assert f"17{THIN}% of it the prompt" in short.words


def test_the_setting_is_one_in_which_both_were_measured() -> None:
    parts = [
        measured(1, [30.0, 30.0], requested={"n_threads": 1}),
        measured(2, [20.0, 20.0], requested={"n_threads": 2}),
        _pp(3, 100.0, requested={"n_threads": 2}),
        measured(4, [10.0, 10.0], requested={"n_threads": 4}),
        _pp(5, 110.0, requested={"n_threads": 4}),
    ]
    (model,) = _feel(*parts).models
    assert model.setting == "threads 2"
    assert model.anchors == ("row-2", "row-3")


def test_the_least_depth_comes_before_the_fastest() -> None:
    view = _feel(
        measured(1, [10.0, 10.0]),
        _pp(2, 100.0),
        measured(3, [90.0, 90.0], n_depth=512),
        _pp(4, 900.0, n_depth=512),
    )
    assert [model.setting for model in view.models] == ["depth 0"]
    assert "pp512 and tg32 at depth 0" in view.caption


def test_models_share_one_time_axis_fastest_first() -> None:
    view = _feel(*sweep_parts())
    assert view.models[0].subject == "tiny-llama Q4_0"
    ends = [model.waits[-1].end for model in view.models]
    assert ends == sorted(ends)
    assert ends[-1] == 1.0


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [measured(1, [10.0])],
        [_pp(1, 10.0)],
        [_at_rate(0.0), _pp(2, 10.0)],
        [_at_rate(float("inf")), _pp(2, 10.0)],
    ],
)
def test_the_section_is_absent_where_a_rate_is_missing(parts: list[Part]) -> None:
    assert feel(rows_of([run_of(parts)])) is None


def test_many_models_are_bounded_and_counted() -> None:
    parts = []
    for n in range(MAX_MODELS + 2):
        name: dict[str, Any] = {"model_label": f"m{n}", "model_quant": None}
        parts += [measured(10 * n, [10.0], **name), _pp(10 * n + 1, 100.0, **name)]
    view = _feel(*parts)
    assert len(view.models) == MAX_MODELS
    assert view.caption.endswith("2 more models not shown.")
