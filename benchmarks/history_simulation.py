"""What is found in simulated histories of 10 to 300 builds: steps, spikes, drifts, gaps and changes of the machine.

Prints a table on stderr and one JSON object. The oracle is told that there is exactly one step and no spike, and only
has to place it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from llamasweep.stats import ChangePoint, change_points, changes_of_series

Floats = npt.NDArray[np.float64]

SEED = 11
SIGMA = 0.01
GAP_SHARE = 0.05
LEVEL_TPS = 50.0


class Made:
    """One series and what is true of it. noise: of every build, in units of sigma. is_gap: builds that were not measured."""

    def __init__(self, draw: np.random.Generator) -> None:
        """Draws length, gaps and noise; the signal is added by the caller."""
        self.n = int(draw.integers(10, 301))
        self.sigmas: Floats = draw.standard_normal(self.n)
        self.is_gap = draw.random(self.n) < GAP_SHARE
        self.sign = int(draw.choice([-1, 1]))

    def values_tps(self) -> list[float | None]:
        """The speeds, None at gaps."""
        rates = LEVEL_TPS * np.exp(SIGMA * self.sigmas)
        return [None if gap else float(v) for v, gap in zip(rates, self.is_gap, strict=True)]

    def measured(self) -> npt.NDArray[np.int64]:
        """Indices that are no gap."""
        return np.flatnonzero(~self.is_gap)


def add_step(draw: np.random.Generator, made: Made, size: float) -> int:
    """A step with at least three measured builds on either side; the first measured build after it."""
    measured = made.measured()
    place = int(measured[draw.integers(3, len(measured) - 2)])
    made.sigmas[place:] += made.sign * size
    return place


def add_spike(draw: np.random.Generator, made: Made, size: float) -> int:
    """One or two odd builds anywhere; the first of them."""
    place = int(draw.choice(made.measured()[:-1]))
    made.sigmas[place : place + int(draw.integers(1, 3))] += made.sign * size
    return place


def add_drift(draw: np.random.Generator, made: Made, size: float) -> int:
    """An even change over at least half of the builds; where it starts."""
    length = int(draw.integers(max(8, made.n // 2), made.n + 1)) if made.n > 8 else made.n
    start = int(draw.integers(0, made.n - length + 1))
    made.sigmas += made.sign * size * np.clip((np.arange(made.n) - start) / (length - 1), 0, 1)
    return start


def oracle_place(made: Made) -> int:
    """The place of the one step with the least squared error, gaps left out."""
    measured = made.measured()
    values = made.sigmas[measured]
    n = len(values)
    cuts = np.arange(3, n - 2)
    sums = np.cumsum(values)
    gain = (sums[cuts - 1] - cuts / n * sums[-1]) ** 2 * n / (cuts * (n - cuts))
    return int(measured[cuts[np.argmax(gain)]])


def builds_off(made: Made, index: int, place: int) -> int:
    """How many measured builds lie between two places."""
    return abs(int(np.sum(~made.is_gap[:index])) - int(np.sum(~made.is_gap[:place])))


def has(found: list[ChangePoint], kind: str) -> bool:
    """Whether there is a change of a kind."""
    return any(change.kind == kind for change in found)


def step_figures(made: Made, found: list[ChangePoint], place: int, size: float) -> dict[str, bool]:
    """How near the nearest step is, and whether its interval holds the true ratio."""
    steps = [c for c in found if c.kind == "step"]
    off = min((builds_off(made, c.index, place) for c in steps), default=made.n)
    oracle = builds_off(made, oracle_place(made), place)
    figures = {
        "within_1": off <= 1,
        "within_3": off <= 3,
        "oracle_within_1": oracle <= 1,
        "oracle_within_3": oracle <= 3,
        "nothing_else": len(found) == 1,
        "as_drift": has(found, "drift"),
        "as_spike": has(found, "spike"),
    }
    true = float(np.exp(SIGMA * made.sign * size))
    near = [c for c in steps if builds_off(made, c.index, place) <= 1]
    if len(found) == 1 and near and near[0].low is not None and near[0].high is not None:
        figures["interval_holds"] = near[0].low <= true <= near[0].high
    return figures


def clean(_: np.random.Generator, made: Made) -> dict[str, bool]:
    """Noise alone."""
    found = change_points(made.values_tps())
    return {"any": bool(found), **{kind: has(found, kind) for kind in ("step", "spike", "drift")}}


def stepped(size: float) -> Callable[[np.random.Generator, Made], dict[str, bool]]:
    """One step."""

    def judge(draw: np.random.Generator, made: Made) -> dict[str, bool]:
        place = add_step(draw, made, size)
        return step_figures(made, change_points(made.values_tps()), place, size)

    return judge


def spiked(size: float) -> Callable[[np.random.Generator, Made], dict[str, bool]]:
    """One or two odd builds. A step beside them that is there without them too is no spike taken for a step."""

    def judge(draw: np.random.Generator, made: Made) -> dict[str, bool]:
        before = change_points(made.values_tps())
        sigmas = made.sigmas.copy()
        place = add_spike(draw, made, size)
        found = change_points(made.values_tps())
        near = [c for c in found if builds_off(made, c.index, place) <= 3]
        made.is_gap |= made.sigmas != sigmas
        without = change_points(made.values_tps())
        by_chance = [c for c in (*before, *without) if builds_off(made, c.index, place) <= 3]
        return {
            "found": has(near, "spike"),
            "as_step": has(near, "step") and not has(by_chance, "step"),
            "step_elsewhere": has([c for c in found if c not in near], "step"),
        }

    return judge


def drifted(size: float) -> Callable[[np.random.Generator, Made], dict[str, bool]]:
    """An even change."""

    def judge(draw: np.random.Generator, made: Made) -> dict[str, bool]:
        add_drift(draw, made, size)
        found = change_points(made.values_tps())
        return {
            "found": has(found, "drift"),
            "as_step": has(found, "step") and not has(found, "drift"),
            "beside_a_step": has(found, "step") and has(found, "drift"),
        }

    return judge


def new_driver(draw: np.random.Generator, made: Made) -> dict[str, bool]:
    """A jump of ten sigmas where the driver changes: a new stretch and no change of the builds."""
    place = int(draw.integers(3, made.n - 3))
    made.sigmas[place:] += 10
    facts = [{"driver": "1" if i < place else "2"} for i in range(made.n)]
    stretches = changes_of_series(made.values_tps(), facts)
    return {
        "split": [s.differs for s in stretches] == [(), ("driver",)],
        "any": any(stretch.changes for stretch in stretches),
    }


SERIES: dict[str, Callable[[np.random.Generator, Made], dict[str, bool]]] = {
    "clean": clean,
    "step of 2 sigmas": stepped(2),
    "step of 3 sigmas": stepped(3),
    "step of 5 sigmas": stepped(5),
    "spike of 6 sigmas": spiked(6),
    "spike of 10 sigmas": spiked(10),
    "spike of 30 sigmas": spiked(30),
    "drift of 4 sigmas": drifted(4),
    "drift of 8 sigmas": drifted(8),
    "driver changes": new_driver,
}


def simulate(name: str, n_series: int) -> dict[str, Any]:
    """Share of each outcome over seeded series of one sort."""
    draw = np.random.default_rng([SEED, list(SERIES).index(name)])
    outcomes = [SERIES[name](draw, Made(draw)) for _ in range(n_series)]
    names = {key for outcome in outcomes for key in outcome}
    shares = {key: float(np.mean([o[key] for o in outcomes if key in o])) for key in sorted(names)}
    return {"n_series": n_series, **shares}


def drawn() -> dict[str, Any]:
    """A Vega-Lite chart of one series with a step, a spike, a drift and gaps, and what was found in it."""
    draw = np.random.default_rng(SEED)
    sigmas = draw.standard_normal(90)
    sigmas[25:] -= 4
    sigmas[40] -= 12
    sigmas[55:] += 8 * np.clip(np.arange(35) / 25, 0, 1)
    rates = [float(v) for v in LEVEL_TPS * np.exp(SIGMA * sigmas)]
    values = [None if i in (10, 33, 34, 70) else v for i, v in enumerate(rates)]
    points = [{"build": i, "tps": v} for i, v in enumerate(values) if v is not None]
    changes = [
        {
            "from": c.index - 0.5,
            "to": c.last_index if c.kind == "drift" else c.index - 0.5,
            "kind": c.kind,
            "told": f"{c.kind} {c.ratio - 1:+.1%}".replace("-", "−"),
        }
        for c in change_points(values)
    ]
    x = {"field": "from", "type": "quantitative"}
    color = {"field": "kind", "type": "nominal", "legend": None}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": 720,
        "height": 220,
        "layer": [
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "color": "#555"},
                "encoding": {
                    "x": {"field": "build", "type": "quantitative", "title": "build"},
                    "y": {
                        "field": "tps",
                        "type": "quantitative",
                        "title": "t/s",
                        "scale": {"zero": False},
                    },
                },
            },
            {
                "data": {"values": changes},
                "mark": {"type": "rect", "opacity": 0.15},
                "encoding": {"x": x, "x2": {"field": "to"}, "color": color},
            },
            {
                "data": {"values": changes},
                "mark": {"type": "rule", "strokeDash": [4, 3]},
                "encoding": {"x": x, "color": color},
            },
            {
                "data": {"values": changes},
                "mark": {"type": "text", "align": "left", "dx": 4, "y": 10},
                "encoding": {"x": x, "text": {"field": "told"}, "color": color},
            },
        ],
    }


def main() -> None:
    """Every sort of series, as many as asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--series", type=int, default=500, help="of each sort")
    options.add_argument("--draw", type=Path, help="write one series as SVG and stop")
    chosen = options.parse_args()
    if chosen.draw:
        import vl_convert

        from llamasweep.report.render import VEGA_LITE

        chosen.draw.write_text(
            vl_convert.vegalite_to_svg(drawn(), vl_version=VEGA_LITE), encoding="utf-8"
        )
        return
    started = time.perf_counter()
    found = {}
    for name in SERIES:
        found[name] = simulate(name, chosen.series)
        shares = ", ".join(f"{k} {v:.1%}" for k, v in found[name].items() if k != "n_series")
        print(f"{name:20} {shares}", file=sys.stderr, flush=True)
    aims = {
        "step of 3 sigmas within one build in 95 %": found["step of 3 sigmas"]["within_1"] >= 0.95,
        "at most 1 false change in 20 clean series": found["clean"]["any"] <= 0.05,
        "no spike is a step": not any(
            found[name]["as_step"] for name in SERIES if name.startswith("spike")
        ),
    }
    seconds = round(time.perf_counter() - started, 1)
    print(
        json.dumps(
            {"benchmark": "history_simulation", "seconds": seconds, "aims": aims, "series": found}
        )
    )


if __name__ == "__main__":
    main()
