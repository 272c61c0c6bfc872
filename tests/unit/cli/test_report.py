from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.report.factory import hostile_run, info, measured, run_of

from llamasweep.cli.report import command, default_target
from llamasweep.errors import StoreError
from llamasweep.results.records import RunData
from llamasweep.store.parquet import RunStore


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LLAMASWEEP_REPORTS", raising=False)
    monkeypatch.delenv("LLAMASWEEP_RESULTS", raising=False)
    return tmp_path


def _store(run: RunData) -> Path:
    store = RunStore.create(Path("results"), run.info)
    store.write_group("00001-g0", run.attempts, run.samples, run.readings)
    return store.run_dir


def _report(*words: str) -> Result:
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def test_the_newest_run_is_reported_and_the_path_printed() -> None:
    run_dir = _store(run_of([measured(1, [10.0, 10.1])]))
    result = _report()
    assert result.exit_code == 0
    path = Path(result.output.strip())
    assert path == Path("reports") / f"{run_dir.name}.html"
    assert "tiny-llama Q4_0" in path.read_text(encoding="utf-8")


def test_the_reports_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    _store(run_of([measured(1, [10.0])]))
    monkeypatch.setenv("LLAMASWEEP_REPORTS", "elsewhere")
    assert Path(_report().output.strip()).parent == Path("elsewhere")


def test_json_tells_path_size_and_runs() -> None:
    run_dir = _store(run_of([measured(1, [10.0])]))
    told = json.loads(_report("quick", "--out", "page.html", "--json").output)
    assert Path(told["path"]) == Path("page.html").resolve()
    assert told["bytes"] == Path("page.html").stat().st_size
    assert told["runs"] == [run_dir.name]


def test_two_runs_make_one_page() -> None:
    first = _store(run_of([measured(1, [10.0])]))
    other = info(run_id="20261130T140000Z-quick-ffffff", started_at="2026-11-30T14:00:00+00:00")
    second = _store(
        RunData(info=other, attempts=(measured(1, [10.0], run_id=other.run_id)[0],), samples=())
    )
    path = Path(_report(first.name, str(second)).output.strip())
    assert path.name == f"{first.name}-and-1-more.html"
    assert other.run_id in path.read_text(encoding="utf-8")


def test_a_hostile_run_writes_nothing_outside_reports(folder: Path) -> None:
    _store(hostile_run())
    before = {p for p in folder.rglob("*") if "results" not in p.parts}
    path = Path(_report().output.strip())
    assert {p for p in folder.rglob("*") if "results" not in p.parts} - before == {
        folder / "reports",
        folder / "reports" / "index.html",
        folder / path,
    }


@pytest.mark.parametrize("run_id", ["../../etc/passwd", "a/b", "..", "", "-rf", "\n<script>"])
def test_the_default_file_is_a_plain_name_whatever_the_run_is_called(run_id: str) -> None:
    target = default_target([run_id])
    assert target.parent == Path("reports")
    assert not set("/\\<>\n").intersection(target.name)
    assert not target.name.startswith(("-", "."))


def test_every_report_is_in_the_list_beside_it() -> None:
    first = _store(run_of([measured(1, [10.0])]))
    _report()
    assert f"./{first.name}.html" in Path("reports/index.html").read_text(encoding="utf-8")
    _report("--redact")
    listed = Path("reports/index.html").read_text(encoding="utf-8")
    assert f"./{first.name}.html" in listed
    assert f"./{first.name}-redacted.html" in listed


def test_no_list_is_written_outside_of_the_folder_of_reports(folder: Path) -> None:
    _store(run_of([measured(1, [10.0])]))
    assert json.loads(_report("--out", "page.html", "--json").output)["index"] is None
    assert not (folder / "index.html").exists()


def test_the_name_of_the_list_is_refused_for_a_report() -> None:
    _store(run_of([measured(1, [10.0])]))
    with pytest.raises(StoreError, match="is the list of reports"):
        _report("--out", "reports/index.html")
    assert not Path("reports/index.html").exists()


def test_markdown_goes_to_stdout_and_the_path_to_stderr() -> None:
    _store(run_of([measured(1, [10.0, 10.1])]))
    result = _report("--markdown", "-")
    assert result.stdout.startswith("### tiny-llama Q4\\_0")
    assert result.stderr.strip().endswith(".html")


def test_markdown_and_pictures_go_where_they_are_wanted(folder: Path) -> None:
    _store(run_of([measured(1, [10.0, 10.1])]))
    told = json.loads(_report("--markdown", "a/s.md", "--png", "p", "--svg", "s", "--json").output)
    assert Path(told["markdown"]) == folder / "a" / "s.md"
    assert (folder / "a" / "s.md").read_text(encoding="utf-8").startswith("### ")
    endings = {Path(path).suffix for path in told["pictures"]}
    assert endings == {".png", ".svg"}
    assert all(Path(path).stat().st_size > 500 for path in told["pictures"])


def test_json_and_markdown_cannot_share_stdout() -> None:
    _store(run_of([measured(1, [10.0])]))
    result = CliRunner().invoke(command, ["--json", "--markdown", "-"])
    assert result.exit_code == 2
    assert "both want stdout" in result.output


def test_redact_hides_this_machine_and_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "tower-of-hera")
    monkeypatch.setenv("HOME", "/home/malon")
    _store(run_of([measured(1, [10.0])], notes=["tower-of-hera, where malon measures"]))
    path = Path(_report("--redact").output.strip())
    assert path.name.endswith("-redacted.html")
    text = path.read_text(encoding="utf-8")
    assert "tower-of-hera" not in text
    assert "malon" not in text
    assert "(hidden), where (hidden) measures" in text


def test_a_place_that_cannot_be_written_is_told_and_leaves_no_draft(folder: Path) -> None:
    _store(run_of([measured(1, [10.0])]))
    (folder / "taken").mkdir()
    with pytest.raises(StoreError, match="cannot write the report") as caught:
        _report("--out", "taken")
    assert caught.value.hint is not None
    assert not list(folder.glob(".taken*"))


def test_no_run_at_all_is_told() -> None:
    with pytest.raises(StoreError):
        _report()
