"""The numbers of a sentence beside it: how each is made, and of which rows, so that anybody can make it again from Parquet.

Pure. A sentence is written as ever; each number in it goes through `Told.number` on its way into the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report.rows import Row

FORMULAS: dict[str, str] = {
    "median": "median of the kept repetitions of the row, t/s",
    "share of ceiling": "median ÷ ceiling_tps of the row",
    "share of pencil": "median ÷ pencil_ceiling_tps of the row",
    "ratio": "median of the first row ÷ median of the second",
    "share of a stream": "median of the first row ÷ its concurrency, ÷ the same of the second row",
    "latency ratio": "ttft_median_s of a prompt test, tpot_median_s of a generation, of the first row ÷ that of the second",
    "size ratio": "model_size_bytes of the first row ÷ that of the second",
    "first token": "ttft_median_s of the row, seconds",
    "turn": "turn of the row",
    "n_depth": "n_depth of the row",
    "n_threads": "n_threads of the row, as the sweep asked for it",
    "setting": "the row's value of the axis that the sentence names",
    "rows": "how many rows there are in the list",
    "all rows": "how many rows the page has",
    "models": "how many models (label and quantisation) have a rate",
    "fixed": "a number that is no measurement: a threshold, or what people quote",
}
"""Name of a formula -> what it does with its rows. A row is a cell on a build; its attempts are pooled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Number:
    """A number as a sentence shows it. text: without its unit. value: before rounding, a fraction for a percentage.

    of: a name in FORMULAS. rows: attempt ids of each row that it is made of, in the order of the formula.
    """

    text: str
    value: float
    of: str
    rows: tuple[tuple[str, ...], ...] = ()


class Told:
    """Collects the numbers of one sentence, the rows behind it, and the names that it takes over as they are."""

    def __init__(self) -> None:
        self.numbers: list[Number] = []
        self.names: list[str] = []
        self._anchors: dict[str, None] = {}

    def number(self, shown: str, value: float, of: str, rows: Sequence[Row] = ()) -> str:
        """The number as it is shown, noted. Raises ValueError for an unknown formula or a number that is none."""
        if of not in FORMULAS or not math.isfinite(value):
            raise ValueError(f"{shown} is not made by a known formula: {of}")
        self._anchors.update(dict.fromkeys(row.anchor for row in rows))
        digits = re.match(r"\D*([\d.\u202f]*\d)", shown)
        self.numbers.append(
            Number(
                text=digits[1] if digits else shown,
                value=value,
                of=of,
                rows=tuple(attempts_of(row) for row in rows),
            )
        )
        return shown

    def name(self, text: str) -> str:
        """A name or a reason that a row gives, noted: digits in it are no numbers of the sentence."""
        self.names.append(text)
        return text

    @property
    def anchors(self) -> tuple[str, ...]:
        """Ids of the rows behind the sentence, in the order of mention."""
        return tuple(self._anchors)


def attempts_of(row: Row) -> tuple[str, ...]:
    """The tries that the row's figures are made of; of a row without any, its latest."""
    return row.attempt_ids or (row.attempt.attempt_id,)
