"""The command line starts fast, and every verb tells how it is used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from llamasweep import errors
from llamasweep.cli import VERBS, app, main

HEAVY = (
    "pandas", "pyarrow", "numpy", "scipy", "jinja2", "pydantic", "pynvml", "altair", "rich", "psutil", "vl_convert", "yaml",
)  # fmt: skip

_LIST_MODULES = """
import sys
from llamasweep.__main__ import main
sys.argv = ["llamasweep", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("MODULES", *sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def _modules_after(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LIST_MODULES, *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stderr.split("MODULES")[1].split())


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    assert not _modules_after(*words) & set(HEAVY)


@pytest.mark.parametrize("verb", list(VERBS))
def test_help_of_a_verb_imports_nothing_heavy(verb: str) -> None:
    assert not _modules_after(verb, "--help") & set(HEAVY)


def _commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    result = CliRunner().invoke(app, [verb, "--help"])
    assert result.exit_code == 0, result.output
    assert "Example" in result.output
    assert f"llamasweep {verb}" in result.output


def test_every_command_says_what_it_and_its_options_do() -> None:
    silent = []
    for path, command in _commands(app):
        if not command.help:
            silent.append(" ".join(path))
        silent += [
            " ".join((*path, option.opts[0]))
            for option in command.params
            if isinstance(option, click.Option) and not option.help and not option.hidden
        ]
    assert not silent


def test_an_unknown_verb_is_a_usage_error() -> None:
    assert CliRunner().invoke(app, ["frobnicate"]).exit_code == 2


def _main(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["llamasweep", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


def test_names_in_an_error_cannot_move_the_cursor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(monkeypatch, "plan", "no\x07file\u202e.yaml") == errors.EXIT_USAGE
    told = capsys.readouterr().err
    assert told.startswith("llamasweep: no\\x07file\\u202e.yaml:?: ")


def test_a_time_that_is_none_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text("models: [{synth: tiny-llama}]\n", encoding="utf-8")
    assert _main(monkeypatch, "run", str(sweep), "--max-time", "soon") == errors.EXIT_USAGE
    assert "'soon' is not a duration; write it like" in capsys.readouterr().err
