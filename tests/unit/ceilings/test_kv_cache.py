"""Context memory against what llama.cpp allocated in 390 settings, to the byte."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.ceilings.reference import facts_of, reference_models, rows

from llamasweep.ceilings.architecture import read_architecture
from llamasweep.ceilings.kv_cache import (
    ContextSettings,
    context_memory,
    kv_read_bytes,
    layer_read_bytes,
    mean_visible,
    padded_cells,
    visible_pairs,
)
from llamasweep.errors import NotModelledError


def settings_of(row: dict[str, str]) -> ContextSettings:
    """Of a row of context_sizes.csv."""
    return ContextSettings(
        n_ctx=int(row["n_ctx"]),
        n_ubatch=int(row["n_ubatch"]),
        type_k=row["type_k"],
        type_v=row["type_v"],
        flash_attn=row["flash_attn"] == "1",
        n_seq=int(row["n_seq_max"]),
        kv_unified=row["kv_unified"] == "1",
    )


def test_the_reference_table_is_whole() -> None:
    assert len(rows("context_sizes.csv")) == 390


@pytest.mark.parametrize("name", list(reference_models()))
def test_context_bytes_equal_llama_cpps_to_the_byte(name: str) -> None:
    mine = [row for row in rows("context_sizes.csv") if row["model"] == name]
    assert len(mine) == 13
    wrong = [
        (row, stored)
        for row in mine
        if (stored := context_memory(reference_models()[name], settings_of(row)).stored_bytes)
        != int(row["context_bytes"])
    ]
    assert not wrong


@pytest.mark.parametrize(
    "row", rows("kv_cache.csv"), ids=lambda r: f"{r['model']}-{r['cache_type']}"
)
def test_bytes_per_token_cells_and_state(row: dict[str, str]) -> None:
    facts = reference_models()[row["model"]]
    kind = row["cache_type"]
    for n_ctx in (4096, 32768):
        settings = ContextSettings(n_ctx=n_ctx, type_k=kind, type_v=kind)
        memory = context_memory(facts, settings)
        assert memory.stored_bytes == int(row[f"total_context_bytes_{n_ctx}"])
    assert memory.bytes_per_token_full == int(row["bytes_per_token_full_layers"])
    assert memory.bytes_per_token_swa == int(row["bytes_per_token_swa_layers"])
    assert (memory.swa_cells or 0) == int(row["swa_cells_ub512"])
    assert memory.state_bytes_per_sequence == int(row["recurrent_state_bytes_per_seq"])
    layers = read_architecture(facts).layers
    stored = [layer for layer in layers if layer.stores_kv]
    assert sum(x.window_tokens is None for x in stored) == int(row["n_full_attn_layers"])
    assert sum(x.window_tokens is not None for x in stored) == int(row["n_swa_layers"])
    n_recurrent = sum(layer.is_recurrent and layer.is_run for layer in layers)
    assert n_recurrent == int(row["n_recurrent_layers"])


@pytest.mark.parametrize(
    "row", rows("kv_cache.csv"), ids=lambda r: f"{r['model']}-{r['cache_type']}"
)
def test_bytes_read_where_32768_cells_are_seen(row: dict[str, str]) -> None:
    kind = row["cache_type"]
    settings = ContextSettings(n_ctx=32768, type_k=kind, type_v=kind)
    facts = reference_models()[row["model"]]
    read = kv_read_bytes(facts, settings, 32767, 1)
    table = int(row["read_bytes_per_decode_step_at_depth_32768_min"])
    if facts.arch == "deepseek32":
        cells = 2048 * 61 * 576 + 32768 * 61 * 128
        per_element = {"f16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}[kind]
        assert read == cells * per_element < table, "its indexer lets 2048 latent rows through"
    else:
        assert read == table


def test_worked_by_hand() -> None:
    llama = context_memory(reference_models()["Llama-3.1-8B"], ContextSettings(n_ctx=4096))
    assert llama.bytes_per_token_full == 2 * 32 * 8 * 128 * 2 == 131072
    deepseek = context_memory(reference_models()["DeepSeek-V3"], ContextSettings(n_ctx=4096))
    assert deepseek.bytes_per_token_full == 61 * 576 * 2 == 70272
    gemma = context_memory(
        reference_models()["Gemma-3-4B"], ContextSettings(n_ctx=32768, n_ubatch=2048)
    )
    assert gemma.swa_cells == 1024 + 2048


@pytest.mark.parametrize(
    ("n_cells", "padded"), [(1, 256), (256, 256), (257, 512), (4096, 4096), (5000, 5120)]
)
def test_cells_come_in_steps_of_256(n_cells: int, padded: int) -> None:
    assert padded_cells(n_cells) == padded
    assert ContextSettings(n_ctx=n_cells).cells_per_sequence == padded


def test_sequences_share_a_pool_or_split_it() -> None:
    split = ContextSettings(n_ctx=5000, n_seq=3)
    assert (split.cells_per_sequence, split.n_pools) == (1792, 3)
    shared = ContextSettings(n_ctx=5000, n_seq=3, kv_unified=True)
    assert (shared.cells_per_sequence, shared.n_pools) == (5120, 1)
    assert ContextSettings(n_ctx=256, n_seq=4).cells_per_sequence == 256


def test_v_is_padded_to_the_widest_layer_without_flash_attention_and_not_read_wider() -> None:
    facts = reference_models()["Gemma-4-31B"]
    on = ContextSettings(n_ctx=4096)
    off = ContextSettings(n_ctx=4096, flash_attn=False)
    assert context_memory(facts, off).stored_bytes > context_memory(facts, on).stored_bytes
    assert kv_read_bytes(facts, off, 1000, 8) == kv_read_bytes(facts, on, 1000, 8)


def test_full_windows_take_all_cells() -> None:
    facts = reference_models()["Gemma-3-4B"]
    whole = context_memory(facts, ContextSettings(n_ctx=32768, swa_full=True))
    assert whole.swa_cells == 32768
    per_token = whole.bytes_per_token_full + whole.bytes_per_token_swa
    assert whole.stored_bytes == 32768 * per_token


@pytest.mark.parametrize(
    ("kinds", "word"),
    [
        ({"type_k": "q4_K"}, "no cache in q4_K"),
        ({"type_v": "b@d"}, "no cache type"),
        ({"type_v": "q8_0", "flash_attn": False}, "without flash attention"),
    ],
)
def test_what_llama_cpp_refuses_is_refused(kinds: dict[str, object], word: str) -> None:
    facts = reference_models()["Llama-3.1-8B"]
    with pytest.raises(NotModelledError, match=word):
        context_memory(facts, ContextSettings(n_ctx=256, **kinds))  # type: ignore[arg-type]


def test_heads_that_break_a_block_are_refused() -> None:
    facts = facts_of(
        {
            "general.architecture": "llama",
            "llama.block_count": 1,
            "llama.embedding_length": 160,
            "llama.attention.head_count": 2,
        },
        [("token_embd.weight", (160, 4), "f32")],
    )
    assert context_memory(facts, ContextSettings(n_ctx=256)).stored_bytes == 256 * 2 * 160 * 2
    with pytest.raises(NotModelledError, match="heads of"):
        context_memory(facts, ContextSettings(n_ctx=256, type_k="q8_0"))


@pytest.mark.parametrize(
    "values", [{"n_ctx": 0}, {"n_ctx": 1, "n_ubatch": 0}, {"n_ctx": 1, "n_seq": 0}]
)
def test_impossible_settings_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="makes no sense"):
        ContextSettings(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("window", [None, 1, 3, 8, 100])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_pairs_are_those_that_counting_finds(window: int | None, is_chunked: bool) -> None:
    for n_depth, n_tokens in itertools.product((0, 1, 2, 7, 8, 9, 50), (1, 2, 5, 16, 17)):
        counted = 0
        for at in range(n_depth, n_depth + n_tokens):
            first = 0
            if window is not None:
                first = at - at % window if is_chunked else max(0, at - window + 1)
            counted += at - first + 1
        assert visible_pairs(n_depth, n_tokens, window, is_chunked=is_chunked) == counted
        assert mean_visible(n_depth, n_tokens, window, is_chunked=is_chunked) == counted / n_tokens


def test_reads_by_layer_add_up_and_reused_cells_count_once() -> None:
    facts = reference_models()["Gemma-3n-E4B"]
    settings = ContextSettings(n_ctx=8192)
    by_layer = layer_read_bytes(facts, settings, 4096, 64)
    assert sum(by_layer) == kv_read_bytes(facts, settings, 4096, 64)
    assert all(n_bytes == 0 for n_bytes in by_layer[20:])
    sources = {layer.reads_kv_of for layer in read_architecture(facts).layers[20:]}
    assert sources == {18, 19}
