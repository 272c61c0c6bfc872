"""Sweep files on disk, and the verb that describes them to editors."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from llamasweep.cli.schema import command
from llamasweep.errors import SweepFileError
from llamasweep.sweep.document import MAX_BYTES
from llamasweep.sweep_file import load


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_base_is_found_beside_the_sweep(tmp_path: Path) -> None:
    write(tmp_path / "shared" / "base.yaml", "models: [{path: m.gguf}]\nrepetitions: 2\n")
    sweep = write(tmp_path / "a" / "mine.yaml", "extends: ../shared/base.yaml\n")

    spec = load(sweep)

    assert (spec.name, spec.repetitions) == ("mine", 2)


def test_a_circle_through_other_spellings_is_seen(tmp_path: Path) -> None:
    one = write(tmp_path / "one.yaml", "extends: ./x/../two.yaml\n")
    write(tmp_path / "two.yaml", "extends: one.yaml\n")
    (tmp_path / "x").mkdir()

    with pytest.raises(SweepFileError, match="circle"):
        load(one)


@pytest.mark.parametrize("kind", ["missing", "folder", "binary", "large"])
def test_a_file_that_cannot_be_read_is_told_so(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "s.yaml"
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(b"\xff\xfe\x00a")
    elif kind == "large":
        path.write_bytes(b"#" * (MAX_BYTES + 1))

    with pytest.raises(SweepFileError, match="cannot be read"):
        load(path)


def test_the_verb_prints_and_writes_the_schema(tmp_path: Path) -> None:
    runner = CliRunner()

    printed = runner.invoke(command, [])
    written = runner.invoke(command, ["--out", str(tmp_path / "s.json")])

    assert printed.exit_code == written.exit_code == 0
    assert (tmp_path / "s.json").read_text() == printed.output
    assert '"matrix"' in printed.output


def test_the_verb_says_where_it_cannot_write(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["--out", str(tmp_path / "no" / "s.json")])

    assert result.exit_code != 0
    assert "cannot write" in str(result.exception)
