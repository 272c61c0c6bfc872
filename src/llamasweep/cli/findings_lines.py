"""Why a run is slow, as a few lines for a terminal: one line a kind, notes left to the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from llamasweep.cli.terminal import printable

if TYPE_CHECKING:
    from llamasweep.results.records import RunData


def findings_lines(run: RunData) -> Iterator[str]:
    """Alarms and warnings, with the numbers of the first row that each concerns and the next step."""
    from llamasweep.results.checks import by_kind, check_run

    for findings in by_kind(check_run(run)).values():
        first = findings[0]
        if first.severity == "note":
            continue
        n_rows = len({attempt_id for f in findings for attempt_id in f.attempt_ids})
        rows = f" ({n_rows} rows)" if n_rows > 1 else ""
        yield printable(f"{first.title}{rows}: {first.seen}. {first.next_step}")
