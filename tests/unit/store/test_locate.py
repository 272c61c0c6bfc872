"""Finding runs and loading them, whatever their names and versions."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.store.records import attempt, group, run_info

import llamasweep
from llamasweep.errors import StoreError
from llamasweep.store import locate
from llamasweep.store.locate import UnreadablePartWarning
from llamasweep.store.parquet import RunStore
from llamasweep.store.reader import table_path

_MORNING = datetime(2026, 11, 29, 14, 7, 55, tzinfo=UTC)


def _run(root: Path, sweep_name: str, hour: int) -> RunStore:
    started = _MORNING.replace(hour=hour)
    run_id = locate.new_run_id(sweep_name, started)
    info = run_info(run_id=run_id, sweep_name=sweep_name, started_at=started.isoformat())
    store = RunStore.create(root, info)
    store.write_group("g1", [attempt(run_id=run_id)])
    return store


def test_a_run_id_is_utc_start_name_and_hash() -> None:
    there = _MORNING.astimezone(timezone(timedelta(hours=2)))

    assert re.fullmatch(r"20261129T140755Z-quick-[0-9a-f]{6}", locate.new_run_id("quick", there))
    assert locate.new_run_id("quick", there) == locate.new_run_id("quick", _MORNING)
    assert locate.new_run_id("quick", _MORNING) != locate.new_run_id("Quick", _MORNING)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("<script>alert('x')</script>\n$(rm -rf)", "script-alert-x-script-rm-rf"),
        ("-rf", "rf"),
        ("Überlänge", "uberlange"),
        ("模型", "sweep"),
        ("", "sweep"),
        ("\udcff", "sweep"),
        ("a" * 10_000, "a" * 40),
    ],
)
def test_a_hostile_sweep_name_becomes_a_harmless_run_id(name: str, slug: str) -> None:
    assert locate.new_run_id(name, _MORNING)[17:-7] == slug


def test_the_folder_of_runs_is_option_then_environment_then_results_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LLAMASWEEP_RESULTS", raising=False)
    assert locate.results_root(None) == Path("results")
    monkeypatch.setenv("LLAMASWEEP_RESULTS", "/somewhere")
    assert locate.results_root(None) == Path("/somewhere")
    assert locate.results_root("here") == Path("here")


def test_runs_are_listed_newest_first_with_damaged_ones_named(tmp_path: Path) -> None:
    old, new = _run(tmp_path, "quick", 8), _run(tmp_path, "threads", 9)
    (old.run_dir / "run.json").write_text("{")
    (tmp_path / "notes.txt").write_text("not a run")
    (tmp_path / ".20261129T090000Z-draft-abcdef.new").mkdir()

    entries = locate.list_runs(tmp_path)

    assert [e.path for e in entries] == [new.run_dir, old.run_dir]
    assert entries[0].problem is None
    assert entries[1].info is None
    assert "damaged" in str(entries[1].problem)
    assert locate.list_runs(tmp_path / "nowhere") == []


def test_a_run_is_found_by_id_prefix_sweep_name_and_path(tmp_path: Path) -> None:
    first, second, other = (
        _run(tmp_path, "quick", 8), _run(tmp_path, "quick", 9), _run(tmp_path, "threads", 10),
    )  # fmt: skip

    assert locate.find_run(tmp_path, first.run_dir.name) == first.run_dir
    assert locate.find_run(tmp_path, "20261129T08") == first.run_dir
    assert locate.find_run(tmp_path, "quick") == second.run_dir
    assert locate.find_run(tmp_path, str(first.run_dir)) == first.run_dir
    assert locate.find_run(tmp_path) == other.run_dir


@pytest.mark.parametrize(
    ("text", "words"), [("20261129T", "fits 2 runs"), ("nothing", "no run"), ("", "no run")]
)
def test_an_unclear_run_is_refused_with_what_there_is(
    tmp_path: Path, text: str, words: str
) -> None:
    _run(tmp_path, "quick", 8)
    newest = _run(tmp_path, "quick", 9)

    with pytest.raises(StoreError, match=words) as caught:
        locate.find_run(tmp_path, text)

    assert newest.run_dir.name in caught.value.message + str(caught.value.hint)


def test_no_runs_at_all_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no runs in") as caught:
        locate.find_run(tmp_path)
    assert caught.value.hint == "measure something first: llamasweep run"


def test_a_loaded_run_says_what_could_not_be_read(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, run_info())
    for number in range(2):
        store.write_group(*group(f"g{number}"))
    (table_path(store.run_dir, "samples") / "000002-g0.parquet").write_bytes(b"PAR1")

    with pytest.warns(UnreadablePartWarning, match=r"000002-g0\.parquet cannot be read"):
        run = locate.load_run(store.run_dir)

    assert len(run.attempts) == 4
    assert len(run.samples) == 4
    assert len(run.readings) == 2
    assert "samples.parquet/000002-g0.parquet cannot be read" in run.info.notes[0]


def test_load_results_unites_runs_of_several_versions_and_loses_no_column(tmp_path: Path) -> None:
    old, new = _run(tmp_path, "quick", 8), _run(tmp_path, "quick", 9)
    part = table_path(old.run_dir, "cells") / "000002-g1.parquet"
    table = pq.read_table(part)
    former = table.append_column("former_tps", pa.array([7.5])).drop_columns(
        ["pencil_fraction", "n_threads"]
    )
    pq.write_table(former, part)
    new.compact()

    frame = llamasweep.load_results(tmp_path)

    assert len(frame) == 2
    by_run = frame.set_index("run_id")
    assert by_run.loc[old.run_dir.name, "former_tps"] == 7.5
    assert by_run["former_tps"].isna().to_dict() == {
        old.run_dir.name: False,
        new.run_dir.name: True,
    }
    assert by_run["n_threads"].isna().to_dict() == {old.run_dir.name: True, new.run_dir.name: False}
    assert by_run.loc[new.run_dir.name, "n_threads"] == 2
    assert frame["n_threads"].dtype == pd.Int64Dtype()
    assert frame["started_at"].dt.tz is not None
    assert frame.attrs["unreadable"] == []


def test_load_results_holds_several_streams_against_one(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, run_info())
    rows = [
        attempt(attempt_id=f"a{n}", requested={"concurrency": n}, median_tps=tps)
        for n, tps in ((1, 28.0), (32, 194.0))
    ]
    store.write_group("g1", rows)

    frame = llamasweep.load_results(store.run_dir).set_index("concurrency")

    assert frame.loc[32, "throughput_ratio"] == pytest.approx(194 / 28)
    assert frame.loc[32, "latency_ratio"] == pytest.approx(32 * 28 / 194)
    assert frame["against_one_reason"].isna().all()
    assert frame.loc[[1], "throughput_ratio"].isna().all()


def test_load_results_has_the_columns_of_streams_where_there_are_none(tmp_path: Path) -> None:
    frame = llamasweep.load_results(_run(tmp_path, "quick", 8).run_dir)
    assert frame["throughput_ratio"].isna().all()
    assert frame["throughput_ratio"].dtype == "float64"


def test_load_results_warns_of_what_it_could_not_read(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, run_info())
    for number in range(2):
        store.write_group(*group(f"g{number}"))
    (table_path(store.run_dir, "cells") / "000002-g0.parquet").write_bytes(b"")

    with pytest.warns(UnreadablePartWarning, match="000002-g0"):
        frame = llamasweep.load_results(store.run_dir)

    assert len(frame) == 2
    assert len(frame.attrs["unreadable"]) == 1


def test_load_results_refuses_a_newer_schema_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results"):
        llamasweep.load_results(tmp_path)
    store = _run(tmp_path, "quick", 8)
    part = table_path(store.run_dir, "cells") / "000002-g1.parquet"
    table = pq.read_table(part)
    metadata = {**table.schema.metadata, b"llamasweep.schema_version": b"2"}
    pq.write_table(table.replace_schema_metadata(metadata), part)

    with pytest.raises(StoreError, match="schema version 2"):
        llamasweep.load_results(tmp_path)


def test_load_results_needs_no_run_json(tmp_path: Path) -> None:
    store = _run(tmp_path, "quick", 8)
    (store.run_dir / "run.json").unlink()

    assert len(llamasweep.load_results(store.run_dir)) == 1


def _damage(store: RunStore) -> Path:
    store.compact()
    path = table_path(store.run_dir, "cells")
    path.write_bytes(path.read_bytes()[:100])
    return path


def test_a_run_whose_only_table_of_cells_is_damaged_is_no_empty_run(tmp_path: Path) -> None:
    store = _run(tmp_path, "quick", hour=1)
    _damage(store)

    with pytest.raises(
        StoreError, match=r"no row of .* is left: cells\.parquet cannot be read"
    ) as told:
        locate.load_run(store.run_dir)

    assert told.value.hint == "restore cells.parquet from a copy, or measure the sweep again"


def test_a_run_that_measured_groups_and_lost_its_cells_is_no_empty_run(tmp_path: Path) -> None:
    store = _run(tmp_path, "quick", hour=1)
    store.write_info(dataclasses.replace(store.read_info(), groups=[{"group_id": "g1"}]))
    store.compact()
    table_path(store.run_dir, "cells").unlink()

    with pytest.raises(
        StoreError, match=r"cells\.parquet is missing or empty, and run\.json tells of 1"
    ):
        locate.load_run(store.run_dir)


def test_a_run_in_which_nothing_was_tried_yet_loads_without_a_row(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, run_info())

    assert locate.load_run(store.run_dir).attempts == ()


def test_a_damaged_part_is_warned_of_and_leads_the_notes_and_the_rest_loads(tmp_path: Path) -> None:
    store = _run(tmp_path, "quick", hour=1)
    run_id = store.read_info().run_id
    store.write_group("g2", [attempt("g2", run_id=run_id)])
    store.write_info(dataclasses.replace(store.read_info(), notes=["an earlier note"]))
    (table_path(store.run_dir, "cells") / "000002-g1.parquet").write_bytes(b"PAR1")

    with pytest.warns(UnreadablePartWarning, match=r"000002-g1\.parquet cannot be read"):
        loaded = locate.load_run(store.run_dir)

    assert [a.group_id for a in loaded.attempts] == ["g2"]
    assert "000002-g1.parquet cannot be read" in loaded.info.notes[0]
    assert loaded.info.notes[1] == "an earlier note"


def test_rows_of_another_run_than_run_json_names_are_refused(tmp_path: Path) -> None:
    store = _run(tmp_path, "quick", hour=1)
    store.write_info(dataclasses.replace(store.read_info(), run_id="another"))

    with pytest.raises(
        StoreError, match=r"is of the run 'another', and cells\.parquet beside it holds"
    ):
        locate.load_run(store.run_dir)


def test_a_run_json_that_is_nested_too_deeply_does_not_hide_the_other_runs(tmp_path: Path) -> None:
    good, bad = _run(tmp_path, "quick", hour=1), _run(tmp_path, "other", hour=2)
    (bad.run_dir / "run.json").write_text("[" * 200_000, encoding="utf-8")

    entries = {e.path: e.problem for e in locate.list_runs(tmp_path)}

    assert entries[good.run_dir] is None
    assert "nested too deeply" in str(entries[bad.run_dir])


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("median_tps", pa.array(["fast"])),
        ("n_prompt", pa.array([512.5])),
        ("status", pa.array([1])),
        ("flags", pa.array(["noisy"])),
        ("started_at", pa.array(["yesterday"])),
    ],
)
def test_a_column_of_another_type_is_refused_by_file_and_name(
    tmp_path: Path, column: str, values: pa.Array
) -> None:
    store = _run(tmp_path, "quick", hour=1)
    store.compact()
    path = table_path(store.run_dir, "cells")
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(column), column, values), path)

    with pytest.raises(StoreError, match=rf"cells\.parquet: the column {column} holds '"):
        locate.load_run(store.run_dir)


def test_whole_numbers_serve_as_a_rate(tmp_path: Path) -> None:
    store = _run(tmp_path, "quick", hour=1)
    store.compact()
    path = table_path(store.run_dir, "cells")
    table = pq.read_table(path)
    place = table.column_names.index("median_tps")
    pq.write_table(table.set_column(place, "median_tps", pa.array([7])), path)

    assert locate.load_run(store.run_dir).attempts[0].median_tps == 7.0


def test_a_sample_with_an_impossible_rate_is_refused_by_file_and_column(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, run_info())
    store.write_group(*group("g1"))
    store.compact()
    path = table_path(store.run_dir, "samples")
    table = pq.read_table(path)
    wrong = pa.array([float("nan")] * table.num_rows)
    pq.write_table(table.set_column(table.column_names.index("tps"), "tps", wrong), path)

    with pytest.raises(StoreError, match=r"a row of .*samples\.parquet cannot be .* column tps"):
        locate.load_run(store.run_dir)
