"""Bisections over simulated builds: a step at a known place, noise per process, builds that do not compile, one that hangs.

Prints a table on stderr and one JSON object: how often the answer is right, or a range that holds the right build, and how many
measurements it took beside the log2 minimum.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from llamasweep.stats.bisection import Answer, Bisection, Confirm, Outcome, Probe
from llamasweep.stats.bisection_step import (
    Fate,
    StepRates,
    confirm_answer,
    ends_decision,
    fresh_rounds,
    half_way,
    is_settled,
    judge_step,
)
from llamasweep.stats.compare import compare_paired
from llamasweep.stats.rounds import Rate

SEED = 7
LEVEL_TPS = 50.0
PRACTICAL_FLOOR = 0.03


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """What is true. change: places from which on it is slower, each with the factor of the speed from there on."""

    n_builds: int
    changes: tuple[tuple[int, float], ...]
    broken: frozenset[int]
    hung: frozenset[int]
    noise: float

    def level(self, index: int) -> float:
        """Tokens per second without noise."""
        factors = [factor for place, factor in self.changes if index >= place]
        return LEVEL_TPS * float(np.prod(factors))


@dataclass(kw_only=True, slots=True)
class Counts:
    """Engine processes that ran, rounds, and builds that were asked for."""

    n_measurements: int = 0
    n_rounds: int = 0
    n_probes: int = 0


def make_world(draw: np.random.Generator, *, n_builds: int, step: float, noise: float) -> World:
    """A step anywhere, one build in ten broken, one hanging; both ends run."""
    inner = np.arange(1, n_builds - 1)
    is_broken = draw.random(len(inner)) < 0.1
    hung = int(draw.choice(inner[~is_broken]))
    return World(
        n_builds=n_builds,
        changes=((int(draw.integers(1, n_builds)), 1 - step),),
        broken=frozenset(int(i) for i in inner[is_broken]),
        hung=frozenset({hung}),
        noise=noise,
    )


def search(world: World, draw: np.random.Generator) -> tuple[Answer | None, Counts, Bisection]:
    """One whole bisection; no answer where the ends do not differ for sure."""
    machine = _Machine(world, draw)
    bisection = Bisection(n_builds=world.n_builds)
    last = world.n_builds - 1
    ends: list[tuple[Rate, ...]] = []
    while True:
        ends.append(machine.round(0, last))
        decision = ends_decision(*_sides(ends), PRACTICAL_FLOOR)
        if is_settled(decision, len(ends)):
            break
    if decision.state != "slower":
        return None, machine.counts, bisection
    while True:
        action = bisection.next()
        if isinstance(action, Answer):
            return action, machine.counts, bisection
        floor = half_way(*_sides(ends))
        if isinstance(action, Confirm):
            n_fresh = fresh_rounds(compare_paired(*_sides(ends)))
            fresh = [machine.round(action.good, action.bad) for _ in range(n_fresh)]
            found = confirm_answer(*_sides(fresh), floor_fraction=min(floor, PRACTICAL_FLOOR))
            bisection.tell_confirmed(action, is_confirmed=found.is_confirmed)
        else:
            outcome, rounds = machine.step(action, floor)
            bisection.tell(action.index, outcome)
            ends += [(good, bad) for good, _, bad in rounds]


class _Machine:
    def __init__(self, world: World, draw: np.random.Generator) -> None:
        self.world, self.draw, self.counts = world, draw, Counts()

    def rate(self, index: int) -> Rate:
        self.counts.n_measurements += 1
        scatter = float(np.exp(self.world.noise * self.draw.standard_normal()))
        return None if index in self.world.hung else self.world.level(index) * scatter

    def round(self, *indices: int) -> tuple[Rate, ...]:
        self.counts.n_rounds += 1
        return tuple(self.rate(index) for index in indices)

    def step(self, probe: Probe, floor: float) -> tuple[Outcome, list[tuple[Rate, ...]]]:
        self.counts.n_probes += 1
        rounds: list[tuple[Rate, ...]] = []
        if probe.index in self.world.broken:
            return "skip", rounds
        while True:
            rounds.append(self.round(0, probe.index, self.world.n_builds - 1))
            good, build, bad = _columns(rounds, 3)
            fates: list[Fate] = ["hang" if rate is None else "rate" for rate in build]
            judged = judge_step(
                StepRates(good_tps=good, build_tps=build, bad_tps=bad, fates=fates),
                floor_fraction=floor,
                practical_floor=PRACTICAL_FLOOR,
            )
            if judged.outcome is not None:
                return judged.outcome, rounds


def _columns(rounds: list[tuple[Rate, ...]], n: int) -> tuple[list[Rate], ...]:
    return tuple([rates[i] for rates in rounds] for i in range(n))


def _sides(rounds: list[tuple[Rate, ...]]) -> tuple[list[Rate], list[Rate]]:
    return [rates[0] for rates in rounds], [rates[1] for rates in rounds]


def results(
    *, n_seeds: int, n_builds: int, step: float, noise: float
) -> Iterator[tuple[World, Answer | None, Counts, int]]:
    """World, answer, what it took and the log2 minimum of builds, for seed after seed."""
    for seed in range(n_seeds):
        draw = np.random.default_rng([SEED, seed])
        world = make_world(draw, n_builds=n_builds, step=step, noise=noise)
        answer, counts, bisection = search(world, draw)
        yield world, answer, counts, bisection.least_steps


def setting(*, n_seeds: int, n_builds: int, step: float, noise: float) -> dict[str, Any]:
    """One row of the table."""
    started_s = time.perf_counter()
    rows = list(results(n_seeds=n_seeds, n_builds=n_builds, step=step, noise=noise))
    told = [(world, answer) for world, answer, _, _ in rows if answer is not None]
    holding = [(w, a) for w, a in told if w.changes[0][0] in a.suspects]
    sure = [(w, a) for w, a in told if a.is_confirmed]
    counts = [counts for _, _, counts, _ in rows]
    return {
        "n_builds": n_builds,
        "step": step,
        "noise": noise,
        "n_seeds": n_seeds,
        "exact_and_right": sum(a.is_exact for _, a in holding) / n_seeds,
        "holds_the_build": len(holding) / n_seeds,
        "confirmed": len(sure) / n_seeds,
        "confirmed_and_wrong": sum(w.changes[0][0] not in a.suspects for w, a in sure) / n_seeds,
        "no_answer": (n_seeds - len(told)) / n_seeds,
        "suspects_mean": float(np.mean([len(a.suspects) for _, a in told])) if told else None,
        "suspects_most": max((len(a.suspects) for _, a in told), default=None),
        "least_builds": rows[0][3],
        "builds_mean": float(np.mean([c.n_probes for c in counts])),
        "rounds_mean": float(np.mean([c.n_rounds for c in counts])),
        "measurements_mean": float(np.mean([c.n_measurements for c in counts])),
        "measurements_most": max(c.n_measurements for c in counts),
        "seconds": round(time.perf_counter() - started_s, 1),
    }


SETTINGS = (
    {"n_builds": 64, "step": 0.06, "noise": 0.02},
    {"n_builds": 64, "step": 0.06, "noise": 0.01},
    {"n_builds": 64, "step": 0.10, "noise": 0.02},
    {"n_builds": 64, "step": 0.06, "noise": 0.03},
    {"n_builds": 64, "step": 0.06, "noise": 0.05},
    {"n_builds": 512, "step": 0.06, "noise": 0.02},
)


def main() -> None:
    """All settings; the first is the one that is asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=100)
    n_seeds = options.parse_args().seeds
    rows = []
    for chosen in SETTINGS:
        row = setting(n_seeds=n_seeds, **chosen)  # type: ignore[arg-type]
        rows.append(row)
        print(_line(row), file=sys.stderr, flush=True)
    print(json.dumps({"benchmark": "bisect_simulation", "settings": rows}))


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['n_builds']} builds, step {row['step']:.0%}, noise {row['noise']:.0%}: right build {row['exact_and_right']:.0%}, "
        f"it or a range holding it {row['holds_the_build']:.0%}, confirmed {row['confirmed']:.0%} (wrong "
        f"{row['confirmed_and_wrong']:.1%}); builds {row['builds_mean']:.1f} (log2: {row['least_builds']}), "
        f"measurements {row['measurements_mean']:.0f}, at most {row['measurements_most']}"
    )


if __name__ == "__main__":
    main()
