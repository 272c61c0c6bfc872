"""What people see of an installation while it goes on, and when they stop it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import click
import pytest

from llamasweep.builds import install as installation
from llamasweep.builds.backends import MachineTools
from llamasweep.builds.compilation import InstallProgress, ProgressCallback
from llamasweep.builds.registry import Registry
from llamasweep.cli import installing
from llamasweep.sweep.subjects import Build

BUILD = Build(label="b11434", path="/x", content_hash="0", argv_prefix=("/x",), options=frozenset())
EVENTS = [
    InstallProgress(phase="fetch", text="fetching"),
    *(
        InstallProgress(phase="compile", text="compiling", n_done=done, n_total=40)
        for done in range(1, 41)
    ),
    InstallProgress(phase="probe", text="asking [bold]"),
]


@pytest.fixture
def plan(tmp_path: Path) -> installation.InstallPlan:
    tools = MachineTools(system="Linux", processor="x86_64")
    return installation.make_plan(11434, registry=Registry(tmp_path), tools=tools)


def _tell_all(
    plan: installation.InstallPlan, *, n_jobs: int | None, on_progress: ProgressCallback
) -> Build:
    del plan, n_jobs
    for event in EVENTS:
        on_progress(event)
    return BUILD


def test_plain_lines_tell_each_phase_and_each_tenth(
    plan: installation.InstallPlan,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(installation, "install", _tell_all)
    assert installing.install_visibly(plan, None) == BUILD
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fetching …"
    assert lines[1] == "compiling …"
    assert lines[-1] == "asking [bold] …"
    assert [line.split()[0] for line in lines[2:-1]] == [f"{n}/40" for n in range(4, 41, 4)]
    assert all("after 0:00, about 0:00 left" in line for line in lines[2:-1])


def test_a_bar_is_drawn_on_a_terminal(
    plan: installation.InstallPlan,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(installation, "install", _tell_all)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert installing.install_visibly(plan, None) == BUILD
    assert "asking [bold]" in capsys.readouterr().err


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_installation_says_how_to_go_on(
    plan: installation.InstallPlan,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    signal_number: signal.Signals,
) -> None:
    def stop(*_: object, **__: object) -> Build:
        os.kill(os.getpid(), signal_number)
        raise AssertionError("the signal was not heard")

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(installation, "install", stop)
    with pytest.raises(click.Abort):
        installing.install_visibly(plan, None)
    said = capsys.readouterr().err
    assert "the same command goes on from here" in said
    assert str(plan.folder / installation.LOG_NAME) in said
    assert signal.getsignal(signal.SIGTERM) == before
