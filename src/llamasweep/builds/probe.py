"""What a binary is: its flags, version, devices and content hash, found by asking it and by reading its bytes.

It measures nothing and remembers nothing; `registry` remembers.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from llamasweep.builds import help_text
from llamasweep.builds.cpu_features import cpu_features
from llamasweep.builds.help_text import HelpText, VersionText
from llamasweep.builds.invocation import Answer, absolute, ask
from llamasweep.errors import BuildError, EngineNotFoundError
from llamasweep.sweep.subjects import Build

TIMEOUT_S = 20.0
"""A `--help` takes 0.01 s; a GPU driver that wakes up takes seconds."""

PROGRAM_NAMES = ("llama-bench", "llama-bench.exe", "llama", "llama.exe")
_LIBRARY_PATTERNS = ("libllama*", "libggml*", "llama*.dll", "ggml*.dll")
_LIBRARY_ENDINGS = (".dll", ".dylib", ".so")


def probe(path: Path, *, label: str | None = None, timeout_s: float = TIMEOUT_S) -> Build:
    """Ask the binary at `path` (or the llama-bench in the folder `path`) what it is.

    label: None takes `b` + build number where the binary tells one, else the file's name and the start of its hash. Tries
    `path --help`, then the unified form `path bench --help`. Raises EngineNotFoundError where there is no such file, BuildError
    where it cannot be started, hangs, prints without end, or is no llama-bench.
    """
    binary = locate_binary(path)
    prefix, asked, found = _find_prefix(binary, timeout_s)
    version = _ask_version(prefix, found, timeout_s)
    devices_answer = _ask_if_known(prefix, "--list-devices", found, timeout_s)
    devices = help_text.parse_devices(devices_answer.stdout) if devices_answer else None
    said = asked.stdout + asked.stderr
    if devices_answer:
        said += devices_answer.stdout + devices_answer.stderr
    digest = content_hash(binary)
    return Build(
        label=label or _default_label(binary, version, digest),
        path=str(binary),
        content_hash=digest,
        argv_prefix=prefix,
        options=found.options,
        option_help=found.option_help,
        number=version.number,
        commit=version.commit,
        version=version.first_line,
        backends=help_text.backends_of(devices, said),
        devices=devices,
        default_threads=help_text.default_threads(found),
        cpu_features=cpu_features(binary),
    )


def locate_binary(path: Path) -> Path:
    """The absolute path of the program: the file itself, or the llama-bench in that folder or in its `bin`.

    Raises EngineNotFoundError where there is none.
    """
    place = absolute(path)
    if place.is_dir():
        candidates = [folder / name for folder in (place, place / "bin") for name in PROGRAM_NAMES]
        for candidate in candidates:
            if candidate.is_file():
                return candidate
        raise EngineNotFoundError(
            f"there is no llama-bench in the folder {str(place)!r}",
            hint="Name the program itself, or the folder that holds it.",
        )
    if not place.is_file():
        raise EngineNotFoundError(
            f"there is no llama-bench at {str(place)!r}",
            hint="`llamasweep builds list` shows the builds that are known; "
            "`llamasweep builds install VERSION` makes one.",
        )
    return place


@dataclass(frozen=True, kw_only=True, slots=True)
class FileStamp:
    """By what a changed file is noticed without reading it."""

    path: str
    n_bytes: int
    mtime_ns: int


def stamps(binary: Path) -> tuple[FileStamp, ...]:
    """Stamps of the program and of the llama.cpp libraries beside it (or in `../lib`), sorted by path.

    A shared build keeps its code in these libraries, and the program itself stays the same when they change. Raises OSError.
    """
    return tuple(_stamp(path) for path in _hashed_files(binary))


def content_hash(binary: Path) -> str:
    """32 hex digits over the program and the llama.cpp libraries beside it: the start of a SHA-256.

    For a program without such libraries, this is the start of the SHA-256 of the file. Raises BuildError where a
    file cannot be read.
    """
    files = _hashed_files(binary)
    try:
        digests = [sha256(path) for path in files]
    except OSError as problem:
        raise BuildError(
            f"cannot read {problem.filename!r}: {problem.strerror}",
            hint="Make the file readable for this user.",
        ) from problem
    if len(digests) == 1:
        return digests[0][:32]
    named = [f"{path.name} {digest}" for path, digest in zip(files, digests, strict=True)]
    return hashlib.sha256("\n".join(named).encode()).hexdigest()[:32]


def _hashed_files(binary: Path) -> list[Path]:
    folders = [binary.parent]
    if binary.parent.name == "bin":
        folders += [binary.parent.parent / "lib", binary.parent.parent / "lib64"]
    libraries = {
        file
        for folder in folders
        for pattern in _LIBRARY_PATTERNS
        for file in folder.glob(pattern)
        if file.is_file() and any(ending in file.name for ending in _LIBRARY_ENDINGS)
    }
    return [binary, *sorted(libraries)]


def _stamp(path: Path) -> FileStamp:
    stat = path.stat()
    return FileStamp(path=str(path), n_bytes=stat.st_size, mtime_ns=stat.st_mtime_ns)


def sha256(path: Path) -> str:
    """64 hex digits over a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _default_label(binary: Path, version: VersionText, digest: str) -> str:
    if version.number is not None:
        return f"b{version.number}"
    return f"{binary.stem}-{digest[:8]}"


def _find_prefix(binary: Path, timeout_s: float) -> tuple[tuple[str, ...], Answer, HelpText]:
    """The words that start this llama-bench, with its help. The unified binary is asked for its `bench` first."""
    plain, unified = (str(binary),), (str(binary), "bench")
    is_unified_name = binary.stem == "llama"
    first: Answer | None = None
    for prefix in (unified, plain) if is_unified_name else (plain, unified):
        answer = _ask(prefix, "--help", timeout_s)
        found = help_text.parse_help(answer.stdout)
        if found.is_llama_bench:
            return prefix, answer, found
        first = first or answer
    assert first is not None  # noqa: S101  (the loop runs twice)
    raise BuildError(
        f"{str(binary)!r} is not a llama-bench: {_what_it_said(first)}",
        hint="Name the program `llama-bench` of a llama.cpp build, or the unified `llama`.",
    )


def _ask_version(prefix: tuple[str, ...], found: HelpText, timeout_s: float) -> VersionText:
    answer = _ask_if_known(prefix, "--version", found, timeout_s)
    return help_text.parse_version(answer.stdout + "\n" + answer.stderr if answer else "")


def _ask_if_known(
    prefix: tuple[str, ...], flag: str, found: HelpText, timeout_s: float
) -> Answer | None:
    return _ask(prefix, flag, timeout_s) if flag in found.options else None


def _ask(prefix: tuple[str, ...], flag: str, timeout_s: float) -> Answer:
    binary = prefix[0]
    if not os.access(binary, os.X_OK):
        raise BuildError(
            f"{binary!r} is not executable",
            hint="Make it executable (chmod +x), or name the program itself.",
        )
    try:
        answer = ask([*prefix, flag], timeout_s=timeout_s)
    except OSError as problem:
        raise BuildError(
            f"{binary!r} cannot be started: {problem.strerror}",
            hint="Check that it was built for this machine and system.",
        ) from problem
    said = " ".join([*prefix[1:], flag])
    if answer.is_timeout:
        raise BuildError(
            f"{binary!r} did not answer `{said}` within {timeout_s:g} s and was ended",
            hint="Start it by hand; a GPU driver that hangs often needs a restart of the machine.",
        )
    if answer.is_flood:
        raise BuildError(
            f"{binary!r} printed without end when asked `{said}` and was ended",
            hint="Name the program `llama-bench` of a llama.cpp build.",
        )
    return answer


def _what_it_said(answer: Answer) -> str:
    lines = [line.strip() for line in (answer.stderr + "\n" + answer.stdout).splitlines()]
    line = next((line for line in lines if line), None)
    ending = (
        f"it was ended by signal {-answer.exit_code}"
        if answer.exit_code < 0
        else f"it ended with {answer.exit_code}"
    )
    if line is None:
        return f"asked `--help`, it printed nothing; {ending}"
    printable = "".join(c if c.isprintable() else "�" for c in line[:200])
    return f"asked `--help`, it printed {printable!r}; {ending}"
