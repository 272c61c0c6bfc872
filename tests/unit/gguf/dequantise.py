"""Slow and obvious dequantisation of one block, to check blocks that the writer makes."""

from __future__ import annotations

import struct
from collections.abc import Callable

IQ4_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
MXFP4_VALUES = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)


def half(octets: bytes) -> float:
    value: float = struct.unpack("<e", octets)[0]
    return value


def _nibbles(octets: bytes) -> list[int]:
    return [b & 15 for b in octets] + [b >> 4 for b in octets]


def _bit(octets: bytes, i: int) -> int:
    return octets[i // 8] >> (i % 8) & 1


def _two_bits(octets: bytes, i: int) -> int:
    """Element i of a 256-element block: 128 elements per 32 bytes, two bits per plane."""
    return octets[32 * (i // 128) + i % 32] >> (2 * (i % 128 // 32)) & 3


def q1_0(block: bytes) -> list[float]:
    return [half(block[:2]) * (1 if _bit(block[2:], i) else -1) for i in range(128)]


def q2_0(block: bytes) -> list[float]:
    d = half(block[:2])
    return [d * ((block[2 + i // 4] >> (2 * (i % 4)) & 3) - 1) for i in range(64)]


def q4_0(block: bytes) -> list[float]:
    return [half(block[:2]) * (q - 8) for q in _nibbles(block[2:])]


def q4_1(block: bytes) -> list[float]:
    return [half(block[:2]) * q + half(block[2:4]) for q in _nibbles(block[4:])]


def q5_0(block: bytes) -> list[float]:
    fifth = [_bit(block[2:6], i) for i in range(32)]
    return [
        half(block[:2]) * (q + 16 * b - 16) for q, b in zip(_nibbles(block[6:]), fifth, strict=True)
    ]


def q5_1(block: bytes) -> list[float]:
    d, m = half(block[:2]), half(block[2:4])
    fifth = [_bit(block[4:8], i) for i in range(32)]
    return [d * (q + 16 * b) + m for q, b in zip(_nibbles(block[8:]), fifth, strict=True)]


def q8_0(block: bytes) -> list[float]:
    return [half(block[:2]) * q for q in struct.unpack("32b", block[2:])]


def q2_k(block: bytes) -> list[float]:
    scales, quants, d, dmin = block[:16], block[16:80], half(block[80:82]), half(block[82:84])
    return [
        d * (scales[i // 16] & 15) * _two_bits(quants, i) - dmin * (scales[i // 16] >> 4)
        for i in range(256)
    ]


def q3_k(block: bytes) -> list[float]:
    mask, quants, packed, d = block[:32], block[32:96], block[96:108], half(block[108:])
    low = [packed[i] & 15 for i in range(8)] + [packed[i] >> 4 for i in range(8)]
    high = [packed[8 + i % 4] >> (2 * (i // 4)) & 3 for i in range(16)]
    values = []
    for i in range(256):
        scale = (low[i // 16] | high[i // 16] << 4) - 32
        is_high = mask[i % 32] >> (i // 32) & 1
        values.append(d * scale * (_two_bits(quants, i) - (0 if is_high else 4)))
    return values


def _k4_scales(packed: bytes) -> list[tuple[int, int]]:
    pairs = [(packed[j] & 63, packed[j + 4] & 63) for j in range(4)]
    for j in range(4, 8):
        scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4
        minimum = packed[j + 4] >> 4 | (packed[j] >> 6) << 4
        pairs.append((scale, minimum))
    return pairs


def _k4_value(block: bytes, i: int, quant: int) -> float:
    scale, minimum = _k4_scales(block[4:16])[i // 32]
    return half(block[:2]) * scale * quant - half(block[2:4]) * minimum


def _k4_nibble(quants: bytes, i: int) -> int:
    return quants[32 * (i // 64) + i % 32] >> (4 * (i % 64 // 32)) & 15


def q4_k(block: bytes) -> list[float]:
    return [_k4_value(block, i, _k4_nibble(block[16:], i)) for i in range(256)]


def q5_k(block: bytes) -> list[float]:
    fifth = block[16:48]
    return [
        _k4_value(block, i, _k4_nibble(block[48:], i) + 16 * (fifth[i % 32] >> (i // 32) & 1))
        for i in range(256)
    ]


def q6_k(block: bytes) -> list[float]:
    low, high, d = block[:128], block[128:192], half(block[208:])
    scales = struct.unpack("16b", block[192:208])
    values = []
    for i in range(256):
        upper, within = divmod(i, 128)
        nibble = low[64 * upper + within % 64] >> (4 * (within // 64)) & 15
        quant = nibble | (high[32 * upper + within % 32] >> (2 * (within // 32)) & 3) << 4
        values.append(d * scales[i // 16] * (quant - 32))
    return values


def iq4_nl(block: bytes) -> list[float]:
    return [half(block[:2]) * IQ4_VALUES[q] for q in _nibbles(block[2:])]


def iq4_xs(block: bytes) -> list[float]:
    d, high = half(block[:2]), struct.unpack("<H", block[2:4])[0]
    values = []
    for group in range(8):
        low = block[4 + group // 2] >> (4 * (group % 2)) & 15
        scale = (low | (high >> (2 * group) & 3) << 4) - 32
        quants = _nibbles(block[8 + 16 * group : 24 + 16 * group])
        values += [d * scale * IQ4_VALUES[q] for q in quants]
    return values


def mxfp4(block: bytes) -> list[float]:
    return [2.0 ** (block[0] - 128) * MXFP4_VALUES[q] for q in _nibbles(block[1:])]


def tq1_0(block: bytes) -> list[float]:
    d = half(block[52:])
    trits = [
        ((octet * 3**power & 255) * 3 >> 8) - 1
        for octets, n_powers in ((block[:48], 5), (block[48:52], 4))
        for power in range(n_powers)
        for octet in octets
    ]
    return [d * trit for trit in trits]


def tq2_0(block: bytes) -> list[float]:
    return [half(block[64:]) * (_two_bits(block, i) - 1) for i in range(256)]


BLOCKS: dict[str, Callable[[bytes], list[float]]] = {
    "q1_0": q1_0,
    "q2_0": q2_0,
    "q4_0": q4_0,
    "q4_1": q4_1,
    "q5_0": q5_0,
    "q5_1": q5_1,
    "q8_0": q8_0,
    "q2_K": q2_k,
    "q3_K": q3_k,
    "q4_K": q4_k,
    "q5_K": q5_k,
    "q6_K": q6_k,
    "iq4_nl": iq4_nl,
    "iq4_xs": iq4_xs,
    "mxfp4": mxfp4,
    "tq1_0": tq1_0,
    "tq2_0": tq2_0,
}
"""Types whose values need no code book."""

SCALE_AT = {"iq2_xxs": 0, "iq2_xs": 0, "iq2_s": 0, "iq3_xxs": 0, "iq3_s": 0, "iq1_s": 0}
"""Where the scale of the types with code books stands; of iq1_m see `iq1_m_scale`."""


def iq1_m_scale(block: bytes) -> float:
    words = struct.unpack("<4H", block[48:56])
    bits = sum((word >> 12) << (4 * i) for i, word in enumerate(words))
    return half(struct.pack("<H", bits))
