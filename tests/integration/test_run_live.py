"""The live view in a real terminal: it draws, it shows failures, and Ctrl-C in it ends the run well."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fakes.models import write_model
from tests.integration.running import Desk, engines_alive

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX")
_LIMIT_S = 60.0


def _in_terminal(
    desk: Desk, words: list[str], *, interrupt_at: str | None = None
) -> tuple[int, str]:
    """Exit code and everything drawn; Ctrl-C is typed once `interrupt_at` has appeared."""
    import pty

    master, slave = pty.openpty()
    process = subprocess.Popen(
        desk.command(*words),
        cwd=desk.folder,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509  (no threads here)
    )
    os.close(slave)
    drawn = ""
    end_s = time.monotonic() + _LIMIT_S
    while time.monotonic() < end_s:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                drawn += os.read(master, 65536).decode("utf-8", "replace")
            except OSError:
                break
        if interrupt_at is not None and interrupt_at in drawn:
            os.write(master, b"\x03")
            interrupt_at = None
    os.close(master)
    return process.wait(_LIMIT_S), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_the_live_view_draws_progress_and_failures(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    program = fake_build()
    write_model(tmp_path / "good.gguf", {"rep_s": 0.2})
    write_model(tmp_path / "bad.gguf", {"faults": [{"when": {"n_gen": 8}, "do": "exit"}]})
    sweep = desk.write_sweep(
        f"version: 1\nbandwidth: 10 GB/s\nmodels: [{{path: {tmp_path}/good.gguf}}, {{path: {tmp_path}/bad.gguf}}]\n"
        f"builds: [{program}]\ntests: [pp16, tg8]\nrepetitions: 3\n"
    )

    code, drawn = _in_terminal(desk, ["run", "--no-report", str(sweep)])

    assert code == 1
    assert re.search(r"\d of 4 cells", drawn)
    assert "pp16: prompt" in drawn
    assert "engine RAM" in drawn
    assert re.search(r"bad · tg8: failed", drawn)
    assert "Traceback" not in drawn


def test_the_live_view_of_ab_shows_each_interval_closing_in(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    rates = {"tg_tps": 4000, "pp_tps": 8000, "noise": 0.0}
    a = fake_build("old", number=1, behaviour=rates)
    b = fake_build("new", number=2, behaviour={**rates, "tg_tps": 3700})
    write_model(tmp_path / "m.gguf", {})
    sweep = desk.write_sweep(
        f"version: 1\nbandwidth: 10 GB/s\ntelemetry: off\nmodels: [{{path: {tmp_path}/m.gguf}}]\n"
        "tests: [pp32, tg16]\nrepetitions: 1\nwarmup: off\n"
    )

    code, drawn = _in_terminal(desk, ["ab", "--builds", str(a), str(b), "--", str(sweep)])

    assert code == 0, drawn[-2000:]
    assert re.search(r"m · tg16 +-\d\.\d % +o +: +\| +: +\d rounds?, open", drawn)
    assert re.search(r"m · pp32 +\S+ % \[\S+, \S+\] .*6 rounds, same", drawn)
    assert "1 of 2 cells clear: 1 same; 1 confirming a change" in drawn
    assert re.search(r"\d of 10 fresh rounds", drawn)
    assert "note: after round" not in drawn


def test_ctrl_c_in_the_live_view_keeps_what_is_done(
    desk: Desk, tmp_path: Path, fake_build: Callable[..., Path]
) -> None:
    program = fake_build()
    write_model(tmp_path / "m.gguf", {"rep_s": 0.3})
    sweep = desk.write_sweep(
        f"version: 1\nbandwidth: 10 GB/s\nmodels: [{{path: {tmp_path}/m.gguf}}]\nbuilds: [{program}]\n"
        "tests: [pp16, tg8]\nmatrix: {threads: [1, 2, 3, 4]}\nrepetitions: 2\n"
    )

    code, drawn = _in_terminal(
        desk, ["run", "--no-report", str(sweep)], interrupt_at="1 of 8 cells"
    )

    assert code == 130
    assert "Continue with" in drawn
    assert engines_alive([str(program)]) == []
    assert 1 <= len(desk.rows()) < 8
