"""The bisection on simulated builds with a known answer: 64 of them, 6 % at 2 % noise, one in ten broken, one hanging."""

from __future__ import annotations

import numpy as np
from benchmarks.bisect_simulation import World, search, setting


def test_the_right_build_or_a_range_holding_it_is_found_in_95_of_100_seeds() -> None:
    found = setting(n_seeds=100, n_builds=64, step=0.06, noise=0.02)

    assert found["holds_the_build"] >= 0.95, found
    assert found["exact_and_right"] >= 0.6, found
    assert found["confirmed_and_wrong"] <= 0.05, found
    assert found["suspects_most"] <= 8, found
    assert found["builds_mean"] <= found["least_builds"] + 2, found
    assert found["measurements_mean"] <= 200, found


def test_of_two_changes_the_first_is_found_or_a_range_that_holds_it() -> None:
    hits = []
    for seed in range(20):
        draw = np.random.default_rng([20261129, seed])
        first, second = sorted(int(i) for i in draw.choice(np.arange(1, 32), 2, replace=False))
        world = World(
            n_builds=32,
            changes=((first, 0.92), (second, 0.90)),
            broken=frozenset(),
            hung=frozenset(),
            noise=0.015,
        )
        answer, _, _ = search(world, draw)
        assert answer is not None
        hits.append(first in answer.suspects and second not in answer.suspects)

    assert sum(hits) >= 18, hits


def test_without_a_change_there_is_no_search() -> None:
    draw = np.random.default_rng(4)
    world = World(n_builds=64, changes=(), broken=frozenset(), hung=frozenset(), noise=0.01)

    answer, counts, _ = search(world, draw)

    assert answer is None
    assert counts.n_probes == 0
