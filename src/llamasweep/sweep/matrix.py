"""A sweep's axes -> disjoint blocks of cells: product, exclude, include, and the machine's words. Pure.

Exclude comes first, then include, as in CI matrices. What a build cannot run is cut out later, by
`sweep.plan`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llamasweep.errors import SweepFileError, SweepProblem, UsageError
from llamasweep.sweep.axes import MACHINE_WORDS
from llamasweep.sweep.blocks import (
    TEST,
    Restriction,
    Where,
    cut,
    decompose,
    split,
    values_of,
    with_values,
    without,
)
from llamasweep.sweep.cell import Block, Test, ordered_axes
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.sources import model_matches
from llamasweep.sweep.spec import AxisValues, Condition, Exclude, Include, SweepSpec
from llamasweep.sweep.subjects import ModelSource

__all__ = ["Restriction", "build_exclusions", "decompose", "expand", "split"]

MAX_BLOCKS = 20_000
MAX_CELLS = 1_000_000

Words = Mapping[str, int]
"""What `physical` and its like mean on this machine."""


def expand(
    spec: SweepSpec,
    models: Sequence[ModelSource],
    words: Words,
    *,
    quant_of: Mapping[ModelSource, str] | None = None,
) -> list[Block]:
    """Every cell of the sweep, as disjoint blocks, model by model in the order given.

    words: see `Words`; one that the sweep uses and the machine does not know raises SweepFileError.
    Raises UsageError for a sweep of more than `MAX_CELLS`, which nobody lives to see the end of.
    quant_of: quantisation that the file of a model tells, for `quant:` in include and exclude; the
    one asked for where a model is not in it. Excludes that name a build are left to
    `plan.make_plan`.
    """
    matrix = _Matrix(spec, models, words, quant_of or {})
    blocks = list(matrix.product())
    for index, exclude in enumerate(spec.exclude):
        if not any(key == "build" for key, _ in exclude.where):
            blocks = matrix.without_excluded(blocks, exclude, index)
    extras: list[Block] = []
    for index, include in enumerate(spec.include):
        for one in _single_valued(include, matrix.own_axes):
            blocks, extra = matrix.with_included(blocks, one, index)
            extras += without(extra, [*blocks, *extras])
    n_cells = sum(block.n_cells for block in (*blocks, *extras))
    if n_cells > MAX_CELLS:
        raise UsageError(
            f"the sweep has {n_cells:,} cells; {MAX_CELLS:,} are the most",
            hint="Give the axes fewer values, or split the sweep.",
        )
    place = {model: i for i, model in enumerate(models)}
    return sorted([*blocks, *extras], key=lambda block: place[block.model])


def build_exclusions(
    spec: SweepSpec,
    build_label: str,
    block: Block,
    words: Words,
    quant_of: Mapping[ModelSource, str] | None = None,
) -> list[Where]:
    """Parts of a block that the sweep leaves out for this build."""
    matrix = _Matrix(spec, [block.model], words, quant_of or {})
    found: list[Where] = []
    for index, exclude in enumerate(spec.exclude):
        conditions = dict(exclude.where)
        build = conditions.pop("build", None)
        if build is not None and build.holds(build_label):
            where = matrix.where(block, conditions, f"exclude[{index}]")
            if where is not None:
                found.append(where)
    return found


class _Matrix:
    """The product of a sweep and what is taken from it and added to it."""

    def __init__(
        self,
        spec: SweepSpec,
        models: Sequence[ModelSource],
        words: Words,
        quant_of: Mapping[ModelSource, str],
    ) -> None:
        self.spec, self.models, self.words, self.quant_of = spec, models, words, quant_of
        coupled = ("type_k", "type_v") if spec.kv_types else ()
        self.own_axes = frozenset((*(name for name, _ in spec.axes), *coupled))

    def product(self) -> Iterator[Block]:
        own = self._resolved(self.spec.axes, "matrix")
        for model in self.models:
            for kv_type in self.spec.kv_types or (None,):
                axes = dict(own)
                if kv_type is not None:
                    axes |= {"type_k": (kv_type,), "type_v": (kv_type,)}
                yield Block(
                    model=model,
                    axes=ordered_axes(axes),
                    tests=self.spec.tests,
                    engine=self.spec.engine,
                )

    def without_excluded(self, blocks: list[Block], exclude: Exclude, index: int) -> list[Block]:
        left: list[Block] = []
        for block in blocks:
            where = self.where(block, dict(exclude.where), f"exclude[{index}]")
            left += [block] if where is None else cut(block, where)[1]
        if len(left) > MAX_BLOCKS:
            raise UsageError(
                f"the excludes cut the matrix into more than {MAX_BLOCKS:,} pieces",
                hint="Write fewer, larger excludes, or split the sweep.",
            )
        return left

    def where(self, block: Block, conditions: Mapping[str, Condition], place: str) -> Where | None:
        """The rectangle of a block in which all conditions hold; None where there is none."""
        where: dict[str, frozenset[Any]] = {}
        for key, condition in conditions.items():
            if key in ("model", "quant"):
                if not self._subject_meets(block.model, key, condition):
                    return None
                continue
            name = TEST if key in ("test", "n_prompt", "n_gen") else key
            met = self._values_meeting(block, key, condition, f"{place}.{key}")
            where[name] = where[name] & met if name in where else met
            if not where[name]:
                return None
        return where

    def _subject_meets(self, model: ModelSource, key: str, condition: Condition) -> bool:
        if key == "model":
            met = any(model_matches(model, str(pattern)) for pattern in condition.values)
        else:
            met = self._quant(model) in {str(value).casefold() for value in condition.values}
        return met != (condition.operator == "!=")

    def _quant(self, model: ModelSource) -> str:
        return (self.quant_of.get(model) or model.quant_asked or "").casefold()

    def _values_meeting(
        self, block: Block, key: str, condition: Condition, place: str
    ) -> frozenset[Any]:
        if key in ("test", "n_prompt", "n_gen"):
            return frozenset(t for t in block.tests if condition.holds(_of_test(t, key)))
        values = tuple(self._number(key, value, place) for value in condition.values)
        resolved = Condition(operator=condition.operator, values=values)
        return frozenset(v for v in values_of(block, key) or () if resolved.holds(v))

    def with_included(
        self, blocks: list[Block], include: Include, index: int
    ) -> tuple[list[Block], list[Block]]:
        """(the matrix with the keys added, extra cells): only one of the two ever changes."""
        axes = dict(self._resolved(include.axes, f"include[{index}]"))
        added = {name: axes[name] for name in axes if name not in self.own_axes}
        where: dict[str, frozenset[Any]] = {
            name: frozenset(axes[name]) for name in axes if name in self.own_axes
        }
        if include.tests:
            where[TEST] = frozenset(include.tests)
        models = {model for model in self.models if self._includes(include, model)}
        if not models:
            raise self._refused(f"include[{index}]", "names no model of this sweep")
        result: list[Block] = []
        is_met = False
        for block in blocks:
            inside, outside = cut(block, where) if block.model in models else (None, [block])
            if inside is not None:
                is_met = True
                for name, values in added.items():
                    inside = with_values(inside, name, values)
                result.append(inside)
            result += outside
        if is_met:
            return result, []
        return blocks, list(self._extra(include, axes, models))

    def _extra(
        self, include: Include, axes: dict[str, tuple[Scalar, ...]], models: set[ModelSource]
    ) -> Iterator[Block]:
        if "n_depth" in self.own_axes:
            axes.setdefault("n_depth", (0,))  # no depth is depth 0: the same question, once
        for model in self.models:
            if model in models:
                tests = include.tests or self.spec.tests
                yield Block(
                    model=model, axes=ordered_axes(axes), tests=tests, engine=self.spec.engine
                )

    def _includes(self, include: Include, model: ModelSource) -> bool:
        is_named = not include.models or any(model_matches(model, m) for m in include.models)
        quants = {quant.casefold() for quant in include.quants}
        return is_named and (not quants or self._quant(model) in quants)

    def _resolved(self, axes: AxisValues, place: str) -> AxisValues:
        """Axes with numbers for words, each value once."""
        return tuple(
            (
                name,
                tuple(dict.fromkeys(self._number(name, v, f"{place}.{name}") for v in values)),
            )
            for name, values in axes
        )

    def _number(self, name: str, value: Scalar, place: str) -> Scalar:
        if not isinstance(value, str) or value not in MACHINE_WORDS.get(name, ()):
            return value
        if value not in self.words:
            raise self._refused(place, f"this machine does not tell what {value!r} is")
        return self.words[value]

    def _refused(self, place: str, message: str) -> SweepFileError:
        file = self.spec.file or "(sweep)"
        return SweepFileError([SweepProblem(file=file, line=None, where=place, message=message)])


def _of_test(test: Test, key: str) -> Scalar:
    if key == "test":
        return test.label
    return test.n_prompt if key == "n_prompt" else test.n_gen


def _single_valued(include: Include, own_axes: frozenset[str]) -> Iterator[Include]:
    """One include per combination of its values on axes of the matrix: each must match by itself."""
    choices = [
        [(name, (value,)) for value in values] if name in own_axes else [(name, values)]
        for name, values in include.axes
    ]
    tests: list[tuple[Test, ...]] = [(test,) for test in include.tests] or [()]
    for *axes, of_tests in itertools.product(*choices, tests):
        yield Include(
            axes=ordered_axes(dict(axes)),  # type: ignore[arg-type]
            models=include.models,
            quants=include.quants,
            tests=of_tests,  # type: ignore[arg-type]
        )
