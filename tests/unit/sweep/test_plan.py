"""Groups, their order, what cannot run, what is left over, and how long it all takes."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Any

import pytest
from tests.unit.sweep.subjects_made import METADATA, build, model

from llamasweep.gguf.facts import TensorInfo
from llamasweep.sweep.blocks import Restriction
from llamasweep.sweep.cell import Block, Cell, Group, Test, ordered_axes
from llamasweep.sweep.footprint import context_bytes, memory_warning, prompt_flop, token_bytes
from llamasweep.sweep.matrix import expand
from llamasweep.sweep.plan import Plan, Surroundings, make_plan, remaining
from llamasweep.sweep.predict import Measured, RateKey, Rates, group_cost
from llamasweep.sweep.spec import Condition, Exclude, ModelEntry, SweepSpec
from llamasweep.sweep.subjects import Build, Model

PP, TG = Test(n_prompt=512, n_gen=0), Test(n_prompt=0, n_gen=128)
MODELS = [model("a"), model("b")]


def spec(axes: dict[str, tuple[Any, ...]] | None = None, **keys: Any) -> SweepSpec:
    return SweepSpec(
        name="t",
        models=(ModelEntry(path="x"),),
        tests=keys.pop("tests", (PP, TG)),
        axes=ordered_axes(axes or {}),
        **keys,
    )


def plan(
    sweep: SweepSpec,
    *,
    models: list[Model] | None = None,
    builds: list[Build] | None = None,
    restrictions: Any = lambda _block, _model, _build: [],
    rates: Rates | None = None,
    surroundings: Surroundings | None = None,
) -> Plan:
    models = models or [model()]
    return make_plan(
        sweep,
        expand(sweep, [m.source for m in models], {"physical": 4}),
        models={m.source: m for m in models},
        builds=builds or [build()],
        restrictions=restrictions,
        rates=rates or Rates(),
        surroundings=surroundings,
    )


def asked(groups: Any) -> Counter[Any]:
    return Counter((g.build.label, g.round_index, cell) for g in groups for cell in g.block.cells())


AXES: dict[str, tuple[Any, ...]] = {
    "n_gpu_layers": (0, 99),
    "n_depth": (4096, 0, 1024),
    "type_k": ("f16", "q8_0"),
    "n_ubatch": (128, 512, 256),
    "n_threads": (1, 2),
}


def test_every_cell_is_in_exactly_one_group_of_each_round_and_build() -> None:
    made = plan(spec(AXES, rounds=2), models=MODELS, builds=[build("x"), build("y")])

    found = asked(made.groups)

    n_cells = 2 * 3 * 2 * 3 * 2 * 2  # axes x tests
    assert set(found.values()) == {1}
    assert len(found) == made.n_cells == n_cells * 2 * 2 * 2


def test_a_group_has_one_depth_and_one_value_of_what_loads_the_model() -> None:
    made = plan(spec(AXES))

    for group in made.groups:
        axes = dict(group.block.axes)
        assert len(axes["n_depth"]) == len(axes["n_gpu_layers"]) == 1
        if axes["n_depth"] != (0,):
            assert len(axes["type_k"]) == 1
            assert axes["n_ubatch"] == (512, 256, 128), "the largest batch does the prefill"
        else:
            assert axes["type_k"] == ("f16", "q8_0"), "no saved state to lose at depth 0"
    # depth 0: one per n_gpu_layers; each other depth: n_gpu_layers x type_k
    assert made.n_model_loads == len(made.groups) == 2 + 2 * 2 * 2


def test_grouped_order_is_rounds_then_models_then_builds_then_depth() -> None:
    made = plan(
        spec({"n_depth": (1024, 0)}, rounds=2),
        models=MODELS,
        builds=[build("x"), build("y")],
    )

    seen = [
        (g.round_index, g.model.source.label, g.build.label, g.block.axes[0][1][0])
        for g in made.groups
    ]

    assert seen == [(r, m, b, d) for r in (0, 1) for m in "ab" for b in "xy" for d in (0, 1024)]
    assert all(group.turn is None for group in made.groups)


def test_interleaved_builds_take_turns_and_pairs_are_complete() -> None:
    sweep = spec(AXES, rounds=3, order="interleaved", seed=7)
    made = plan(sweep, builds=[build("x"), build("y")])
    groups = list(made.groups)

    pairs = [groups[i : i + 2] for i in range(0, len(groups), 2)]

    for first, second in pairs:
        assert first.block == second.block
        assert (first.turn, first.round_index) == (second.turn, second.round_index)
        assert {first.build.label, second.build.label} == {"x", "y"}
    firsts = {pair[0].build.label for pair in pairs}
    assert firsts == {"x", "y"}, "the order within a turn is random too"
    orders = [
        [g.block for g in groups if g.round_index == r and g.build.label == "x"] for r in range(3)
    ]
    assert orders[0] != orders[1]
    assert asked(groups) == asked(
        plan(spec(AXES, rounds=3), builds=[build("x"), build("y")]).groups
    )
    again = plan(sweep, builds=[build("x"), build("y")])
    assert [g.group_id for g in again.groups] == [g.group_id for g in groups]


def test_what_one_build_cannot_run_does_not_break_the_pairs_of_the_rest() -> None:
    def limits(_block: Block, _model: Model, which: Build) -> list[Restriction]:
        if which.label == "x":
            return []
        where = {"type_k": frozenset({"q8_0"}), "n_threads": frozenset({2})}
        return [Restriction(reason="not known", where=where)]

    made = plan(
        spec(AXES, order="interleaved"), builds=[build("x"), build("y")], restrictions=limits
    )

    turns: dict[Any, list[Group]] = {}
    for group in made.groups:
        turns.setdefault(group.turn, []).append(group)
    for members in turns.values():
        assert len({g.block for g in members}) == 1
    per_build = Counter(g.build.label for g in made.groups for _ in g.block.cells())
    assert per_build == {"x": 144, "y": 144 - 36}
    assert made.n_unsupported == 36
    assert {reason for _, _, _, reason in made.unsupported} == {"not known"}


def test_unsupported_and_planned_cells_are_all_cells_once() -> None:
    def limits(_block: Block, _model: Model, _build: Build) -> list[Restriction]:
        return [
            Restriction(reason="deep", where={"n_depth": frozenset({4096})}),
            Restriction(reason="both", where={"type_k": frozenset({"q8_0"})}),
        ]

    made = plan(spec(AXES), restrictions=limits)

    refused = Counter(c for _, _, block, _ in made.unsupported for c in block.cells())
    planned = Counter(cell for g in made.groups for cell in g.block.cells())
    assert set((refused + planned).values()) == {1}
    assert sum((refused + planned).values()) == 144


def test_an_exclude_may_name_a_build() -> None:
    exclude = Exclude(
        where=(("build", Condition(values=("y",))), ("n_threads", Condition(values=(2,))))
    )

    made = plan(spec(AXES, exclude=(exclude,)), builds=[build("x"), build("y")])

    per_build = Counter(g.build.label for g in made.groups for _ in g.block.cells())
    assert per_build == {"x": 144, "y": 72}
    assert made.unsupported == ()


def test_a_model_that_cannot_be_read_is_in_no_group_and_keeps_its_reason() -> None:
    made = plan(spec({"n_threads": (1, 2)}), models=[model("a"), model("b", problem="truncated")])

    assert {g.model.source.label for g in made.groups} == {"a"}
    assert [(m.source.label, reason) for _, m, _, reason in made.unreadable] == [("b", "truncated")]


def test_isolation_by_cell_gives_each_cell_its_own_process() -> None:
    made = plan(spec(AXES, isolation="cell"))

    assert all(group.n_cells == 1 for group in made.groups)
    assert len(made.groups) == made.n_cells == made.n_model_loads == 144
    assert asked(made.groups) == asked(plan(spec(AXES)).groups)
    assert made.predicted_s > plan(spec(AXES)).predicted_s


def test_groups_can_be_asked_for_by_index_and_slice() -> None:
    made = plan(spec(AXES, rounds=2))

    assert made.groups[-1] == list(made.groups)[-1]
    assert made.groups[1:3] == list(made.groups)[1:3]
    with pytest.raises(IndexError):
        made.groups[len(made.groups)]


def test_a_machine_word_becomes_its_number_once() -> None:
    made = plan(spec({"n_threads": (2, "physical", 4)}))

    assert [g.block.axes for g in made.groups] == [(("n_threads", (2, 4)),)]


def test_nothing_is_planned_twice_on_resume() -> None:
    group = plan(spec({"n_threads": (1, 2, 4), "n_batch": (64, 128)})).groups[0]
    cells = list(group.block.cells())
    rng = random.Random(3)
    done = set(rng.sample(cells, 5))

    left = remaining(group, lambda cell: cell in done)

    assert Counter(c for g in left for c in g.block.cells()) == Counter(set(cells) - done)
    assert {g.build.label for g in left} == {"one"}
    assert remaining(group, None) == [group]
    assert remaining(group, lambda _: False) == [group]
    assert remaining(group, lambda _: True) == []


# -- prediction


def block_of(axes: dict[str, tuple[Any, ...]], tests: tuple[Test, ...] = (PP, TG)) -> Block:
    return Block(model=model().source, axes=ordered_axes(axes), tests=tests)


def test_several_streams_read_all_their_prompts_and_take_longer_steps() -> None:
    """By hand: 4 x 512 / 256 = 8 s for the prompts, 128 x (1 / 16 + 3 / 256) = 9.5 s for the steps."""
    keys = {
        RateKey(model_identity=model().identity, kind=kind, n_depth=0, n_threads=None): tps
        for kind, tps in (("pp", 256.0), ("tg", 16.0))
    }
    rates = Rates(history=keys)
    cost = group_cost(model(), block_of({"concurrency": (4,)}), rates, repetitions=1, warmup=False)
    assert cost.cells_s == pytest.approx(8 + 9.5)
    sweep = spec({"concurrency": (1, 4)}, repetitions=1, warmup=False, engine="llama-server")
    alone = plan(spec(repetitions=1, warmup=False, engine="llama-server"), rates=rates)
    both_s = alone.predicted_s + cost.once_s + cost.cells_s
    assert plan(sweep, rates=rates).predicted_s == pytest.approx(both_s)


def test_a_group_costs_what_the_worked_example_says() -> None:
    rates = Rates(
        history={
            RateKey(model_identity=model().identity, kind=kind, n_depth=0, n_threads=1): tps
            for kind, tps in (("pp", 100.0), ("tg", 10.0))
        },
        read_bytes_per_s=1e9,
    )

    cost = group_cost(model(), block_of({"n_threads": (1,)}), rates, repetitions=5, warmup=True)

    # load 0.05 + 1.0; pp512: 6 x 5.12; tg128: 5 x 12.8 + 0.1
    assert cost.once_s == pytest.approx(1.05)
    assert cost.cells_s == pytest.approx(6 * 5.12 + 5 * 12.8 + 0.1)
    assert cost.basis == ("measured before",)


def test_a_conversation_is_had_once_for_all_its_turns() -> None:
    rates = Rates(
        history={
            RateKey(model_identity=model().identity, kind=kind, n_depth=0, n_threads=None): tps
            for kind, tps in (("pp", 100.0), ("tg", 10.0))
        }
    )
    test = Test(n_prompt=100, n_gen=20)
    cost = {
        turns: group_cost(
            model(), block_of({"turn": turns}, (test,)), rates, repetitions=1, warmup=False
        ).cells_s
        for turns in ((1,), (3,), (1, 2, 3))
    }

    # three turns read 100, 220 and 340 tokens and write 20 each
    assert cost[1,] == pytest.approx(1 + 2)
    assert cost[3,] == cost[1, 2, 3] == pytest.approx(6.6 + 6)


def test_a_warm_prompt_costs_what_asking_it_before_takes() -> None:
    rates = Rates(
        history={
            RateKey(model_identity=model().identity, kind=kind, n_depth=0, n_threads=None): tps
            for kind, tps in (("pp", 100.0), ("tg", 10.0))
        }
    )

    def cells_s(axes: dict[str, tuple[Any, ...]], *, warmup: bool = False) -> float:
        block = block_of(axes, (Test(n_prompt=100, n_gen=20),))
        return group_cost(model(), block, rates, repetitions=2, warmup=warmup).cells_s

    for n_streams in (1, 4):
        streams = {"concurrency": (n_streams,)}
        warm = {**streams, "prompt_cache": ("warm",)}
        cold_s, warm_s = cells_s(streams), cells_s(warm)
        # each stream alone: 1 s for its prompt and 2 s for its answer, before each of two repetitions
        assert warm_s - cold_s == pytest.approx(2 * n_streams * 3)
        both_s = cells_s({**streams, "prompt_cache": ("cold", "warm")})
        assert both_s == pytest.approx(cold_s + warm_s)
        more_s = cells_s(warm, warmup=True) - cells_s(streams, warmup=True)
        assert more_s == pytest.approx(3 * n_streams * 3)
    turns = {"turn": (1, 2)}
    assert cells_s({**turns, "prompt_cache": ("warm",)}) == cells_s(turns)


@pytest.mark.parametrize("warmup", [True, False])
def test_prediction_by_factors_equals_the_sum_over_cells(warmup: bool) -> None:
    history = {
        RateKey(model_identity=model().identity, kind=kind, n_depth=d, n_threads=t): tps * t
        for kind, tps in (("pp", 100.0), ("tg", 10.0))
        for d in (0, 1024)
        for t in (1, 2)
    }
    rates = Rates(history=history)
    sweep = spec(AXES, warmup=warmup, repetitions=3)

    made = plan(sweep, rates=rates)

    by_group = 0.0
    for group in made.groups:
        costs = [
            group_cost(
                group.model,
                Block(
                    model=cell.model,
                    axes=tuple((k, (v,)) for k, v in cell.params),
                    tests=(cell.test,),
                ),
                rates,
                repetitions=3,
                warmup=warmup,
            )
            for cell in group.block.cells()
        ]
        by_group += costs[0].once_s + sum(cost.cells_s for cost in costs)
    assert made.predicted_s == pytest.approx(by_group)


def test_pencil_is_named_as_such_and_says_when_it_guesses() -> None:
    unknown = plan(spec()).basis
    known = plan(spec(), rates=Rates(bandwidth_bytes_per_s=51.2e9, flop_per_s=1e12)).basis

    assert all("guess" in sentence for sentence in unknown)
    assert any("51.2 GB/s" in sentence for sentence in known)
    assert not any("guess" in sentence for sentence in known)


def test_pencil_follows_its_formula() -> None:
    rates = Rates(bandwidth_bytes_per_s=50e9, flop_per_s=1e12)

    assert rates.rate(model(), "tg", 0, None).tps == pytest.approx(0.6 * 50)
    assert rates.rate(model(), "tg", 1000, None).tps == pytest.approx(
        0.6 * 50e9 / (1e9 + 131_072_000)
    )
    assert rates.rate(model(), "pp", 0, None).tps == pytest.approx(0.6 * 1e12 / 4e9, rel=1e-3)


def test_rates_learn_from_the_run() -> None:
    first, other = model("a"), model("b", size_bytes=2_000_000_000)
    rates = Rates(bandwidth_bytes_per_s=50e9)
    before = rates.rate(other, "tg", 0, 2).tps

    learned = rates.updated(
        [
            Measured(model=first, kind="tg", n_depth=0, n_threads=2, tps=15.0),
            Measured(model=first, kind="tg", n_depth=64, n_threads=2, tps=float("nan")),
            Measured(model=first, kind="pg", n_depth=64, n_threads=2, tps=1.0),
        ]
    )

    assert learned.rate(first, "tg", 0, 2).tps == 15.0
    assert learned.rate(other, "tg", 0, 2).tps == pytest.approx(before * 15 / 30)
    deeper = learned.rate(first, "tg", 1000, 2)
    assert deeper.tps == pytest.approx(15 * 1e9 / (1e9 + 131_072_000))
    assert deeper.basis == "measured before at other depths or threads"


@pytest.mark.parametrize("order", ["grouped", "interleaved"])
def test_eta_falls_from_the_whole_to_nothing(order: str) -> None:
    rates = Rates()
    made = plan(spec(AXES, rounds=2, order=order), models=MODELS, rates=rates)

    etas = [made.remaining_s(n, rates) for n in range(len(made.groups) + 1)]

    assert etas[0] == pytest.approx(made.predicted_s)
    assert etas == sorted(etas, reverse=True)
    assert etas[-1] == pytest.approx(0, abs=1e-6)


# -- memory


def test_kv_cache_of_the_worked_example() -> None:
    facts = model().facts
    assert facts is not None
    assert context_bytes(facts, 0) == 0
    assert context_bytes(facts, 4096) == 4096 * 131_072
    assert token_bytes(facts, 4096) == 1e9 + 4096 * 131_072
    assert prompt_flop(facts, 0) == 2 * 2e9 + 32 * 2 * 32 * 256


def test_experts_count_by_the_share_that_is_used() -> None:
    tensor = TensorInfo(
        name="blk.0.ffn_up_exps.weight", ne=(10, 10, 8), ggml_type="q8_0", n_bytes=800_000_000
    )
    experts = (("llama.expert_count", 8), ("llama.expert_used_count", 2))
    facts = model(tensors=(tensor,), metadata=(*METADATA, *experts)).facts
    assert facts is not None
    assert token_bytes(facts, 0) == 200_000_000
    assert prompt_flop(facts, 0) > 0


def test_a_model_that_is_not_modelled_is_still_predicted_from_its_size() -> None:
    tensor = TensorInfo(
        name="blk.0.ffn_up_exps.weight", ne=(10, 10, 8), ggml_type="q8_0", n_bytes=800_000_000
    )
    facts = model(tensors=(tensor,), metadata=(), experts=(8, 2)).facts
    assert facts is not None
    facts = dataclasses.replace(facts, arch="unheard-of", n_params=1000)
    assert token_bytes(facts, 4096) == pytest.approx(200_000_000 + 200_000_000)
    assert prompt_flop(facts, 4096) == 2 * (1000 - 800 * 3 / 4)
    assert context_bytes(facts, 4096) == 0
    assert prompt_flop(dataclasses.replace(facts, n_expert=0), 0) == 2000


@pytest.mark.parametrize(
    ("ram_bytes", "word"),
    [(None, None), (10**10, None), (1_200_000_000, "KV cache"), (10**8, "weights alone")],
)
def test_memory_that_does_not_fit_is_said(ram_bytes: int | None, word: str | None) -> None:
    warning = memory_warning(model(), [block_of({"n_depth": (0, 4096)})], ram_bytes)

    assert (warning is None) == (word is None)
    if word:
        assert word in str(warning)


def test_a_context_that_is_not_modelled_is_called_so() -> None:
    broken = model(metadata=(("llama.attention.head_count", "many"),))

    warning = memory_warning(broken, [block_of({})], 10**12)

    assert "not known" in str(warning)
    assert "llama.attention.head_count" in str(warning)


def test_a_vocabulary_of_unknown_size_is_no_vocabulary_of_none() -> None:
    whole = model()
    assert whole.facts is not None
    unknown = dataclasses.replace(whole, facts=dataclasses.replace(whole.facts, n_vocab=None))

    warning = memory_warning(unknown, [block_of({})], 10**12)

    assert "what its context takes is not known" in str(warning)
    assert "vocabulary" in str(warning)


def test_settings_that_the_engine_refuses_need_no_memory() -> None:
    axes = {"type_v": ("q8_0",), "flash_attn": ("off", "on"), "n_depth": (8192,)}
    needed = 1_000_000_000 + 8704 * 65_536 * (1 + 34 / 64)

    assert memory_warning(model(), [block_of(axes)], round(needed) + 10**9) is None
    assert memory_warning(model(), [block_of(axes)], round(needed)) is not None
    refused = {**axes, "flash_attn": ("off",)}
    assert memory_warning(model(), [block_of(refused)], 1_000_000_001) is None


def test_nothing_to_measure_is_no_time() -> None:
    made = plan(spec(), models=[model(problem="gone")])

    assert len(made.groups) == 0
    assert made.remaining_s(0, Rates()) == made.predicted_s == 0.0


def test_plan_carries_the_memory_warning() -> None:
    made = plan(spec(), surroundings=Surroundings(words={}, ram_bytes=1000))

    assert len(made.warnings) == 1


def test_cells_of_a_group_are_the_cells_of_its_block() -> None:
    group = plan(spec({"n_threads": (1, 2)})).groups[0]
    assert isinstance(next(group.block.cells()), Cell)
    assert group.n_cells == 4
