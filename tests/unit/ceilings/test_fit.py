"""What fits: held against every layout tried one by one."""

from __future__ import annotations

import pytest
from tests.unit.ceilings.reference import quantised

from llamasweep.ceilings.answer import answer
from llamasweep.ceilings.fit import CACHE_TYPES, find_fit
from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.ceilings.layouts import smallest
from llamasweep.ceilings.memory_fit import largest_n_ctx, memory_fit
from llamasweep.ceilings.placement import PlacementSettings, place
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Rig, rig_of, with_sizes
from llamasweep.errors import NotModelledError

GIB = 2**30


def split(ram_gib: int = 64) -> Rig:
    return with_sizes(
        rig_of(["RTX 3060 12GB", "DDR5-5600x2"]), ram_bytes=ram_gib * GIB, vram_bytes=None
    )


def does_fit(shape: str, rig: Rig, *, n_gpu_layers: int = -1, n_cpu_moe: int = 0) -> bool | None:
    facts, settings = quantised(shape, "Q4_K_M"), ContextSettings(n_ctx=8192)
    asked = PlacementSettings(n_gpu_layers=n_gpu_layers, n_cpu_moe=n_cpu_moe)
    placed = place(facts, settings, asked)
    sizes = [processor.memory_bytes for processor in rig.processors]
    return memory_fit(facts, settings, placed, available_bytes=sizes).fits


def test_a_small_model_is_put_on_the_card_whole() -> None:
    found = find_fit(quantised("Llama-3.1-8B", "Q4_K_M"), Question(), rig_of(["RTX 4090"]))

    assert found.fits is True
    assert found.best is not None
    assert (found.best.where, found.best.n_gpu_layers, found.best.type_kv) == (
        "accelerators",
        33,
        "f16",
    )


def test_as_few_experts_as_possible_stay_on_the_host() -> None:
    found = find_fit(quantised("Qwen3-30B-A3B", "Q4_K_M"), Question(), split())

    assert found.best is not None
    assert found.best.where == "experts on the host"
    n = found.best.n_cpu_moe
    assert does_fit("Qwen3-30B-A3B", split(), n_cpu_moe=n)
    assert not does_fit("Qwen3-30B-A3B", split(), n_cpu_moe=n - 1)


def test_as_many_layers_as_possible_go_to_the_card() -> None:
    found = find_fit(quantised("Qwen3-32B", "Q4_K_M"), Question(), split())

    assert found.best is not None
    assert found.best.where == "layers on the host"
    n = found.best.n_gpu_layers
    assert does_fit("Qwen3-32B", split(), n_gpu_layers=n)
    assert not does_fit("Qwen3-32B", split(), n_gpu_layers=n + 1)


def test_the_rate_is_that_of_the_same_settings_asked_for() -> None:
    facts = quantised("Qwen3-30B-A3B", "Q4_K_M")
    best = find_fit(facts, Question(n_ctx=4096), split()).best
    assert best is not None

    asked = Question(n_ctx=4096, n_gpu_layers=best.n_gpu_layers, n_cpu_moe=best.n_cpu_moe)

    assert answer(facts, asked, split()).decode.ceiling_tps == pytest.approx(
        best.decode_ceiling_tps
    )


@pytest.mark.parametrize("kind", CACHE_TYPES)
def test_the_largest_context_agrees_with_the_search_of_memory_fit(kind: str) -> None:
    facts = quantised("Llama-3.1-8B", "Q4_K_M")
    rig = with_sizes(rig_of(["M4 Pro"]), ram_bytes=20 * GIB, vram_bytes=None)

    (found,) = [one for one in find_fit(facts, Question(), rig).largest if one.type_kv == kind]

    assert found.n_ctx == largest_n_ctx(
        facts,
        ContextSettings(n_ctx=256, type_k=kind, type_v=kind),
        PlacementSettings(n_gpu_layers=0, tensor_split=()),
        available_bytes=[20 * GIB],
    )
    assert found.is_known


def test_a_quantised_cache_is_taken_only_where_f16_does_not_fit() -> None:
    facts = quantised("Llama-3.1-8B", "Q4_K_M")
    rig = with_sizes(rig_of(["RTX 4090"]), ram_bytes=None, vram_bytes=9 * GIB)

    small = find_fit(facts, Question(n_ctx=8192), rig).best
    large = find_fit(facts, Question(n_ctx=32768), rig).best

    assert small is not None
    assert large is not None
    assert (small.type_kv, large.type_kv) == ("f16", "q8_0")


def test_what_lacks_is_told_where_nothing_fits() -> None:
    found = find_fit(quantised("DeepSeek-V3", "Q4_K_M"), Question(), rig_of(["M4 Pro"]))

    assert (found.fits, found.best) == (False, None)
    assert found.missing_bytes is not None
    assert found.missing_bytes > 300e9
    assert all(one.n_ctx is None and one.is_known for one in found.largest)


def test_a_memory_of_unknown_size_is_not_said_to_fit() -> None:
    found = find_fit(quantised("Qwen3-4B", "Q4_K_M"), Question(), rig_of(["DDR5-5600x2"]))

    assert found.fits is None
    assert not any(one.is_known for one in found.largest)


def test_the_reserve_counts() -> None:
    facts = quantised("Qwen3-4B", "Q4_K_M")
    rig = with_sizes(rig_of(["DDR5-5600x2"]), ram_bytes=8 * GIB, vram_bytes=None)

    assert find_fit(facts, Question(), rig).fits is False
    assert find_fit(facts, Question(reserve_bytes=2 * GIB), rig).fits is True


def test_cache_types_that_the_heads_do_not_take_are_left_out() -> None:
    facts = quantised("tiny-llama", "Q8_0")
    assert facts.head_size_k is not None
    found = find_fit(facts, Question(), rig_of(["M4 Pro"]))

    assert {row.type_kv for row in found.by_context} <= set(CACHE_TYPES)
    with pytest.raises(NotModelledError):
        find_fit(facts, Question(), rig_of(["M4 Pro"]), cache_types=["q4_K"])


def test_bisection_finds_the_first_that_holds() -> None:
    for first in range(1, 9):
        assert smallest(1, 8, lambda n, first=first: n >= first) == (first if first < 9 else None)  # type: ignore[misc]
    assert smallest(1, 8, lambda _: False) is None
    assert smallest(2, 1, lambda _: True) is None
