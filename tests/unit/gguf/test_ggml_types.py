"""The type tables equal what ggml of build 11434 dumped, and sizes follow from them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from llamasweep.errors import ModelFileError
from llamasweep.gguf.ggml_types import (
    FILE_TYPES,
    GGML_TYPES,
    REMOVED_TYPES,
    file_type,
    file_type_by_short_name,
    row_bytes,
    tensor_bytes,
    type_by_id,
    type_by_name,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "models"


def rows_of(name: str) -> list[dict[str, str]]:
    with (GOLDEN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_types_equal_what_ggml_dumped() -> None:
    dumped = [
        (
            int(row["type_id"]),
            row["name"],
            int(row["block_elements"]),
            int(row["block_bytes"]),
            row["is_quantized"] == "1",
            row["kv_cache_type_allowed"] == "1",
            float(row["bits_per_weight"]),
        )
        for row in rows_of("ggml_types.csv")
    ]

    ours = [
        (
            entry.type_id,
            entry.name,
            entry.block_elements,
            entry.block_bytes,
            entry.is_quantized,
            entry.is_kv_cache_type,
            entry.bits_per_weight,
        )
        for entry in GGML_TYPES
    ]

    assert ours == dumped


def test_file_types_equal_what_llama_bench_prints() -> None:
    dumped = [
        (
            int(row["general.file_type"]),
            row["llama_bench_name"],
            row["default_ggml_type"] or None,
        )
        for row in rows_of("file_types.csv")
    ]

    ours = [(entry.file_type, entry.llama_bench_name, entry.ggml_type) for entry in FILE_TYPES]

    assert ours == dumped


def test_short_names_are_unique_and_lead_back() -> None:
    assert len({entry.short_name for entry in FILE_TYPES}) == len(FILE_TYPES)
    for entry in FILE_TYPES:
        assert file_type_by_short_name(entry.short_name) is entry
        assert file_type(entry.file_type) is entry
    assert file_type(4) is None
    assert file_type_by_short_name("Q4_K_XL") is None


@pytest.mark.parametrize(("type_id", "name"), sorted(REMOVED_TYPES.items()))
def test_removed_types_are_refused_by_name(type_id: int, name: str) -> None:
    with pytest.raises(ModelFileError, match=rf"{type_id} \({name}\) was removed"):
        type_by_id(type_id)


def test_unknown_types_are_refused() -> None:
    with pytest.raises(ModelFileError, match="unknown tensor type 4242"):
        type_by_id(4242)
    with pytest.raises(ModelFileError, match="unknown tensor type 'q4_k'"):
        type_by_name("q4_k")


def test_tensor_bytes_of_a_worked_example() -> None:
    # 4096 elements = 16 blocks of 256 in q4_K, 144 bytes each, 32000 rows.
    assert row_bytes("q4_K", 4096) == 16 * 144
    assert tensor_bytes("q4_K", (4096, 32000)) == 16 * 144 * 32000
    assert tensor_bytes("f32", ()) == 4
    assert tensor_bytes("mxfp4", (64, 3, 5)) == 2 * 17 * 15


def test_rows_of_broken_blocks_are_refused() -> None:
    with pytest.raises(ModelFileError, match="not made of whole q4_K blocks of 256"):
        row_bytes("q4_K", 100)
