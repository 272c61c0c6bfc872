"""What a run shows beside its rates, as a few lines for a terminal: last turns, many streams against one, why it is slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from llamasweep.cli.terminal import printable

if TYPE_CHECKING:
    from llamasweep.results.records import RunData

MAX_STREAM_LINES = 6


def turn_lines(run: RunData) -> Iterator[str]:
    """The time to the first token of each conversation's last turn."""
    from llamasweep.results.conversations import last_turns, turn_words

    for last in last_turns(run.attempts):
        yield printable(turn_words(last))


def stream_lines(run: RunData) -> Iterator[str]:
    """What the most streams of each question give against one, and at what latency; several questions at most."""
    from llamasweep.results.against_one import most_streams, stream_words

    found = most_streams(run.attempts)
    for attempt, against in found[:MAX_STREAM_LINES]:
        yield printable(stream_words(attempt, against))
    if len(found) > MAX_STREAM_LINES:
        yield f"{len(found) - MAX_STREAM_LINES} more of several streams: llamasweep results show --json"


def findings_lines(run: RunData) -> Iterator[str]:
    """Alarms and warnings, one line a kind, with the numbers of the first row that each concerns and the next step."""
    from llamasweep.results.checks import by_kind, check_run

    for findings in by_kind(check_run(run)).values():
        first = findings[0]
        if first.severity == "note":
            continue
        n_rows = len({attempt_id for f in findings for attempt_id in f.attempt_ids})
        rows = f" ({n_rows} rows)" if n_rows > 1 else ""
        yield printable(f"{first.title}{rows}: {first.seen}. {first.next_step}")
