"""Two sides of many cells: matching, verdicts, reasons, and what else differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.stats.rounds_made import row

from llamasweep.results.records import Attempt, TelemetryFigures
from llamasweep.results.request_times import RequestTimes
from llamasweep.stats import compare_sides
from llamasweep.stats.cells import CellComparison
from llamasweep.stats.differences import Difference, differences

A_TPS = [100.0, 101.0, 99.5, 100.4, 100.9, 99.2, 100.1, 100.3]
B_NOISE = [1.001, 0.999, 1.0005, 0.9985, 1.0015, 0.9995, 1.0, 1.0008]


def attempt(round_index: int, tps: float | None, **changes: Any) -> Attempt:
    """A row of a machine that nobody knows."""
    return row(round_index, tps, **{"model_label": "m", "machine_fingerprint": None, **changes})


def side_a(**changes: Any) -> list[Attempt]:
    return [attempt(i, v, **changes) for i, v in enumerate(A_TPS)]


def side_b(factor: float = 1.0, **changes: Any) -> list[Attempt]:
    rates = [v * factor * n for v, n in zip(A_TPS, B_NOISE, strict=True)]
    return [attempt(i, v, **changes) for i, v in enumerate(rates)]


def only(a: list[Attempt], b: list[Attempt], **options: Any) -> CellComparison:
    (cell,) = compare_sides(a, b, **options).cells
    return cell


@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.9, "slower"), (1.1, "faster"), (1.0, "same"), (1.01, "same")]
)
def test_builds_of_one_run_are_paired_by_round(factor: float, verdict: str) -> None:
    found = only(side_a(), list(reversed(side_b(factor))))
    assert found.verdict == verdict
    assert found.comparison is not None
    assert (found.comparison.evidence, found.comparison.n_rounds) == ("paired", 8)


def test_runs_of_different_days_are_unpaired() -> None:
    found = only(side_a(), side_b(0.9, run_id="later"))
    assert found.verdict == "slower"
    assert found.comparison is not None
    assert found.comparison.evidence == "unpaired"


def test_a_measurement_that_stopped_when_clear_is_judged_at_its_stop() -> None:
    found = only(side_a(), side_b(0.9), max_rounds=20)
    assert found.comparison is not None
    assert (found.verdict, found.comparison.n_rounds) == ("slower", 7)


def test_a_round_that_failed_on_one_side_is_dropped_and_told() -> None:
    b = side_b(0.9)
    b[3] = attempt(3, None)
    found = only(side_a(), b)
    assert found.comparison is not None
    assert (found.comparison.n_rounds, found.comparison.n_dropped) == (7, 1)
    assert found.comparison.notes == ("1 round dropped: b is missing",)


def test_a_retry_takes_the_place_of_its_first_try() -> None:
    b = side_b(0.9)
    failed = attempt(3, None)
    found = only(side_a(), [failed, *(replace(row, attempt_index=1) for row in b)])
    assert found.comparison is not None
    assert found.comparison.n_dropped == 0


@pytest.mark.parametrize(
    ("a", "b", "verdict", "why"),
    [
        (side_a(), [attempt(0, None)], "newly_failing", "it crashed"),
        ([attempt(0, None)], side_b(), "fixed", "it crashed"),
        ([attempt(0, None)], [attempt(0, None)], "failing_on_both", "it crashed"),
        (side_a(), [], "only_in_a", None),
        ([], side_b(), "only_in_b", None),
        (
            side_a(),
            [attempt(0, None, status="unsupported", error_message="no option --cache-reuse")],
            "only_in_a",
            "no option --cache-reuse",
        ),
    ],
)
def test_cells_without_two_rates_say_so(
    a: list[Attempt], b: list[Attempt], verdict: str, why: str | None
) -> None:
    found = only(a, b)
    assert (found.verdict, found.why, found.comparison) == (verdict, why, None)


LOST = [attempt(r, None, error_kind="file_changed", error_message="rebuilt") for r in range(3)]


@pytest.mark.parametrize("kind", ["file_changed", "not_started", "model_missing"])
@pytest.mark.parametrize("other", [side_a(), [attempt(0, None)], LOST])
def test_a_side_of_which_nothing_ran_is_not_compared_and_says_why(
    kind: str, other: list[Attempt]
) -> None:
    lost = [replace(row, error_kind=kind) for row in LOST]
    for found in (only(other, lost), only(lost, other)):
        assert (found.verdict, found.reasons) == ("not_comparable", ("gone_or_replaced",))
        assert (found.why, found.comparison) == ("rebuilt", None)


def test_a_side_that_was_never_asked_stays_so_beside_one_of_which_nothing_ran() -> None:
    assert [only([], LOST).verdict, only(LOST, []).verdict] == ["only_in_b", "only_in_a"]


def test_rounds_in_which_nothing_ran_are_dropped_from_those_that_did() -> None:
    found = only(side_a(), [*side_b(0.9)[:7], replace(LOST[0], round_index=7)])
    assert found.verdict == "slower"
    assert found.comparison is not None
    assert (found.comparison.n_rounds, found.comparison.n_dropped) == (7, 1)


def test_a_cell_that_neither_side_tried_is_left_out() -> None:
    skipped = [attempt(0, None, status="skipped")]
    assert compare_sides(skipped, skipped).cells == ()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model_hash": "other"}, "other_model_content"),
        (
            {"requested": {"n_threads": 8}, "applied": {"n_threads": 4}},
            "other_applied_settings",
        ),
        ({"requests": RequestTimes(request_mode="api, raw")}, "other_applied_settings"),
        ({"machine_fingerprint": "other"}, "other_machine"),
        ({"flags": ("throttled",)}, "throttled"),
        ({"flags": ("wide_spread", "contaminated_memory")}, "contaminated"),
        ({"ceiling_fraction": 1.3}, "above_its_ceiling"),
        ({"ceiling_bandwidth_bytes_per_s": 8e10}, "calibration_moved"),
    ],
)
def test_what_must_not_be_compared_is_not(changes: dict[str, Any], reason: str) -> None:
    known: dict[str, Any] = {
        "requested": {"n_threads": 8},
        "applied": {"n_threads": 8},
        "machine_fingerprint": "m",
        "requests": RequestTimes(request_mode="verbose, raw"),
        "ceiling_fraction": 0.8,
        "ceiling_bandwidth_bytes_per_s": 6e10,
        "ceiling_bandwidth_source": "measured here",
    }
    found = only(side_a(**known), side_b(0.8, **{**known, **changes}))
    assert (found.verdict, found.reasons, found.comparison) == ("not_comparable", (reason,), None)


def test_rows_of_two_programs_are_never_one_side() -> None:
    a, b = side_a(build_hash="a"), side_b(0.8, build_hash="b")
    assert only(a, b).verdict == "slower"
    b[3:] = [replace(row, build_hash="rebuilt") for row in b[3:]]
    for found in (only(a, b), only(b, a)):
        assert (found.verdict, found.reasons) == ("not_comparable", ("several_programs",))


def test_what_one_side_does_not_know_is_no_reason() -> None:
    found = only(side_a(machine_fingerprint="m", applied={"n_threads": 8}), side_b())
    assert (found.verdict, found.reasons) == ("same", ())


def test_one_round_above_its_ceiling_is_told_and_does_not_throw_out_the_cell() -> None:
    a, b = side_a(ceiling_fraction=0.9), side_b(0.8, ceiling_fraction=0.9)
    b[3] = replace(b[3], ceiling_fraction=1.3)
    found = only(a, b)
    assert (found.verdict, found.reasons) == ("slower", ())
    assert found.comparison is not None
    assert found.comparison.notes == ("1 of 8 rounds of b above the ceiling",)


def test_a_side_whose_median_is_above_its_ceiling_is_not_compared() -> None:
    b = side_b(0.8, ceiling_fraction=1.3)
    b[:3] = [replace(row, ceiling_fraction=0.9) for row in b[:3]]
    assert only(side_a(ceiling_fraction=0.9), b).reasons == ("above_its_ceiling",)


def test_a_reference_peak_is_no_bound() -> None:
    fast: dict[str, Any] = {"ceiling_fraction": 1.3, "ceiling_is_reference": True}
    assert only(side_a(**fast), side_b(**fast)).reasons == ()


def test_a_model_of_the_same_name_with_other_content_is_one_cell() -> None:
    found = only(side_a(), side_b(cell_id="elsewhere", model_hash="other"))
    assert (found.verdict, found.reasons) == ("not_comparable", ("other_model_content",))


def test_a_changed_default_is_told_and_compared() -> None:
    a = side_a(requested={"flash_attn": None}, applied={"flash_attn": "off"})
    b = side_b(0.9, requested={"flash_attn": None}, applied={"flash_attn": "on"})
    found = compare_sides(a, b)
    assert found.cells[0].verdict == "slower"
    assert found.differences == (Difference(name="flash_attn", a="off", b="on", is_default=True),)


def test_another_way_of_asking_a_server_is_told() -> None:
    a, b = (
        [attempt(0, 100.0, requests=RequestTimes(request_mode=mode))]
        for mode in ("verbose, raw", "api, raw")
    )
    told = Difference(name="request_mode", a="verbose, raw", b="api, raw")
    assert compare_sides(a, b).differences == (told,)
    assert compare_sides(a, [attempt(0, 100.0)]).differences == ()


def test_what_only_one_side_measured_is_no_difference() -> None:
    """A batch is cut to the context, so that cells differ in it."""
    both: dict[str, Any] = {"requested": {"n_batch": None}, "applied": {"n_batch": 64}}
    alone = side_a(cell_id="c2", requested={"n_batch": None}, applied={"n_batch": 32})
    for status in ("unsupported", "failed"):
        b = [*side_b(**both), attempt(0, None, cell_id="c2", status=status)]
        assert compare_sides([*side_a(**both), *alone], b).differences == ()


def test_backends_facts_clocks_and_temperatures_are_told() -> None:
    cold = TelemetryFigures(cpu_clock_mean_mhz=3000.0, cpu_temperature_peak_c=50.0)
    hot = TelemetryFigures(cpu_clock_mean_mhz=2800.0, cpu_temperature_peak_c=54.0)
    found = differences(
        [attempt(0, 1.0, build_backends="CPU", telemetry=cold)],
        [attempt(0, 1.0, build_backends="CUDA", telemetry=hot)],
        {"compiler": "gcc 12", "driver": "1", "governor": None},
        {"compiler": "gcc 14", "driver": "1", "governor": "powersave"},
    )
    assert [(d.name, d.a, d.b) for d in found] == [
        ("build_backends", "CPU", "CUDA"),
        ("compiler", "gcc 12", "gcc 14"),
        ("cpu_clock_mean_mhz", "3000", "2800"),
    ]


def test_floors_are_those_of_the_kind_unless_given() -> None:
    pp: dict[str, Any] = {"test_kind": "pp", "test_label": "pp512"}
    a, b = side_a(**pp), side_b(0.96, **pp)
    assert only(a, b).verdict == "same"
    assert only(a, b, floor_of_row=lambda _: 0.02).verdict == "slower"
    assert only(side_a(), side_b(0.96)).verdict == "slower"


def test_what_matters_stands_first_and_larger_changes_before_smaller() -> None:
    factors = {"same": 1.0, "bit_slower": 0.94, "faster": 1.2, "much_slower": 0.7}
    a = [row for key in factors for row in side_a(cell_id=key)]
    b = [row for key, factor in factors.items() for row in side_b(factor, cell_id=key)]
    a += side_a(cell_id="broken")
    b += [attempt(0, None, cell_id="broken")]
    found = compare_sides(a, b)
    assert [cell.cell_id for cell in found.cells] == [
        "broken",
        "much_slower",
        "bit_slower",
        "faster",
        "same",
    ]
    assert [cell.cell_id for cell in found.of("slower")] == ["much_slower", "bit_slower"]


def test_p_values_are_corrected_for_the_cells_that_have_one() -> None:
    a = [row for key in ("x", "y", "z") for row in side_a(cell_id=key)]
    b = [*side_b(0.9, cell_id="x"), *side_b(1.0, cell_id="y"), attempt(0, None, cell_id="z")]
    found = {cell.cell_id: cell for cell in compare_sides(a, b).cells}
    x, y = found["x"].comparison, found["y"].comparison
    assert x is not None
    assert y is not None
    assert x.p_value == 2 / 256
    assert found["x"].q_value == pytest.approx(4 / 256)
    assert found["y"].q_value == y.p_value
    assert found["z"].q_value is None


def test_nothing_on_either_side_is_nothing() -> None:
    assert compare_sides([], []).cells == ()


def test_rounds_in_a_fixed_order_are_not_paired() -> None:
    """Whatever drifts within a round would fall on the same side each time."""
    (drawn,) = compare_sides(side_a(), side_b(0.8)).cells
    (fixed,) = compare_sides(side_a(), side_b(0.8), is_drawn=False).cells
    assert drawn.comparison is not None
    assert fixed.comparison is not None
    assert (drawn.comparison.evidence, fixed.comparison.evidence) == ("paired", "unpaired")
