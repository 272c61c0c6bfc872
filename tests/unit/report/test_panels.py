from __future__ import annotations

from typing import Any

from tests.unit.report.factory import failed_parts, measured, run_of, sweep_parts

from llamasweep.report.panels import MAX_MODELS, MAX_SERIES, axes_of, panels
from llamasweep.report.rows import rows_of


def test_depth_and_threads_come_first_and_only_axes_that_vary() -> None:
    rows = rows_of([run_of([*sweep_parts(), *failed_parts()])])
    assert axes_of(rows) == ("n_depth", "n_threads")


def test_each_model_has_its_panels_tg_before_pp() -> None:
    made = panels(rows_of([run_of(sweep_parts())]), "n_depth")
    assert [(p.family, p.kind) for p in made] == [
        ("tiny-llama", "tg"),
        ("tiny-llama", "pp"),
        ("tiny-qwen3", "tg"),
        ("tiny-qwen3", "pp"),
    ]


def test_series_are_told_apart_by_what_differs_and_others_are_held() -> None:
    panel = panels(rows_of([run_of(sweep_parts())]), "n_depth")[0]
    assert [series.label for series in panel.series] == ["Q4_0", "Q8_0"]
    assert len(panel.fixed) == 1
    assert panel.fixed[0].startswith("threads ")
    assert panel.n_left_out == 4
    assert [point.x for point in panel.series[0].points] == [0, 512, 2048]


def test_few_lines_are_all_drawn_with_their_settings() -> None:
    rows = rows_of([run_of(sweep_parts(models=("m",), quants=("Q4_0",)))])
    panel = panels(rows, "n_depth")[0]
    assert sorted(series.label for series in panel.series) == [
        "threads 1",
        "threads 2",
        "threads 4",
    ]
    assert panel.fixed == ()
    assert panel.n_left_out == 0


def test_an_axis_of_words_keeps_its_order() -> None:
    rows = rows_of([run_of([_kv(1, "q8_0"), _kv(2, "f16"), _kv(3, "q4_0")])])
    (panel,) = panels(rows, "type_k")
    assert not panel.is_numeric
    assert [point.x for point in panel.series[0].points] == ["q8_0", "f16", "q4_0"]


def test_a_line_of_one_value_is_no_panel() -> None:
    a = measured(1, [10.0], model_label="a", requested={"n_threads": 1})
    b = measured(2, [10.0], model_label="b", requested={"n_threads": 2})
    assert panels(rows_of([run_of([a, b])]), "n_threads") == ()


def test_rows_that_leave_the_axis_to_the_engine_are_not_placed() -> None:
    parts = [
        measured(1, [10.0], requested={}),
        *(measured(n, [10.0 + n], requested={"n_threads": n}) for n in (2, 3)),
    ]
    (panel,) = panels(rows_of([run_of(parts)]), "n_threads")
    assert [point.x for point in panel.series[0].points] == [2, 3]


def test_many_models_and_series_are_bounded() -> None:
    parts = [
        measured(
            1000 * m + 10 * q + t,
            [10.0 + m + q + t],
            model_label=f"m{m}-{q}",
            model_quant=str(q),
            requested={"n_threads": t},
        )
        for m in range(MAX_MODELS + 2)
        for q in range(MAX_SERIES + 3)
        for t in (1, 2)
    ]
    made = panels(rows_of([run_of(parts)]), "n_threads")
    assert len(made) == MAX_MODELS
    assert all(len(panel.series) == MAX_SERIES for panel in made)
    assert all(panel.n_left_out == 3 for panel in made)


def _kv(number: int, kind: str) -> Any:
    return measured(number, [10.0 + number, 10.1 + number], requested={"type_k": kind})
