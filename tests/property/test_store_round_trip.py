"""Any attempt, sample and reading survives Parquet unchanged, in both forms of a run."""

from __future__ import annotations

import dataclasses
import tempfile
import typing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.store.records import RUN_ID, attempt, reading, run_info, samples_of

from llamasweep.results.columns import ATTEMPT_COLUMNS, SAMPLE_COLUMNS, Column, from_row, to_row
from llamasweep.results.records import Attempt, Sample, TelemetryFigures
from llamasweep.store.files import FileOps
from llamasweep.store.parquet import RunStore

_INT64 = st.integers(-(2**63), 2**63 - 1)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": _INT64,
    "float64": st.floats(min_value=0, max_value=1e15, exclude_min=True),
    "string": st.text(max_size=20),
    "bool": st.booleans(),
    "timestamp": st.datetimes(
        min_value=datetime(1900, 1, 1),  # noqa: DTZ001  (the zone comes beside it)
        max_value=datetime(2200, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    ),
    "strings": st.lists(st.text(max_size=10), max_size=3).map(tuple),
    "json": st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=3),
}


class _Unsynced(FileOps):
    """Leaves out the slow calls."""

    def fsync(self, descriptor: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


def _values(columns: typing.Iterable[Column]) -> st.SearchStrategy[dict[str, Any]]:
    needed = {c.key: _VALUES[c.type] for c in columns if not c.nullable}
    optional = {c.key: _VALUES[c.type] for c in columns if c.nullable}
    return st.fixed_dictionaries(needed, optional=optional)


def _of(source: str) -> list[Column]:
    return [c for c in ATTEMPT_COLUMNS if c.source == source]


@st.composite
def attempts(draw: st.DrawFn) -> Attempt:
    figures = draw(st.none() | _values(_of("telemetry")).filter(bool))
    return Attempt(
        **draw(_values(_of("field"))),
        requested=draw(_values(_of("requested"))),
        applied=draw(_values(_of("applied"))),
        telemetry=TelemetryFigures(**figures) if figures else None,
    )


@given(attempts())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_attempt_goes_to_a_row_and_back(one: Attempt) -> None:
    assert from_row(to_row(one)) == one


@given(st.lists(attempts(), min_size=1, max_size=3), _values(SAMPLE_COLUMNS))
@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_any_group_survives_parquet_in_both_forms(
    drawn: list[Attempt], sample: dict[str, Any]
) -> None:
    given_attempts = [dataclasses.replace(a, attempt_id=f"a{i}") for i, a in enumerate(drawn)]
    samples = [Sample(**(sample | {"attempt_id": "a0"})), *samples_of(given_attempts[0])]
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore.create(Path(folder), run_info(), ops=_Unsynced())
        store.write_group("g1", given_attempts, samples, [reading()])
        as_folder = RunStore.open(Path(folder) / RUN_ID)
        assert as_folder.attempts() == given_attempts
        assert as_folder.samples() == samples
        store.compact()
        assert as_folder.attempts() == given_attempts
        assert as_folder.samples() == samples
        assert as_folder.readings() == [reading()]


def test_samples_keep_every_nanosecond() -> None:
    durations = [1, 440_519_073_339, 2**62 + 1]
    samples = [
        dataclasses.replace(samples_of(attempt())[0], repetition_index=i, duration_ns=ns)
        for i, ns in enumerate(durations)
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore.create(Path(folder), run_info(), ops=_Unsynced())
        store.write_group("g1", [attempt()], samples)
        store.compact()
        assert [s.duration_ns for s in store.samples()] == durations
