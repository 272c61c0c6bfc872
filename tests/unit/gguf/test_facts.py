"""Facts follow from metadata and tensors alone."""

from __future__ import annotations

import pytest

from llamasweep.gguf.facts import SYNTHETIC_KEY, TensorInfo, facts_from, quantisation
from llamasweep.gguf.ggml_types import tensor_bytes


def tensor(name: str, ne: tuple[int, ...] = (256, 4), kind: str = "q4_0") -> TensorInfo:
    return TensorInfo(name=name, ne=ne, ggml_type=kind, n_bytes=tensor_bytes(kind, ne))


EMBEDDING = tensor("token_embd.weight", (256, 1000))


def test_head_sizes_default_to_embedding_by_heads() -> None:
    metadata = {
        "general.architecture": "llama",
        "llama.embedding_length": 4096,
        "llama.attention.head_count": 32,
    }

    facts = facts_from(metadata, [EMBEDDING], array_lengths={})

    assert (facts.head_size_k, facts.head_size_v) == (128, 128)


def test_head_sizes_of_a_recurrent_model_are_not_known() -> None:
    metadata = {
        "general.architecture": "mamba2",
        "mamba2.embedding_length": 4096,
        "mamba2.attention.head_count": 0,
    }

    facts = facts_from(metadata, [EMBEDDING], array_lengths={})

    assert (facts.head_size_k, facts.head_size_v) == (None, None)


def test_vocabulary_is_counted_from_the_tokenizer_then_the_key_then_the_tensor() -> None:
    metadata: dict[str, object] = {"general.architecture": "llama"}

    assert facts_from(metadata, [EMBEDDING], array_lengths={}).n_vocab == 1000
    metadata["llama.vocab_size"] = 900
    assert facts_from(metadata, [EMBEDDING], array_lengths={}).n_vocab == 900
    lengths = {"tokenizer.ggml.tokens": 800}
    assert facts_from(metadata, [EMBEDDING], array_lengths=lengths).n_vocab == 800


def test_values_of_the_wrong_kind_are_absent() -> None:
    metadata = {
        "general.architecture": "llama",
        "general.name": 5,
        "llama.block_count": "many",
        "llama.context_length": -1,
        "llama.embedding_length": True,
        "llama.expert_count": (8, 16, "x"),
    }

    facts = facts_from(metadata, [EMBEDDING], array_lengths={})

    assert facts.name is None
    assert facts.n_layers is None
    assert facts.n_ctx_train is None
    assert facts.n_embd is None
    assert facts.n_expert == 16


def test_tied_embeddings_have_no_output_tensor() -> None:
    metadata = {"general.architecture": "llama"}

    assert facts_from(metadata, [EMBEDDING], array_lengths={}).tied_embeddings
    untied = [EMBEDDING, tensor("output.weight")]
    assert not facts_from(metadata, untied, array_lengths={}).tied_embeddings


def test_only_our_own_key_marks_a_model_as_synthetic() -> None:
    metadata: dict[str, object] = {"general.architecture": "llama", SYNTHETIC_KEY: 1}
    assert not facts_from(metadata, [EMBEDDING], array_lengths={}).is_synthetic
    metadata[SYNTHETIC_KEY] = True
    assert facts_from(metadata, [EMBEDDING], array_lengths={}).is_synthetic


def test_bits_per_weight_of_q4_0() -> None:
    facts = facts_from({"general.architecture": "llama"}, [EMBEDDING], array_lengths={})

    assert facts.bits_per_weight == 4.5


@pytest.mark.parametrize(
    ("kinds", "guess", "short"),
    [
        (["q4_K", "q4_K", "q6_K"], "(guessed) Q4_K - Medium", "Q4_K_M"),
        (["iq2_s"], "(guessed) IQ2_S - 2.5 bpw", "IQ2_S"),
        (["q8_0", "f32"], "(guessed) Q8_0", "Q8_0"),
        (["mxfp4"], "(guessed) all F32", "MXFP4"),
        (["nvfp4"], "(guessed) NVFP4", "NVFP4"),
    ],
)
def test_quantisation_is_guessed_as_llama_cpp_does(
    kinds: list[str], guess: str, short: str
) -> None:
    tensors = [tensor(f"blk.{i}.x.weight", kind=kind) for i, kind in enumerate(kinds)]

    assert quantisation({}, tensors) == (guess, short)


def test_many_small_norms_do_not_hide_the_quantisation_from_people() -> None:
    norms = [tensor(f"blk.{i}.norm.weight", (256,), "f32") for i in range(5)]

    assert quantisation({}, [*norms, EMBEDDING]) == ("(guessed) all F32", "Q4_0")


def test_unknown_file_type_is_said_as_llama_bench_says_it() -> None:
    unknown: dict[str, object] = {"general.file_type": 999}

    assert quantisation(unknown, [EMBEDDING]) == ("unknown, may not work", "Q4_0")
