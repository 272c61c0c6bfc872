from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.results.made import attempt, prompt, repeated, run_of, seen

from llamasweep.results.best import ModelBest, best_of
from llamasweep.results.contenders import Rate, compare, contenders
from llamasweep.results.records import Attempt, RunData


def measured(number: int, tps: float, n_threads: int | None = 8, **changes: Any) -> Attempt:
    """Five repetitions within 1 % of tps."""
    asked = changes.pop("asked", {})
    return attempt(
        number,
        **{
            "median_tps": tps,
            "min_tps": tps * 0.99,
            "max_tps": tps * 1.01,
            "sample_std_tps": tps * 0.005,
            "n_samples": 5,
            "ceiling_tps": 100.0,
            "requested": {**({"n_threads": n_threads} if n_threads else {}), **asked},
            "applied": {},
            **changes,
        },
    )


def read(number: int, tps: float, n_threads: int = 8, **changes: Any) -> Attempt:
    return measured(
        number, tps, n_threads, test_kind="pp", test_label="pp512", n_prompt=512, n_gen=0,
        **{"ceiling_tps": None, **changes},
    )  # fmt: skip


def only(rows: Sequence[Attempt]) -> ModelBest:
    (best,) = best_of(run_of(rows))
    return best


def threads(best: ModelBest, purpose: Any) -> int | None:
    return best.choices[purpose].chosen.n_threads


def test_generation_and_prompts_each_have_their_fastest_setting() -> None:
    best = only([measured(1, 10, 4), measured(2, 12, 8), read(3, 90, 4), read(4, 80, 8)])
    assert threads(best, "tg") == 8
    assert threads(best, "pp") == 4
    assert not best.one_for_all
    assert best.differs_in_threads_alone


def test_one_setting_may_be_the_fastest_for_both() -> None:
    best = only([measured(1, 10, 4), measured(2, 12, 8), read(3, 80, 4), read(4, 90, 8)])
    assert best.one_for_all
    assert not best.differs_in_threads_alone


def test_settings_that_differ_in_more_than_threads_do_not_go_together() -> None:
    fast = read(4, 99, 8, asked={"n_ubatch": 2048})
    best = only([measured(1, 12, 4, asked={"n_ubatch": 512}), fast])
    assert not best.differs_in_threads_alone


def test_the_second_is_the_fastest_that_is_clearly_slower() -> None:
    choice = only([measured(1, 10, 2), measured(2, 11, 4), measured(3, 12, 8)]).choices["tg"]
    assert choice.second is not None
    assert (choice.second.n_threads, choice.tied, choice.n_others) == (4, (), 2)


def test_a_tie_within_the_noise_is_a_tie() -> None:
    near = measured(1, 11.8, 4)
    wide = measured(2, 10.0, 6, min_tps=8.0, max_tps=13.0)
    choice = only([near, wide, measured(3, 12, 8), measured(4, 5, 1)]).choices["tg"]
    assert [row.n_threads for row in choice.tied] == [4, 6]
    assert choice.second is not None
    assert choice.second.n_threads == 1


def test_nothing_is_clear_of_single_repetitions() -> None:
    once = {"n_samples": 1, "min_tps": None, "max_tps": None}
    choice = only([measured(1, 5, 1, **once), measured(2, 10, 2, **once)]).choices["tg"]
    assert choice.second is None
    assert [row.n_threads for row in choice.tied] == [1]


@pytest.mark.parametrize("flag", ["wide_spread", "busy_neighbour", "a_flag_of_tomorrow"])
def test_a_doubtful_figure_is_passed_over_where_it_is_not_clearly_faster(flag: str) -> None:
    shaky = measured(2, 12, 8, flags=(flag,), min_tps=9.0, max_tps=13.0)
    choice = only([measured(1, 10, 4), shaky]).choices["tg"]
    assert choice.chosen.n_threads == 4
    assert [row.n_threads for row in choice.passed_over] == [8]
    assert choice.best_trusted is None


def test_a_doubtful_figure_that_is_clearly_faster_is_chosen_and_said_to_be_doubtful() -> None:
    choice = only([measured(1, 10, 4), measured(2, 20, 8, flags=("wide_spread",))]).choices["tg"]
    assert choice.chosen.n_threads == 8
    assert choice.chosen.doubts == ("wide_spread",)
    assert choice.best_trusted is not None
    assert choice.best_trusted.n_threads == 4
    assert choice.passed_over == ()


@pytest.mark.parametrize("flag", ["applied_differs", "clamped", "unpinned"])
def test_a_row_that_ran_with_another_setting_is_never_chosen_before_one_that_did_not(
    flag: str,
) -> None:
    choice = only([measured(1, 10, 4), measured(2, 20, 8, flags=(flag,))]).choices["tg"]
    assert choice.chosen.n_threads == 4
    assert [row.doubts for row in choice.passed_over] == [(flag,)]


def test_a_rate_above_the_ceiling_is_a_doubt_even_without_its_flag() -> None:
    (row,) = contenders(run_of([measured(1, 10, ceiling_tps=9.0)]))
    assert row.doubts == ("above_ceiling",)
    (fine,) = contenders(run_of([measured(1, 10, ceiling_tps=9.9)]))
    assert fine.doubts == ()


def test_a_harmless_flag_is_no_doubt() -> None:
    (row,) = contenders(run_of([measured(1, 10, flags=("first_sample_slow",))]))
    assert row.doubts == ()


def test_where_all_are_doubtful_the_fastest_is_chosen_and_all_are_said_to_be() -> None:
    flags = ("wide_spread",)
    choice = only([measured(1, 10, 4, flags=flags), measured(2, 12, flags=flags)]).choices["tg"]
    assert choice.are_all_doubtful
    assert choice.chosen.n_threads == 8


@pytest.mark.parametrize("status", ["failed", "timeout", "out_of_memory", "unsupported", "skipped"])
def test_what_was_not_measured_is_never_chosen(status: Any) -> None:
    gone = attempt(2, status=status, median_tps=None, requested={"n_threads": 16})
    choice = only([measured(1, 10, 4), gone]).choices["tg"]
    assert (choice.chosen.n_threads, choice.n_others) == (4, 0)
    assert best_of(run_of([gone])) == ()


def test_rounds_are_pooled_and_a_failed_one_is_a_doubt() -> None:
    first = measured(1, 10, cell_id="c")
    second = measured(2, 14, cell_id="c", round_index=1)
    samples = [*repeated(first, [10, 10]), *repeated(second, [14, 14, 1], n_discarded=0)]
    (row,) = contenders(run_of([first, second], samples=samples))
    assert (row.rate.median, row.rate.n, row.rate.low) == (10, 5, 1)
    assert row.attempt_ids == ("a1", "a2")
    lost = attempt(3, cell_id="c", round_index=2, status="failed", median_tps=None)
    (row,) = contenders(run_of([first, second, lost], samples=samples))
    assert row.doubts == ("round_failed",)


def test_a_retry_takes_the_place_of_what_it_repeats() -> None:
    failed = attempt(1, cell_id="c", status="failed", median_tps=None)
    (row,) = contenders(run_of([failed, measured(2, 10, cell_id="c", attempt_index=1)]))
    assert (row.attempt_ids, row.doubts) == (("a2",), ())


def test_the_longest_test_at_the_least_depth_decides() -> None:
    short = measured(1, 99, 1, n_gen=8, test_label="tg8")
    deep = measured(2, 50, 2, n_depth=4096)
    choice = only([short, deep, measured(3, 10, 4), measured(4, 12, 8)]).choices["tg"]
    assert (choice.chosen.n_threads, choice.chosen.n_depth) == (8, 0)


def test_another_setting_that_wins_at_depth_is_told() -> None:
    rows = [measured(1, 12, 8), measured(2, 10, 4)]
    deep = [measured(3, 6, 8, n_depth=4096), measured(4, 8, 4, n_depth=4096)]
    found = only([*rows, *deep]).choices["tg"].deepest
    assert found is not None
    assert (found.n_threads, found.n_depth) == (4, 4096)
    same = [measured(3, 8, 8, n_depth=4096), measured(4, 6, 4, n_depth=4096)]
    assert only([*rows, *same]).choices["tg"].deepest is None


def test_the_cheapest_within_three_percent_has_the_fewest_threads() -> None:
    best = only([measured(1, 11.7, 4), measured(2, 11.9, 6), measured(3, 12, 8), measured(4, 9, 2)])
    assert best.frugal is not None
    assert best.frugal.contender.n_threads == 4
    assert (best.frugal.saved_threads, best.frugal.within) == (4, ("tg",))
    only_slow = only([measured(1, 11.6, 4), measured(3, 12, 8)])
    assert only_slow.frugal is None


def test_of_equal_threads_the_least_memory_is_cheapest() -> None:
    rows = [
        seen(measured(1, 12.0, asked={"type_k": "f16"}), ram_peak_process_bytes=4 << 30),
        seen(measured(2, 11.8, asked={"type_k": "q8_0"}), ram_peak_process_bytes=3 << 30),
        measured(3, 11.9, asked={"type_k": "q4_0"}),
    ]
    frugal = only(rows).frugal
    assert frugal is not None
    assert frugal.contender.get("type_k") == "q8_0"
    assert (frugal.saved_threads, frugal.saved_memory_bytes) == (None, 1 << 30)


def test_what_is_near_in_both_kinds_but_saves_nothing_gives_way_to_what_saves_in_one() -> None:
    rows = [measured(1, 11.8, 4), measured(2, 12, 6), measured(3, 11.9, 8)]
    best = only([*rows, read(4, 60, 4), read(5, 80, 6), read(6, 100, 8)])
    assert best.frugal is not None
    assert (best.frugal.contender.n_threads, best.frugal.within) == (4, ("tg",))
    assert best.frugal.saved_threads == 2


def test_less_memory_at_more_threads_is_not_cheaper() -> None:
    rows = [
        seen(measured(1, 12.0, 4), ram_peak_process_bytes=4 << 30),
        seen(measured(2, 11.9, 8), ram_peak_process_bytes=3 << 30),
        read(3, 100, 8),
        read(4, 60, 4),
    ]
    assert only(rows).frugal is None


def test_device_memory_counts_too() -> None:
    row = seen(measured(1, 12), ram_peak_process_bytes=1000, vram_peak_device_bytes=500)
    assert contenders(run_of([row]))[0].memory_bytes == 1500
    assert contenders(run_of([measured(1, 12)]))[0].memory_bytes is None


def test_the_cheapest_is_near_in_both_kinds_where_it_can_be() -> None:
    rows = [measured(1, 11.8, 2), measured(2, 11.9, 4), measured(3, 12, 8)]
    prompts = [read(4, 40, 2), read(5, 98, 4), read(6, 100, 8)]
    frugal = only([*rows, *prompts]).frugal
    assert frugal is not None
    assert frugal.contender.n_threads == 4
    assert frugal.within == ("tg", "pp")
    apart = only([*rows, read(4, 40, 2), read(5, 60, 4), read(6, 80, 8), read(7, 100, 16)]).frugal
    assert apart is not None
    assert (apart.contender.n_threads, apart.within) == (2, ("tg",))
    assert apart.by_purpose["pp"].rate.median == 40


def test_the_setting_that_leaves_all_to_the_engine_is_told_apart() -> None:
    choice = only([measured(1, 10, None), measured(2, 12, 8)]).choices["tg"]
    assert choice.untouched is not None
    assert choice.untouched.settings == ()


def test_builds_and_models_are_told_apart_by_their_content() -> None:
    rows = [
        measured(1, 10, build_hash="x"),
        measured(2, 12, build_hash="y"),
        measured(3, 50, model_hash="other", model_label="other"),
    ]
    first, other = best_of(run_of(rows))
    assert first.choices["tg"].chosen.build_hash == "y"
    assert (other.model_label, other.choices["tg"].n_others) == ("other", 0)


def test_a_model_of_which_only_whole_requests_were_measured_has_no_best_setting() -> None:
    whole: dict[str, Any] = {
        "test_kind": "pg",
        "test_label": "pp64+tg16",
        "n_prompt": 64,
        "n_gen": 16,
    }
    assert best_of(run_of([measured(1, 10, 8, **whole), measured(2, 11, 4, **whole)])) == ()


def test_a_rate_of_several_rounds_needs_its_samples() -> None:
    rows = [measured(1, 10, cell_id="c"), measured(2, 14, cell_id="c", round_index=1)]
    assert contenders(run_of(rows)) == ()


def test_a_damaged_rate_is_no_contender() -> None:
    run: RunData = run_of([measured(1, float("nan")), prompt(2, median_tps=0.0)])
    assert contenders(run) == ()


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ((10.0, 9.9, 10.1), (10.2, 10.15, 10.3), "same"),
        ((12.0, 11.5, 12.5), (10.0, 9.5, 10.5), "faster"),
        ((10.0, 9.5, 10.5), (12.0, 11.5, 12.5), "slower"),
        ((12.0, 9.0, 13.0), (10.0, 9.5, 10.5), "undecided"),
        ((12.0, None, None), (10.0, 9.5, 10.5), "undecided"),
    ],
)
def test_rates_differ_only_beyond_noise_and_three_percent(
    a: tuple[float, float | None, float | None],
    b: tuple[float, float | None, float | None],
    verdict: str,
) -> None:
    rates = [Rate(median=m, std=None, low=low, high=high, n=5) for m, low, high in (a, b)]
    assert compare(*rates) == verdict
