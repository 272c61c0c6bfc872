"""Keeping the machine awake: it says whether it worked, and leaves nothing behind."""

from __future__ import annotations

import sys

from llamasweep.machine.awake import keep_awake

RUN_THE_REST = [sys.executable, "-c", "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"]
REFUSE = [sys.executable, "-c", "import sys; sys.exit('Failed to connect to bus')"]


def test_a_holder_that_runs_its_command_keeps_the_machine_awake() -> None:
    with keep_awake("a sweep", os_name="Linux", argv=RUN_THE_REST) as state:
        assert state.is_kept
        assert state.how == sys.executable
        assert state.reason is None


def test_a_holder_that_refuses_is_told_with_its_words() -> None:
    with keep_awake("a sweep", os_name="Linux", argv=REFUSE) as state:
        assert not state.is_kept
        assert state.reason == f"{sys.executable}: Failed to connect to bus"


def test_a_missing_holder_is_told() -> None:
    with keep_awake("a sweep", os_name="Linux", argv=["no-such-holder"]) as state:
        assert not state.is_kept
        assert state.reason == "no-such-holder is not installed"


def test_an_unknown_system_is_told() -> None:
    with keep_awake("a sweep", os_name="Plan9") as state:
        assert not state.is_kept
        assert state.reason == "no way to keep Plan9 awake is known here"


def test_the_windows_way_says_so_elsewhere() -> None:
    with keep_awake("a sweep", os_name="Windows") as state:
        assert not state.is_kept
