"""What a run writes down: samples to the nanosecond, requested against applied, turns of builds, hostile names shown right."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from tests.fakes.models import write_model
from tests.integration.running import Desk, order_events

from llamasweep import load_results

HEAD = "version: 1\nbandwidth: 10 GB/s\n"


def _simple(
    desk: Desk, model: Path, program: Path, more: str = "", tests: str = "pp16, tg8"
) -> Path:
    return desk.write_sweep(
        f"{HEAD}models: [{{path: {json.dumps(str(model))}}}]\nbuilds: [{program}]\ntests: [{tests}]\n{more}"
    )


def test_samples_equal_the_engines_own_lines_to_the_nanosecond(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    model = write_model(tmp_path / "m.gguf", {"noise": 0.3})
    sweep = _simple(
        desk, model, fake_build(), "matrix: {depth: [0, 32], threads: [1, 2]}\nrepetitions: 5\n"
    )

    assert desk.run(sweep).code == 0

    run = next((desk.folder / "results").iterdir())
    told = []
    for log in sorted((run / "logs").glob("*.jsonl")):
        if log.name.count(".") == 1:
            told += [
                ns for line in log.read_text().splitlines() for ns in json.loads(line)["samples_ns"]
            ]
    frame = pd.read_parquet(run / "samples.parquet")
    assert frame["duration_ns"].tolist() == told
    assert len(told) == 8 * 5
    cells = load_results(run)
    assert (cells["n_samples"] + cells["n_discarded"] == 5).all()


def test_a_row_says_what_was_asked_and_what_was_applied(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    fault = {"when": {"n_gen": 8}, "do": "echo", "moment": "row", "fields": {"n_threads": 7}}
    model = write_model(tmp_path / "m.gguf", {"faults": [fault]})
    sweep = _simple(
        desk, model, fake_build(), "matrix: {threads: 2, n_batch: 2048}\nrepetitions: 2\n"
    )

    assert desk.run(sweep).code == 0

    (run,) = (desk.folder / "results").iterdir()
    rows = {row["test_kind"]: row for row in load_results(run).to_dict("records")}
    assert rows["tg"]["n_threads"] == 2
    assert rows["tg"]["n_threads_applied"] == 7
    assert "applied_differs" in list(rows["tg"]["flags"])
    assert rows["pp"]["n_threads_applied"] == 2
    assert list(rows["pp"]["flags"]) == ["clamped"]
    assert "n_batch: asked 2048, applied 16" in list(rows["pp"]["differences"])


def test_interleaved_builds_take_turns_in_an_order_that_the_seed_decides(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    old = fake_build("old", order_log=log, number=100)
    new = fake_build("new", order_log=log, number=200)
    model = write_model(tmp_path / "m.gguf")
    sweep = desk.write_sweep(
        f"{HEAD}models: [{{path: {model}}}]\nbuilds: [{old}, {new}]\ntests: [pp16, tg8]\n"
        "matrix: {depth: [0, 32]}\norder: interleaved\nrounds: 4\nseed: 3\nrepetitions: 1\n"
    )

    assert desk.run(sweep).code == 0

    builds = [
        Path(e["argv"][0]).parent.name
        for e in order_events(log)
        if e["event"] == "start" and "-m" in e["argv"]
    ]
    pairs = [set(pair) for pair in zip(builds[::2], builds[1::2], strict=True)]
    assert pairs == [{"old", "new"}] * 8
    assert len(set(builds[::2])) == 2, "the order within a pair is random"
    rows = desk.rows()
    assert len(rows) == 2 * 4 * 4
    assert {r.round_index for r in rows} == {0, 1, 2, 3}
    assert desk.results().info.seed == 3


@pytest.mark.skipif(sys.platform == "win32", reason="such names cannot be made there")
@pytest.mark.parametrize(
    "name",
    [
        'it\'s "quoted".gguf',
        "<script>alert(1)</script>.gguf".replace("/", "_"),
        "line\nbreak.gguf",
        "$(touch pwned) `touch pwned`;touch pwned.gguf",
        "-m --help.gguf",
        "größe-模型,a=b.gguf",
        "\x1b[31mred.gguf",
    ],
)
def test_hostile_names_are_measured_and_nothing_is_executed(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path], name: str
) -> None:
    model = write_model(tmp_path / "models" / name, name="m")
    before = {p for p in tmp_path.rglob("*") if "builds" not in p.parts}
    sweep = _simple(desk, model, fake_build(), f"name: {json.dumps(name)}\nrepetitions: 1\n")

    ended = desk.call("run", "--plain", "--", sweep.name)

    assert ended.code == 0, ended.stderr
    assert {r.status for r in desk.rows()} == {"ok"}
    assert {r.model_file for r in desk.rows()} == {name}
    new = {p for p in tmp_path.rglob("*") if "builds" not in p.parts} - before - {sweep}
    outside = [
        p
        for p in new
        if desk.folder / "results" not in [p, *p.parents]
        and desk.folder / "reports" not in [p, *p.parents]
    ]
    assert outside == []
    assert not list(tmp_path.rglob("pwned"))
    assert "\x1b" not in ended.stdout + ended.stderr
    pages = list((desk.folder / "reports").glob("*.html"))
    assert len(pages) == 2  # the report, and the list of reports
    assert all("<script>alert(1)" not in page.read_text(encoding="utf-8") for page in pages)


def test_a_secret_given_to_the_engine_is_nowhere_in_what_is_kept_or_told(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    sweep = _simple(
        desk,
        write_model(tmp_path / "m.gguf"),
        fake_build(),
        """
env: {MY_KEY: s3cret-env, URL: "https://host/?token=s3cret-url"}
extra_args: [-hft, s3cret-word, --nosuchflag=https://bob:s3cret-login@host]
on_finish: [echo, s3cret-finish]
""",
        tests="tg8",
    )

    ended = desk.call("run", "--plain", str(sweep))

    assert "nosuchflag" in ended.stderr  # the engine repeats what it was given
    assert "s3cret" not in ended.stderr
    planned = desk.call("plan", "--json", str(sweep)).stdout
    assert "nosuchflag" in planned
    assert "s3cret" not in planned
    kept = [path for path in desk.folder.rglob("*") if path.is_file() and path != sweep]
    assert any(path.suffix == ".html" for path in kept)
    for path in kept:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            assert b"s3cret" not in file.read(), path


def test_a_context_beyond_the_address_space_limit_is_out_of_memory(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    model = write_model(tmp_path / "m.gguf")
    more = "matrix: {depth: [0, 10000000]}\nrepetitions: 1\naddress_space_limit: 1 GiB\n"
    sweep = _simple(desk, model, fake_build(), more)

    ended = desk.run(sweep)

    assert ended.code == 1
    assert {(r.n_depth, r.status) for r in desk.rows()} == {
        (0, "ok"),
        (10_000_000, "out_of_memory"),
    }


def test_time_up_keeps_what_is_done_and_the_next_call_goes_on(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    model = write_model(tmp_path / "m.gguf", {"rep_s": 0.3})
    sweep = _simple(desk, model, fake_build(), "matrix: {depth: [0, 32, 64]}\nrepetitions: 2\n")

    first = desk.run(sweep, "--max-time", "1s")
    second = desk.run(sweep)

    assert (first.code, second.code) == (0, 0)
    assert "time is up" in first.stdout
    assert len({r.cell_id for r in desk.rows()}) == len(desk.rows()) == 6


def test_only_measures_what_matches_and_a_plan_writes_nothing(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    log = tmp_path / "order.log"
    model = write_model(tmp_path / "m.gguf")
    sweep = _simple(
        desk,
        model,
        fake_build(order_log=log),
        "matrix: {depth: [0, 32], threads: [1, 2]}\nrepetitions: 1\n",
    )

    plan = desk.call(
        "plan", "--json", "--only", "depth=32", "--only", "test=pp16", "--", str(sweep)
    )
    wrote = (desk.folder / "results").exists()
    measured = [e for e in order_events(log) if e["event"] == "load"]
    run = desk.run(sweep, "--only", "depth=32", "--only", "test=pp16", "--json")

    planned = json.loads(plan.stdout)
    assert (planned["n_cells"], wrote, measured) == (2, False, [])
    assert "-d" in planned["groups"][0]["argv"]
    assert json.loads(run.stdout)["counts"] == {"ok": 2}
    assert {(r.n_depth, r.test_label) for r in desk.rows()} == {(32, "pp16")}


def test_rows_are_measured_in_the_order_of_the_engines_own_loops(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    model = write_model(tmp_path / "m.gguf")
    more = "matrix: {threads: [1, 2], n_ubatch: [32, 16]}\nrepetitions: 1\n"
    sweep = _simple(desk, model, fake_build(), more, tests="pp16, pp8, tg8, pg16+8")

    assert desk.run(sweep).code == 0

    rows = desk.rows()
    assert len(rows) == 16
    assert all(
        not r.differences or all(d.startswith(("n_batch", "n_ubatch")) for d in r.differences)
        for r in rows
    )
    finished = [r.finished_at for r in rows]
    assert all(a is not None and b is not None and a <= b for a, b in pairwise(finished))


def test_a_busy_machine_is_refused_only_when_asked(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    model = write_model(tmp_path / "m.gguf")
    sweep = _simple(desk, model, fake_build(), "repetitions: 1\n")
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        refused = desk.run(sweep, "--only-if-quiet")
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()

    assert refused.code == 6
    assert "not quiet" in refused.stderr
    assert not (desk.folder / "results").exists() or not list((desk.folder / "results").iterdir())
