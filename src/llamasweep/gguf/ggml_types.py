"""The tensor types and file types of ggml as of build 11434: ids, names, block sizes. Pure.

Knows how many bytes a row or a tensor of a type takes, and what `general.file_type` is called by
llama-bench and by people. Knows nothing of files. The figures are those that ggml itself reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from llamasweep.errors import ModelFileError


class GgmlType(NamedTuple):
    """One tensor type.

    type_id: as written in a GGUF file. block_elements: elements that share one block; the row
    length must be a multiple of it. is_kv_cache_type: whether llama.cpp takes it for the KV cache
    (llama-bench's `-ctk` and `-ctv` take the same without f32).
    """

    type_id: int
    name: str
    block_elements: int
    block_bytes: int
    is_quantized: bool
    is_kv_cache_type: bool

    @property
    def bits_per_weight(self) -> float:
        """block_bytes * 8 / block_elements."""
        return self.block_bytes * 8 / self.block_elements


class FileType(NamedTuple):
    """One value of `general.file_type`.

    llama_bench_name: "Q4_K - Medium". short_name: as people write it, "Q4_K_M". ggml_type: what
    most tensors of such a file are, None where that is not known.
    """

    file_type: int
    llama_bench_name: str
    short_name: str
    ggml_type: str | None


_TYPE_ROWS: tuple[tuple[int, str, int, int], ...] = (
    (0, "f32", 1, 4),
    (1, "f16", 1, 2),
    (2, "q4_0", 32, 18),
    (3, "q4_1", 32, 20),
    (6, "q5_0", 32, 22),
    (7, "q5_1", 32, 24),
    (8, "q8_0", 32, 34),
    (9, "q8_1", 32, 36),
    (10, "q2_K", 256, 84),
    (11, "q3_K", 256, 110),
    (12, "q4_K", 256, 144),
    (13, "q5_K", 256, 176),
    (14, "q6_K", 256, 210),
    (15, "q8_K", 256, 292),
    (16, "iq2_xxs", 256, 66),
    (17, "iq2_xs", 256, 74),
    (18, "iq3_xxs", 256, 98),
    (19, "iq1_s", 256, 50),
    (20, "iq4_nl", 32, 18),
    (21, "iq3_s", 256, 110),
    (22, "iq2_s", 256, 82),
    (23, "iq4_xs", 256, 136),
    (24, "i8", 1, 1),
    (25, "i16", 1, 2),
    (26, "i32", 1, 4),
    (27, "i64", 1, 8),
    (28, "f64", 1, 8),
    (29, "iq1_m", 256, 56),
    (30, "bf16", 1, 2),
    (34, "tq1_0", 256, 54),
    (35, "tq2_0", 256, 66),
    (39, "mxfp4", 32, 17),
    (40, "nvfp4", 64, 36),
    (41, "q1_0", 128, 18),
    (42, "q2_0", 64, 18),
)

_KV_CACHE_NAMES = frozenset(
    {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"}
)

GGML_TYPES: tuple[GgmlType, ...] = tuple(
    GgmlType(
        type_id=type_id,
        name=name,
        block_elements=block_elements,
        block_bytes=block_bytes,
        is_quantized=block_elements > 1,
        is_kv_cache_type=name in _KV_CACHE_NAMES,
    )
    for type_id, name, block_elements, block_bytes in _TYPE_ROWS
)

REMOVED_TYPES: dict[int, str] = {
    4: "q4_2",
    5: "q4_3",
    31: "q4_0_4_4",
    32: "q4_0_4_8",
    33: "q4_0_8_8",
    36: "iq4_nl_4_4",
    37: "iq4_nl_4_8",
    38: "iq4_nl_8_8",
}
"""Ids that once named a type; current llama.cpp cannot read such tensors."""

_BY_ID = {entry.type_id: entry for entry in GGML_TYPES}
_BY_NAME = {entry.name: entry for entry in GGML_TYPES}

_FILE_TYPE_ROWS: tuple[tuple[int, str, str, str | None], ...] = (
    (0, "all F32", "F32", "f32"),
    (1, "F16", "F16", "f16"),
    (2, "Q4_0", "Q4_0", "q4_0"),
    (3, "Q4_1", "Q4_1", "q4_1"),
    (7, "Q8_0", "Q8_0", "q8_0"),
    (8, "Q5_0", "Q5_0", "q5_0"),
    (9, "Q5_1", "Q5_1", "q5_1"),
    (10, "Q2_K - Medium", "Q2_K", "q2_K"),
    (11, "Q3_K - Small", "Q3_K_S", "q3_K"),
    (12, "Q3_K - Medium", "Q3_K_M", "q3_K"),
    (13, "Q3_K - Large", "Q3_K_L", "q3_K"),
    (14, "Q4_K - Small", "Q4_K_S", "q4_K"),
    (15, "Q4_K - Medium", "Q4_K_M", "q4_K"),
    (16, "Q5_K - Small", "Q5_K_S", "q5_K"),
    (17, "Q5_K - Medium", "Q5_K_M", "q5_K"),
    (18, "Q6_K", "Q6_K", "q6_K"),
    (19, "IQ2_XXS - 2.0625 bpw", "IQ2_XXS", "iq2_xxs"),
    (20, "IQ2_XS - 2.3125 bpw", "IQ2_XS", "iq2_xs"),
    (21, "Q2_K - Small", "Q2_K_S", "q2_K"),
    (22, "IQ3_XS - 3.3 bpw", "IQ3_XS", "iq3_s"),
    (23, "IQ3_XXS - 3.0625 bpw", "IQ3_XXS", "iq3_xxs"),
    (24, "IQ1_S - 1.5625 bpw", "IQ1_S", "iq1_s"),
    (25, "IQ4_NL - 4.5 bpw", "IQ4_NL", "iq4_nl"),
    (26, "IQ3_S - 3.4375 bpw", "IQ3_S", "iq3_s"),
    (27, "IQ3_S mix - 3.66 bpw", "IQ3_M", "iq3_s"),
    (28, "IQ2_S - 2.5 bpw", "IQ2_S", "iq2_xs"),
    (29, "IQ2_M - 2.7 bpw", "IQ2_M", "iq2_s"),
    (30, "IQ4_XS - 4.25 bpw", "IQ4_XS", "iq4_xs"),
    (31, "IQ1_M - 1.75 bpw", "IQ1_M", "iq1_m"),
    (32, "BF16", "BF16", "bf16"),
    (36, "TQ1_0 - 1.69 bpw ternary", "TQ1_0", "tq1_0"),
    (37, "TQ2_0 - 2.06 bpw ternary", "TQ2_0", "tq2_0"),
    (38, "MXFP4 MoE", "MXFP4_MOE", "mxfp4"),
    (39, "NVFP4", "NVFP4", None),
    (40, "Q1_0", "Q1_0", "q1_0"),
    (41, "Q2_0", "Q2_0", "q2_0"),
)

FILE_TYPES: tuple[FileType, ...] = tuple(
    FileType(file_type=number, llama_bench_name=name, short_name=short, ggml_type=kind)
    for number, name, short, kind in _FILE_TYPE_ROWS
)

_FILE_TYPE_BY_ID = {entry.file_type: entry for entry in FILE_TYPES}
_FILE_TYPE_BY_SHORT = {entry.short_name: entry for entry in FILE_TYPES}


def type_by_id(type_id: int) -> GgmlType:
    """The tensor type with this id. Raises ModelFileError for removed and unknown ids."""
    entry = _BY_ID.get(type_id)
    if entry is not None:
        return entry
    removed = REMOVED_TYPES.get(type_id)
    if removed is not None:
        raise ModelFileError(
            f"tensor type {type_id} ({removed}) was removed from llama.cpp",
            hint="Download the model again in a current quantisation such as Q4_0 or IQ4_NL.",
        )
    raise ModelFileError(f"unknown tensor type {type_id}")


def type_by_name(name: str) -> GgmlType:
    """The tensor type that ggml calls so ("q4_K"). Raises ModelFileError where there is none."""
    entry = _BY_NAME.get(name)
    if entry is None:
        raise ModelFileError(f"unknown tensor type {name!r}")
    return entry


def file_type(number: int) -> FileType | None:
    """What `general.file_type` = number means, None where build 11434 knows no such number."""
    return _FILE_TYPE_BY_ID.get(number)


def file_type_by_short_name(short_name: str) -> FileType | None:
    """The file type that people call so ("Q4_K_M"), None where there is none."""
    return _FILE_TYPE_BY_SHORT.get(short_name)


def row_bytes(type_name: str, n_elements: int) -> int:
    """Bytes of one row: n_elements / block_elements * block_bytes.

    Raises ModelFileError where the row is not made of whole blocks.
    """
    entry = type_by_name(type_name)
    n_blocks, rest = divmod(n_elements, entry.block_elements)
    if rest or n_elements < 0:
        raise ModelFileError(
            f"a row of {n_elements} elements is not made of whole {type_name} blocks "
            f"of {entry.block_elements}"
        )
    return n_blocks * entry.block_bytes


def tensor_bytes(type_name: str, ne: Sequence[int]) -> int:
    """Bytes of a tensor, contiguous dimension first: row_bytes(ne[0]) * ne[1] * ne[2] * ne[3]."""
    if not ne:
        return row_bytes(type_name, 1)
    return row_bytes(type_name, ne[0]) * math.prod(ne[1:])
