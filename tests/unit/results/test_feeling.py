"""Figures of a few requests in words."""

from __future__ import annotations

import json

import pytest

from llamasweep.results.feeling import Ceiling, Feeling, feeling, verdict
from llamasweep.results.latency import RequestTiming


def felt(
    ttft_ms: float, gap_ms: float, *, ceiling: Ceiling | None = None, n_gen: int = 11
) -> Feeling:
    times = tuple(int((ttft_ms + i * gap_ms) * 1e6) for i in range(n_gen))
    one = RequestTiming(sent_ns=0, event_ns=times, n_gen=n_gen, n_prompt=64)
    none = Ceiling(reason="the model's file is not known")
    return feeling(
        [one] * 3, model="m", server="http://x:1", kind="openai", ceiling=ceiling or none
    )


@pytest.mark.parametrize(
    ("ttft_ms", "words"),
    [
        (400, "before one's thoughts stray"),
        (3200, "the wait of 3.2 s, and stays"),
        (14_000, "A wait of 14 s"),
    ],
)
def test_the_wait(ttft_ms: float, words: str) -> None:
    assert words in verdict(felt(ttft_ms, 20))[0]


@pytest.mark.parametrize(
    ("gap_ms", "words"),
    [
        (20, "50.0 t/s is 9.6 times the speed at which people read: the text is there"),
        (400, "0.5 times"),
        (400, "reads along and waits"),
    ],
)
def test_the_flow(gap_ms: float, words: str) -> None:
    assert words in verdict(felt(400, gap_ms))[1]


@pytest.mark.parametrize(
    ("ceiling_tps", "words"),
    [
        (60.0, "83% of what the memory allows: no setting"),
        (100.0, "settings may help"),
        (500.0, "Only 10%"),
        (40.0, "bandwidth that the ceiling rests on is wrong"),
    ],
)
def test_the_distance_to_the_ceiling(ceiling_tps: float, words: str) -> None:
    found = felt(400, 20, ceiling=Ceiling(decode_tps=ceiling_tps))
    assert words in verdict(found)[-1]
    assert found.ceiling_fraction == pytest.approx(50 / ceiling_tps)


def test_what_the_figures_rest_on_is_kept() -> None:
    ceiling = Ceiling(decode_tps=60.0, notes=("this machine is not calibrated",))
    one = felt(400, 20).runs[0]
    found = feeling(
        [one], model="m", server="s", kind="openai", ceiling=ceiling, notes=["others were busy"]
    )
    assert found.notes == ("others were busy", "this machine is not calibrated")
    assert found.to_dict()["notes"] == list(found.notes)


def test_without_a_ceiling_nothing_is_said_of_it() -> None:
    found = felt(400, 20)
    assert found.ceiling_fraction is None
    assert len(verdict(found)) == 2
    assert found.to_dict()["ceiling_tps"] is None


@pytest.mark.parametrize(("unit_ns", "is_felt"), [(10**6, True), (10**5, False)])
def test_stutter_is_told_where_a_person_can_feel_it(unit_ns: int, is_felt: bool) -> None:
    times = [100, 120, 140, 160, 180, 600, 620, 640, 1100, 1120]
    one = RequestTiming(sent_ns=0, event_ns=tuple(t * unit_ns for t in times), n_gen=10)
    found = feeling([one], model="m", server="s", kind="openai", ceiling=Ceiling(reason="none"))
    assert any("It stutters" in line for line in verdict(found)) is is_felt


def test_one_token_gives_no_rate_and_no_word_on_it() -> None:
    found = felt(400, 20, n_gen=1)
    assert found.decode_tps.median is None
    assert verdict(found) == ["The answer begins before one's thoughts stray."]
    assert json.loads(json.dumps(found.to_dict()))["tpot_ms"] == {
        "n": 0,
        "median": None,
        "p95": None,
    }


def test_p95_of_a_rate_is_its_slow_end() -> None:
    fast = RequestTiming(sent_ns=0, event_ns=(10**8, 2 * 10**8), n_gen=2)
    slow = RequestTiming(sent_ns=0, event_ns=(10**8, 3 * 10**8), n_gen=2)
    found = feeling([fast, slow], model="m", server="s", kind="openai", ceiling=Ceiling(reason="x"))
    assert found.decode_tps.p95 == pytest.approx(1000 / 195)


def test_no_request_is_no_feeling() -> None:
    with pytest.raises(ValueError, match="no request"):
        feeling([], model="m", server="s", kind="openai", ceiling=Ceiling(reason="none"))
