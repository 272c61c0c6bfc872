"""Builds side by side: only the same question on the same machine, and differences only where ranges part."""

from __future__ import annotations

from typing import Any

from tests.unit.report.factory import Part, measured, run_of

from llamasweep.report.builds_beside import builds_beside, title
from llamasweep.report.builds_charts import builds_chart
from llamasweep.report.rows import rows_of


def _on(build: str, tps: list[float], number: int = 1, **changes: Any) -> Part:
    return measured(
        number,
        tps,
        attempt_id=f"log-{number}-{build}-{changes.get('machine_fingerprint')}",
        build_label=build,
        build_hash=build,
        **changes,
    )


def test_the_same_question_stands_beside_itself_in_the_order_of_builds() -> None:
    parts = [_on("b1", [10.0, 10.1]), _on("b2", [12.0, 12.1]), _on("b1", [5.0], 2, n_depth=512)]
    (view,) = builds_beside(rows_of([run_of(parts)]))
    assert view.builds == ("b1", "b2")
    ((label, answers),) = view.lines
    assert label == "tiny-llama Q4_0"
    assert [row.build for row in answers] == ["b1", "b2"]
    assert title(view).replace("\u202f", " ") == "Build b2 writes 20 % faster than b1"


def test_a_question_that_one_build_did_not_answer_is_not_compared() -> None:
    parts = [_on("b1", [10.0]), _on("b2", [12.0], 2)]
    assert builds_beside(rows_of([run_of(parts)])) == ()
    assert builds_beside(rows_of([run_of([_on("b1", [10.0])])])) == ()


def test_builds_of_different_machines_are_not_compared() -> None:
    parts = [
        _on("b1", [10.0], machine_fingerprint="here"),
        _on("b2", [12.0], machine_fingerprint="there"),
    ]
    assert builds_beside(rows_of([run_of(parts)])) == ()


def test_overlapping_ranges_are_no_difference() -> None:
    parts = [_on("b1", [10.0, 12.0]), _on("b2", [11.0, 12.5])]
    (view,) = builds_beside(rows_of([run_of(parts)]))
    assert title(view) == "Builds b1 and b2 show no difference beyond the spread"


def test_of_several_builds_the_one_that_is_fastest_most_often_is_named() -> None:
    parts = [
        _on(build, [tps * scale, tps * scale * 1.01], number, model_label=f"m{number}")
        for number, scale in ((1, 1.0), (2, 2.0))
        for build, tps in (("b1", 10.0), ("b2", 14.0), ("b3", 12.0))
    ]
    (view,) = builds_beside(rows_of([run_of(parts)]))
    assert title(view) == "Build b2 writes faster than every other for 2 of 2 models"
    values = builds_chart(view)["data"]["values"]
    assert len(values) == 6
    assert [layer["mark"].get("filled") for layer in builds_chart(view)["layer"][1:4]] == [
        True,
        False,
        False,
    ]


def _title(*models: tuple[float, ...], repetitions: tuple[float, ...] = (1.0, 1.01)) -> str:
    """Of builds b1, b2, … at these rates, a tuple for each model."""
    parts = [
        _on(
            f"b{build}",
            [tps * factor for factor in repetitions],
            number,
            model_label=f"m{number}",
        )
        for number, rates in enumerate(models, start=1)
        for build, tps in enumerate(rates, start=1)
    ]
    (view,) = builds_beside(rows_of([run_of(parts)]))
    return title(view).replace("\u202f", " ")


def test_noise_makes_no_build_the_fastest() -> None:
    assert _title((10.0, 10.01, 10.02), (20.0, 20.02, 20.0)) == (
        "No build writes faster than all others beyond the spread"
    )
    assert _title((10.0, 10.01, 12.0), (20.0, 20.02, 20.0)) == (
        "Build b3 writes faster than every other for 1 of 2 models"
    )


def test_what_a_build_loses_is_said_beside_what_it_gains() -> None:
    assert _title((10.0, 12.0), (10.0, 9.0), (10.0, 8.0), (10.0, 10.0)) == (
        "Build b2 writes 20 % faster for 1 of 4 models than b1 and 10 to 20 % slower for 2 of 4 models"
    )


def test_builds_measured_once_are_not_called_equal() -> None:
    assert _title((10.0, 15.0), repetitions=(1.0,)) == (
        "Builds b1 and b2 were measured once, 50 % apart"
    )
