"""Writes a model of a known shape with random weights, streaming, never leaving half a file.

Weights are cut from a few megabytes of valid random blocks per type, each cut from a place of its own,
so writing is as fast as the disk and memory stays small. Knows no cache and no engine.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from llamasweep.errors import ModelSynthError
from llamasweep.gguf.facts import TensorInfo
from llamasweep.gguf.ggml_types import type_by_name
from llamasweep.gguf.mixture import canonical_quant
from llamasweep.gguf.shapes import planned_metadata, planned_tensors, read_shape
from llamasweep.gguf.vocabulary import N_SILENT, vocabulary_metadata

if TYPE_CHECKING:
    from llamasweep.gguf.blocks import RandomBits

Progress = Callable[[int, int], None]
"""Called with bytes written and bytes in all."""

FORMAT = 1
"""Raised whenever the same shape, quantisation and seed give other bytes."""

PARTIAL_SUFFIX = ".partial"
_ALIGNMENT = 32
_POOL_BYTES = 8 * 2**20
_SPARE_BYTES = 64 * 2**20
"""Left free on the disk beyond the file itself."""

_SIGMA = 0.02
_EMBEDDING_SIGMA = 1.0
"""With smaller embeddings all tokens look alike to a router and most experts are never used."""

_TIED_LOGIT_SPREAD = 2.0
_FINAL_NORMS = frozenset({"output_norm.weight", "token_embd_norm.weight"})
_ONES = ("norm", "rope_freqs", "layer_output_scale", "altup_correct_scale")
_ZEROS = ("exp_probs_b.bias", "norm.bias")


def write_model(
    shape: str,
    quant: str,
    path: Path,
    *,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> None:
    """Write the model to path; the same shape, quant and seed always give the same bytes.

    Raises ModelSynthError for an unknown shape or quantisation, and where the disk has no room or
    refuses. The file appears under its name only when it is whole and on the disk.
    """
    tensors = planned_tensors(shape, quant)
    head = encode_head(_metadata(shape, quant, seed), tensors)
    n_bytes = len(head) + sum(_padded(t.n_bytes) for t in tensors)
    path = path.absolute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _require_room(path.parent, n_bytes)
        with _whole_or_nothing(path) as file:
            file.write(head)
            _write_tensors(file, tensors, seed, _counted(on_progress, len(head), n_bytes))
    except OSError as error:
        reason = "no room on the disk" if error.errno == errno.ENOSPC else str(error)
        raise ModelSynthError(f"cannot write {path}: {reason}") from error


def planned_file_bytes(shape: str, quant: str, *, seed: int = 0) -> int:
    """Bytes that `write_model` would write."""
    tensors = planned_tensors(shape, quant)
    head = encode_head(_metadata(shape, quant, seed), tensors)
    return len(head) + sum(_padded(t.n_bytes) for t in tensors)


def encode_head(metadata: Mapping[str, object], tensors: Sequence[TensorInfo]) -> bytes:
    """The head of a GGUF file (version 3), padded to where the tensor data begins."""
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, value in metadata.items():
        parts += (_text(key), _typed(value))
    offset = 0
    for tensor in tensors:
        type_id = type_by_name(tensor.ggml_type).type_id
        n_dims = len(tensor.ne)
        parts.append(_text(tensor.name))
        parts.append(struct.pack(f"<I{n_dims}QIQ", n_dims, *tensor.ne, type_id, offset))
        offset += _padded(tensor.n_bytes)
    head = b"".join(parts)
    return head.ljust(_padded(len(head)), b"\0")


def _metadata(shape: str, quant: str, seed: int) -> dict[str, object]:
    if not 0 <= seed < 2**64:
        raise ModelSynthError(f"seed {seed} is not in 0 … 2^64 - 1")
    return {
        **planned_metadata(shape, quant),
        "general.description": "random weights of a known shape, written by llamasweep",
        "general.alignment": _ALIGNMENT,
        "llamasweep.shape": read_shape(shape).name,
        "llamasweep.quant": canonical_quant(quant),
        "llamasweep.seed": str(seed),
        "llamasweep.format": FORMAT,
        **vocabulary_metadata(read_shape(shape).n_vocab),
    }


def _require_room(folder: Path, n_bytes: int) -> None:
    n_free = shutil.disk_usage(folder).free
    if n_free < n_bytes + _SPARE_BYTES:
        raise ModelSynthError(
            f"the model takes {n_bytes / 2**30:.2f} GiB and {folder} has {n_free / 2**30:.2f} GiB free",
            hint="Free some space, or choose a smaller shape or quantisation.",
        )


@contextlib.contextmanager
def _whole_or_nothing(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when everything is written and fsynced, and vanishes otherwise.

    The fsync also keeps the kernel from writing gigabytes back while something is being measured. A link stays and
    leads to the file; what is there and is no regular file is written to, never replaced.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL_SUFFIX
    )
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o644)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _counted(on_progress: Progress | None, n_done: int, n_all: int) -> Callable[[int], None]:
    def count(n_bytes: int) -> None:
        nonlocal n_done
        n_done += n_bytes
        if on_progress is not None:
            on_progress(n_done, n_all)

    return count


def _write_tensors(
    file: BinaryIO, tensors: Sequence[TensorInfo], seed: int, count: Callable[[int], None]
) -> None:
    is_tied = all(t.name != "output.weight" for t in tensors)
    head_name = "token_embd.weight" if is_tied else "output.weight"
    pools: dict[tuple[str, float], memoryview] = {}
    for tensor in tensors:
        n_silent_bytes = 0
        if tensor.name == head_name:
            n_silent_bytes = N_SILENT * (tensor.n_bytes // tensor.ne[1])
            file.write(bytes(n_silent_bytes))
        n_left = tensor.n_bytes - n_silent_bytes
        for chunk in _chunks(tensor, n_left, seed, pools, is_tied=is_tied):
            file.write(chunk)
            count(len(chunk))
        n_padding = _padded(tensor.n_bytes) - tensor.n_bytes
        file.write(bytes(n_padding))
        count(n_silent_bytes + n_padding)


def _chunks(
    tensor: TensorInfo,
    n_bytes: int,
    seed: int,
    pools: dict[tuple[str, float], memoryview],
    *,
    is_tied: bool,
) -> Iterator[memoryview]:
    """Pieces of a pool, each from a random block on, until n_bytes are there."""
    from llamasweep.gguf.blocks import RandomBits  # noqa: PLC0415  (numpy only when writing)

    bits = RandomBits(FORMAT, seed, tensor.name)
    special = _special_values(tensor, bits, is_tied=is_tied)
    if special is not None:
        yield special
        return
    sigma = _EMBEDDING_SIGMA if tensor.name == "token_embd.weight" else _SIGMA
    pool = _pool(tensor.ggml_type, sigma, seed, pools)
    n_block_bytes = type_by_name(tensor.ggml_type).block_bytes
    while n_bytes:
        start = bits.below(len(pool) // n_block_bytes) * n_block_bytes
        piece = pool[start : start + n_bytes]
        yield piece
        n_bytes -= len(piece)


def _pool(
    kind: str, sigma: float, seed: int, pools: dict[tuple[str, float], memoryview]
) -> memoryview:
    from llamasweep.gguf.blocks import RandomBits, random_blocks  # noqa: PLC0415

    key = (kind, sigma)
    if key not in pools:
        n_blocks = _POOL_BYTES // type_by_name(kind).block_bytes
        blocks = random_blocks(kind, n_blocks, sigma, RandomBits(FORMAT, seed, *key))
        pools[key] = memoryview(blocks.tobytes())
    return pools[key]


def _special_values(tensor: TensorInfo, bits: RandomBits, *, is_tied: bool) -> memoryview | None:
    """The bytes of tensors that are not just noise: norms, decays, corrections. None for the rest."""
    import numpy as np  # noqa: PLC0415

    from llamasweep.gguf.blocks import float_bytes  # noqa: PLC0415

    if type_by_name(tensor.ggml_type).is_quantized:
        return None
    n = tensor.n_bytes // type_by_name(tensor.ggml_type).block_bytes
    role = _role(tensor.name, is_tied=is_tied)
    if role == "noise":
        return None
    values = np.full(n, 1.0 if role != "zeros" else 0.0, dtype=np.float32)
    if role == "signs":
        # A tied head would otherwise answer every token with itself, and always with the same one.
        signs = (bits.octets(n) & 1).astype(np.float32) * 2 - 1
        values = signs * np.float32(_TIED_LOGIT_SPREAD / n**0.5)
    elif role == "decay":
        values = -np.abs(bits.normals(n, 0.25) + 1) - np.float32(0.01)
    return memoryview(float_bytes(tensor.ggml_type, values).tobytes())


def _role(name: str, *, is_tied: bool) -> str:
    if name in _FINAL_NORMS and is_tied:
        return "signs"
    if name.endswith("ssm_a"):
        return "decay"
    if any(part in name for part in _ZEROS):
        return "zeros"
    if name.endswith(".ssm_d") or any(part in name for part in _ONES):
        return "ones"
    return "noise"


def _padded(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGNMENT) * _ALIGNMENT


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _typed(value: object) -> bytes:
    """A value as GGUF writes it: its type, then itself."""
    if isinstance(value, list):
        return struct.pack("<I", 9) + _array(value)
    type_id, body = _scalar(value)
    return struct.pack("<I", type_id) + body


def _scalar(value: object) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, _text(value)
    raise ModelSynthError(f"metadata of type {type(value).__name__} cannot be written")


def _array(values: Sequence[object]) -> bytes:
    """Arrays of numbers are signed, as llama.cpp's converter writes them."""
    if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return struct.pack(f"<IQ{len(values)}i", 5, len(values), *values)
    encoded = [_scalar(v) for v in values]
    type_id = encoded[0][0]
    return struct.pack("<IQ", type_id, len(values)) + b"".join(body for _, body in encoded)
