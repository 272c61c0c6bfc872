"""`llamasweep bisect` on fake builds whose answer is known: found, killed and taken up again, ends that do not differ."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.models import write_model
from tests.integration.running import Desk, kill_after_events, order_events

from llamasweep.builds.registry import Registry

FAST = {"tg_tps": 4000, "pp_tps": 8000, "noise": 0.0}
SLOW = {"tg_tps": 3600, "pp_tps": 8000, "noise": 0.0}
CRASHES = {**FAST, "faults": [{"do": "signal", "signal": "SIGSEGV"}]}
HANGS = {**FAST, "faults": [{"do": "hang"}]}
SWEEP = (
    "version: 1\nbandwidth: 10 GB/s\ntelemetry: off\nrepetitions: 1\nwarmup: off\ntests: [pp32, tg16]\n"
    "timeout: 3s\n"
)
_LONGEST_WAIT_S = 60.0

Behaviours = list[dict[str, Any]]


@pytest.fixture
def sweep(desk: Desk, tmp_path: Path) -> Path:
    model = write_model(tmp_path / "m.gguf", {})
    return desk.write_sweep(f"{SWEEP}models: [{{path: {json.dumps(str(model))}}}]\n")


@pytest.fixture
def registered(fake_build: Callable[..., Path], tmp_path: Path) -> Callable[[Behaviours], Path]:
    """Registers builds 1, 2, 3 … that behave so, and returns their order log."""

    def register(behaviours: Behaviours) -> Path:
        log = tmp_path / "order.log"
        for number, behaviour in enumerate(behaviours, start=1):
            program = fake_build(f"n{number}", number=number, behaviour=behaviour, order_log=log)
            Registry().add(program)
        return log

    return register


def _words(sweep: Path, n: int, *options: str) -> tuple[str, ...]:
    return ("bisect", "--plain", "--good", "b1", "--bad", f"b{n}", *options, "--", str(sweep))


def _rounds(desk: Desk) -> Counter[tuple[str, str | None, int]]:
    return Counter((r.test_kind, r.build_label, r.round_index) for r in desk.rows())


def test_the_build_that_made_it_slower_is_found_beside_one_that_crashes_and_one_that_hangs(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    registered([FAST, FAST, HANGS, FAST, FAST, CRASHES, SLOW, SLOW, SLOW])

    ended = desk.call(*_words(sweep, 9, "--json"))

    assert ended.code == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    assert told["state"] == "found"
    assert told["suspects"] == ["b6", "b7"]
    assert told["last_fast"] == "b5"
    assert told["confidence"] == pytest.approx(0.975)
    assert "tg16" in told["cell"]
    assert told["step"]["low"] - 0.02 <= 0.9 <= told["step"]["high"] + 0.02
    outcomes = {step["build"]: step["outcome"] for step in told["steps"]}
    assert outcomes["b6"] == "skip"
    assert outcomes["b5"] == "good"
    assert outcomes["b7"] == "bad"
    assert told["least_steps"] == 3
    assert (
        "9 builds that are registered here: about 4 of the 7 between the ends are measured"
        in ended.stderr
    )
    kinds = Counter(r.test_kind for r in desk.rows())
    assert kinds["pp"] < kinds["tg"] / 3
    assert told["n_measurements"] == len(desk.rows())
    assert set(_rounds(desk).values()) == {1}

    again = desk.call(*_words(sweep, 9))

    assert again.code == 0
    assert "One of b6, b7 made it slower; b5 before them is fast." in again.stdout
    assert "Confidence: at least 97.5% that " in again.stdout
    assert f"{told['n_measurements']} measurements in all, 0 now" in again.stdout


@pytest.mark.long
def test_a_build_that_hangs_among_fast_ones_is_told_and_not_blamed(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    registered([FAST, FAST, HANGS, FAST, SLOW])

    ended = desk.call(*_words(sweep, 5))

    assert ended.code == 0, ended.stderr
    assert "Hangs, and the build after it is fast again: b3" in ended.stdout
    assert "b5 made it slower; b4 before it is fast." in ended.stdout
    assert Counter(r.build_label for r in desk.rows())["b3"] == 1


def test_killed_at_random_moments_nothing_is_measured_twice_and_the_answer_is_the_same(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    log = registered([FAST, FAST, CRASHES, SLOW, SLOW, SLOW])
    dice = random.Random(20261129)
    n_kills = 0
    for _ in range(4):
        process = desk.start(*_words(sweep, 6))
        n_kills += kill_after_events(process, log, dice.randint(5, 90))

    assert n_kills > 0

    ended = desk.call(*_words(sweep, 6, "--json"))

    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["suspects"] == ["b3", "b4"]
    assert len(list((desk.folder / "results").iterdir())) == 1
    assert set(_rounds(desk).values()) == {1}
    assert {b["label"] for b in desk.results().info.builds} >= {"b1", "b2", "b4", "b6"}

    fresh = json.loads(desk.call(*_words(sweep, 6, "--json", "--fresh")).stdout)

    assert [(s["build"], s["outcome"]) for s in fresh["steps"]] == [
        (s["build"], s["outcome"]) for s in told["steps"]
    ]


def test_ctrl_c_loses_nothing_and_time_that_is_up_says_how_to_go_on(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    log = registered([FAST, FAST, SLOW])
    process = desk.start(*_words(sweep, 3))
    end_s = time.monotonic() + _LONGEST_WAIT_S
    while len(order_events(log)) < 40 and time.monotonic() < end_s:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()

    assert process.returncode == 130, stderr
    assert "Stopped; the same command continues" in stdout

    late = desk.call(*_words(sweep, 3, "--max-time", "1ms"))

    assert late.code == 4
    assert "Time is up; the same command continues" in late.stdout
    ended = desk.call(*_words(sweep, 3))
    assert ended.code == 0
    assert "b3 made it slower; b2 before it is fast." in ended.stdout
    assert set(_rounds(desk).values()) == {1}


def test_ends_that_do_not_differ_are_said_and_nothing_between_is_measured(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    registered([FAST, SLOW, {**FAST, "noise": 0.001}])

    ended = desk.call(*_words(sweep, 3))

    assert ended.code == 4, ended.stderr
    assert "b3 is not slower than b1 for sure in any cell:" in ended.stdout
    assert {r.build_label for r in desk.rows()} == {"b1", "b3"}


def test_the_name_of_a_sweep_says_nothing_of_who_leads_the_search(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    registered([FAST, FAST, SLOW])
    text = sweep.read_text(encoding="utf-8")
    sweep.write_text(f"{text}name: my bisect-step\n", encoding="utf-8")

    late = desk.call(*_words(sweep, 3, "--max-time", "1ms"))

    assert late.code == 4, late.stderr
    assert "Time is up; the same command continues" in late.stdout


def test_ends_are_checked_before_anything_is_measured(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    registered([FAST, SLOW])
    turned = desk.call("bisect", "--good", "b2", "--bad", "b1", "--", str(sweep))
    assert turned.code == 2
    assert "is newer than the bad one" in turned.stderr
    unknown = desk.call("bisect", "--good", "b1", "--bad", "b7", "--", str(sweep))
    assert unknown.code == 3
    assert not (desk.folder / "results").exists()


def test_a_search_that_is_narrowed_to_other_cells_later_gives_no_old_answer(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    registered([FAST, SLOW])
    assert desk.call(*_words(sweep, 2)).code == 0

    narrowed = desk.call(*_words(sweep, 2, "--only", "test=pp32"))

    assert narrowed.code == 2
    assert "decides on m tg16, which the sweep with --only leaves out" in narrowed.stderr
    assert "begin anew with --fresh" in narrowed.stderr
    assert "b2 made it slower" in desk.call(*_words(sweep, 2, "--only", "test=tg16")).stdout


def test_an_end_that_was_rebuilt_is_not_mixed_with_what_was_measured_of_the_old_one(
    desk: Desk,
    sweep: Path,
    registered: Callable[[Behaviours], Path],
    fake_build: Callable[..., Path],
) -> None:
    registered([FAST, SLOW])
    assert desk.call(*_words(sweep, 2)).code == 0
    n_rows = len(desk.rows())
    fake_build("n1", number=1, behaviour={**FAST, "noise": 0.001})

    ended = desk.call(*_words(sweep, 2))

    assert ended.code == 2, ended.stderr
    assert "'b1' is another program than the one that this bisection has measured" in ended.stderr
    assert len(desk.rows()) == n_rows


def test_a_bad_end_that_crashes_is_told(
    desk: Desk, sweep: Path, registered: Callable[[Behaviours], Path]
) -> None:
    registered([FAST, FAST, CRASHES])

    ended = desk.call(*_words(sweep, 3))

    assert ended.code == 3
    assert "the build 'b3' gives no rate in any cell" in ended.stderr
