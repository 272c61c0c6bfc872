"""The end of the process: what the system refuses is told in a line, with a code, and never as a traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llamasweep.cli import main
from llamasweep.errors import EXIT_STORE


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
