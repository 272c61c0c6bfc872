"""What may stand in the repository: nothing of the machine it was made on, no package registry by name."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from tests.contract.source import ROOT

# Written in pieces, so that this file does not hold what it forbids.
FORBIDDEN = tuple(
    "".join(pieces).encode()
    for pieces in (
        ("/wo", "rk/"),
        ("/ro", "ot/"),
        (".libr", "ary"),
        ("far", "m-bench"),
        ("far", "m-studio"),
        ("pypi", ".org"),
        ("pythonho", "sted"),
        ("npmjs", ".org"),
        ("crates", ".io"),
        ("proxy.gol", "ang"),
        ("deb.deb", "ian"),
        ("maven", ".org"),
    )
)
MAX_FILE_BYTES = 4 << 20


def _tracked() -> list[str]:
    try:
        done = subprocess.run(
            [shutil.which("git") or "git", "ls-files", "-z"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_this_machine_or_a_registry() -> None:
    wrong = {}
    for name in _tracked():
        text = (ROOT / name).read_bytes()
        found = [word.decode() for word in FORBIDDEN if word in text]
        if found:
            wrong[name] = found
    assert not wrong


def test_no_large_file_is_tracked() -> None:
    assert not {n: size for n in _tracked() if (size := (ROOT / n).stat().st_size) > MAX_FILE_BYTES}


def test_no_result_is_tracked() -> None:
    assert not [n for n in _tracked() if n.startswith(("results/", "reports/"))]
