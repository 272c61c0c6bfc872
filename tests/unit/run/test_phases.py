from __future__ import annotations

import pytest

from llamasweep.engines.llama_bench_output import LogReader
from llamasweep.results.records import Phase
from llamasweep.run.group_log import TimedEvent
from llamasweep.run.phases import cut, depth_s, measured_span, untimed_fraction

S = 1_000_000_000


def events(*timed: tuple[float, str]) -> list[TimedEvent]:
    """(seconds, progress line without its head) -> events, as the log keeps them."""
    reader, found = LogReader(), []
    for seconds, text in timed:
        event = reader.feed(f"llama-bench: benchmark {text}")
        assert event is not None, text
        found.append(TimedEvent(time_ns=round(seconds * S), event=event))
    return found


def phase(
    kind: str, start: float, end: float | None, cell: int | None = None, rep: int | None = None
) -> Phase:
    return Phase(
        kind=kind,
        cell_index=cell,
        repetition_index=rep,
        start_ns=round(start * S),
        end_ns=None if end is None else round(end * S),
    )


# pp at a depth, whose fill is restored the second time; then tg without; then pg
EXAMPLE = events(
    (1.0, "1/3: starting"),
    (3.0, "1/3: warmup prompt run"),
    (4.0, "1/3: depth run 1/2"),
    (9.0, "1/3: prompt run 1/2"),
    (11.0, "1/3: depth run 2/2 (cached)"),
    (11.5, "1/3: prompt run 2/2"),
    (13.0, "2/3: starting"),
    (13.5, "2/3: warmup generation run"),
    (14.0, "2/3: generation run 1/1"),
    (20.0, "3/3: starting"),
    (20.5, "3/3: warmup prompt run"),
    (21.0, "3/3: warmup generation run"),
    (22.0, "3/3: prompt run 1/1"),
    (23.0, "3/3: generation run 1/1"),
)
SAMPLES = {0: [1_900_000_000, 1_200_000_000], 1: [5 * S], 2: [4 * S]}


def test_a_worked_example() -> None:
    assert cut(EXAMPLE, round(0.5 * S), SAMPLES) == [
        phase("load", 0.5, 3.0),
        phase("warmup", 3.0, 4.0, 0),
        phase("depth", 4.0, 9.0, 0, 0),
        phase("repetition", 9.0, 10.9, 0, 0),
        phase("depth", 11.0, 11.5, 0, 1),
        phase("repetition", 11.5, 12.7, 0, 1),
        phase("warmup", 13.5, 14.0, 1),
        phase("repetition", 14.0, 19.0, 1, 0),
        phase("warmup", 20.5, 21.0, 2),
        phase("warmup", 21.0, 22.0, 2),
        phase("repetition", 22.0, 26.0, 2, 0),
    ]


def test_the_time_of_the_depth_counts_fills_and_restores() -> None:
    phases = cut(EXAMPLE, 0, SAMPLES)
    assert depth_s(phases, 0) == 5.5
    assert depth_s(phases, 1) is None


def test_the_measured_span_goes_from_the_first_kept_repetition_to_the_end_of_the_last() -> None:
    phases = cut(EXAMPLE, 0, SAMPLES)
    assert measured_span(phases, 0) == (9 * S, round(12.7 * S))
    assert measured_span(phases, 0, 1) == (round(11.5 * S), round(12.7 * S))
    assert measured_span(phases, 2) == (22 * S, 26 * S)
    assert measured_span(phases, 3) is None


def test_a_generation_after_its_prompt_is_one_repetition() -> None:
    (only,) = [p for p in cut(EXAMPLE, 0, SAMPLES) if p.kind == "repetition" and p.cell_index == 2]
    assert only == phase("repetition", 22.0, 26.0, 2, 0)


def test_a_process_that_died_leaves_its_last_phase_open() -> None:
    assert cut(EXAMPLE[:3], 0, {})[-1] == phase("depth", 4.0, None, 0, 0)
    assert depth_s(cut(EXAMPLE[:3], 0, {}), 0) is None
    assert cut(EXAMPLE[:4], 0, {})[-1] == phase("repetition", 9.0, None, 0, 0)
    assert measured_span(cut(EXAMPLE[:4], 0, {}), 0) is None


def test_a_row_with_fewer_samples_than_lines_leaves_the_rest_open() -> None:
    phases = cut(EXAMPLE[:6], 0, {0: [S]})
    assert [p.end_ns for p in phases if p.kind == "repetition"] == [10 * S, None]
    assert measured_span(phases, 0) is None


def test_a_process_that_never_began_was_loading_to_the_end() -> None:
    assert cut([], 7, {}) == [Phase(kind="load", start_ns=7, end_ns=None)]
    assert cut(EXAMPLE[:1], 7, {}) == [Phase(kind="load", start_ns=7, end_ns=None)]


def test_rows_alone_tell_no_repetition() -> None:
    assert measured_span(cut([], 0, SAMPLES), 0) is None


def test_an_engine_that_tells_its_starts_is_believed() -> None:
    """A server's generation begins at its first token, long after the request was sent."""
    steps = events((1.0, "1/1: starting"), (2.0, "1/1: prompt run 1/1"))
    found = cut(steps, 0, {0: [3 * S]}, {0: [round(7.5 * S)]})
    assert phase("repetition", 7.5, 10.5, 0, 0) in found
    assert measured_span(found, 0) == (round(7.5 * S), round(10.5 * S))


def test_the_share_that_no_repetition_covers() -> None:
    found = cut(EXAMPLE, round(0.5 * S), SAMPLES)
    start_ns, end_ns = measured_span(found, 0) or (0, 0)
    assert untimed_fraction(found, 0, start_ns, end_ns) == pytest.approx(1 - 3.1 / 3.7)
    assert untimed_fraction(found, 1, 14 * S, 19 * S) == 0
