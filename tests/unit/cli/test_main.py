"""The end of the process: what the system refuses is told in a line, with a code, and never as a traceback."""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path

import pytest

from llamasweep.cli import main
from llamasweep.errors import EXIT_INTERRUPTED, EXIT_STORE
from llamasweep.store.locate import UnreadablePartWarning


@pytest.mark.parametrize("words", [["status"], ["report"], ["results", "show"]])
def test_a_name_too_long_for_the_system_is_no_traceback(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["llamasweep", *words, "a\x1b" * 3000])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == EXIT_STORE
    told = capsys.readouterr().err
    assert told.startswith("llamasweep: a\\x1ba")
    assert told.endswith(": File name too long\n")
    assert len(told) < 300


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_any_verb_as_ctrl_c_does_and_clears_up(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    cleared: list[str] = []

    def work(**_: object) -> None:
        try:
            signal.raise_signal(number)
        finally:
            cleared.append("up")

    monkeypatch.setattr("llamasweep.cli.schema.command.callback", work)
    monkeypatch.setattr(sys, "argv", ["llamasweep", "schema"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == EXIT_INTERRUPTED
    assert "Stopped." in capsys.readouterr().err
    assert cleared == ["up"]
    assert signal.getsignal(number) is before


@pytest.mark.filterwarnings("always")
def test_what_llamasweep_warns_of_is_a_sentence_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(**_: object) -> None:
        warnings.warn("a part cannot be read\x1b", UnreadablePartWarning, stacklevel=1)

    monkeypatch.setattr("llamasweep.cli.schema.command.callback", work)
    monkeypatch.setattr(sys, "argv", ["llamasweep", "schema"])
    usual = warnings.showwarning
    main()
    told = capsys.readouterr()
    assert told.err == "Warning: a part cannot be read\\x1b\n"
    assert told.out == ""
    assert warnings.showwarning is usual
