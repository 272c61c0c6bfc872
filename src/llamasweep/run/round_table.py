"""The rows of a run by question, build and round; and who measures a step of rounds until it is clear.

Which question decides, and when a step is clear, is handed in. Made again from the rows that are there, it stands where it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from llamasweep.results.records import Attempt
from llamasweep.stats.bisection_step import Fate
from llamasweep.stats.rounds import Rate

IsOpen = Callable[[str, Sequence[int]], bool]
"""(cell_id, whole rounds of this step so far) -> whether another round is needed."""


@dataclass(slots=True)
class RoundTable:
    """cell_id -> build label -> round -> the row that counts: of several tries the last that has a rate."""

    rows: dict[str, dict[str, dict[int, Attempt]]] = field(default_factory=dict)

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Take note of rows that are there now."""
        for row in attempts:
            of_build = self.rows.setdefault(row.cell_id, {}).setdefault(row.build_label or "", {})
            before = of_build.get(row.round_index)
            if before is None or rate_of(row) is not None or rate_of(before) is None:
                of_build[row.round_index] = row

    def of(self, cell_id: str, label: str) -> dict[int, Attempt]:
        """Round -> row."""
        return self.rows.get(cell_id, {}).get(label, {})

    def whole_rounds(self, cell_id: str, labels: Sequence[str], first: int, end: int) -> list[int]:
        """Rounds of first ≤ round < end in which every one of these builds has a row; half a round counts for none."""
        sides = [self.of(cell_id, label) for label in labels]
        shared = set(sides[0]).intersection(*sides[1:])
        return sorted(r for r in shared if first <= r < end)

    def rates(self, cell_id: str, label: str, rounds: Sequence[int]) -> list[Rate]:
        """Median rate of each of these rounds, None where that process gave none."""
        of_build = self.of(cell_id, label)
        return [rate_of(of_build[r]) for r in rounds]

    def fates(self, cell_id: str, label: str, rounds: Sequence[int]) -> list[Fate]:
        """What became of each of these rounds."""
        of_build = self.of(cell_id, label)
        return [_fate(of_build[r]) for r in rounds]

    def why(self, cell_id: str, label: str, rounds: Sequence[int]) -> str | None:
        """The engine's words for the first of these rounds that failed; None where none has any."""
        of_build = self.of(cell_id, label)
        said = (of_build[r].error_message for r in rounds if of_build[r].status != "ok")
        return next((text for text in said if text), None)


@dataclass(slots=True)
class StepRounds:
    """Measures the cells of a step in rounds from first_round on, each until `is_open` says no.

    labels: builds that take turns. told: a sentence before the first round, None for none.
    """

    table: RoundTable
    labels: tuple[str, ...]
    first_round: int
    is_open: IsOpen
    told: str | None = None
    _asked: dict[tuple[str, int], bool] = field(default_factory=dict)
    _closed: set[str] = field(default_factory=set)

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Take note of rows that are there now."""
        self.table.learn(attempts)

    def wants(self, cell_id: str, round_index: int) -> bool:
        """Whether this cell is to be measured in this round; the same answer for all builds, whenever it is asked."""
        key = (cell_id, round_index)
        if key not in self._asked:
            self._asked[key] = self._wants(cell_id, round_index)
        return self._asked[key]

    def _wants(self, cell_id: str, round_index: int) -> bool:
        if round_index == self.first_round:
            return True
        if cell_id in self._closed:
            return False
        rounds = self.table.whole_rounds(cell_id, self.labels, self.first_round, round_index)
        is_open = len(rounds) == round_index - self.first_round and self.is_open(cell_id, rounds)
        if not is_open:
            self._closed.add(cell_id)
        return is_open

    def standing_lines(self, round_index: int) -> list[str]:
        """The sentence of the step, once."""
        return [self.told] if round_index == self.first_round and self.told else []


def rate_of(row: Attempt) -> Rate:
    """Its median rate, None where it did not end well."""
    return row.median_tps if row.status == "ok" else None


def _fate(row: Attempt) -> Fate:
    if rate_of(row) is not None:
        return "rate"
    if row.status == "timeout":
        return "hang"
    return "refused" if row.status in ("unsupported", "skipped") else "failed"
