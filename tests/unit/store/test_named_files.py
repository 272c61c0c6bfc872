"""A file that a user named: links are followed, and a pipe or device is written to instead of being replaced."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from llamasweep.errors import StoreError
from llamasweep.store import export_files
from llamasweep.store.files import put_named


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "page.html"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "link.html"
    link.symlink_to(target)

    put_named(link, b"new")

    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [p.name for p in target.parent.iterdir()] == ["page.html"]


def test_a_link_that_leads_to_nothing_yet_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "later.html")

    put_named(link, b"new")

    assert link.is_symlink()
    assert (tmp_path / "later.html").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("is_linked", [False, True])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path, is_linked: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    named = tmp_path / "link" if is_linked else pipe
    if is_linked:
        named.symlink_to(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()

    put_named(named, b"a page")

    reader.join(timeout=10)
    assert read == [b"a page"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert named.is_symlink() is is_linked


def test_an_export_on_a_full_disk_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(export_files, "put_named", full)

    with pytest.raises(StoreError, match="No space left") as told:
        export_files.write_export([], "jsonl", tmp_path / "x.jsonl")

    assert told.value.hint == "Free some space, or choose another place with --out."
