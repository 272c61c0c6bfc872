"""The group-sequential sign-flip test: after which round do random signs no longer explain the sum?

After each round the sums under all sign patterns are ranked, leaving out the patterns that had crossed before, and as
many of the largest are put beyond the boundary as the spending function allows. Given the sizes of the differences
this is exact up to 14 rounds; above that each pattern goes on with seeded random signs. Works on many rows at once.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from llamasweep.stats.arrays import Bools, Floats, Ints
from llamasweep.stats.sign_flip import RELATIVE_TIE
from llamasweep.stats.spending import spent

EXACT_ROUNDS = 14
SEED = 20_260_721

CAP_MEDIANS = 2.0
"""A difference counts for at most twice the median size, so that one wild round does not blind the test. The cap
depends on sizes only, so the signs stay random and the test exact."""


@lru_cache(maxsize=8)
def sign_patterns(max_rounds: int) -> Floats:
    """Signs, one pattern per row, the first sign always plus (the other half mirrors it).

    The first 2^(n-1) rows, cut after n columns, are all patterns of n rounds up to `EXACT_ROUNDS`. Columns after that
    are random.
    """
    n_exact = min(max_rounds, EXACT_ROUNDS)
    rows = np.arange(2 ** (n_exact - 1))
    signs = np.ones((len(rows), max_rounds))
    for column in range(1, n_exact):
        signs[:, column] = 1 - 2 * ((rows >> (column - 1)) & 1)
    if max_rounds > n_exact:
        draw = np.random.default_rng(SEED)
        signs[:, n_exact:] = 1 - 2 * draw.integers(0, 2, size=(len(rows), max_rounds - n_exact))
    return signs


def capped(differences: Floats) -> Floats:
    """Differences, each at most `CAP_MEDIANS` times the median size of its row."""
    limit = CAP_MEDIANS * np.median(np.abs(differences), axis=-1, keepdims=True)
    return np.asarray(np.clip(differences, -limit, limit))


class Boundary:
    """One two-sided test per row, looked at after each round. `crossed`: +1 or -1 once a row has crossed, else 0.

    A row that crossed stays crossed. Rows are independent; `keep` forgets those that need no more looks.
    """

    def __init__(self, n_rows: int, *, max_rounds: int, alpha: float) -> None:
        """alpha: both sides together, spent over max_rounds."""
        self.crossed: Ints = np.zeros(n_rows, dtype=np.int64)
        self._max_rounds, self._alpha = max_rounds, alpha
        self._is_beyond: Bools = np.zeros((n_rows, 1), dtype=np.bool_)
        self._n_seen = 1

    def look(self, differences: Floats) -> None:
        """After round n = number of columns; rounds skipped since the last look count as not looked at."""
        n_rows, n = differences.shape
        signs = sign_patterns(self._max_rounds)
        while self._n_seen < n:
            self._n_seen += 1
            if self._n_seen <= EXACT_ROUNDS:
                self._is_beyond = np.concatenate([self._is_beyond, self._is_beyond], axis=1)
        n_patterns = self._is_beyond.shape[1]
        allowed = math.floor(
            spent(n, self._max_rounds, self._alpha) * n_patterns * (1 + RELATIVE_TIE)
        )
        if allowed == 0 or n_rows == 0:
            return
        scores = capped(differences)
        sizes = np.abs(scores)
        sums = np.abs(sizes @ signs[:n_patterns, :n].T)
        sums[self._is_beyond] = -1.0
        n_left = allowed - np.count_nonzero(self._is_beyond, axis=1)
        top = np.sort(np.partition(sums, n_patterns - 1 - allowed, axis=1)[:, -1 - allowed :])
        limit = top[np.arange(n_rows), allowed - np.maximum(n_left, 0)]
        limit = limit + RELATIVE_TIE * np.sum(sizes, axis=1)
        limit[n_left <= 0] = np.inf
        self._is_beyond |= sums > limit[:, None]
        observed = np.sum(scores, axis=1)
        is_new = (np.abs(observed) > limit) & (self.crossed == 0)
        self.crossed[is_new] = np.sign(observed[is_new]).astype(np.int64)

    def keep(self, rows: Bools) -> None:
        """Go on with these rows only."""
        self.crossed = self.crossed[rows]
        self._is_beyond = self._is_beyond[rows]
