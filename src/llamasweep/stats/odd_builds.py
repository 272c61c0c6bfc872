"""One or two odd builds beside ordinary ones that happen to lean the same way look like a level: they are told from a real one.

A real level is shared by all its builds. Knows values without gaps, and which of them are looked at.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from llamasweep.stats.arrays import Bools, Floats, Ints
from llamasweep.stats.segments import LEAST_POINTS, chosen_fit
from llamasweep.stats.spikes import LEAST_SIGMA, ODD_BUILDS, scatter, spike_threshold

LEVEL_GAIN = 12.0
"""2 ln likelihood by which a level must explain its builds better than odd ones do, where the series returns after it.

Fitted with the next one to simulated series: of spikes of six standard deviations 1 in 2,000 is taken for a step.
"""

LEVEL_GAIN_AT_END = 2.0
"""The same of the first and the last level: one change is explained there, not two. More loses real steps near the ends."""


class Odd(NamedTuple):
    """Neighbouring odd builds. at: their indices. is_far: which of them are far enough off to be told as a spike."""

    at: Ints
    is_far: Bools


def first_odd(values: Floats, looked_at: Ints) -> Odd | None:
    """The first builds that make a level among those looked at which the others of that level do not share; None without."""
    if len(looked_at) < 2 * LEAST_POINTS:
        return None
    seen = values[looked_at]
    bounds = [0, *chosen_fit(seen)[1], len(seen)]
    means = [float(np.mean(seen[a:b])) for a, b in itertools.pairwise(bounds)]
    sigma = max(scatter(seen), LEAST_SIGMA)
    for number, (start, end) in enumerate(itertools.pairwise(bounds)):
        around = means[max(0, number - 1) : number] + means[number + 1 : number + 2]
        off = [means[number] - level for level in around]
        if not off or min(off) < 0 < max(off):
            continue
        nearest = min(around, key=lambda level: abs(means[number] - level))
        sizes = (seen[start:end] - nearest) * np.sign(off[0]) / sigma
        first, gain = farthest(sizes)
        if gain < (LEVEL_GAIN if len(around) > 1 else LEVEL_GAIN_AT_END):
            odd = slice(first, first + ODD_BUILDS)
            return Odd(
                at=looked_at[start:end][odd], is_far=sizes[odd] > spike_threshold(len(values))
            )
    return None


def farthest(sizes: Floats) -> tuple[int, float]:
    """(index of the farthest odd builds, 2 ln likelihood by which one level explains all builds better than they do).

    sizes: of the builds of one level, in standard deviations off the level beside it, positive towards this one. The other
    explanation is a level of the odd builds alone, with the n others at 0. With the means d and r of the two the others gain n r²
    and the odd ones lose (d - r)² 2n / (2 + n). Raises ValueError of two builds or fewer.
    """
    if len(sizes) <= ODD_BUILDS:
        raise ValueError(f"{len(sizes)} builds leave none beside the odd ones")
    sums = np.convolve(sizes, np.ones(ODD_BUILDS), "valid")
    first = int(np.argmax(sums))
    others = np.delete(sizes, slice(first, first + ODD_BUILDS))
    n, r, d = len(others), float(np.mean(others)), float(sums[first]) / ODD_BUILDS
    if r <= 0:
        return first, -math.inf
    lost = max(0.0, d - r) ** 2 * ODD_BUILDS * n / (ODD_BUILDS + n)
    return first, n * r**2 - lost
