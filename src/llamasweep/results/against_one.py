"""Several streams against one: what all get together, what each gets, and at what latency, beside the row of one stream.

Made from the rows on reading, since the row of one stream may be measured later: columns that no file holds. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any

from llamasweep.results.columns import ATTEMPT_COLUMNS, to_row
from llamasweep.results.declared import column
from llamasweep.results.measured_rows import model_words
from llamasweep.results.records import Attempt
from llamasweep.results.request_load import request_load
from llamasweep.sweep.parameters import PARAMETERS

NO_ONE_STREAM = "no row of one stream with the same settings was measured in this run"
AXIS = "concurrency"
_WHERE = (
    *("run_id", "round_index", "engine", "build_hash", "build_label"),
    *("model_hash", "model_label", "n_prompt", "n_gen", "n_depth"),
)
_SETTINGS = tuple(p.name for p in PARAMETERS if p.name not in (AXIS, "n_depth"))
NEEDED = frozenset(
    {*_WHERE, *_SETTINGS, AXIS, "status", "attempt_id", "test_kind", "median_tps"}
    | {"ttft_median_s", "tpot_median_s", "e2e_median_s"}
)
"""Columns that are looked at."""
MEASURE_OF = {"pp": "ttft", "tg": "tpot", "pg": "e2e"}
"""What a user waits for in a test of each kind."""
_MEASURES = ("ttft", "tpot", "e2e")
WAITS = {"pp": "the first token", "tg": "each token", "pg": "a request"}


@dataclass(frozen=True, kw_only=True, slots=True)
class AgainstOne:
    """Of a row of several streams; the names are those of the columns. All None with against_one_reason, or of one stream."""

    throughput_ratio: float | None = column(
        "median of all streams together / that of one stream with the same settings"
    )
    latency_ratio: float | None = column(
        "how many times longer a stream waits than one alone: for the first token of pp (TTFT), for each token of tg (TPOT), for "
        "the whole of pg (E2E); medians of requests, or streams / throughput_ratio where an engine has no requests"
    )
    ttft_ratio: float | None = column("ttft_median_s / that of one stream")
    tpot_ratio: float | None = column("tpot_median_s / that of one stream")
    e2e_ratio: float | None = column("e2e_median_s / that of one stream")
    against_one_reason: str | None = column("why they are None for several streams")


NAMES = tuple(field.name for field in fields(AgainstOne))
_OF_ONE = AgainstOne()
_LONELY = AgainstOne(against_one_reason=NO_ONE_STREAM)
_ROW_NAMES = tuple(c.name for c in ATTEMPT_COLUMNS if c.name in NEEDED)


def against_one(rows: Iterable[Mapping[str, Any]]) -> list[AgainstOne]:
    """For each row, in their order. rows: of columns in NEEDED; absent is None or missing."""
    rows = list(rows)
    alone: dict[tuple[object, ...], Mapping[str, Any]] = {}
    for row in rows:
        if _n_streams(row) == 1 and _rate(row) is not None:
            alone[_question(row)] = row
    return [_against(row, alone) for row in rows]


def of_attempts(attempts: Sequence[Attempt]) -> dict[str, AgainstOne]:
    """The same by attempt_id, only of rows of several streams that have a rate."""
    several = [a for a in attempts if _n_streams(a.requested) > 1 and a.median_tps]
    if not several:
        return {}
    rows = [{name: value for name, value in to_row(a).items() if name in NEEDED} for a in attempts]
    found = dict(zip((a.attempt_id for a in attempts), against_one(rows), strict=True))
    return {a.attempt_id: found[a.attempt_id] for a in several}


def most_streams(attempts: Sequence[Attempt]) -> list[tuple[Attempt, AgainstOne]]:
    """Of each question with a row of one stream the row of the most, in the order of the run; of several rounds the middle."""
    found = of_attempts(attempts)
    most: dict[tuple[object, ...], list[tuple[float, Attempt]]] = {}
    for attempt in attempts:
        against = found.get(attempt.attempt_id)
        if against is None or against.throughput_ratio is None:
            continue
        rounds = most.setdefault(_question(to_row(attempt) | {"round_index": 0}), [])
        n_before = _n_streams(rounds[0][1].requested) if rounds else 0
        n_streams = _n_streams(attempt.requested)
        if n_streams > n_before:
            rounds.clear()
        if n_streams >= n_before:
            rounds.append((against.throughput_ratio, attempt))
    middle = [sorted(r, key=itemgetter(0))[(len(r) - 1) // 2][1] for r in most.values()]
    return [(attempt, found[attempt.attempt_id]) for attempt in middle]


def stream_words(attempt: Attempt, against: AgainstOne) -> str:
    """`tiny-llama Q4_0, tg64, 8 streams: 3.4 times the tokens a second of one, each token takes 2.4 times as long`."""
    n_streams = _n_streams(attempt.requested)
    depth = f" at depth {attempt.n_depth}" if attempt.n_depth else ""
    text = f"{model_words(attempt)}, {attempt.test_label}{depth}, {n_streams} streams: "
    if against.throughput_ratio is None:
        return text + NO_ONE_STREAM
    text += f"{_times(against.throughput_ratio)} the tokens a second of one"
    if against.latency_ratio is None:
        return text
    return f"{text}, {WAITS[attempt.test_kind]} takes {_times(against.latency_ratio)} as long"


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times"


def _against(
    row: Mapping[str, Any], alone: Mapping[tuple[object, ...], Mapping[str, Any]]
) -> AgainstOne:
    n_streams = _n_streams(row)
    rate = _rate(row)
    if n_streams == 1 or rate is None:
        return _OF_ONE
    one = alone.get(_question(row))
    one_rate = None if one is None else _rate(one)
    if one is None or one_rate is None:
        return _LONELY
    ratios = {name: _ratio(row, one, f"{name}_median_s") for name in _MEASURES}
    throughput = rate / one_rate
    has_requests = any(row.get(f"{name}_median_s") is not None for name in _MEASURES)
    measured = ratios.get(MEASURE_OF.get(str(row.get("test_kind")), ""))
    return AgainstOne(
        throughput_ratio=throughput,
        latency_ratio=measured if has_requests else n_streams / throughput,
        ttft_ratio=ratios["ttft"],
        tpot_ratio=ratios["tpot"],
        e2e_ratio=ratios["e2e"],
    )


def _question(row: Mapping[str, Any]) -> tuple[object, ...]:
    """All that must agree; the prompt cache is cold unless asked otherwise."""
    asked = (row.get(name) for name in _SETTINGS if name != "prompt_cache")
    return (*map(row.get, _WHERE), *asked, row.get("prompt_cache") or "cold")


def _n_streams(row: Mapping[str, Any]) -> int:
    return request_load(row).n_streams


def _rate(row: Mapping[str, Any]) -> float | None:
    rate = row.get("median_tps")
    return rate if isinstance(rate, float) and rate > 0 and row.get("status") == "ok" else None


def _ratio(row: Mapping[str, Any], one: Mapping[str, Any], name: str) -> float | None:
    value, base = row.get(name), one.get(name)
    if not isinstance(value, float) or not isinstance(base, float) or value <= 0 or base <= 0:
        return None
    return value / base
