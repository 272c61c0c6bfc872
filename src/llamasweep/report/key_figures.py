"""What a list of reports says of each: title, machine, date, best rates with their share of the ceiling, outcome. Plain data.

It travels in the head of the page as JSON; what is read back is checked field by field, since any file may claim to be a
report.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from llamasweep.report.comparison import median
from llamasweep.report.headline import BROKEN_ABOVE, fastest
from llamasweep.report.names import shown
from llamasweep.report.rows import Row
from llamasweep.results.records import FAILED_STATUSES, RunData

FORMAT = 1
HEAD_LENGTH = 16_384
"""Characters of a page that are looked through for the figures: they stand before its style."""
MAX_TEXT = 300
_META = re.compile(r'<meta name="llamasweep-report" content="([^"<>]{2,8000})">')


@dataclass(frozen=True, kw_only=True, slots=True)
class Best:
    """The row of one kind of test that the page's title speaks of.

    ceiling_fraction: None where no exact ceiling is known, where it rests on a reference, and where the rate is above it.
    """

    subject: str
    test: str
    median_tps: float
    ceiling_fraction: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyFigures:
    """A report in one line. started_at: of its newest run, UTC, '' if unknown. tg, pp: None where none was measured."""

    title: str
    machine: str
    sweeps: str
    started_at: str
    n_runs: int
    n_cells: int
    n_measured: int
    n_failed: int
    tg: Best | None
    pp: Best | None

    def to_json(self) -> str:
        """For the head of the page."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=True, allow_nan=False)


def key_figures(
    runs: Sequence[RunData], rows: Sequence[Row], *, title: str, machine: str
) -> KeyFigures:
    """The figures of a page."""
    writer, reader = fastest(rows)
    sweeps = dict.fromkeys(shown(run.info.sweep_name, 60) for run in runs)
    return KeyFigures(
        title=shown(title, MAX_TEXT),
        machine=shown(machine, 80),
        sweeps=shown(", ".join(sweeps), 120),
        started_at=max(shown(run.info.started_at, 40) for run in runs),
        n_runs=len(runs),
        n_cells=len(rows),
        n_measured=sum(row.rates is not None for row in rows),
        n_failed=sum(row.status in FAILED_STATUSES for row in rows),
        tg=_best(writer),
        pp=_best(reader),
    )


def read_key_figures(head: str) -> KeyFigures | None:
    """The figures in the beginning of a page; None where it is no report or another version's."""
    found = _META.search(head[:HEAD_LENGTH])
    if found is None:
        return None
    try:
        plain = json.loads(html.unescape(found[1]))
    except (ValueError, RecursionError):
        return None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        return None
    return KeyFigures(
        title=_text(plain, "title"),
        machine=_text(plain, "machine"),
        sweeps=_text(plain, "sweeps"),
        started_at=_text(plain, "started_at"),
        n_runs=_count(plain, "n_runs"),
        n_cells=_count(plain, "n_cells"),
        n_measured=_count(plain, "n_measured"),
        n_failed=_count(plain, "n_failed"),
        tg=_best_of(plain.get("tg")),
        pp=_best_of(plain.get("pp")),
    )


def _best(row: Row | None) -> Best | None:
    if row is None:
        return None
    fraction = None if row.attempt.ceiling_is_reference else row.fraction.value
    return Best(
        subject=shown(row.subject, 80),
        test=shown(row.test, 40),
        median_tps=median(row),
        ceiling_fraction=fraction if fraction is not None and fraction <= BROKEN_ABOVE else None,
    )


def _best_of(plain: object) -> Best | None:
    if not isinstance(plain, Mapping):
        return None
    tps = _number(plain.get("median_tps"))
    if tps is None:
        return None
    return Best(
        subject=_text(plain, "subject"),
        test=_text(plain, "test"),
        median_tps=tps,
        ceiling_fraction=_number(plain.get("ceiling_fraction")),
    )


def _text(plain: Mapping[str, Any], name: str) -> str:
    value = plain.get(name)
    return shown(value, MAX_TEXT) if isinstance(value, str) else ""


def _count(plain: Mapping[str, Any], name: str) -> int:
    value = plain.get(name)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
    return value if is_count and isinstance(value, int) else 0


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value)
