"""What a conversation costs in the end: the rows of its last turn, with what the server kept of earlier ones and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from llamasweep.results.measured_rows import model_words
from llamasweep.results.records import Attempt
from llamasweep.results.rounds import by_question, latest_per_round
from llamasweep.units import format_seconds

_OF_TALKS = ("turn", "prompt_cache")


@dataclass(frozen=True, kw_only=True, slots=True)
class LastTurn:
    """turn: the last that has a time to the first token. cold, warm: its rows, None where it was not measured so."""

    turn: int
    cold: Attempt | None
    warm: Attempt | None

    @property
    def any_row(self) -> Attempt:
        """One of them, for what they have in common."""
        row = self.cold or self.warm
        assert row is not None  # noqa: S101  (made from a row)
        return row


def last_turns(attempts: Sequence[Attempt]) -> tuple[LastTurn, ...]:
    """One for each model, build, test and setting of which more than a first turn was measured, in the order of the run.

    Of several rounds the one whose time to the first token is in the middle.
    """
    talks: dict[tuple[object, ...], dict[tuple[int, bool], Attempt]] = {}
    for tries in by_question(attempts).values():
        row = _middle(latest_per_round(tries))
        turn = None if row is None else row.requested.get("turn")
        if row is not None and isinstance(turn, int):
            others = tuple(item for item in row.requested.items() if item[0] not in _OF_TALKS)
            key = (row.engine, row.model_label, row.model_hash, row.build_hash, row.test_label)
            is_warm = row.requested.get("prompt_cache") == "warm"
            talks.setdefault((*key, others), {})[turn, is_warm] = row
    found = []
    for rows in talks.values():
        last = max(turn for turn, _ in rows)
        if last > 1:
            pair = rows.get((last, False)), rows.get((last, True))
            found.append(LastTurn(turn=last, cold=pair[0], warm=pair[1]))
    return tuple(found)


def _middle(rounds: Sequence[Attempt]) -> Attempt | None:
    """Of those that have a time; None where none has."""
    timed = []
    for row in rounds:
        ttft_s = row.requests.ttft_median_s if row.status == "ok" and row.requests else None
        if ttft_s:
            timed.append((ttft_s, row))
    return sorted(timed, key=itemgetter(0))[(len(timed) - 1) // 2][1] if timed else None


def turn_words(last: LastTurn) -> str:
    """As one line: `tiny-llama Q4_0, pp96+tg16: first token at turn 6 after 442 ms, 113 ms where earlier turns are cached`."""
    row = last.any_row
    cold, warm = _ttft(last.cold), _ttft(last.warm)
    cached = f"{warm} where earlier turns are cached"
    times = cached if cold is None else cold if warm is None else f"{cold}, {cached}"
    return f"{model_words(row)}, {row.test_label}: first token at turn {last.turn} after {times}"


def _ttft(row: Attempt | None) -> str | None:
    told = None if row is None or row.requests is None else row.requests.ttft_median_s
    return None if told is None else format_seconds(told)
