"""Blocks -> groups that one engine process or server can run, kept as factors and made one at a time. Pure.

A group has one value of every process- and model-scope axis, and one depth: llama-bench keeps the
saved state of the last depth only, and a crash at a large depth then costs nothing that ran at a
small one. Above depth 0 the axes that break the saved state are split too, and the largest batch
comes first, because it does the prefill. A server has one value of every axis but those of its
requests.
"""

from __future__ import annotations

import bisect
import itertools
import random
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, overload

from llamasweep.sweep.blocks import (
    Ranks,
    cut,
    decompose,
    in_order,
    joined,
    n_points,
    names_of,
    nth_point,
    overlay,
    values_of,
    with_values,
)
from llamasweep.sweep.cell import Block, Cell, Group, Test, ordered_axes
from llamasweep.sweep.parameters import BY_NAME, Scalar
from llamasweep.sweep.subjects import Build, Model

_NO_TEST = (Test(n_prompt=0, n_gen=0),)
_BATCHES = ("n_batch", "n_ubatch")


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Many groups of one model: every combination of `keys` x every block of `rests`, for each of `builds`.

    keys: axes that have one value in a group. rests: what each process then runs, without the keys.
    """

    model: Model
    builds: tuple[Build, ...]
    keys: tuple[tuple[str, tuple[Scalar, ...]], ...]
    rests: tuple[Block, ...]

    @property
    def n_keys(self) -> int:
        return n_points(self.keys)

    @property
    def n_cells(self) -> int:
        """Per build."""
        return self.n_keys * sum(rest.n_cells for rest in self.rests)

    def depths(self) -> tuple[int, ...]:
        """Depths of its groups; (0,) where the sweep has no depth axis."""
        return tuple(int(v) for v in dict(self.keys).get("n_depth", (0,)))

    def streams(self) -> tuple[int, ...]:
        """Numbers of streams of its groups; (1,) where the sweep has no such axis."""
        return tuple(int(v) for v in dict(self.keys).get("concurrency", (1,)))

    def block(self, index: int) -> Block:
        """What the `index`-th process runs; blocks of one key combination are neighbours."""
        key_index, rest_index = divmod(index, len(self.rests))
        rest = self.rests[rest_index]
        point = nth_point(self.keys, key_index)
        return replace(rest, axes=ordered_axes(dict((*rest.axes, *point))))


def key_names(block: Block, *, is_deep: bool) -> tuple[str, ...]:
    """Axes of a block that must have one value in a group; depth first, so that small depths run first."""
    names = [
        name
        for name in names_of(block)
        if BY_NAME[name].scope not in _changeable(block.engine)
        or name == "n_depth"
        or (is_deep and not BY_NAME[name].keeps_depth_state)
    ]
    return tuple(sorted(names, key=lambda name: name != "n_depth"))


def _changeable(engine: str) -> frozenset[str]:
    """Scopes whose axes may vary within one process."""
    return frozenset({"context", "request"} if engine == "llama-bench" else {"request"})


def parts_of(
    model: Model, builds: tuple[Build, ...], blocks: Iterable[Block], order: Ranks
) -> list[Part]:
    """The groups of some disjoint blocks of one model, depth ascending, in as few processes as can be."""
    alike: dict[tuple[bool, tuple[str, ...]], list[Block]] = {}
    for block in (in_order(block, order) for block in blocks):
        shallow, deep = _by_depth(block)
        for piece, is_deep in ((shallow, False), *((d, True) for d in deep)):
            if piece is not None:
                alike.setdefault((is_deep, names_of(piece)), []).append(piece)
    parts: list[Part] = []
    for (is_deep, _), pieces in alike.items():
        names = key_names(pieces[0], is_deep=is_deep)
        merged = joined(pieces, order)
        for keys, rests in overlay((_keys(b, names), _rest(b, names)) for b in merged):
            axes = dict(keys.axes)
            fewer = joined(rests, order)
            if "n_depth" in axes:
                axes["n_depth"] = tuple(sorted(axes["n_depth"]))
            parts.append(
                Part(
                    model=model,
                    builds=builds,
                    keys=tuple((name, axes[name]) for name in names),
                    rests=tuple(_largest_batch_first(r) for r in fewer)
                    if is_deep
                    else tuple(fewer),
                )
            )
    return sorted(parts, key=lambda part: part.depths()[0])


def _by_depth(block: Block) -> tuple[Block | None, list[Block]]:
    if values_of(block, "n_depth") is None:
        return block, []
    return cut(block, {"n_depth": frozenset({0})})


def _keys(block: Block, names: tuple[str, ...]) -> Block:
    axes = tuple(axis for axis in block.axes if axis[0] in names)
    return replace(block, axes=axes, tests=_NO_TEST)


def _rest(block: Block, names: tuple[str, ...]) -> Block:
    return replace(block, axes=tuple(axis for axis in block.axes if axis[0] not in names))


def _largest_batch_first(block: Block) -> Block:
    for name in _BATCHES:
        values = values_of(block, name)
        if values is not None:
            block = with_values(block, name, tuple(sorted(values, reverse=True)))
    return block


class Groups(Sequence[Group]):
    """The groups of a plan in the order in which they run, made when asked for.

    grouped: round by round, part by part, each for one build. interleaved: in each round all
    processes in a random order from the seed, and each for all its builds, in random order, before
    the next.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        rounds: int,
        order: Literal["grouped", "interleaved"],
        isolation: Literal["group", "cell"],
        seed: int,
        first_round: int = 0,
    ) -> None:
        """first_round: index of the first of the rounds."""
        self.parts = tuple(parts)
        self._first_round = first_round
        self._rounds, self._order, self._isolation, self._seed = rounds, order, isolation, seed
        self._n_slots = [self._slots(part) for part in self.parts]
        counts = [n * len(p.builds) for n, p in zip(self._n_slots, self.parts, strict=True)]
        self._ends = list(itertools.accumulate(counts))
        self.n_per_round = self._ends[-1] if self._ends else 0
        self._shuffled = lru_cache(maxsize=2)(self._shuffle)

    def starting_at(self, first_round: int, *, rounds: int) -> Groups:
        """The same processes in so many rounds from that index on."""
        return Groups(
            self.parts,
            rounds=rounds,
            order=self._order,
            isolation=self._isolation,
            seed=self._seed,
            first_round=first_round,
        )

    def _slots(self, part: Part) -> int:
        n_rests = len(part.rests)
        if self._isolation == "cell":
            n_rests = sum(rest.n_cells for rest in part.rests)
        return part.n_keys * n_rests

    def __len__(self) -> int:
        return self.n_per_round * self._rounds

    @overload
    def __getitem__(self, index: int) -> Group: ...
    @overload
    def __getitem__(self, index: slice) -> list[Group]: ...
    def __getitem__(self, index: int | slice) -> Group | list[Group]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        round_index, place = divmod(index % len(self), self.n_per_round)
        round_index += self._first_round
        if self._order == "grouped":
            return self._group(place, round_index, None)
        places, turns = self._shuffled(round_index)
        return self._group(places[place], round_index, turns[place])

    def __iter__(self) -> Iterator[Group]:
        return (self[i] for i in range(len(self)))

    def part_at(self, index: int) -> tuple[int, int]:
        """(part, groups of it that stand before) of a place in a round of a grouped plan."""
        part = bisect.bisect_right(self._ends, index)
        return part, index - (self._ends[part - 1] if part else 0)

    def n_in_part(self, part_index: int) -> int:
        """Groups of a part in one round, over its builds."""
        return self._n_slots[part_index] * len(self.parts[part_index].builds)

    def _group(self, place: int, round_index: int, turn: int | None) -> Group:
        part_index, offset = self.part_at(place)
        part = self.parts[part_index]
        build_index, slot = divmod(offset, self._n_slots[part_index])
        return Group(
            build=part.builds[build_index],
            model=part.model,
            block=self._block(part, slot),
            round_index=round_index,
            turn=turn,
        )

    def _block(self, part: Part, slot: int) -> Block:
        if self._isolation == "group":
            return part.block(slot)
        n_cells = [rest.n_cells for rest in part.rests]
        key_index, cell_index = divmod(slot, sum(n_cells))
        for rest_index, n in enumerate(n_cells):
            if cell_index < n:
                block = part.block(key_index * len(part.rests) + rest_index)
                return _single(block, cell_index)
            cell_index -= n
        raise IndexError(slot)

    def _shuffle(self, round_index: int) -> tuple[array[int], array[int]]:
        """Place in the grouped order, and turn, of each place in the shuffled round."""
        rng = random.Random(f"{self._seed}:{round_index}")  # noqa: S311  (an order, no secret)
        turns = [(p, slot) for p, n in enumerate(self._n_slots) for slot in range(n)]
        rng.shuffle(turns)
        places, turn_of = array("q"), array("q")
        for turn, (part_index, slot) in enumerate(turns):
            start = self._ends[part_index - 1] if part_index else 0
            builds = list(range(len(self.parts[part_index].builds)))
            rng.shuffle(builds)
            for build_index in builds:
                places.append(start + build_index * self._n_slots[part_index] + slot)
                turn_of.append(turn)
        return places, turn_of


def _single(block: Block, index: int) -> Block:
    """The `index`-th cell of a block as a block."""
    axes_index, test_index = divmod(index, len(block.tests))
    axes = nth_point(block.axes, axes_index)
    return replace(block, axes=axes, tests=(block.tests[test_index],))


def remaining(group: Group, is_done: Callable[[Cell], bool] | None) -> list[Group]:
    """What is left of a group: few groups that hold exactly its cells that are not done.

    is_done: None = nothing is done, and the group comes back without a look at its cells.
    """
    if is_done is None:
        return [group]
    left = [cell for cell in group.block.cells() if not is_done(cell)]
    if len(left) == group.n_cells:
        return [group]
    return [replace(group, block=block) for block in decompose(left)]
