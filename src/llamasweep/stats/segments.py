"""The best piecewise constant fit of a series for each number of steps, and how many steps the series bears out.

Least squares on logs by dynamic programming, each stretch at least three points long. Knows no gaps and no builds.
"""

from __future__ import annotations

import math

import numpy as np

from llamasweep.stats.arrays import Floats, Ints
from llamasweep.stats.spikes import LEAST_SIGMA

LEAST_POINTS = 3
MOST_STEPS = 12


class SquaredError:
    """Sum of squares about the mean of any stretch, from running sums."""

    def __init__(self, values: Floats) -> None:
        """values: without gaps."""
        centred = values - np.mean(values)
        self._sums = np.concatenate([[0.0], np.cumsum(centred)])
        self._squares = np.concatenate([[0.0], np.cumsum(centred**2)])

    def between(self, start: Ints | int, end: int) -> Floats:
        """Of values[start:end], for one start or many."""
        total = self._sums[end] - self._sums[start]
        squares = self._squares[end] - self._squares[start]
        return np.asarray(np.maximum(squares - total**2 / (end - start), 0.0))


def best_fits(values: Floats, most_steps: int = MOST_STEPS) -> list[tuple[float, tuple[int, ...]]]:
    """(sum of squares, first index after each step) of the best fit with 0, 1, 2, … steps.

    At most most_steps and as many as stretches of three points allow. Raises ValueError of fewer than three points.
    """
    n = len(values)
    if n < LEAST_POINTS:
        raise ValueError(f"{n} points make no stretch of {LEAST_POINTS}")
    error = SquaredError(values)
    n_most = min(most_steps, n // LEAST_POINTS - 1)
    cost = np.full((n_most + 1, n + 1), np.inf)
    came_from = np.zeros((n_most + 1, n + 1), dtype=np.int64)
    for end in range(LEAST_POINTS, n + 1):
        cost[0, end] = float(error.between(0, end))
        starts = np.arange(LEAST_POINTS, end - LEAST_POINTS + 1)
        if not len(starts):
            continue
        tails = error.between(starts, end)
        totals = cost[:-1, starts] + tails[None, :] if n_most else cost[:0, starts]
        best = np.argmin(totals, axis=1)
        cost[1:, end] = totals[np.arange(n_most), best]
        came_from[1:, end] = starts[best]
    return [
        (float(cost[k, n]), _traced(came_from, k, n))
        for k in range(n_most + 1)
        if cost[k, n] < np.inf
    ]


def _traced(came_from: Ints, n_steps: int, end: int) -> tuple[int, ...]:
    steps: list[int] = []
    for k in range(n_steps, 0, -1):
        end = int(came_from[k, end])
        steps.append(end)
    return tuple(reversed(steps))


def step_penalty(n: int) -> float:
    """2 ln likelihood that a step must gain in a series of n points.

    Fitted to simulated clean series, of which about 1 in 40 gains as much somewhere by chance.
    """
    return 8.8 + 0.5 * math.log(n)


def chosen_fit(values: Floats) -> tuple[float, tuple[int, ...]]:
    """(sum of squares, first index after each step) of the best fit with as many steps as the values bear out.

    The number k of steps has the least n ln(error_k) + k penalty; the fewest of equals. Raises ValueError of fewer than three.
    """
    n = len(values)
    fits = best_fits(values)
    least, penalty = n * LEAST_SIGMA**2, step_penalty(n)
    worth = [n * math.log(max(error, least)) + k * penalty for k, (error, _) in enumerate(fits)]
    return fits[min(range(len(worth)), key=lambda k: (worth[k], k))]
