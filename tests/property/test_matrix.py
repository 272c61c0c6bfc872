"""The matrix by rectangles equals a naive enumeration of cells, whatever is excluded and included."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from llamasweep.sweep.blocks import Restriction, decompose, joined, overlay, ranks, split
from llamasweep.sweep.cell import Block, Cell, Test, cell_id, ordered_axes
from llamasweep.sweep.matrix import expand
from llamasweep.sweep.spec import Condition, Exclude, Include, ModelEntry, SweepSpec
from llamasweep.sweep.subjects import ModelSource

QUICK = settings(max_examples=80, deadline=None)  # other processes share the machine
MODELS = [ModelSource(label="a Q4_0", quant_asked="Q4_0"), ModelSource(label="b")]
TESTS = (
    Test(n_prompt=8, n_gen=0),
    Test(n_prompt=16, n_gen=0),
    Test(n_prompt=0, n_gen=4),
    Test(n_prompt=8, n_gen=4),
)
DOMAIN: dict[str, tuple[Any, ...]] = {
    "n_gpu_layers": (0, 1, 2),
    "n_threads": (1, 2, 4),
    "flash_attn": ("on", "off"),
    "n_depth": (0, 8, 16),
}


def subsets(values: tuple[Any, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, unique=True).map(tuple)


axes_maps = st.fixed_dictionaries({}, optional={k: subsets(v) for k, v in DOMAIN.items()})
tests_tuples = subsets(TESTS).map(
    lambda tests: tuple(sorted(tests, key=lambda t: ("pp", "tg", "pg").index(t.kind)))
)


def conditions(values: tuple[Any, ...]) -> st.SearchStrategy[Condition]:
    some = subsets(values).map(lambda v: Condition(values=v))
    other = st.sampled_from(values).map(lambda v: Condition(operator="!=", values=(v,)))
    if not isinstance(values[0], int):
        return some | other
    compared = st.builds(
        lambda op, v: Condition(operator=op, values=(v,)),
        st.sampled_from([">", ">=", "<", "<="]),
        st.sampled_from(values),
    )
    return some | other | compared


excludes = st.fixed_dictionaries(
    {},
    optional={
        **{k: conditions(v) for k, v in DOMAIN.items()},
        "model": st.sampled_from(["a", "b", "a*"]).map(lambda m: Condition(values=(m,))),
        "n_gen": conditions((0, 4)),
    },
).map(lambda where: Exclude(where=tuple(sorted(where.items()))))
includes = st.builds(
    lambda axes, models, tests: Include(axes=ordered_axes(axes), models=models, tests=tests),
    axes_maps,
    st.sampled_from([(), ("a",), ("b",)]),
    st.just(()) | tests_tuples,
)


def specification(**given_keys: Any) -> SweepSpec:
    return SweepSpec(name="t", models=(ModelEntry(path="x"),), **given_keys)


Point = tuple[ModelSource, Test, frozenset[tuple[str, Any]]]


def point(cell: Cell) -> Point:
    return cell.model, cell.test, frozenset(cell.params)


def points(blocks: Iterable[Block]) -> list[Point]:
    return [point(cell) for block in blocks for cell in block.cells()]


def naive_product(axes: dict[str, tuple[Any, ...]], tests: tuple[Test, ...]) -> list[Any]:
    combinations = [
        dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
    ]
    return [[m, t, dict(c)] for m in MODELS for c in combinations for t in tests]


def is_named(model: ModelSource, pattern: str) -> bool:
    return model.label.startswith(pattern.rstrip("*"))


def naive_excluded(cell: Any, exclude: Exclude) -> bool:
    model, test, params = cell
    for key, condition in exclude.where:
        if key == "model":
            met = is_named(model, str(condition.values[0]))
        elif key == "n_gen":
            met = condition.holds(test.n_gen)
        else:
            met = key in params and condition.holds(params[key])
        if not met:
            return False
    return True


def naive_include(
    cells: list[Any], extras: list[Any], include: Include, own: set[str], tests: tuple[Test, ...]
) -> None:
    axes = dict(include.axes)
    owned = [[(k, v) for v in axes[k]] for k in axes if k in own]
    added = {k: axes[k] for k in axes if k not in own}
    models = [m for m in MODELS if not include.models or is_named(m, include.models[0])]
    for wanted in itertools.product(*owned):
        for test in include.tests or (None,):
            met = [
                cell
                for cell in cells
                if cell[0] in models
                and (test is None or cell[1] == test)
                and all(cell[2][k] == v for k, v in wanted)
            ]
            variants = [
                dict(zip(added, v, strict=True)) for v in itertools.product(*added.values())
            ]
            if not met:
                base = {"n_depth": 0} if "n_depth" in own else {}
                for model, one, more in itertools.product(
                    models, (test,) if test else tests, variants
                ):
                    extras.append([model, one, {**base, **dict(wanted), **more}])
                continue
            seen = set()
            for cell in met:
                cells.remove(cell)
                for more in variants:
                    new = [cell[0], cell[1], {**cell[2], **more}]
                    key = (new[0], new[1], frozenset(new[2].items()))
                    if key not in seen:
                        seen.add(key)
                        cells.append(new)


@QUICK
@given(axes_maps, tests_tuples, st.lists(excludes, max_size=3), st.lists(includes, max_size=2))
def test_expansion_equals_the_naive_enumeration(
    axes: dict[str, tuple[Any, ...]],
    tests: tuple[Test, ...],
    excluded: list[Exclude],
    included: list[Include],
) -> None:
    excluded = [e for e in excluded if e.where]
    cells = naive_product(axes, tests)
    cells = [c for c in cells if not any(naive_excluded(c, e) for e in excluded)]
    extras: list[Any] = []
    for include in included:
        naive_include(cells, extras, include, set(axes), tests)
    expected = {(m, t, frozenset(p.items())) for m, t, p in [*cells, *extras]}

    spec = specification(
        tests=tests, axes=ordered_axes(axes), exclude=tuple(excluded), include=tuple(included)
    )
    blocks = expand(spec, MODELS, {})

    found = points(blocks)
    assert len(found) == len(set(found)), "blocks overlap"
    assert set(found) == expected
    assert sum(block.n_cells for block in blocks) == len(expected)


restrictions = st.lists(
    st.builds(
        lambda where: Restriction(reason="no", where={k: frozenset(v) for k, v in where.items()}),
        axes_maps,
    ),
    max_size=3,
)


@QUICK
@given(axes_maps, tests_tuples, restrictions)
def test_split_keeps_every_cell_once_and_gives_the_first_reason(
    axes: dict[str, tuple[Any, ...]], tests: tuple[Test, ...], limits: list[Restriction]
) -> None:
    block = Block(model=MODELS[0], axes=ordered_axes(axes), tests=tests)

    allowed, refused = split(block, limits)

    def is_refused(cell: Cell) -> bool:
        params = dict(cell.params)
        return any(
            all(k in params and params[k] in v for k, v in limit.where.items()) for limit in limits
        )

    expected = {point(c) for c in block.cells() if is_refused(c)}
    assert sorted(map(repr, points([b for b, _ in refused]))) == sorted(map(repr, expected))
    assert len(points(allowed)) + len(expected) == block.n_cells
    assert not expected & set(points(allowed))


@QUICK
@given(axes_maps, tests_tuples, st.integers(0, 2**32), st.floats(0, 1))
def test_decomposition_covers_exactly_the_cells_it_was_given(
    axes: dict[str, tuple[Any, ...]], tests: tuple[Test, ...], seed: int, share: float
) -> None:
    rng = random.Random(seed)
    block = Block(model=MODELS[0], axes=ordered_axes(axes), tests=tests)
    cells = [cell for cell in block.cells() if rng.random() < share]

    blocks = decompose(cells)

    assert sorted(map(repr, points(blocks))) == sorted(repr(point(c)) for c in cells)
    if len(cells) == block.n_cells:
        assert len(blocks) == 1


@QUICK
@given(axes_maps, tests_tuples, st.integers(min_value=0))
def test_what_a_crash_leaves_over_is_one_block_per_axis_at_most(
    axes: dict[str, tuple[Any, ...]], tests: tuple[Test, ...], n_done: int
) -> None:
    block = Block(model=MODELS[0], axes=ordered_axes(axes), tests=tests)
    left = list(block.cells())[n_done % block.n_cells :]

    assert len(decompose(left)) <= len(axes) + 1


@QUICK
@given(st.lists(st.tuples(axes_maps, tests_tuples), max_size=4))
def test_overlay_gives_each_cell_all_its_fragments(
    fragments: list[tuple[dict[str, tuple[Any, ...]], tuple[Test, ...]]],
) -> None:
    full = [
        (Block(model=MODELS[0], axes=ordered_axes({**DOMAIN, **axes}), tests=tests), i)
        for i, (axes, tests) in enumerate(fragments)
    ]

    parts = overlay(full)

    found = [(p, payloads) for block, payloads in parts for p in points([block])]
    assert len({p for p, _ in found}) == len(found)
    held = [set(points([block])) for block, _ in full]
    for cell, payloads in found:
        assert list(payloads) == [i for i, cells in enumerate(held) if cell in cells]
    assert {p for p, _ in found} == set().union(*held)


@QUICK
@given(axes_maps, tests_tuples, restrictions)
def test_joining_changes_no_cell(
    axes: dict[str, tuple[Any, ...]], tests: tuple[Test, ...], limits: list[Restriction]
) -> None:
    block = Block(model=MODELS[0], axes=ordered_axes(axes), tests=tests)
    pieces, _ = split(block, limits)

    fewer = joined(pieces, ranks([block]))

    assert sorted(map(repr, points(fewer))) == sorted(map(repr, points(pieces)))
    assert len(fewer) <= max(len(pieces), 0)


@QUICK
@given(axes_maps, tests_tuples, st.randoms(use_true_random=False))
def test_cell_id_does_not_depend_on_the_order_of_parameters(
    axes: dict[str, tuple[Any, ...]], tests: tuple[Test, ...], rng: random.Random
) -> None:
    block = Block(model=MODELS[0], axes=ordered_axes(axes), tests=tests)
    ids = set()
    for cell in block.cells():
        params = list(cell.params)
        rng.shuffle(params)
        shuffled = Cell(model=cell.model, test=cell.test, params=tuple(params))
        assert cell_id(cell, "m") == cell_id(shuffled, "m")
        ids.add(cell_id(cell, "m"))
    assert len(ids) == block.n_cells
