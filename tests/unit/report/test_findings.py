from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import Part, failed_parts, lost, measured, run_of, sweep_parts

from llamasweep.report import comparison, depth_loss, findings, headline, panel_titles, panels
from llamasweep.report.figures import THIN
from llamasweep.report.rows import Row, rows_of


def _rows(parts: Sequence[Part]) -> tuple[Row, ...]:
    return rows_of([run_of(parts)])


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([12.0, 12.1], [10.0, 10.1], "faster"),
        ([10.0, 10.1], [12.0, 12.1], "slower"),
        ([10.0, 10.1], [10.1, 10.2], "same"),
        ([9.0, 12.0], [9.0, 9.5], "undecided"),
        ([12.0], [10.0], "undecided"),
    ],
)
def test_a_difference_is_seen_only_outside_the_spread(
    a: list[float], b: list[float], verdict: str
) -> None:
    first, second = _rows([measured(1, a), measured(2, b)])
    assert comparison.compare(first, second) == verdict


def test_nothing_is_said_of_a_row_that_was_not_measured() -> None:
    first, second = _rows([measured(1, [10.0, 10.1]), lost(2, status="failed")])
    assert comparison.compare(first, second) == "undecided"


def test_the_title_of_one_model_tells_its_speed_and_share() -> None:
    pp = measured(
        2, [480.0, 485.0, 490.0], test_kind="pp", test_label="pp512", n_prompt=512, n_gen=0
    )
    title = headline.headline(_rows([measured(1, [17.0, 18.0, 19.0]), pp]), "a Ryzen")
    assert (
        title
        == f"tiny-llama Q4_0 on a Ryzen writes 18.0 tokens a second, 78{THIN}% of what the memory allows, and reads 485"
    )


def test_the_title_of_generation_alone_ends_well() -> None:
    title = headline.headline(_rows([measured(1, [18.0])]), "X")
    assert (
        title
        == f"tiny-llama Q4_0 on X writes 18.0 tokens a second, 78{THIN}% of what the memory allows"
    )


def test_the_title_without_a_ceiling_claims_none() -> None:
    title = headline.headline(_rows([measured(1, [18.0], model_size_bytes=None)]), "X")
    assert title == "tiny-llama Q4_0 on X writes 18.0 tokens a second"


def test_the_title_of_prompts_alone() -> None:
    pp = measured(2, [485.0], test_kind="pp", test_label="pp512", n_prompt=512, n_gen=0)
    assert headline.headline(_rows([pp]), "X") == "tiny-llama Q4_0 on X reads 485 tokens a second"


def test_the_title_of_mixed_tests_alone() -> None:
    pg = measured(2, [85.0], test_kind="pg", test_label="pp512+tg32", n_prompt=512, n_gen=32)
    assert (
        headline.headline(_rows([pg]), "X")
        == "tiny-llama Q4_0 on X does 85.0 tokens a second in pp512+tg32"
    )


def test_a_faster_model_with_a_doubt_is_named_beside_the_fastest_to_rely_on() -> None:
    parts = [
        measured(1, [17.0, 17.1], model_label="a"),
        measured(2, [20.0, 25.0], model_label="b", flags=("wide_spread",)),
        measured(3, [10.0, 10.1], model_label="b", requested={"n_threads": 1}),
    ]
    title = headline.headline(_rows(parts), "X")
    assert title.startswith(
        "On X, a Q4_0 is the fastest of 2 by rates to rely on: it writes 17.1 tokens a second"
    )
    assert title.endswith("; b Q4_0 has 22.5 (not to be relied on: noisy)")


def test_the_title_of_several_models_names_the_fastest() -> None:
    title = headline.headline(_rows(sweep_parts(threads=(2,))), "X")
    assert title.startswith("On X, tiny-llama Q4_0 is the fastest of 4: it writes 1")


def test_the_title_without_measurements_says_so() -> None:
    title = headline.headline(_rows(failed_parts()), "X")
    assert (
        title
        == "Nothing could be measured on X: 4 cells failed, 2 cells not possible here, 1 cell skipped"
    )
    assert headline.headline((), "X") == "Nothing could be measured on X: no cell was tried"


@pytest.mark.parametrize(
    ("tps", "words"),
    [
        (
            17.0,
            f"of the pencil ceiling (bandwidth ÷ model size) it is 77{THIN}%, where people quote 70",
        ),
        (9.0, "Generation reaches 39"),
    ],
)
def test_the_share_of_the_ceiling_is_put_beside_what_people_quote(tps: float, words: str) -> None:
    found = findings.shares(_rows([measured(1, [tps, tps])]))
    assert words in found[0].text
    assert found[0].link == "ceiling"


@pytest.mark.parametrize(
    ("small", "large", "words"),
    [
        ([18.0, 18.1], [9.0, 9.1], "generates 1.99 times as fast as Q8_0 at 53"),
        ([9.0, 9.1], [18.0, 18.1], "of the speed of Q8_0 although it is smaller"),
        ([9.0, 9.1], [9.0, 9.1], "generates as fast as Q8_0"),
        ([9.0, 14.0], [9.0, 9.1], "and Q8_0 differ by less than their spread shows"),
        ([18.0], [9.0], f"generates at 200{THIN}% of the speed of Q8_0, measured once"),
    ],
)
def test_the_ladder_compares_smallest_and_largest_quantisation(
    small: list[float], large: list[float], words: str
) -> None:
    parts = [
        measured(1, small),
        measured(
            2,
            large,
            model_label="tiny-llama-Q8_0",
            model_quant="Q8_0",
            model_size_bytes=3_600_000_000,
        ),
    ]
    texts = [
        finding.text for finding in (*findings.shares(_rows(parts)), *findings.ladder(_rows(parts)))
    ]
    assert any(text.startswith("tiny-llama: Q4_0 ") and words in text for text in texts), texts


def test_failures_are_told_with_their_kind() -> None:
    texts = [finding.text for finding in findings.failures(_rows(failed_parts()))]
    assert texts == ["4 cells failed: 1 × SIGSEGV, 1 × model missing, 1 × hang, 1 × out of memory."]


def test_the_share_of_prompts_is_told_with_what_bounds_it() -> None:
    prompt, samples = measured(2, [90.0, 91.0], test_kind="pp", n_prompt=512, n_gen=0)
    known = replace(prompt, ceiling_tps=200.0, ceiling_bound="compute")
    rows = _rows([measured(1, [18.0]), (known, samples)])
    assert findings.shares(rows)[1].text == (
        f"Prompt reading reaches 45{THIN}% of what the compute allows."
    )
    assert headline.headline(rows, "X").endswith(
        f"reads 90.5, 45{THIN}% of what the compute allows"
    )


@pytest.mark.parametrize("kind", ["tg", "pp"])
def test_a_share_above_the_exact_ceiling_is_no_share_but_a_wrong_assumption(kind: str) -> None:
    test: dict[str, Any] = {"test_kind": "pp", "n_prompt": 512, "n_gen": 0} if kind == "pp" else {}
    good, samples = measured(1, [18.0, 18.0], model_label="a", **test)
    above, more = measured(2, [30.0, 30.0], model_label="b", **test)
    parts = [
        (replace(good, ceiling_tps=20.0), samples),
        (replace(above, ceiling_tps=20.0, pencil_ceiling_tps=None), more),
    ]
    word = {"tg": "generation", "pp": "prompt reading"}[kind]
    wrong = (
        f"1 row of {word} lies above its exact ceiling, so an assumption of that ceiling is wrong."
    )
    (text,) = [one.text for one in findings.shares(_rows(parts))]
    assert f"reaches 90{THIN}%" in text
    assert "150" not in text
    assert text.endswith(wrong)
    (alone,) = [one.text for one in findings.shares(_rows(parts[1:]))]
    assert alone == wrong
    reference = [(replace(row, ceiling_is_reference=True), kept) for row, kept in parts[1:]]
    (told,) = [one.text for one in findings.shares(_rows(reference))] if kind == "pp" else (alone,)
    assert kind == "tg" or told == f"Prompt reading reaches 150{THIN}% of the reference peak."


def test_without_an_exact_ceiling_the_pencil_is_told_with_the_reason() -> None:
    row, samples = measured(1, [18.0, 18.1])
    pencil = replace(row, ceiling_tps=None, reasons={"ceiling_tps": "mamba9 is not modelled"})
    (finding,) = findings.shares(_rows([(pencil, samples)]))
    assert f"reaches 82{THIN}% of the pencil ceiling" in finding.text
    assert finding.text.endswith("No exact ceiling: mamba9 is not modelled.")


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ((0.78, 0.78), ": KV growth explains the loss"),
        ((0.6, 0.6), ": a larger loss than KV growth explains"),
        ((0.95, 0.95), ": a smaller loss than KV growth would cause"),
        ((0.78, 0.6), ": KV growth explains the loss of a alone"),
        ((0.95, 0.6), ", which KV growth does not explain"),
    ],
)
def test_what_depth_costs_is_held_against_what_the_ceiling_loses(
    kept: tuple[float, float], words: str
) -> None:
    rows = []
    for n, share in enumerate(kept):
        label: dict[str, Any] = {"model_label": f"m-{'ab'[n]}", "model_quant": "ab"[n]}
        rows.append(measured(2 * n, [20.0 - n, 20.0 - n], requested={"n_depth": 0}, **label))
        tps = (20.0 - n) * share
        deep: dict[str, Any] = {"n_depth": 4096, "requested": {"n_depth": 4096}}
        rows.append(measured(2 * n + 1, [tps, tps], **deep, **label))
    (panel,) = panels.panels(_rows(rows), "n_depth")
    assert depth_loss.loss_words(panel) == words


def test_the_shares_behind_that_are_told() -> None:
    rows = _rows(sweep_parts(models=("m",), quants=("Q4_0",), threads=(2,)))
    panel = panels.panels(rows, "n_depth")[0]
    assert depth_loss.share_words(panel) == (
        f" Share of the exact ceiling: m Q4_0 74{THIN}% at depth 0, 66{THIN}% at depth 2048."
    )


def _axis_title(axis: str, points: dict[int | str, list[float]], **changes: Any) -> str:
    parts = []
    for number, (value, tps) in enumerate(points.items()):
        extra: dict[str, Any] = {"n_depth": value} if axis == "n_depth" else {}
        parts.append(measured(number, tps, requested={axis: value}, **extra, **changes))
    (panel,) = panels.panels(_rows(parts), axis)
    return panel_titles.panel_title(panel)


@pytest.mark.parametrize(
    ("points", "title"),
    [
        (
            {0: [20.0, 20.1], 4096: [15.0, 15.1]},
            f"Generation keeps 75{THIN}% of its speed at depth 4096: KV growth explains the loss",
        ),
        (
            {0: [20.0, 20.1], 4096: [12.0, 12.1]},
            f"Generation keeps 60{THIN}% of its speed at depth 4096: a larger loss than KV growth explains",
        ),
        (
            {0: [20.0, 20.1], 16384: [19.9, 20.1]},
            f"Generation loses nothing up to depth 16{THIN}384",
        ),
        (
            {0: [14.0, 20.1], 4096: [13.0, 15.1]},
            "Generation shows no loss beyond the spread up to depth 4096",
        ),
        (
            {0: [20.0], 4096: [10.0]},
            f"Generation keeps 50{THIN}% of its speed at depth 4096: a larger loss than KV growth explains, measured once",
        ),
    ],
)
def test_depth_panels_are_titled_with_what_is_kept(
    points: dict[int | str, list[float]], title: str
) -> None:
    assert _axis_title("n_depth", points) == title


@pytest.mark.parametrize(
    ("points", "title"),
    [
        (
            {1: [10.0, 10.1], 2: [18.0, 18.1], 4: [18.0, 18.2]},
            "Above 2 threads generation gains nothing",
        ),
        (
            {1: [10.0, 10.1], 2: [18.0, 18.1], 4: [16.0, 22.0]},
            "Above 2 threads generation gains nothing beyond the spread",
        ),
        ({1: [18.0, 18.1], 2: [18.0, 18.1]}, "Above 1 thread generation gains nothing"),
        (
            {1: [10.0, 10.1], 2: [18.0, 18.1], 4: [25.0, 25.1]},
            "Generation still gains at 4 threads, the most that was tried",
        ),
        (
            {1: [10.0, 10.1], 2: [18.0, 18.1], 4: [9.0, 9.1]},
            f"Generation is fastest at 2 threads; 4 keep 50{THIN}% of that",
        ),
        (
            {1: [10.0], 2: [18.0], 4: [18.1]},
            "Above 2 threads generation gains nothing, measured once",
        ),
    ],
)
def test_thread_panels_are_titled_with_how_many_are_enough(
    points: dict[int | str, list[float]], title: str
) -> None:
    assert _axis_title("n_threads", points) == title


def test_series_that_disagree_are_told_as_a_range() -> None:
    parts = [
        measured(
            n,
            [tps, tps * 1.001],
            model_label=f"m-{quant}",
            model_quant=quant,
            requested={"n_threads": t},
        )
        for n, (quant, t, tps) in enumerate(
            [
                ("Q4_0", 1, 10.0),
                ("Q4_0", 2, 18.0),
                ("Q4_0", 4, 25.0),
                ("Q8_0", 1, 9.0),
                ("Q8_0", 2, 14.0),
                ("Q8_0", 4, 14.0),
            ]
        )
    ]
    (panel,) = panels.panels(_rows(parts), "n_threads")
    assert (
        panel_titles.panel_title(panel)
        == "Generation needs 2 to 4 threads, depending on the quantisation"
    )


@pytest.mark.parametrize(
    ("points", "title"),
    [
        ({128: [10.0, 10.1], 512: [18.0, 18.1]}, "Generation is fastest at ubatch 512"),
        (
            {128: [18.0, 18.1], 512: [18.0, 18.1]},
            "Generation does not depend on ubatch (within 3 %)",
        ),
        (
            {128: [14.0, 19.0], 512: [14.0, 21.0]},
            "Generation shows no difference in ubatch beyond the spread",
        ),
        ({128: [10.0], 512: [18.0]}, "Generation is fastest at ubatch 512, measured once"),
    ],
)
def test_other_axes_are_titled_with_their_best(
    points: dict[int | str, list[float]], title: str
) -> None:
    assert _axis_title("n_ubatch", points) == title


def test_words_on_an_axis_are_named() -> None:
    assert (
        _axis_title("type_k", {"f16": [10.0, 10.1], "q8_0": [8.0, 8.1]})
        == "Generation is fastest at K cache f16"
    )


def test_bars_are_titled_with_the_fastest() -> None:
    rows = [row for row in _rows(sweep_parts(threads=(2,), depths=(0,))) if row.kind == "tg"]
    assert panel_titles.rates_title(rows).startswith("tiny-llama Q4_0 writes ")
    assert panel_titles.rates_title(rows).endswith("tokens a second, the fastest of 4")
    assert panel_titles.rates_title(rows[:1]).endswith("tokens a second")


def test_the_title_prefers_a_rate_without_a_doubt() -> None:
    noisy = measured(1, [30.0, 12.0, 30.0], flags=("wide_spread",), requested={"n_threads": 4})
    quiet = measured(2, [18.0, 18.1, 18.0], requested={"n_threads": 2})
    title = headline.headline(_rows([noisy, quiet]), "X")
    assert "writes 18.0 tokens a second" in title
    assert "relied" not in title


def test_a_title_of_a_doubtful_rate_says_so() -> None:
    noisy = measured(1, [20.0, 12.0, 20.0], flags=("wide_spread",))
    title = headline.headline(_rows([noisy]), "X")
    assert "writes 20.0 tokens a second (not to be relied on: noisy)" in title


def test_a_flag_that_only_explains_a_rate_is_no_doubt_of_the_title() -> None:
    slow = measured(1, [18.0, 18.1, 18.0], flags=("first_sample_slow",))
    assert "relied" not in headline.headline(_rows([slow]), "X")
