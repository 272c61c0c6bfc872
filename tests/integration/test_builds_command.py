"""`llamasweep builds` as people type it, with stand-ins for the programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from llamasweep.cli import app
from llamasweep.errors import LlamasweepError

FakeBuild = Callable[..., Path]


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["builds", *arguments])


def test_without_builds_the_list_says_how_to_get_one() -> None:
    done = _run("list")
    assert done.exit_code == 0
    assert "llamasweep builds install VERSION" in done.output
    assert json.loads(_run("list", "--json").output) == []


def test_an_added_build_is_listed_shown_and_forgotten(fake_build: FakeBuild) -> None:
    program = fake_build(number=11434, commit="sdist")
    added = _run("add", str(program), "--label", "mine")
    assert added.output == f"Added mine: {program} (knows 80 flags).\n"
    header, line = _run("list").output.splitlines()
    assert header.split() == ["name", "kind", "number", "backends", "flags", "hash", "path"]
    assert line.split()[:5] == ["mine", "added", "11434", "CPU", "80"]
    shown = _run("show", "mine").output
    assert "-fa, --flash-attn            <on|off|auto> (default: auto)" in shown
    assert "  --no-host                    <0|1> (default: 0)\n" in shown
    assert _run("remove", "mine").output == "Forgot mine.\n"
    assert json.loads(_run("list", "--json").output) == []


def test_json_leaves_unknown_facts_null(fake_build: FakeBuild) -> None:
    _run("add", str(fake_build(build="b4748")), "--label", "old")
    (row,) = json.loads(_run("list", "--json").output)
    assert (row["number"], row["commit"], row["devices"], row["backends"]) == (None,) * 4
    assert row["definitions"] is None
    document = json.loads(_run("show", "old", "--json").output)
    assert document["options"]["-mmp"] == "<0|1> (default: 1)"
    assert len(document["options"]) == 51
    assert "unknown" in _run("show", "old").output


def test_a_build_on_path_is_listed(fake_build: FakeBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_build(number=7)
    monkeypatch.setenv("PATH", str(program.parent))
    (row,) = json.loads(_run("list", "--json").output)
    assert (row["kind"], row["label"], row["path"]) == ("path", "b7", str(program))


def test_a_broken_build_is_listed_with_its_problem(fake_build: FakeBuild) -> None:
    program = fake_build()
    _run("add", str(program), "--label", "gone")
    program.unlink()
    done = _run("list")
    assert done.exit_code == 0
    assert "gone cannot be used" in done.output


def test_what_is_no_llama_bench_is_refused(tmp_path: Path) -> None:
    done = _run("add", str(tmp_path / "nowhere"))
    assert isinstance(done.exception, LlamasweepError)
    assert done.exception.exit_code == 3
    assert done.exception.hint is not None


@pytest.mark.parametrize(
    "arguments",
    [
        ("install", "4748"),
        ("install", "11434", "--define", "nonsense"),
        ("install", "11434", "--with", "rm -rf"),
        ("install", "11434", "--name", "-x"),
    ],
)
def test_installations_that_cannot_be_are_refused_before_anything_is_fetched(
    arguments: tuple[str, ...],
) -> None:
    done = _run(*arguments)
    assert isinstance(done.exception, LlamasweepError)
    assert done.exception.exit_code == 2


def test_prune_shows_first_and_deletes_when_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LLAMASWEEP_CACHE", str(tmp_path))
    source = tmp_path / "sources" / "b11434"
    source.mkdir(parents=True)
    (source / "a.cpp").write_bytes(b"x" * 2**20)
    (tmp_path / "builds").mkdir()
    shown = _run("prune")
    assert "1.0 MiB  source of llama.cpp b11434" in shown.output
    assert source.is_dir()
    assert "Deleted 1.0 MiB." in _run("prune", "--yes").output
    assert not source.exists()


@pytest.mark.parametrize("verb", ["list", "available", "add", "install", "show", "remove", "prune"])
def test_every_verb_has_an_example(verb: str) -> None:
    done = _run(verb, "--help")
    assert done.exit_code == 0
    assert f"llamasweep builds {verb}" in done.output
