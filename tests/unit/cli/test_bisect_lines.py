"""What a bisection says at its end, for each way in which it can end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamasweep.cli.bisect import exit_code
from llamasweep.cli.bisect_lines import bisect_lines, change_words, plain_bisection
from llamasweep.run.bisect import BisectFound, State
from llamasweep.run.bisect_steps import StepTold
from llamasweep.stats.bisection import Answer
from llamasweep.stats.bisection_step import StepJudged
from llamasweep.stats.differences import Difference
from llamasweep.stats.sequential import Decision
from llamasweep.stats.verdicts import Comparison, SpeedVerdict


def compared(ratio: float | None, verdict: SpeedVerdict = "slower") -> Comparison:
    return Comparison(
        verdict=verdict,
        ratio=ratio,
        low=None if ratio is None else ratio - 0.01,
        high=None if ratio is None else ratio + 0.01,
        p_value=0.001,
        n_rounds=10,
        n_dropped=0,
        floor_fraction=0.03,
        alpha=0.05,
        evidence="paired",
    )


def found(state: State, answer: Answer | None = None) -> BisectFound:
    """Twenty builds b0 … b19, a tenth slower at the end."""
    return BisectFound(
        state=state,
        run_dir=Path("results/run"),
        run_id="run",
        names=tuple(f"b{i}" for i in range(20)),
        cell="m tg16",
        cells={"c1": "m tg16", "c2": "m pp32"},
        ends={
            "c1": Decision(state="slower", comparison=compared(0.9), n_rounds_measured=7),
            "c2": Decision(state="same", comparison=compared(1.0, "same"), n_rounds_measured=7),
        },
        whole=compared(0.9),
        steps=(),
        answer=answer,
        step=None if answer is None else compared(0.9),
        share=None if answer is None else 1.0,
        titles={},
        differences=(),
        n_spoiled=0,
        n_measured=12,
        n_measurements=150,
        least_steps=5,
        stopped_by=None,
    )


EXACT = Answer(good=6, bad=7, is_confirmed=True, confidence=0.975)


def told(given: BisectFound) -> str:
    return "\n".join(bisect_lines(given))


def test_an_exact_answer_names_the_build_its_size_and_how_sure_it_is() -> None:
    text = told(found("found", EXACT))

    assert "b19 against b0: -10.0% [-11.0%, -9.0%], 10 rounds" in text
    assert "b7 made it slower; b6 before it is fast." in text
    assert "On 10 fresh rounds b7 is -10.0% [-11.0%, -9.0%] against b6." in text
    assert "Confidence: at least 97.5% that " in text
    assert "another one comes later" not in text
    assert (
        "150 measurements in all, 12 now; 0 builds measured between the ends (log2 minimum: 5)"
        in text
    )


def test_one_of_a_thing_is_told_as_one() -> None:
    single = replace(compared(0.9), n_rounds=1)
    text = told(replace(found("stopped"), whole=single, n_spoiled=1, n_measurements=1))

    assert "[-11.0%, -9.0%], 1 round\n" in text
    assert (
        "1 measurement was spoiled (the machine throttled, or memory was taken); it counts" in text
    )
    assert "1 measurement in all" in text


def test_a_range_names_its_builds_and_a_long_one_its_ends() -> None:
    short = replace(EXACT, bad=9)
    assert "One of b7, b8, b9 made it slower; b6 before them is fast." in told(
        found("found", short)
    )
    wide = replace(EXACT, bad=18)
    assert "One of b7 … b18 (12 builds) made it slower" in told(found("found", wide))


def test_a_part_of_the_change_says_where_to_search_on() -> None:
    text = told(replace(found("found", EXACT), share=0.4))

    assert "That is 40% of the whole change: another one comes later." in text
    assert "--good b7 --bad b19" in text


def test_what_hangs_what_differs_and_what_a_commit_says_are_told() -> None:
    given = replace(
        found("found", replace(EXACT, hung=(3,))),
        titles={"b7": "speed up\x1b[31m things"},
        differences=(Difference(name="flash_attn", a="off", b="on", is_default=True),),
        n_spoiled=2,
    )

    text = told(given)

    assert "Hangs, and the build after it is fast again: b3" in text
    assert "What else differs (b6 | b7):" in text
    assert "off | on (a default that changed)" in text
    assert "\x1b" not in text
    assert "2 measurements were spoiled" in text


def test_steps_are_a_table_with_the_reason_of_what_was_skipped() -> None:
    judged = StepJudged(
        outcome="bad", to_good=compared(0.95), to_bad=compared(1.05, "faster"), is_between=True
    )
    steps = (
        StepTold(name="b9", outcome="skip", reason="configuring failed:\n  | error"),
        StepTold(name="b7", outcome="bad", judged=judged, n_rounds=8),
    )
    given = replace(found("found", EXACT), steps=steps)

    text = told(given)

    assert "skipped" in text
    assert "configuring failed:" in text
    assert "| error" not in text
    assert "between both ends: there is more than one change" in text
    assert "1 build measured between the ends" in text
    plain = plain_bisection(given, 0)
    assert [step["outcome"] for step in plain["steps"]] == ["skip", "bad"]
    assert plain["steps"][0]["against_good"] is None
    assert plain["steps"][1]["against_good"]["ratio"] == 0.95


@pytest.mark.parametrize(
    ("state", "stopped_by", "words", "code"),
    [
        ("not_slower", None, "b19 is not slower than b0 for sure in any cell:", 4),
        ("same_again", None, "the ends do not differ beyond the floor", 4),
        ("stopped", "time", "Time is up; the same command continues", 4),
        ("stopped", "signal", "Stopped; the same command continues", 130),
    ],
)
def test_without_an_answer_it_says_why(
    state: State, stopped_by: str | None, words: str, code: int
) -> None:
    given = replace(found(state), stopped_by=stopped_by)

    assert words in told(given)
    assert exit_code(given) == code
    assert plain_bisection(given, code)["suspects"] == []


def test_an_answer_that_fresh_rounds_do_not_confirm_is_open() -> None:
    given = found("unconfirmed", replace(EXACT, is_confirmed=False, confidence=None))

    assert "Fresh rounds do not confirm it, so this is open" in told(given)
    assert "Confidence" not in told(given)
    assert exit_code(given) == 4


def test_a_change_without_interval_or_rate_is_said_so() -> None:
    assert change_words(compared(None)) == "no rate"
    assert change_words(replace(compared(0.9), low=None)) == "-10.0%"
