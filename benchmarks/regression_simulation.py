"""How often each way of comparing two builds is wrong, and how long it takes: on the same simulated sweeps.

Ours (looking after each round, then fresh rounds), the upstream script's way (20 rounds, paired one-sided sign-flip
test, Holm, 5 % drop of the mean) and a plain Welch test (20 rounds, 5 %). Prints a table on stderr and one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from llamasweep.stats import sign_flip, walsh
from llamasweep.stats.compare import floor_log
from llamasweep.stats.confirm import confirmation_rounds, p_beyond_half_floor
from llamasweep.stats.many import holm
from llamasweep.stats.sequential import StoppingRule, decide_many
from llamasweep.stats.spending import interval_trims

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

KINDS = ("gaussian", "heavy_tailed", "bimodal", "drifting", "autocorrelated", "slow_first")
NOISES = (0.005, 0.02, 0.05)
CHANGES = (0.0, 0.01, 0.03, 0.05, 0.10)
N_CELLS = 40
SEED = 7
RULE = StoppingRule()
FLOOR = floor_log(RULE.floor_fraction)
UPSTREAM_DROP = 0.05
FASTER, SLOWER, SAME, UNDECIDED = 1, 2, 3, 4


def noise(draw: np.random.Generator, kind: str, sigma: float, shape: tuple[int, int]) -> Floats:
    """Log noise of the processes of each cell in the order they run, two per round; sigma per process.

    A difference of two neighbours has the standard deviation 1.41 sigma, except where neighbours are alike
    (autocorrelated), which is less.
    """
    plain = draw.standard_normal(shape)
    if kind == "heavy_tailed":
        return sigma * draw.standard_t(3, shape) / math.sqrt(3)
    if kind == "bimodal":
        is_slow = draw.random(shape) < 0.3
        return sigma * (0.4 * plain - math.sqrt((1 - 0.16) / 0.21) * is_slow)
    if kind == "drifting":
        drift = np.linspace(0, -8, shape[1])[None, :] * draw.uniform(0.5, 1.5, (shape[0], 1))
        return sigma * (plain + drift)
    if kind == "autocorrelated":
        values = plain.copy()
        for column in range(1, shape[1]):
            values[:, column] = 0.7 * values[:, column - 1] + math.sqrt(0.51) * plain[:, column]
        return sigma * values
    if kind == "slow_first":
        late = np.zeros(shape)
        late[:, ::2] = -draw.exponential(0.8, shape)[:, ::2]
        return sigma * (late + math.sqrt(1 - 0.8**2) * plain)
    return sigma * plain


def sides(
    draw: np.random.Generator, kind: str, sigma: float, n_rows: int, n_rounds: int
) -> tuple[Floats, Floats]:
    """Noise of a and of b, rows × rounds; which of them runs first is drawn for each round."""
    values = noise(draw, kind, sigma, (n_rows, 2 * n_rounds)).reshape(n_rows, n_rounds, 2)
    is_a_first = draw.random((n_rows, n_rounds)) < 0.5
    first, second = values[..., 0], values[..., 1]
    return np.where(is_a_first, first, second), np.where(is_a_first, second, first)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """Noise and true change of all cells of a sweep; b is slower by the fraction `change`."""

    kind: str
    sigma: float
    change: float

    @property
    def shift(self) -> float:
        """True log ratio."""
        return math.log1p(-self.change)

    @property
    def is_alarm_false(self) -> bool:
        """Whether the change is within the floor; one of just the floor may go either way."""
        return self.change < RULE.floor_fraction - 1e-9


def ours(draw: np.random.Generator, case: Scenario, a: Floats, b: Floats) -> dict[str, Any]:
    """Decisions after each round, and those of the confirmation on fresh rounds."""
    d = b - a + case.shift
    states, stops = _decided(d)
    low, high = _intervals(d, stops)
    is_sure = (low > FLOOR) | (high < -FLOOR)
    official = np.zeros(len(d), dtype=np.bool_)
    n_fresh, is_held = [], []
    for start in range(0, len(d), N_CELLS):
        rows = start + np.flatnonzero(states[start : start + N_CELLS] <= SLOWER)
        if len(rows):
            found, rounds, held = _confirmed(draw, case, states[rows], is_sure[rows])
            official[rows] = found
            n_fresh += rounds
            is_held += held
    unsettled = ~official & (states != SAME)
    return {
        "first_alarm": float(np.mean(states <= SLOWER)),
        "alarm": float(np.mean(official)),
        "sweeps_with_alarm": float(np.mean(official.reshape(-1, N_CELLS).any(axis=1))),
        "power": float(np.mean(official & (states == SLOWER))),
        "same": float(np.mean(states == SAME)),
        "undecided": float(np.mean(unsettled)),
        "rounds": float(np.mean(stops)),
        "confirmation_rounds": float(np.mean(n_fresh)) if n_fresh else None,
        "coverage": float(np.mean((low <= case.shift) & (case.shift <= high))),
        "n_confirmations": len(is_held),
        "n_confirmations_covered": int(np.sum(is_held)),
    }


def _confirmed(
    draw: np.random.Generator, case: Scenario, states: Ints, is_sure: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], list[int], list[bool]]:
    """(is official, fresh rounds, whether the interval holds the true shift) of each candidate of one sweep."""
    n_fresh = [
        confirmation_rounds(len(states), is_clear=bool(sure), alpha=RULE.alpha) for sure in is_sure
    ]
    towards = np.where(states == FASTER, 1.0, -1.0)
    p_values, is_beyond, is_held = [], [], []
    a, b = sides(draw, case.kind, case.sigma, len(states), max(n_fresh))
    for row, n in enumerate(n_fresh):
        fresh = (b - a)[row, :n] + case.shift
        p_values.append(p_beyond_half_floor(fresh * towards[row], FLOOR))
        is_beyond.append(walsh.shift(fresh) * towards[row] > FLOOR)
        low, high = walsh.interval(fresh, RULE.alpha) or (-math.inf, math.inf)
        is_held.append(low <= case.shift <= high)
    return (np.array(holm(p_values)) <= RULE.alpha / 2) & np.array(is_beyond), n_fresh, is_held


def _decided(d: Floats, block: int = 80) -> tuple[Ints, Ints]:
    parts = [decide_many(d[start : start + block], RULE) for start in range(0, len(d), block)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _intervals(d: Floats, stops: Ints) -> tuple[Floats, Floats]:
    """The adjusted interval at the stop of each row."""
    trims = interval_trims(RULE.min_rounds, RULE.max_rounds, RULE.alpha)
    low, high = np.empty(len(d)), np.empty(len(d))
    for n in np.unique(stops):
        rows = stops == n
        averages = walsh.walsh_averages(d[rows, :n])
        k = trims[n - 1]
        low[rows], high[rows] = averages[:, k], averages[:, -1 - k]
    return low, high


def upstream(case: Scenario, a: Floats, b: Floats) -> dict[str, Any]:
    """All 20 rounds, one-sided sign-flip of the differences of rates, Holm over the cells, mean drop of 5 %."""
    a_tps, b_tps = np.exp(a), np.exp(b + case.shift)
    drop = 1 - np.mean(b_tps, axis=1) / np.mean(a_tps, axis=1)
    p = np.array([sign_flip.greater(row) for row in a_tps - b_tps]).reshape(-1, N_CELLS)
    corrected = np.array([holm(row) for row in p.tolist()]).ravel()
    return _plain((corrected <= RULE.alpha) & (drop >= UPSTREAM_DROP))


def welch(case: Scenario, a: Floats, b: Floats) -> dict[str, Any]:
    """All 20 rounds, two-sided Welch test at 5 %, no floor, no correction; power counts those that say slower."""
    from scipy.special import stdtr

    n = a.shape[1]
    a_tps, b_tps = np.exp(a), np.exp(b + case.shift)
    a_part, b_part = np.var(a_tps, axis=1, ddof=1) / n, np.var(b_tps, axis=1, ddof=1) / n
    t = (np.mean(b_tps, axis=1) - np.mean(a_tps, axis=1)) / np.sqrt(a_part + b_part)
    freedom = (a_part + b_part) ** 2 / ((a_part**2 + b_part**2) / (n - 1))
    p = 2 * stdtr(freedom, -np.abs(t))
    return _plain(p <= RULE.alpha, p_right=(p <= RULE.alpha) & (t < 0))


def _plain(
    alarms: npt.NDArray[np.bool_], p_right: npt.NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    return {
        "alarm": float(np.mean(alarms)),
        "sweeps_with_alarm": float(np.mean(alarms.reshape(-1, N_CELLS).any(axis=1))),
        "power": float(np.mean(alarms if p_right is None else p_right)),
        "rounds": float(RULE.max_rounds),
    }


def simulate(case: Scenario, n_sweeps: int, index: int) -> dict[str, Any]:
    """All three on the same sweeps of one scenario."""
    draw = np.random.default_rng([SEED, index])
    a, b = sides(draw, case.kind, case.sigma, n_sweeps * N_CELLS, RULE.max_rounds)
    return {
        "noise": case.kind,
        "sigma_fraction": case.sigma,
        "change_fraction": case.change,
        "n_cells": n_sweeps * N_CELLS,
        "ours": ours(draw, case, a, b),
        "upstream": upstream(case, a, b),
        "welch": welch(case, a, b),
    }


def aims(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What was aimed at, per kind of noise, with the figure that was reached and whether that is enough."""
    reached: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        rows = [row for row in found if row["noise"] == kind]
        no_change = [row for row in rows if row["change_fraction"] < RULE.floor_fraction]
        easy = [
            row
            for row in rows
            if row["sigma_fraction"] <= 0.02 and row["change_fraction"] in (0.0, 0.10)
        ]
        (five,) = [
            row for row in rows if (row["sigma_fraction"], row["change_fraction"]) == (0.02, 0.05)
        ]
        n_confirmed = sum(row["ours"]["n_confirmations"] for row in rows)
        n_covered = sum(row["ours"]["n_confirmations_covered"] for row in rows)
        reached[kind] = {
            "false_alarms_per_100_cells": 100 * _mean(no_change, "alarm"),
            "worst_false_alarms_per_100_cells": 100 * _most(no_change, "alarm"),
            "sweeps_with_false_alarm": _mean(no_change, "sweeps_with_alarm"),
            "worst_sweeps_with_false_alarm": _most(no_change, "sweeps_with_alarm"),
            "power": five["ours"]["power"],
            "coverage": _mean(rows, "coverage"),
            "worst_coverage": min(row["ours"]["coverage"] for row in rows),
            "confirmation_coverage": n_covered / n_confirmed,
            "rounds_where_easy": _mean(easy, "rounds"),
            "worst_rounds_where_easy": _most(easy, "rounds"),
        }
        reached[kind]["is_reached"] = (
            reached[kind]["worst_false_alarms_per_100_cells"] <= 1
            and reached[kind]["sweeps_with_false_alarm"] <= 0.05
            and reached[kind]["power"] >= 0.95
            and reached[kind]["coverage"] >= 0.94
            and reached[kind]["confirmation_coverage"] >= 0.94
            and reached[kind]["rounds_where_easy"] <= RULE.max_rounds / 2
        )
    return reached


def _mean(rows: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([row["ours"][name] for row in rows]))


def _most(rows: list[dict[str, Any]], name: str) -> float:
    return float(max(row["ours"][name] for row in rows))


HEADER = (
    "noise           σ    change │ alarm  sweeps  power  same  undec. rounds +fresh cover. first │ "
    "up: alarm sweeps power │ Welch: alarm sweeps power"
)


def line_of(row: dict[str, Any]) -> str:
    """One scenario as a line of the table. Alarms of a change above the floor are right ones."""
    o, u, w = row["ours"], row["upstream"], row["welch"]
    fresh = "    –" if o["confirmation_rounds"] is None else f"{o['confirmation_rounds']:5.1f}"
    return (
        f"{row['noise']:14} {row['sigma_fraction']:4.1%} {row['change_fraction']:5.0%}   │ "
        f"{o['alarm']:6.2%} {o['sweeps_with_alarm']:5.0%} {o['power']:7.1%} {o['same']:6.1%} {o['undecided']:6.1%} "
        f"{o['rounds']:5.1f}  {fresh} {o['coverage']:6.1%} {o['first_alarm']:6.1%} │ "
        f"{u['alarm']:9.2%} {u['sweeps_with_alarm']:5.0%} {u['power']:6.1%} │ "
        f"{w['alarm']:12.2%} {w['sweeps_with_alarm']:5.0%} {w['power']:6.1%}"
    )


def main() -> None:
    """Run every scenario; as many sweeps of each as asked, more of those without a change."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sweeps", type=int, default=10, help="of 40 cells, of each scenario")
    chosen = options.parse_args()
    started = time.perf_counter()
    print(HEADER, file=sys.stderr, flush=True)
    found: list[dict[str, Any]] = []
    for kind in KINDS:
        for sigma in NOISES:
            for change in CHANGES:
                case = Scenario(kind=kind, sigma=sigma, change=change)
                n_sweeps = chosen.sweeps * (4 if case.is_alarm_false else 1)
                found.append(simulate(case, n_sweeps, len(found)))
                print(line_of(found[-1]), file=sys.stderr, flush=True)
    reached = aims(found)
    for kind, figures in reached.items():
        told = ", ".join(f"{k} {v:.3g}" for k, v in figures.items() if k != "is_reached")
        verdict = "reached" if figures["is_reached"] else "NOT REACHED"
        print(f"{kind}: aims {verdict}: {told}", file=sys.stderr)
    print(
        json.dumps(
            {
                "benchmark": "regression_simulation",
                "seed": SEED,
                "seconds": round(time.perf_counter() - started, 1),
                "aims": reached,
                "scenarios": found,
            }
        )
    )


if __name__ == "__main__":
    main()
