"""Random blocks are valid: finite, no denormals, spread as asked, the same bits every time."""

from __future__ import annotations

import hashlib
import math
import struct

import numpy as np
import pytest
from tests.unit.gguf import dequantise

from llamasweep.errors import ModelSynthError
from llamasweep.gguf.blocks import SMALLEST_NORMAL_HALF, RandomBits, float_bytes, random_blocks
from llamasweep.gguf.ggml_types import type_by_name

SMALLEST_NORMAL_FLOAT = 2.0**-126
N_ELEMENTS = 4096
PINNED = "5b18a17337b34e02e0126b9c53a4b99a65e7b9307171afca3625efb2a95763a9"


def _values(kind: str, sigma: float) -> list[float]:
    n_blocks = N_ELEMENTS // type_by_name(kind).block_elements
    blocks = random_blocks(kind, n_blocks, sigma, RandomBits("test", kind, sigma))
    return [v for block in blocks for v in dequantise.BLOCKS[kind](block.tobytes())]


@pytest.mark.parametrize("sigma", [0.02, 1.0])
@pytest.mark.parametrize("kind", dequantise.BLOCKS)
def test_dequantised_values_are_finite_normal_and_spread_as_asked(kind: str, sigma: float) -> None:
    values = _values(kind, sigma)

    assert all(math.isfinite(v) for v in values)
    assert all(v == 0 or abs(v) >= SMALLEST_NORMAL_FLOAT for v in values)
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    assert abs(mean) < 0.12 * sigma
    assert 0.75 * sigma < deviation < 1.3 * sigma


@pytest.mark.parametrize("kind", [*dequantise.SCALE_AT, "iq1_m"])
def test_scales_of_types_with_code_books_are_normal_half_floats(kind: str) -> None:
    blocks = random_blocks(kind, 500, 0.02, RandomBits("test", kind))

    at = dequantise.SCALE_AT.get(kind)
    octets = [block.tobytes() for block in blocks]
    scales = [
        dequantise.iq1_m_scale(o) if at is None else dequantise.half(o[at : at + 2]) for o in octets
    ]
    assert all(SMALLEST_NORMAL_HALF <= abs(s) < 0.1 for s in scales)


@pytest.mark.parametrize("kind", [*dequantise.BLOCKS, *dequantise.SCALE_AT, "iq1_m"])
def test_blocks_have_the_size_of_their_type(kind: str) -> None:
    blocks = random_blocks(kind, 3, 0.02, RandomBits(kind))

    assert blocks.shape == (3, type_by_name(kind).block_bytes)


@pytest.mark.parametrize(("kind", "size"), [("f32", 4), ("f16", 2), ("bf16", 2)])
def test_floats_are_normal_with_the_deviation_asked_for(kind: str, size: int) -> None:
    octets = random_blocks(kind, 20_000, 0.02, RandomBits("floats", kind)).tobytes()

    assert len(octets) == 20_000 * size
    if kind == "bf16":
        octets = b"".join(b"\0\0" + octets[i : i + 2] for i in range(0, len(octets), 2))
    values = np.frombuffer(octets, dtype="<f2" if kind == "f16" else "<f4").astype(np.float64)
    assert abs(values.mean()) < 0.001
    assert values.std() == pytest.approx(0.02, rel=0.02)


def test_bf16_rounds_to_the_nearest() -> None:
    octets = float_bytes("bf16", np.array([1.0, -2.0, 1.00390625], dtype=np.float32)).tobytes()

    assert struct.unpack("<3H", octets) == (0x3F80, 0xC000, 0x3F81)


def test_the_bits_depend_on_the_key_alone() -> None:
    first = random_blocks("q4_K", 1000, 0.02, RandomBits(1, 0, "q4_K", 0.02)).tobytes()
    second = random_blocks("q4_K", 1000, 0.02, RandomBits(1, 0, "q4_K", 0.02)).tobytes()
    other = random_blocks("q4_K", 1000, 0.02, RandomBits(1, 1, "q4_K", 0.02)).tobytes()

    assert first == second
    assert first != other


def test_the_bits_are_those_of_every_other_machine() -> None:
    made = b"".join(
        random_blocks(kind, 64, 0.02, RandomBits("pinned", kind)).tobytes()
        for kind in ("f32", "f16", "q8_0", "q4_0", "q4_K", "q6_K", "iq4_xs", "mxfp4")
    )

    assert hashlib.sha256(made).hexdigest() == PINNED


@pytest.mark.parametrize("kind", ["q8_1", "i32", "nvfp4"])
def test_types_that_no_model_holds_are_refused(kind: str) -> None:
    with pytest.raises(ModelSynthError, match=kind):
        random_blocks(kind, 1, 0.02, RandomBits())
