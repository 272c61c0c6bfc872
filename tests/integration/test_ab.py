"""`llamasweep ab` on fake builds: a known slow-down is confirmed, one binary under two names is the same, kills cost nothing."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.models import write_model
from tests.integration.running import Desk, Ended, kill_after_events

from llamasweep.machine.facts import read_facts
from llamasweep.machine.noise_record import load_noise
from llamasweep.stats.judged import FIRST_ROUNDS

FAST = {"tg_tps": 4000, "pp_tps": 8000, "noise": 0.0}
SLOWED = {"tg_tps": 3400, "pp_tps": 8000, "noise": 0.0}
SWEEP = "version: 1\nbandwidth: 10 GB/s\ntelemetry: off\nrepetitions: 1\nwarmup: off\n"


def _sweep(desk: Desk, tmp_path: Path, more: str = "") -> Path:
    model = write_model(tmp_path / "m.gguf", {})
    return desk.write_sweep(
        f"{SWEEP}models: [{{path: {json.dumps(str(model))}}}]\ntests: [pp32, tg16]\n{more}"
    )


def _ab(desk: Desk, sweep: Path, a: Path, b: Path, *options: str) -> Ended:
    return desk.call("ab", "--plain", *options, "--builds", str(a), str(b), "--", str(sweep))


def _rounds(desk: Desk) -> Counter[tuple[str, str | None, int]]:
    return Counter((r.test_kind, r.build_label, r.round_index) for r in desk.rows())


def _verdicts(ended: Ended) -> list[tuple[Any, ...]]:
    told = json.loads(ended.stdout)["cells"]
    return [(c["test"], c["verdict"], c["is_official"], c["n_rounds"]) for c in told]


def test_a_slower_build_is_found_confirmed_and_stops_the_gate(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    a = fake_build("old", number=10488, behaviour=FAST)
    b = fake_build("new", number=11434, behaviour=SLOWED)
    sweep = _sweep(desk, tmp_path)

    ended = _ab(desk, sweep, a, b, "--gate", "--json")

    assert ended.code == 3, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    assert (told["a"], told["b"]) == ("b10488", "b11434")
    slowed, same = told["cells"]
    assert (slowed["test"], slowed["verdict"], slowed["is_official"]) == ("tg16", "slower", True)
    assert slowed["low"] - 0.01 <= 0.85 <= slowed["high"] + 0.01
    assert (same["test"], same["verdict"]) == ("pp32", "same")
    assert "after round 6: " in ended.stderr
    kinds = Counter((r.test_kind, r.round_index < FIRST_ROUNDS) for r in desk.rows())
    assert kinds["tg", False] == 2 * 10
    assert kinds["pp", False] == 0
    assert kinds["pp", True] < kinds["tg", True] + 4
    assert set(_rounds(desk).values()) == {1}

    again = _ab(desk, sweep, a, b, "--gate", "--json")

    assert again.code == 3
    assert "Everything was measured already" in again.stderr
    assert json.loads(again.stdout) == told


def test_one_binary_under_two_names_raises_no_alarm(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    for name in ("old", "new"):
        program = fake_build(name, number=11434, behaviour={"tg_tps": 4000, "pp_tps": 8000})
        assert desk.call("builds", "add", str(program), "--label", name).code == 0
    sweep = _sweep(desk, tmp_path, "matrix: {threads: [1, 2], depth: [0, 32]}\n")

    ended = desk.call(
        "ab", "--plain", "--gate", "--strict", "--builds", "old", "new", "--", str(sweep)
    )

    assert ended.code == 0, ended.stdout + ended.stderr
    assert "new against old: decode the same within 3 % in 4 of 4 cells" in ended.stdout
    assert len({r.build_hash for r in desk.rows()}) == 1
    labels = Counter(r.build_label for r in desk.rows())
    assert labels["old"] == labels["new"] == 8 * 6


def test_killed_at_random_moments_nothing_is_measured_twice(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    a = fake_build("old", number=1, order_log=log, behaviour=FAST)
    b = fake_build("new", number=2, order_log=log, behaviour=SLOWED)
    sweep = _sweep(desk, tmp_path)
    dice = random.Random(20261129)
    n_kills = 0
    for _ in range(5):
        process = desk.start("ab", "--plain", "--builds", str(a), str(b), "--", str(sweep))
        n_kills += kill_after_events(process, log, dice.randint(3, 25))

    assert n_kills > 0

    ended = _ab(desk, sweep, a, b, "--gate", "--json")

    assert ended.code == 3, ended.stderr
    assert len(list((desk.folder / "results").iterdir())) == 1
    assert set(_rounds(desk).values()) == {1}
    assert "confirmed by 10 fresh rounds" in ended.stdout
    whole = _ab(desk, sweep, a, b, "--gate", "--json", "--fresh")
    assert _verdicts(ended) == _verdicts(whole)


def test_a_cell_that_crashes_on_the_new_build_is_newly_failing_after_three_rounds(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    fault = {"when": {"n_gen": 16}, "do": "signal", "signal": "SIGSEGV"}
    a = fake_build("old", number=1, behaviour=FAST)
    b = fake_build("new", number=2, behaviour={**FAST, "faults": [fault]})

    ended = _ab(desk, _sweep(desk, tmp_path), a, b, "--gate")

    assert ended.code == 3, ended.stderr
    assert "newly failing" in ended.stdout
    assert Counter(r.test_kind for r in desk.rows() if r.build_label == "b2")["tg"] == 3


@pytest.mark.parametrize("how", ["os.unlink({0!r})", "open({0!r}, 'a').write('\\n')"])
def test_a_build_that_is_gone_or_rebuilt_before_its_turn_is_no_alarm(
    how: str, desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    a, b = (fake_build(name, number=i, behaviour=FAST) for i, name in ((1, "old"), (2, "new")))
    outer = tmp_path / "outer" / "llama-bench"
    outer.parent.mkdir()
    outer.write_text(
        f"#!{sys.executable} -SE\nimport os, sys\n"
        f"if '-m' in sys.argv and os.path.exists({str(b)!r}):\n    {how.format(str(b))}\n"
        f"os.execv({str(a)!r}, [{str(a)!r}, *sys.argv[1:]])\n"
    )
    outer.chmod(0o755)
    sweep = _sweep(desk, tmp_path, f"builds: [{outer}, {b}]\nrounds: 2\n")
    assert desk.run(sweep).code == 1
    assert {r.status for r in desk.rows() if r.build_label == "b1"} == {"ok"}

    ended = desk.call("compare", "b1", "b2", "--json")
    told = [(c["verdict"], c["reasons"]) for c in json.loads(ended.stdout)["cells"]]
    gated = desk.call("compare", "b1", "b2", "--gate")

    assert told == [("not_comparable", ["gone_or_replaced"])] * 2
    assert gated.code == 5, gated.stdout + gated.stderr
    assert "was gone or replaced when its turn came; " in gated.stdout


def test_a_sweep_file_may_ask_for_rounds_auto_and_needs_two_builds_by_turns(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    a = fake_build("old", number=1, behaviour=FAST)
    b = fake_build("new", number=2, behaviour=FAST)
    auto = "rounds: auto\norder: interleaved\n"
    sweep = _sweep(desk, tmp_path, f"{auto}builds: [{a}, {b}]\n")
    assert desk.run(sweep).code == 0
    assert desk.call("compare", "b1", "b2", "--gate", "--strict").code == 0
    assert max(r.round_index for r in desk.rows()) < 8

    alone = desk.run(_sweep(desk, tmp_path, f"{auto}builds: [{a}]\n"))
    assert alone.code == 2
    assert "tells two builds apart, and this sweep has 1" in alone.stderr
    twice = desk.call("ab", "--builds", "b1", "b1", "--", str(sweep))
    assert twice.code == 2
    assert "A and B are the same build: 'b1'" in twice.stderr
    grouped = desk.run(_sweep(desk, tmp_path, f"rounds: auto\nbuilds: [{a}, {b}]\n"))
    assert grouped.code == 2
    assert "add `order: interleaved`" in grouped.stderr


def test_noise_measures_a_build_against_itself_and_keeps_the_floor(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    program = fake_build("one", number=11434, behaviour={"tg_tps": 4000, "pp_tps": 8000})
    sweep = _sweep(desk, tmp_path, f"builds: [{program}]\n")

    ended = desk.call("noise", "--plain", "--json", "--", str(sweep))

    assert ended.code == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["n_cells_measured"] == 2
    assert {f["kind"]: f["n_rounds"] for f in told["floors"]} == {"pp": 12, "tg": 12}
    assert all(f["floor_fraction"] >= 0.01 for f in told["floors"])
    record = load_noise(read_facts().fingerprint)
    assert record is not None
    assert {cell.build_label for cell in record.cells} == {"b11434"}
    assert {r.build_label for r in desk.rows()} == {"b11434", "b11434 again"}


def test_a_baseline_is_saved_and_a_later_slower_run_does_not_pass(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    a = fake_build("old", number=1, behaviour=FAST)
    b = fake_build("new", number=2, behaviour=SLOWED)
    first = _sweep(desk, tmp_path, f"name: first\nrounds: 6\nbuilds: [{a}]\n")
    assert desk.run(first).code == 0
    saved = desk.call("baseline", "save", "base.json")
    assert saved.code == 0, saved.stderr
    assert desk.call("baseline", "save", "base.json").code == 5
    text = (desk.folder / "base.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert desk.call("baseline", "check", "base.json").code == 0

    later = _sweep(desk, tmp_path, f"name: later\nrounds: 6\nbuilds: [{b}]\n")
    assert desk.run(later).code == 0
    ended = desk.call("baseline", "check", "base.json", "--junit", "j.xml")

    assert ended.code == 3, ended.stdout + ended.stderr
    assert "unpaired" in ended.stdout
    assert 'failures="1"' in (desk.folder / "j.xml").read_text(encoding="utf-8")
