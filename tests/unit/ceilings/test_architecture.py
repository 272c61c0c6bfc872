"""Which layers keep what, by architecture; what is not known is said, what is broken is refused."""

from __future__ import annotations

import pytest
from tests.unit.ceilings.reference import facts_of, reference_models

from llamasweep.ceilings.architecture import (
    CHECKED,
    MODELLED,
    WINDOWS,
    Architecture,
    not_modelled,
    read_architecture,
)
from llamasweep.ceilings.kv_cache import ContextSettings, context_memory
from llamasweep.errors import ModelFileError, NotModelledError
from llamasweep.gguf.facts import ModelFacts


def model(arch: str, **keys: object) -> ModelFacts:
    """A model of an architecture with 4 heads of 64, 2 of them for K and V, and whatever keys."""
    return facts_of(
        {
            "general.architecture": arch,
            f"{arch}.block_count": 8,
            f"{arch}.embedding_length": 256,
            f"{arch}.attention.head_count": 4,
            f"{arch}.attention.head_count_kv": 2,
            **{f"{arch}.{key.replace('__', '.')}": value for key, value in keys.items()},
        },
        [("token_embd.weight", (256, 4), "f32")],
    )


def windows(facts: ModelFacts) -> str:
    """One letter per layer: w with a window, f without."""
    layers = read_architecture(facts).layers
    return "".join("f" if layer.window_tokens is None else "w" for layer in layers)


@pytest.mark.parametrize(
    ("arch", "pattern"),
    [
        ("gemma2", "wfwfwfwf"),
        ("gemma3", "wwwwwfww"),
        ("gpt-oss", "wfwfwfwf"),
        ("cohere2", "wwwfwwwf"),
        ("cohere2moe", "fwwwfwww"),
        ("olmo2", "wwwfwwwf"),
        ("smallthinker", "fwwwfwww"),
        ("llama", "ffffffff"),
        ("phi3", "ffffffff"),
        ("exaone4", "ffffffff"),
    ],
)
def test_windows_follow_the_period_of_the_architecture(arch: str, pattern: str) -> None:
    assert windows(model(arch, attention__sliding_window=64)) == pattern


def test_an_array_or_a_period_in_the_file_wins() -> None:
    key = "attention__sliding_window_pattern"
    told: dict[str, object] = {"attention__sliding_window": 64}
    assert windows(model("gemma3", **told, **{key: 2})) == "wfwfwfwf"
    assert windows(model("gemma3", **told, **{key: [1, 1, 0, 1, 0, 0, 0, 1]})) == "wwfwfffw"
    assert windows(model("gemma3", **told, **{key: 0})) == "wwwwwwww"


@pytest.mark.parametrize("arch", ["gemma3", "olmo2", "llama4"])
def test_a_window_of_no_tokens_is_none(arch: str) -> None:
    assert windows(model(arch, attention__sliding_window=0)) == "ffffffff"


def test_widths_that_the_file_does_not_say_are_the_architectures() -> None:
    assert read_architecture(model("gemma2")).window_tokens == 4096
    assert read_architecture(model("llama4", attention__sliding_window=5)).window_tokens == 8192
    assert read_architecture(model("llama4")).is_chunked
    assert read_architecture(model("exaone4", block_count=64)).window_tokens == 4096


@pytest.mark.parametrize(
    ("arch", "keys", "word"),
    [
        ("gpt-oss", {}, "sliding_window' is missing"),
        ("mimo2", {"attention__sliding_window": 8}, "sliding_window_pattern' is missing"),
        ("llama", {"block_count": 0}, "0 layers"),
        ("llama", {"block_count": 513}, "513 layers"),
        ("llama", {"nextn_predict_layers": 8}, "8 of them for drafts"),
        ("llama", {"attention__head_count": "four"}, "is not a number"),
        ("llama", {"attention__head_count": -1}, "is not a number"),
        ("llama", {"attention__head_count_kv": [1, 2]}, "2 values for 8 layers"),
        ("llama", {"attention__head_count_kv": 2**40}, "is not a number"),
        ("llama", {"attention__head_count": 0}, "attention.head_count' is missing or 0"),
        ("llama", {"attention__head_count_kv": 0}, "attention.head_count_kv' is missing or 0"),
        ("qwen3", {"attention__head_count_kv": [2] * 7 + [0]}, "layer 7 attends"),
        ("llama", {"attention__key_length": 0}, "heads of no size"),
        ("llama", {"attention__head_count": 1024}, "heads of no size"),
        ("qwen3moe", {"expert_count": 4}, "expert_used_count' says 0"),
        ("qwen3moe", {"expert_count": 4, "expert_used_count": 5}, "expert_used_count' says 5"),
        ("mamba2", {}, "mamba2.ssm"),
        ("qwen3next", {}, "tell no state"),
        ("lfm2", {"attention__head_count_kv": [2] * 7 + [0]}, "tell no state"),
        ("gemma4", {"attention__sliding_window": 8, "attention__shared_kv_layers": 7,
                    "attention__sliding_window_pattern": [1] * 8}, "reuse"),
    ],
)  # fmt: skip
def test_broken_metadata_is_refused_by_its_key(
    arch: str, keys: dict[str, object], word: str
) -> None:
    facts = model(arch, **keys)
    with pytest.raises(ModelFileError, match=word):
        read_architecture(facts)
    assert word in (not_modelled(facts) or "")


def test_layers_that_leave_attention_out_are_no_fault_where_they_may() -> None:
    heads: dict[str, object] = {"attention__head_count_kv": [2] * 7 + [0]}
    assert not_modelled(model("deci", **heads)) is None
    assert not_modelled(model("granitehybrid", **STATE, **heads)) is None


@pytest.mark.parametrize(
    "arch", ["deepseek4", "qwen4exp", "minimax-m3", "kimi-linear", "rwkv7", "bert", "t5", "gpt-5"]
)
def test_other_architectures_are_not_modelled_by_name(arch: str) -> None:
    facts = model(arch)
    with pytest.raises(NotModelledError, match=f"not modelled: the architecture '{arch}'"):
        read_architecture(facts)
    assert not_modelled(facts) == f"not modelled: the architecture '{arch}'"


def test_an_endless_architecture_name_is_cut() -> None:
    assert len(not_modelled(model("x" * 10000)) or "") < 150


def test_all_reference_architectures_are_modelled_and_checked() -> None:
    archs = {facts.arch for facts in reference_models().values()}
    assert archs == CHECKED <= MODELLED
    assert all(not_modelled(facts) is None for facts in reference_models().values())
    assert all(read_architecture(facts).is_checked for facts in reference_models().values())
    assert not read_architecture(model("qwen2")).is_checked


STATE: dict[str, object] = {
    "ssm__conv_kernel": 4, "ssm__inner_size": 512, "ssm__state_size": 16, "ssm__group_count": 2,
}  # fmt: skip


def recurrent(architecture: Architecture) -> str:
    """One letter per layer: r recurrent, a attention, b both, - neither."""
    letters = {(True, False): "r", (False, True): "a", (True, True): "b", (False, False): "-"}
    return "".join(letters[layer.is_recurrent, layer.stores_kv] for layer in architecture.layers)


@pytest.mark.parametrize(
    ("arch", "keys", "pattern"),
    [
        ("mamba2", {}, "rrrrrrrr"),
        ("falcon-h1", {}, "bbbbbbbb"),
        ("granitehybrid", {"attention__head_count_kv": [0, 0, 2, 0, 0, 2, 0, 0]}, "rrarrarr"),
        ("qwen35moe", {}, "rrrarrra"),
        ("qwen3next", {"full_attention_interval": 2}, "rararara"),
        ("qwen3next", {"attention__recurrent_layers": [1, 0, 0, 0, 0, 0, 0, 1]}, "raaaaaar"),
        ("qwen35", {"nextn_predict_layers": 1}, "rrrarrr-"),
        ("nemotron_h", {"attention__head_count_kv": [0, 0, 2, 0, 0, 2, 0, 0],
                        "feed_forward_length": [0, 9, 0, 9, 0, 0, 9, 0]}, "r-a-ra-r"),
    ],
)  # fmt: skip
def test_recurrent_layers_are_told_as_llama_cpp_tells_them(
    arch: str, keys: dict[str, object], pattern: str
) -> None:
    assert recurrent(read_architecture(model(arch, **STATE, **keys))) == pattern


def test_state_of_short_convolutions_and_state_spaces() -> None:
    assert read_architecture(model("lfm2", shortconv__l_cache=3)).state_elements == 512
    assert read_architecture(model("mamba2", **STATE)).state_elements == 3 * 576 + 512 * 16
    assert read_architecture(model("llama", **STATE)).state_elements == 0


def test_a_window_in_lfm2_is_not_modelled() -> None:
    with pytest.raises(NotModelledError, match="sliding window"):
        read_architecture(model("lfm2", attention__sliding_window=64))


@pytest.mark.parametrize(
    ("keys", "n_indexed"),
    [
        ({"context_length": 202752}, 8),
        ({"context_length": 1048576}, 4),
        ({"context_length": 4096, "attention__indexer__types": [1, 0, 0, 0, 1, 0, 0, 0]}, 2),
    ],
)
def test_indexers_of_glm_are_shared_from_5_2_on(keys: dict[str, object], n_indexed: int) -> None:
    facts = model(
        "glm-dsa",
        attention__key_length=576,
        attention__value_length=512,
        attention__key_length_mla=192,
        attention__value_length_mla=128,
        attention__indexer__key_length=128,
        **{"attention__head_count_kv": 1, **keys},
    )
    memory = context_memory(facts, ContextSettings(n_ctx=256))
    assert memory.bytes_per_token_full == 2 * (8 * 576 + n_indexed * 128)


def test_a_number_may_stand_as_an_array_of_it() -> None:
    keys: dict[str, object] = {"shortconv__l_cache": [3, 3]}
    assert read_architecture(model("lfm2", **keys)).state_elements == 512
    assert read_architecture(model("lfm2", shortconv__l_cache=[])).state_elements == 0


def test_every_window_rule_can_be_read() -> None:
    for arch in WINDOWS:
        facts = model(
            arch,
            block_count=64,
            attention__sliding_window=64,
            attention__sliding_window_pattern=[1, 0] * 32,
        )
        assert windows(facts) == "wf" * 32
