"""Algebra of blocks: cutting a rectangle out, joining rectangles, laying them over each other. Pure.

A block is a rectangle in the space of its axes and its tests (dimension `test`), so that a million
cells are cut and joined at the price of their axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from llamasweep.sweep.cell import Block, Cell, Test, in_bench_order, ordered_axes
from llamasweep.sweep.parameters import Scalar

TEST = "test"

Where = Mapping[str, frozenset[Any]]
"""A rectangle: axis (or `test`) -> allowed values. An axis that is not named is not restricted."""

Ranks = Mapping[str, Mapping[Any, int]]
"""Axis (or `test`) -> value -> place in which it is to run."""

Payload = TypeVar("Payload")


@dataclass(frozen=True, kw_only=True, slots=True)
class Restriction:
    """Cells that cannot run: those that lie in `where`, all of them if it is empty; and why.

    A block that lacks one of the axes of `where` is not touched.
    """

    reason: str
    where: Where


def values_of(block: Block, name: str) -> tuple[Any, ...] | None:
    """Values of an axis or of `test`; None where the block does not have the axis."""
    if name == TEST:
        return block.tests
    return next((values for axis, values in block.axes if axis == name), None)


def with_values(block: Block, name: str, values: tuple[Any, ...]) -> Block:
    """The block with one axis (or `test`) set, added where it is missing."""
    if name == TEST:
        return replace(block, tests=values)
    if any(axis == name for axis, _ in block.axes):
        axes = tuple((axis, values if axis == name else old) for axis, old in block.axes)
        return replace(block, axes=axes)
    return replace(block, axes=ordered_axes({**dict(block.axes), name: values}))


def names_of(block: Block) -> tuple[str, ...]:
    """Names of its axes, without `test`."""
    return tuple(axis for axis, _ in block.axes)


def region(block: Block) -> dict[str, frozenset[Any]]:
    """The rectangle that the block covers."""
    return {TEST: frozenset(block.tests), **{axis: frozenset(v) for axis, v in block.axes}}


def cut(block: Block, where: Where) -> tuple[Block | None, list[Block]]:
    """(the part inside `where` or None, what is left as disjoint blocks, at most one per restricted axis)."""
    inside: dict[str, tuple[Any, ...]] = {}
    for name, allowed in where.items():
        kept = tuple(v for v in values_of(block, name) or () if v in allowed)
        if not kept:
            return None, [block]
        inside[name] = kept
    outside: list[Block] = []
    rest = block
    for name, kept in inside.items():
        values = values_of(rest, name) or ()
        if len(kept) < len(values):
            inner = frozenset(kept)
            outside.append(with_values(rest, name, tuple(v for v in values if v not in inner)))
            rest = with_values(rest, name, kept)
    return rest, outside


def split(
    block: Block, restrictions: Sequence[Restriction]
) -> tuple[list[Block], list[tuple[Block, str]]]:
    """(blocks that can run, blocks that cannot with the first reason that meets them); disjoint, together `block`."""
    allowed, refused = [block], []
    for restriction in restrictions:
        left: list[Block] = []
        for piece in allowed:
            inside, outside = cut(piece, restriction.where)
            left += outside
            if inside is not None:
                refused.append((inside, restriction.reason))
        allowed = left
    return allowed, refused


def without(blocks: Iterable[Block], others: Iterable[Block]) -> list[Block]:
    """`blocks` without the cells that `others` hold; blocks of other axes or models share no cell."""
    left = list(blocks)
    for other in others:
        where, names = region(other), names_of(other)
        left = [
            piece
            for block in left
            for piece in (
                cut(block, where)[1]
                if block.model == other.model and names_of(block) == names
                else [block]
            )
        ]
    return left


def overlay(fragments: Iterable[tuple[Block, Payload]]) -> list[tuple[Block, tuple[Payload, ...]]]:
    """Disjoint blocks, each with the payloads of all fragments that cover it, in order.

    All fragments must have the same model and the same axes.
    """
    parts: list[tuple[Block, tuple[Payload, ...]]] = []
    for fragment, payload in fragments:
        pending, result = [fragment], []
        for covered, payloads in parts:
            shared, pending = _intersect(pending, covered)
            result += [(piece, (*payloads, payload)) for piece in shared]
            result += [(piece, payloads) for piece in without([covered], shared)]
        parts = result + [(piece, (payload,)) for piece in pending]
    return parts


def _intersect(pieces: list[Block], covered: Block) -> tuple[list[Block], list[Block]]:
    """(parts of the pieces that lie in `covered`, parts that do not)."""
    where = region(covered)
    shared: list[Block] = []
    left: list[Block] = []
    for piece in pieces:
        inside, outside = cut(piece, where)
        left += outside
        if inside is not None:
            shared.append(inside)
    return shared, left


def ranks(blocks: Iterable[Block]) -> dict[str, dict[Any, int]]:
    """Order of first appearance of every value of every axis."""
    found: dict[str, dict[Any, int]] = {}
    for block in blocks:
        for name in (TEST, *names_of(block)):
            known = found.setdefault(name, {})
            for value in values_of(block, name) or ():
                known.setdefault(value, len(known))
    return found


def joined(blocks: Sequence[Block], order: Ranks) -> list[Block]:
    """The same cells in fewer blocks: those that differ in one axis only become one, until none do.

    Values stand in `order`; blocks must be disjoint and share model and axes.
    """
    current = list(blocks)
    while len(current) > 1:
        before = len(current)
        for name in (TEST, *reversed(names_of(current[0]))):
            current = _joined_along(current, name, order)
        if len(current) == before:
            break
    return current


def _joined_along(blocks: list[Block], name: str, order: Ranks) -> list[Block]:
    rank = order[name]
    groups: dict[tuple[Any, ...], list[Any]] = {}
    first: dict[tuple[Any, ...], Block] = {}
    for block in blocks:
        others = tuple(axis for axis in block.axes if axis[0] != name)
        key = (others, () if name == TEST else block.tests)
        groups.setdefault(key, []).extend(values_of(block, name) or ())
        first.setdefault(key, block)
    return [
        with_values(first[key], name, tuple(sorted(values, key=rank.__getitem__)))
        for key, values in groups.items()
    ]


def decompose(cells: Iterable[Cell]) -> list[Block]:
    """Few disjoint blocks that hold exactly these cells, values in the order of first appearance.

    For what is left after a crash or a resume; cells must be distinct.
    """
    tests: dict[tuple[Any, str, tuple[tuple[str, Scalar], ...]], list[Test]] = {}
    for cell in cells:
        tests.setdefault((cell.model, cell.engine, cell.params), []).append(cell.test)
    kinds: dict[tuple[Any, tuple[str, ...]], list[Block]] = {}
    for (model, engine, params), of_params in tests.items():
        axes = tuple((name, (value,)) for name, value in params)
        block = Block(model=model, axes=axes, tests=tuple(of_params), engine=engine)
        kinds.setdefault((model, names_of(block)), []).append(block)
    result: list[Block] = []
    for blocks in kinds.values():
        order = ranks(blocks)
        order[TEST] = {test: i for i, test in enumerate(in_bench_order(order[TEST]))}
        result += joined([in_order(block, order) for block in blocks], order)
    return result


def in_order(block: Block, order: Ranks) -> Block:
    """The block with the values of every axis and its tests in `order`."""
    for name in (TEST, *names_of(block)):
        values = values_of(block, name) or ()
        block = with_values(block, name, tuple(sorted(values, key=order[name].__getitem__)))
    return block


def nth_point(
    axes: Sequence[tuple[str, tuple[Scalar, ...]]], index: int
) -> tuple[tuple[str, tuple[Scalar, ...]], ...]:
    """The `index`-th combination of the axes, last axis fastest, each with its one value."""
    point: list[tuple[str, tuple[Scalar, ...]]] = []
    for name, values in reversed(axes):
        index, place = divmod(index, len(values))
        point.append((name, (values[place],)))
    return tuple(reversed(point))


def n_points(axes: Iterable[tuple[str, tuple[Scalar, ...]]]) -> int:
    """Number of combinations."""
    return math.prod(len(values) for _, values in axes)
