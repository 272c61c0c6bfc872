"""The layout of one GGUF file: bytes in, metadata and tensor list out, always bounded.

Is handed an open stream and its length; opens nothing, reads no weights, and builds no vocabulary.
Every refusal is a ModelFileError that names what is wrong. Layout as in ggml's `docs/gguf.md` and
`gguf.cpp` of build 11434.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple

from llamasweep.errors import ModelFileError, quoted
from llamasweep.gguf.ggml_types import tensor_bytes, type_by_id

MAX_HEADER_BYTES = 256 * 2**20
MAX_KEYS = 65_536
MAX_TENSORS = 262_144
MAX_VOCABULARY_STRINGS = 4_000_000
MAX_KEY_BYTES = 4_096
MAX_TENSOR_NAME_BYTES = 63
MAX_KEPT_STRING_BYTES = 65_536
MAX_KEPT_ARRAY_LENGTH = 4_096
MAX_KEPT_BYTES = 8 * 2**20
"""Far above any real model, and so low that a hostile file costs a second and some megabytes."""

_WINDOW_BYTES = 512 * 1024
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")

_STRING, _ARRAY = 8, 9
_SCALARS: dict[int, struct.Struct] = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: _U32,
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: _U64,
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}

_OTHER_FORMATS: tuple[tuple[bytes, str], ...] = (
    (b"lmgg", "an old ggml file"),
    (b"tjgg", "an old ggjt file"),
    (b"fmgg", "an old ggmf file"),
    (b"FUGG", "a GGUF file with its magic reversed"),
    (b"PK\x03\x04", "a zip archive, such as a PyTorch checkpoint"),
    (b"vers", "a Git LFS pointer, not the model itself"),
    (b"<!DO", "a web page, not the model itself"),
    (b"<htm", "a web page, not the model itself"),
)


class TensorPlace(NamedTuple):
    """A tensor and where it lies. ne: contiguous dimension first. start: byte in the file."""

    name: str
    ne: tuple[int, ...]
    ggml_type: str
    n_bytes: int
    start: int


class Layout(NamedTuple):
    """What the head of one file says.

    metadata: scalars, strings up to 64 KiB, and arrays of numbers up to 4,096 long (as tuples).
    array_lengths: of every array, vocabularies included. header_bytes: length of the head before
    its padding. data_start: byte at which the tensor data begins.
    """

    version: int
    metadata: dict[str, object]
    array_lengths: dict[str, int]
    tensors: tuple[TensorPlace, ...]
    alignment: int
    header_bytes: int
    data_start: int


class Window:
    """A window that slides forward over the head of a file; memory stays at one window.

    Raises ModelFileError where something reaches beyond the file or beyond MAX_HEADER_BYTES.
    """

    def __init__(self, stream: BinaryIO, n_file_bytes: int) -> None:
        self._stream = stream
        self._end = min(n_file_bytes, MAX_HEADER_BYTES)
        self._n_file_bytes = n_file_bytes
        self._start = 0
        self._buffer = b""
        self._at = 0

    @property
    def position(self) -> int:
        """Byte in the file that is read next."""
        return self._start + self._at

    def _check(self, position: int, what: str) -> None:
        if position <= self._end:
            return
        if position > self._n_file_bytes:
            raise ModelFileError(
                f"{what} reaches beyond the end of the file "
                f"({self._n_file_bytes} bytes): the header is truncated or corrupt"
            )
        raise ModelFileError(
            f"{what} reaches beyond {MAX_HEADER_BYTES // 2**20} MiB: no real header is so long"
        )

    def _seek(self, position: int) -> None:
        offset = position - self._start
        if 0 <= offset <= len(self._buffer):
            self._at = offset
            return
        self._start, self._buffer, self._at = position, b"", 0

    def take(self, n_bytes: int, what: str) -> bytes:
        """The next n_bytes; `what` names them in an error."""
        self._check(self.position + n_bytes, what)
        if len(self._buffer) - self._at < n_bytes:
            self._fill(n_bytes, what)
        taken = self._buffer[self._at : self._at + n_bytes]
        self._at += n_bytes
        return taken

    def _fill(self, n_bytes: int, what: str) -> None:
        self._start = self.position
        self._at = 0
        self._stream.seek(self._start)
        self._buffer = self._stream.read(max(n_bytes, _WINDOW_BYTES))
        if len(self._buffer) < n_bytes:
            raise ModelFileError(f"{what} could not be read: the file became shorter meanwhile")

    def skip(self, n_bytes: int, what: str) -> None:
        """Move on without reading."""
        position = self.position + n_bytes
        self._check(position, what)
        self._seek(position)

    def u32(self, what: str) -> int:
        """An unsigned 32-bit number."""
        value: int = _U32.unpack(self.take(4, what))[0]
        return value

    def u64(self, what: str) -> int:
        """An unsigned 64-bit number."""
        value: int = _U64.unpack(self.take(8, what))[0]
        return value

    def text(self, what: str, *, max_bytes: int) -> str:
        """A string with its length before it; what is not UTF-8 is replaced."""
        n_bytes = self.u64(f"the length of {what}")
        if n_bytes > max_bytes:
            raise ModelFileError(f"{what} is {n_bytes} bytes long; {max_bytes} is the most allowed")
        return self.take(n_bytes, what).decode("utf-8", errors="replace")

    def skip_strings(self, count: int, what: str) -> None:
        """Pass over `count` strings, touching only their lengths."""
        unpack = _U64.unpack_from
        while count:
            self._check(self.position + 8, what)
            if len(self._buffer) - self._at < 8:
                self._fill(8, what)
            buffer, at, n_passed = self._buffer, self._at, 0
            try:
                for n_passed in range(count):  # noqa: B007  (what it is when a length leads out)
                    at += 8 + unpack(buffer, at)[0]
                n_passed = count
            except (struct.error, OverflowError):
                pass  # the window ends here, or a length points far outside: `skip` decides
            count -= n_passed
            self.skip(at - self._at, what)


def read_layout(stream: BinaryIO, n_file_bytes: int) -> Layout:
    """The layout of a GGUF file of n_file_bytes. Raises ModelFileError with the reason."""
    window = Window(stream, n_file_bytes)
    version = _read_version(window, n_file_bytes)
    n_tensors = _bounded_count(window, "tensors", MAX_TENSORS)
    n_keys = _bounded_count(window, "metadata keys", MAX_KEYS)
    metadata, array_lengths = _read_metadata(window, n_keys)
    alignment = _alignment(metadata)
    infos = [_read_tensor_info(window, index) for index in range(n_tensors)]
    data_start = -(-window.position // alignment) * alignment
    tensors = _placed(infos, data_start=data_start, alignment=alignment, n_file_bytes=n_file_bytes)
    return Layout(
        version=version,
        metadata=metadata,
        array_lengths=array_lengths,
        tensors=tensors,
        alignment=alignment,
        header_bytes=window.position,
        data_start=data_start,
    )


def _read_version(window: Window, n_file_bytes: int) -> int:
    if n_file_bytes < 24:
        raise ModelFileError(f"not a GGUF file: only {n_file_bytes} bytes long")
    magic = window.take(4, "the magic")
    if magic != b"GGUF":
        known = dict(_OTHER_FORMATS).get(magic)
        raise ModelFileError(
            f"not a GGUF file: it begins with {magic!r}" + (f" ({known})" if known else "")
        )
    version = window.u32("the version")
    if version in (2, 3):
        return version
    if version == 1:
        raise ModelFileError("GGUF version 1 is no longer supported; convert the model again")
    if version & 0xFFFF == 0:
        raise ModelFileError("a big-endian GGUF file; llama.cpp cannot read it on this machine")
    raise ModelFileError(f"GGUF version {version} is not known here; versions 2 and 3 are")


def _bounded_count(window: Window, what: str, most: int) -> int:
    count = window.u64(f"the number of {what}")
    if count > most:
        raise ModelFileError(f"claims {count} {what}; {most} is the most allowed")
    return count


def _read_metadata(window: Window, n_keys: int) -> tuple[dict[str, object], dict[str, int]]:
    metadata: dict[str, object] = {}
    array_lengths: dict[str, int] = {}
    seen: set[str] = set()
    n_kept_bytes = 0
    for index in range(n_keys):
        key = window.text(f"metadata key {index}", max_bytes=MAX_KEY_BYTES)
        if not key:
            raise ModelFileError(f"metadata key {index} is empty")
        if key in seen:
            raise ModelFileError(f"metadata key {quoted(key)} appears twice")
        seen.add(key)
        what = f"the value of {quoted(key)}"
        value_type = window.u32(what)
        before = window.position
        if value_type == _ARRAY:
            length, value = _read_array(window, what)
            array_lengths[key] = length
        else:
            value = _read_scalar(window, value_type, what)
        if value is not None:
            metadata[key] = value
            n_kept_bytes += window.position - before
        if n_kept_bytes > MAX_KEPT_BYTES:
            raise ModelFileError(f"more than {MAX_KEPT_BYTES // 2**20} MiB of metadata values")
    return metadata, array_lengths


def _read_scalar(window: Window, value_type: int, what: str) -> object:
    if value_type == _STRING:
        n_bytes = window.u64(what)
        if n_bytes > MAX_KEPT_STRING_BYTES:
            window.skip(n_bytes, what)
            return None
        return window.take(n_bytes, what).decode("utf-8", errors="replace")
    scalar = _SCALARS.get(value_type)
    if scalar is None:
        raise ModelFileError(f"{what} has the invalid type {value_type}")
    value: object = scalar.unpack(window.take(scalar.size, what))[0]
    return value


def _read_array(window: Window, what: str) -> tuple[int, object]:
    element_type = window.u32(what)
    count = window.u64(what)
    if element_type == _STRING:
        if count > MAX_VOCABULARY_STRINGS:
            raise ModelFileError(
                f"{what} claims {count} strings; {MAX_VOCABULARY_STRINGS} is the most allowed"
            )
        window.skip_strings(count, what)
        return count, None
    scalar = _SCALARS.get(element_type)
    if scalar is None:
        raise ModelFileError(f"{what} is an array of the invalid type {element_type}")
    if count > MAX_KEPT_ARRAY_LENGTH:
        window.skip(count * scalar.size, what)
        return count, None
    data = window.take(count * scalar.size, what)
    return count, tuple(entry for (entry,) in scalar.iter_unpack(data))


def _alignment(metadata: dict[str, object]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or isinstance(alignment, bool):
        raise ModelFileError("general.alignment is not a number")
    if not 0 < alignment < 2**32 or alignment & (alignment - 1):
        raise ModelFileError(f"general.alignment is {alignment}, not a power of two")
    return alignment


def _read_tensor_info(window: Window, index: int) -> TensorPlace:
    name = window.text(f"the name of tensor {index}", max_bytes=MAX_TENSOR_NAME_BYTES)
    what = f"tensor {quoted(name)}"
    n_dims = window.u32(what)
    if n_dims > 4:
        raise ModelFileError(f"{what} has {n_dims} dimensions; 4 is the most allowed")
    ne: tuple[int, ...] = struct.unpack(f"<{n_dims}Q", window.take(8 * n_dims, what))
    if max(ne, default=0) >= 2**63 or math.prod(max(n, 1) for n in ne) >= 2**63:
        raise ModelFileError(f"{what} has the impossible shape {ne}")
    type_id = window.u32(what)
    try:
        ggml_type = type_by_id(type_id).name
        n_bytes = tensor_bytes(ggml_type, ne)
    except ModelFileError as problem:
        raise ModelFileError(f"{what}: {problem.message}", hint=problem.hint) from None
    start = window.u64(what)
    return TensorPlace(name=name, ne=ne, ggml_type=ggml_type, n_bytes=n_bytes, start=start)


def _placed(
    infos: Sequence[TensorPlace], *, data_start: int, alignment: int, n_file_bytes: int
) -> tuple[TensorPlace, ...]:
    """The tensors with their place in the file, after checking that none lies wrong."""
    names: set[str] = set()
    for info in infos:
        if info.name in names:
            raise ModelFileError(f"tensor {quoted(info.name)} appears twice")
        names.add(info.name)
        if info.start % alignment:
            raise ModelFileError(
                f"tensor {quoted(info.name)} lies at offset {info.start}, "
                f"which is not a multiple of the alignment {alignment}"
            )
    _check_no_overlap(infos)
    for info in infos:
        end = data_start + info.start + info.n_bytes
        if end > n_file_bytes:
            raise ModelFileError(
                f"tensor {quoted(info.name)} ends at byte {end} but the file has only "
                f"{n_file_bytes} bytes: it is truncated",
                hint="Finish or repeat the download of the file.",
            )
    return tuple(
        TensorPlace(
            name=info.name,
            ne=info.ne,
            ggml_type=info.ggml_type,
            n_bytes=info.n_bytes,
            start=data_start + info.start,
        )
        for info in infos
    )


def _check_no_overlap(infos: Sequence[TensorPlace]) -> None:
    before: TensorPlace | None = None
    for info in sorted((i for i in infos if i.n_bytes), key=lambda i: i.start):
        if before is not None and before.start + before.n_bytes > info.start:
            raise ModelFileError(
                f"tensors {quoted(before.name)} and {quoted(info.name)} overlap in the file"
            )
        before = info
