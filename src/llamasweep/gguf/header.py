"""Model files on disk: opens them, finds the other shards, reads their heads, hashes their content.

Never reads the weights, except for the samples that `content_hash` takes. What the bytes mean is
told by `layout`, what the metadata means by `facts`.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from llamasweep.cache import cache_root
from llamasweep.errors import ModelFileError, quoted
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.layout import Layout, read_layout
from llamasweep.gguf.shards import check_shard, check_union, facts_of, n_shards, shard_names

if TYPE_CHECKING:
    import hashlib

_HASH_VERSION = 1
_N_SAMPLES = 256
_SAMPLE_BYTES = 4_096
_SETTLED_AFTER_S = 2.0
"""A file changed within this time may change again without its time stamp telling."""


class Shard(NamedTuple):
    """One file of a model and the layout of its head."""

    path: Path
    n_file_bytes: int
    layout: Layout


def read_model(path: Path) -> ModelFacts:
    """The facts of a model, all shards together.

    path: the file, or the first shard of a split model. Raises ModelFileError with the true reason:
    missing, no GGUF, truncated, corrupt, a shard missing.
    """
    shards = read_shards(path)
    with _named(shards[0].path):
        return facts_of([shard.layout for shard in shards])


def read_shards(path: Path) -> list[Shard]:
    """The shards of a model, one for a file that is not split. Raises ModelFileError."""
    first = _read_shard(path)
    count = n_shards(first.layout)
    if count == 1:
        return [first]
    with _named(path):
        names = shard_names(path.name, first.layout)
    shards = [first]
    for index, name in enumerate(names[1:], start=1):
        other = path.with_name(name)
        if not other.exists():
            raise ModelFileError(
                f"{quoted(str(path))}: shard {index + 1} of {count} is missing: {quoted(name)}",
                hint="Download the missing shard into the same folder.",
            )
        shards.append(_read_shard(other))
        with _named(other):
            check_shard(shards[-1].layout, index)
    with _named(path):
        check_union([shard.layout for shard in shards])
    return shards


def n_file_bytes(path: Path) -> int:
    """Length of the file, all shards of a split model together. Raises ModelFileError."""
    return sum(shard.n_file_bytes for shard in read_shards(path))


def content_hash(path: Path) -> str:
    """32 hex digits that stand for the content: heads, 256 samples of the data, and lengths.

    All shards of a split model. Made once per file and kept in the user's cache under inode, size
    and time of change. Raises ModelFileError.
    """
    shards = read_shards(path)
    entry = _cache_entry(shards)
    if entry is not None:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            kept = entry.read_text(encoding="ascii").strip()
            if re.fullmatch(r"[0-9a-f]{32}", kept):
                return kept
    digest = _blake2b()
    for shard in shards:
        _hash_shard(shard, digest)
    if entry is not None:
        _keep(entry, digest.hexdigest())
    return digest.hexdigest()


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the file's name before the message of a ModelFileError."""
    try:
        yield
    except ModelFileError as problem:
        raise ModelFileError(
            f"{quoted(str(path), max_characters=400)}: {problem.message}", hint=problem.hint
        ) from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its length. What cannot be read is a ModelFileError that says why."""
    if "\0" in str(path):
        raise ModelFileError("a path cannot hold a NUL character")
    try:
        # A pipe or a device would block or never end; the kind is checked before opening.
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a directory" if path.is_dir() else "not a regular file"
            raise ModelFileError(f"this is {kind}, not a model file")
        with path.open("rb", buffering=0) as file:
            yield file, os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise ModelFileError("there is no such file") from None
    except PermissionError:
        raise ModelFileError("the file may not be read (permission denied)") from None
    except OSError as problem:
        raise ModelFileError(f"cannot be read: {problem.strerror or problem}") from None


def _read_shard(path: Path) -> Shard:
    with _named(path), _opened(path) as (file, length):
        return Shard(path=path, n_file_bytes=length, layout=read_layout(file, length))


def _blake2b() -> hashlib.blake2b:
    import hashlib  # noqa: PLC0415  (brings OpenSSL; reading a head needs none)

    return hashlib.blake2b(digest_size=16)


def _hash_shard(shard: Shard, digest: hashlib.blake2b) -> None:
    digest.update(f"{_HASH_VERSION}:{shard.n_file_bytes}:{shard.layout.data_start}\n".encode())
    with _named(shard.path), _opened(shard.path) as (file, _):
        left = shard.layout.header_bytes
        while left > 0:
            block = file.read(min(left, 2**20))
            if not block:
                raise ModelFileError("the file became shorter while it was read")
            digest.update(block)
            left -= len(block)
        for start in sample_starts(shard.layout.data_start, shard.n_file_bytes):
            file.seek(start)
            digest.update(file.read(_SAMPLE_BYTES))


def sample_starts(data_start: int, n_bytes: int) -> list[int]:
    """Where the samples begin: evenly spread over the data, first and last bytes included."""
    last = n_bytes - _SAMPLE_BYTES
    if last <= data_start:
        return [data_start] if data_start < n_bytes else []
    n_blocks = -(-(n_bytes - data_start) // _SAMPLE_BYTES)
    n = min(_N_SAMPLES, n_blocks)
    return [data_start + (last - data_start) * i // (n - 1) for i in range(n)]


def _cache_entry(shards: list[Shard]) -> Path | None:
    """Where the hash of exactly these files is kept, None where that would not be safe."""
    identity = [f"v{_HASH_VERSION}"]
    for shard in shards:
        try:
            about = shard.path.stat()
        except OSError:
            return None
        if about.st_ino == 0 or time.time() - about.st_mtime < _SETTLED_AFTER_S:
            return None
        identity.append(f"{about.st_dev}:{about.st_ino}:{about.st_size}:{about.st_mtime_ns}")
    digest = _blake2b()
    digest.update("\n".join(identity).encode())
    name = digest.hexdigest()
    return cache_root() / "model_hashes" / name


def _keep(entry: Path, text: str) -> None:
    """Write the entry whole or not at all; a cache that cannot be written is no error."""
    import tempfile  # noqa: PLC0415  (brings a dozen modules; reading a head needs none)

    with contextlib.suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=entry.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(text + "\n")
            Path(temporary).replace(entry)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
