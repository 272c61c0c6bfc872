"""The verb `results` from end to end, on runs that the store wrote."""

from __future__ import annotations

import csv
import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.store.records import attempt, run_info, samples_of

from llamasweep.cli import app
from llamasweep.store.locate import UnreadablePartWarning, new_run_id
from llamasweep.store.parquet import RunStore
from llamasweep.store.reader import table_path

_HOSTILE = 'a"<script>\n$(touch x)\x1b[2J-ü'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "results"


def _run(root: Path, sweep_name: str, *, age_days: int = 0) -> RunStore:
    started = datetime.now(tz=UTC) - timedelta(days=age_days)
    run_id = new_run_id(sweep_name, started)
    info = run_info(
        run_id=run_id,
        sweep_name=sweep_name,
        started_at=started.isoformat(),
        finished_at=started.isoformat(),
    )
    store = RunStore.create(root, info)
    good = attempt("g1", 0, run_id=run_id, n_depth=512, model_quant="Q4_0", build_number=11434)
    other = attempt("g1", 1, run_id=run_id, requested={"n_threads": 4}, build_number=11434)
    bad = attempt(
        "g1", 2, run_id=run_id, status="failed", median_tps=None, sample_std_tps=None,
        model_label=_HOSTILE, error_message="the file is\ntruncated", flags=(), telemetry=None,
    )  # fmt: skip
    store.write_group("g1", [good, other, bad], [*samples_of(good), *samples_of(other)])
    store.compact()
    return store


def _call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["results", *map(str, words)])


def test_list_shows_runs_newest_first_with_their_counts(root: Path) -> None:
    old, new = _run(root, "quick", age_days=2), _run(root, _HOSTILE)

    lines = _call("list", "--results", root).output.splitlines()

    assert lines[0].split() == ["run", "sweep", "state", "cells", "ok", "failed", "unsupported"]
    assert lines[1].startswith(new.run_dir.name)
    assert lines[2].split() == [old.run_dir.name, "quick", "finished", "2", "2", "1", "0"]
    assert "\x1b" not in "".join(lines)


def test_list_names_a_damaged_run_and_goes_on(root: Path) -> None:
    _run(root, "quick")
    broken = _run(root, "other")
    (broken.run_dir / "run.json").write_text("{")

    rows = json.loads(_call("list", "--results", root, "--json").output)

    assert {row["sweep_name"]: row["state"][:7] for row in rows} == {
        "quick": "finishe", None: "damaged",
    }  # fmt: skip
    assert next(row for row in rows if row["problem"])["ok"] is None


def test_list_of_nothing_says_so(root: Path) -> None:
    assert _call("list", "--results", root).output == f"No runs in {root}.\n"


def test_show_is_a_table_of_what_varied_with_spread_and_reasons(root: Path) -> None:
    _run(root, "quick")

    lines = _call("show", "quick", "--results", root).output.splitlines()

    assert lines[0].split() == ["model", "quant", "test", "n_threads", "t/s", "status"]
    assert "pp512@d512" in lines[1]
    assert "100 ± 1.5" in lines[1]
    assert "ok noisy" in lines[1]
    assert lines[3].startswith('a"<script>\\n$(touch x)\\x1b[2J-ü')
    assert lines[3].endswith("failed: the file is\\ntruncated")
    assert len(lines) == 4


def test_show_takes_columns_and_json(root: Path) -> None:
    _run(root, "quick")

    shown = _call("show", "--results", root, "--columns", "test_label,n_threads,median_tps")
    rows = json.loads(_call("show", "--results", root, "--json").output)

    assert shown.output.splitlines()[1].split() == ["pp512", "2", "100"]
    assert shown.output.splitlines()[3].split() == ["pp512", "2", "–"]
    assert rows[0]["reasons"] == {"gpu_energy_j": "no GPU"}
    assert rows[2]["median_tps"] is None
    assert rows[2]["model_label"] == _HOSTILE
    assert rows[0]["started_at"] == "2026-11-29T14:07:55.123456+00:00"


def test_show_of_an_unknown_column_names_the_nearest(root: Path) -> None:
    _run(root, "quick")
    result = _call("show", "--results", root, "--columns", "median_tsp")
    assert "there is no column 'median_tsp'" in str(result.exception)
    assert "median_tps" in str(getattr(result.exception, "hint", ""))


def test_show_says_what_could_not_be_read(root: Path) -> None:
    store = _run(root, "quick")
    table_path(store.run_dir, "samples").write_bytes(b"PAR1")
    with pytest.warns(UnreadablePartWarning, match=r"samples\.parquet cannot be read"):
        output = _call("show", "--results", root).output
    assert "Note: samples.parquet cannot be read and was left alone" in output


def test_export_writes_what_it_names(root: Path, tmp_path: Path) -> None:
    _run(root, "quick")
    out = tmp_path / "there" / "out.sqlite"

    result = _call("export", "quick", "--format", "sqlite", "--out", out, "--results", root)

    assert "2 rows" in result.output
    assert "build_commit b11434  is  b11434" in result.output
    database = sqlite3.connect(out)
    rows = database.execute("SELECT build_commit, n_depth FROM llama_bench").fetchall()
    database.close()
    assert rows == [("b11434", 512), ("b11434", 0)]
    again = _call("export", "quick", "--format", "sqlite", "--out", out, "--results", root)
    assert "there already" in str(again.exception)


def test_export_to_csv_and_jsonl(root: Path, tmp_path: Path) -> None:
    _run(root, "quick")
    for kind in ("csv", "jsonl"):
        out = tmp_path / f"out.{kind}"
        assert _call("export", "--format", kind, "--out", out, "--results", root).exit_code == 0
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        assert [row["n_threads"] for row in csv.DictReader(file)] == ["2", "4"]
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["samples_ns"] == [5_000_000_001, 5_000_000_002]


def test_prune_shows_first_and_removes_only_with_yes(root: Path) -> None:
    old, new = _run(root, "quick", age_days=40), _run(root, "quick")

    shown = _call("prune", "--older-than", "30d", "--results", root)
    assert old.run_dir.name in shown.output
    assert new.run_dir.name not in shown.output
    assert "Nothing was removed" in shown.output
    assert old.run_dir.exists()

    done = _call("prune", "--older-than", "30d", "--yes", "--results", root)
    assert done.exit_code == 0, done.exception
    assert not old.run_dir.exists()
    assert sorted(p.name for p in root.iterdir()) == [new.run_dir.name]


def test_prune_keeps_the_newest_and_never_follows_a_link(root: Path, tmp_path: Path) -> None:
    elsewhere = _run(tmp_path / "elsewhere", "precious", age_days=90)
    old, new = _run(root, "quick", age_days=40), _run(root, "quick")
    (root / "linked").symlink_to(elsewhere.run_dir, target_is_directory=True)
    (root / "notes.txt").write_text("mine")

    result = _call("prune", "--keep", "1", "--yes", "--results", root)

    assert result.exit_code == 0, result.exception
    assert not old.run_dir.exists()
    assert elsewhere.run_dir.exists()
    assert sorted(p.name for p in root.iterdir()) == sorted(
        [new.run_dir.name, "linked", "notes.txt"]
    )


def test_prune_leaves_folders_of_other_programs_alone_whatever_their_files_are_called(
    root: Path,
) -> None:
    damaged, new = _run(root, "quick", age_days=40), _run(root, "quick")
    (damaged.run_dir / "run.json").write_text("{")
    for name, text in (("theirs", '{"loss": 0.1}'), ("also", '{"schema_version": 1}')):
        (root / name).mkdir()
        (root / name / "run.json").write_text(text)
    (root / "20250101-trial").mkdir()
    (root / "20250101-trial" / "samples.parquet").write_bytes(b"PAR1")

    result = _call("prune", "--keep", "1", "--yes", "--results", root)

    assert result.exit_code == 0, result.exception
    assert sorted(p.name for p in root.iterdir()) == sorted(
        [new.run_dir.name, "theirs", "also", "20250101-trial"]
    )


def test_prune_of_models_stays_in_the_cache(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMASWEEP_CACHE", str(tmp_path / "cache"))
    models = tmp_path / "cache" / "models"
    models.mkdir(parents=True)
    (models / "tiny.gguf").write_bytes(b"x" * 2048)
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"y")
    (models / "linked.gguf").symlink_to(mine)

    result = _call("prune", "--models", "--yes", "--results", root)

    assert "2.00 KiB" in result.output
    assert not (models / "tiny.gguf").exists()
    assert mine.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing was named"),
        (("--keep", "1", "--older-than", "1d"), "two things"),
        (("--older-than", "soon"), "not a duration"),
        (("--older-than", "5"), "'5' has no unit"),
        (("--older-than", "1.5"), "'1.5' has no unit"),
    ],
)
def test_prune_without_a_clear_wish_is_refused(
    root: Path, words: tuple[str, ...], message: str
) -> None:
    assert message in str(_call("prune", *words, "--results", root).exception)


def test_columns_prints_the_page() -> None:
    output = _call("columns").output
    assert output.startswith("# Columns of the results")
    assert "| `median_tps` | double | tps | yes |" in output
