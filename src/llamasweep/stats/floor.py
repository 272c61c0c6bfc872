"""The change that matters on this machine: from measuring a build against itself (A/A), or a default until then.

Knows pairs of rates and what they were measured for. Where A/A measurements are kept is not known here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from llamasweep.results.rates import MAD_TO_SIGMA
from llamasweep.stats import walsh
from llamasweep.stats.rounds import Rate, paired_logs

DEFAULT_FLOOR_FRACTION = {"tg": 0.03, "pp": 0.05, "pg": 0.05}
LEAST_FLOOR_FRACTION = 0.01
"""Two links of the same source can differ by this much, because code lies elsewhere in memory."""

LEAST_AA_ROUNDS = 12
DECIDED_AFTER_ROUNDS = 7
"""The earliest round at which a change can be found: the floor must hold for an estimate from so few."""

EXCEEDED_ONCE_IN = 200
SIZE_CLASS_BYTES = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class SameBuildPairs:
    """Rounds of one cell in which both sides were the same build. test_kind: pp, tg or pg. model_size_bytes: of the file."""

    test_kind: str
    model_size_bytes: int
    a_tps: Sequence[Rate]
    b_tps: Sequence[Rate]


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """A practical floor. n_rounds: usable A/A rounds behind it; 0 where it is the default. pair_sigma_fraction: spread of
    one pair's log ratio, None for the default."""

    floor_fraction: float
    n_rounds: int
    pair_sigma_fraction: float | None


def size_class(model_size_bytes: int) -> int:
    """Models of one class share a floor: class k holds sizes of [2^k, 2^(k+1)) GiB; below 1 GiB the classes go on down.

    Raises ValueError for a size that is not above 0.
    """
    if model_size_bytes <= 0:
        raise ValueError(f"a model of {model_size_bytes} bytes")
    return math.floor(math.log2(model_size_bytes / SIZE_CLASS_BYTES))


def default_floor(test_kind: str) -> Floor:
    """3 % for tg, 5 % for pp and pg: prompt tests scatter more (warm-up, clocks). Raises KeyError for another kind."""
    return Floor(
        floor_fraction=DEFAULT_FLOOR_FRACTION[test_kind], n_rounds=0, pair_sigma_fraction=None
    )


def practical_floors(measured: Iterable[SameBuildPairs]) -> dict[tuple[str, int], Floor]:
    """(test kind, size class) -> floor, for the classes with at least `LEAST_AA_ROUNDS` usable A/A rounds."""
    cells: dict[tuple[str, int], list[np.ndarray[tuple[int], np.dtype[np.float64]]]] = defaultdict(
        list
    )
    for pairs in measured:
        logs, _ = paired_logs(pairs.a_tps, pairs.b_tps)
        if len(logs):
            cells[pairs.test_kind, size_class(pairs.model_size_bytes)].append(logs.ravel())
    return {
        key: floor_of(np.concatenate(logs).tolist())
        for key, logs in cells.items()
        if sum(map(len, logs)) >= LEAST_AA_ROUNDS
    }


def floor_of(log_ratios: Sequence[float]) -> Floor:
    """The floor from log ratios of equal builds: the shift that seven such rounds exceed once in 200, at least 1 %.

    exp(|HL| + z(1 - 1/400) s / √7) - 1, where HL is their own shift (a machine that favours one side has one) and s the
    larger of 1.4826 MAD and the root mean square about HL: outliers count, because they will come again.
    Raises ValueError for fewer rounds than `LEAST_AA_ROUNDS`.
    """
    if len(log_ratios) < LEAST_AA_ROUNDS:
        raise ValueError(f"{len(log_ratios)} A/A rounds are too few; {LEAST_AA_ROUNDS} are needed")
    values = np.asarray(log_ratios, dtype=np.float64)
    own_shift = walsh.shift(values)
    away = np.abs(values - own_shift)
    spread = max(MAD_TO_SIGMA * float(np.median(away)), math.sqrt(float(np.mean(away**2))))
    z = NormalDist().inv_cdf(1 - 1 / (2 * EXCEEDED_ONCE_IN))
    limit = math.expm1(abs(own_shift) + z * spread / math.sqrt(DECIDED_AFTER_ROUNDS))
    return Floor(
        floor_fraction=max(LEAST_FLOOR_FRACTION, limit),
        n_rounds=len(values),
        pair_sigma_fraction=spread,
    )
