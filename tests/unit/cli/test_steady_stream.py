"""Progress whose reader has gone: nothing more is said, and nothing is raised into the run."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from llamasweep.cli.progress_lines import PlainProgress
from llamasweep.cli.terminal import SteadyStream


class _Gone(io.StringIO):
    """Takes one line, then is a pipe without a reader."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.n_tries = number, 0

    def write(self, text: str) -> int:
        self.n_tries += 1
        if self.n_tries > 1:
            raise OSError(self.number, os.strerror(self.number))
        return super().write(text)


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.ENOSPC])
def test_progress_outlives_its_reader(number: int) -> None:
    gone = _Gone(number)
    progress = PlainProgress(gone)
    for sentence in ("one", "two", "three"):
        progress.note(sentence)
    assert gone.getvalue() == "note: one\n"
    assert gone.n_tries == 2


def test_a_closed_stream_is_borne_too() -> None:
    stream = io.StringIO()
    stream.close()
    steady = SteadyStream(stream)
    assert steady.write("x") == 1
    steady.flush()


def test_the_stream_is_asked_what_it_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as file:
        steady = SteadyStream(file)
        assert not steady.isatty()
        assert steady.encoding == "utf-8"
