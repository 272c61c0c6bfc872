"""Valid random blocks of every ggml type that a model file can hold, reproducible bit for bit.

Values spread like N(0, sigma), scales are normal half floats, quants are uniform. Built from raw bits
and exact arithmetic only, because numpy promises stable bits, not stable distributions. Block layouts
as in `ggml-common.h` of build 11434. Knows no tensors and no files.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from llamasweep.errors import ModelSynthError
from llamasweep.gguf.ggml_types import type_by_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

SMALLEST_NORMAL_HALF = 2.0**-14

_IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_MXFP4_VALUES = (0, 1, 2, 3, 4, 6, 8, 12)


class RandomBits:
    """A stream of random bits that depends on its key alone, on any machine and numpy."""

    def __init__(self, *key: object) -> None:
        digest = hashlib.sha256(repr(key).encode()).digest()
        self._generator = np.random.PCG64(int.from_bytes(digest, "little"))

    def octets(self, n: int) -> Bytes:
        """n uniform bytes."""
        words = self._generator.random_raw(-(-n // 8))
        return words.astype("<u8").view(np.uint8)[:n]

    def below(self, bound: int) -> int:
        """An integer in [0, bound); bound is far below 2^64, so the bias of the remainder is nil."""
        return int(self._generator.random_raw()) % bound

    def normals(self, n: int, sigma: float) -> NDArray[np.float32]:
        """n values of mean 0 and deviation sigma: the sum of four uniform 16-bit numbers, scaled."""
        words = self.octets(8 * n).view("<u2").reshape(n, 4)
        centred: NDArray[np.int64] = 2 * words.sum(axis=1, dtype=np.int64) - 4 * 65_535
        step = sigma / (2 * 65_536 * math.sqrt(4 / 12))
        return np.asarray(centred * step, dtype=np.float32)


class _Source:
    """Columns of bytes for n blocks of one type."""

    def __init__(self, bits: RandomBits, n_blocks: int, sigma: float) -> None:
        self._bits = bits
        self._n = n_blocks
        self.sigma = sigma

    def raw(self, n_bytes: int) -> Bytes:
        return self._bits.octets(self._n * n_bytes).reshape(self._n, n_bytes)

    def constant(self, *values: int) -> Bytes:
        return np.tile(np.array(values, dtype=np.uint8), (self._n, 1))

    def scale(self, spread: float, *, is_signed: bool = True) -> Bytes:
        """Half floats around sigma / spread; a random sign keeps the mean at zero."""
        return _halves(self._scales(spread, is_signed=is_signed))

    def scale_and_offset(self, spread: float, offset: float) -> tuple[Bytes, Bytes]:
        """Positive half floats d around sigma / spread, and offset * d."""
        scales = self._scales(spread, is_signed=False)
        return _halves(scales), _halves(scales.astype(np.float16).astype(np.float64) * offset)

    def trits(self, n_bytes: int) -> Bytes:
        """Bytes of four 2-bit fields that hold 0, 1 or 2."""
        digits = np.arange(81)
        packed = sum((digits // 3**i % 3) << (2 * i) for i in range(4))
        return np.asarray(packed, dtype=np.uint8)[self.raw(n_bytes) % 81]

    def _scales(self, spread: float, *, is_signed: bool) -> NDArray[np.float64]:
        factors = self.raw(2)
        magnitudes = (self.sigma / spread) * (0.75 + factors[:, 0] / 512)
        signs = 1 - 2 * (factors[:, 1] & 1).astype(np.int64) if is_signed else 1
        return magnitudes * signs


def _halves(values: NDArray[np.float64]) -> Bytes:
    return values.astype("<f2").view(np.uint8).reshape(len(values), 2)


def _rms(values: tuple[float, ...] | range) -> float:
    return math.sqrt(sum(v * v for v in values) / len(values))


def _with_bits(octets: Bytes, kept: int, fixed: int) -> Bytes:
    return (octets & np.uint8(kept)) | np.uint8(fixed)


def _doubled(octets: Bytes) -> Bytes:
    """The lower four bits in both halves of each byte."""
    return (octets & np.uint8(15)) * np.uint8(0x11)


def _sub_scales_k4(source: _Source) -> Bytes:
    """Twelve bytes of eight 6-bit scales and the same eight as minima, all of 16 to 31."""
    early = _with_bits(source.raw(4), 0x0F, 0x50)
    late = _doubled(source.raw(4))
    return np.concatenate((early, early, late), axis=1)


def _affine_k(source: _Source, n_levels: int, n_scale_bits: int) -> tuple[Bytes, Bytes]:
    """Super-block scale and minimum for levels 0 … n-1 under sub-scales of half to all their range."""
    centre = (n_levels - 1) / 2
    spread = _rms(tuple(level - centre for level in range(n_levels)))
    sub = _rms(range(2 ** (n_scale_bits - 1), 2**n_scale_bits))
    return source.scale_and_offset(spread * sub, centre)


def _q2_k(source: _Source) -> tuple[Bytes, ...]:
    sub_scales = _doubled(_with_bits(source.raw(16), 7, 8))
    return (sub_scales, source.raw(64), *_affine_k(source, 4, 4))


def _q3_k(source: _Source) -> tuple[Bytes, ...]:
    sub_scales = (_with_bits(source.raw(8), 0x77, 0x88), source.constant(*[0xAA] * 4))
    scale = source.scale(_rms(range(-4, 4)) * _rms(range(8, 16)))
    return (source.raw(32), source.raw(64), *sub_scales, scale)


def _q4_k(source: _Source) -> tuple[Bytes, ...]:
    return (*_affine_k(source, 16, 5), _sub_scales_k4(source), source.raw(128))


def _q5_k(source: _Source) -> tuple[Bytes, ...]:
    return (*_affine_k(source, 32, 5), _sub_scales_k4(source), source.raw(32), source.raw(128))


def _q6_k(source: _Source) -> tuple[Bytes, ...]:
    scale = source.scale(_rms(range(-32, 32)) * _rms(range(8, 16)))
    return (source.raw(128), source.raw(64), _with_bits(source.raw(16), 7, 8), scale)


def _q8_0(source: _Source) -> tuple[Bytes, ...]:
    quants = np.maximum(source.raw(32).view(np.int8), np.int8(-127)).view(np.uint8)
    return (source.scale(_rms(range(-127, 128))), quants)


def _iq4_xs(source: _Source) -> tuple[Bytes, ...]:
    scale = source.scale(_rms(_IQ4_VALUES) * _rms((2, 3)))
    sub_scales = (source.constant(0xAA, 0xAA), _with_bits(source.raw(4), 0x11, 0x22))
    return (scale, *sub_scales, source.raw(128))


def _mxfp4(source: _Source) -> tuple[Bytes, ...]:
    """Scales of 2^k and 2^(k+1), k rounded so that their mean square comes nearest to sigma's."""
    wanted = source.sigma / (_rms(_MXFP4_VALUES) * _rms((1, 2)))
    exponent = 128 + round(math.log2(wanted))
    return (_with_bits(source.raw(1), 1, 0) + np.uint8(exponent), source.raw(16))


def _iq1_m(source: _Source) -> tuple[Bytes, ...]:
    """The half float is spread over the upper four bits of four 16-bit groups of scales."""
    half = source.scale(_rms(range(1, 16, 2))).view("<u2")
    scales = source.raw(8).view("<u2") & 0x0FFF
    nibbles = np.concatenate([(half >> (4 * i)) & 15 for i in range(4)], axis=1)
    return (source.raw(48), (scales | nibbles << 12).astype("<u2").view(np.uint8))


_MAKERS: dict[str, Callable[[_Source], tuple[Bytes, ...]]] = {
    "q1_0": lambda s: (s.scale(1), s.raw(16)),
    "q2_0": lambda s: (s.scale(_rms((-1, 0, 1))), s.trits(16)),
    "q4_0": lambda s: (s.scale(_rms(range(-8, 8))), s.raw(16)),
    "q4_1": lambda s: (*s.scale_and_offset(_rms(range(-8, 8)), -7.5), s.raw(16)),
    "q5_0": lambda s: (s.scale(_rms(range(-16, 16))), s.raw(20)),
    "q5_1": lambda s: (*s.scale_and_offset(_rms(range(-16, 16)), -15.5), s.raw(20)),
    "q8_0": _q8_0,
    "q2_K": _q2_k,
    "q3_K": _q3_k,
    "q4_K": _q4_k,
    "q5_K": _q5_k,
    "q6_K": _q6_k,
    "iq4_nl": lambda s: (s.scale(_rms(_IQ4_VALUES)), s.raw(16)),
    "iq4_xs": _iq4_xs,
    "mxfp4": _mxfp4,
    "tq1_0": lambda s: (s.raw(52), s.scale(_rms((-1, 0, 1)))),
    "tq2_0": lambda s: (s.trits(64), s.scale(_rms((-1, 0, 1)))),
    # Every index into the code books of these is valid; the spreads are those of the books.
    "iq2_xxs": lambda s: (s.scale(60, is_signed=False), s.raw(64)),
    "iq2_xs": lambda s: (s.scale(60, is_signed=False), s.raw(72)),
    "iq2_s": lambda s: (s.scale(60, is_signed=False), s.raw(80)),
    "iq3_xxs": lambda s: (s.scale(120, is_signed=False), s.raw(96)),
    "iq3_s": lambda s: (s.scale(150, is_signed=False), s.raw(108)),
    "iq1_s": lambda s: (s.scale(_rms(range(1, 16, 2))), s.raw(48)),
    "iq1_m": _iq1_m,
}


def random_blocks(kind: str, n_blocks: int, sigma: float, bits: RandomBits) -> Bytes:
    """n_blocks blocks of a type, as bytes of shape (n_blocks, bytes per block).

    Raises ModelSynthError for types that no model file holds (q8_1, i32 …).
    """
    if kind in {"f32", "f16", "bf16"}:
        return _floats(kind, bits.normals(n_blocks, sigma)).reshape(n_blocks, -1)
    maker = _MAKERS.get(kind)
    if maker is None:
        raise ModelSynthError(f"tensors of type {kind} cannot be generated")
    blocks = np.concatenate(maker(_Source(bits, n_blocks, sigma)), axis=1)
    if blocks.shape != (n_blocks, type_by_name(kind).block_bytes):
        raise ModelSynthError(f"blocks of {kind} came out {blocks.shape[1]} bytes long")
    return blocks


def float_bytes(kind: str, values: NDArray[np.float32]) -> Bytes:
    """The values as they stand in a file. kind: f32, f16 or bf16."""
    return _floats(kind, values)


def _floats(kind: str, values: NDArray[np.float32]) -> Bytes:
    if kind == "f32":
        return values.astype("<f4").view(np.uint8)
    if kind == "f16":
        return values.astype("<f2").view(np.uint8)
    words = values.astype("<f4").view("<u4").astype(np.uint64)
    return ((words + 0x8000) >> 16).astype("<u2").view(np.uint8)
