"""Test, Cell, Block and Group: the question, many questions as a product, and one engine process.

A `Block` is a cartesian product kept as factors, so that a million cells cost as much as their axes. A `Group`
is a block that one engine process can run: same build, model, process and model parameters.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from llamasweep.sweep.parameters import PARAMETERS, Scalar
from llamasweep.sweep.subjects import Build, Model, ModelSource

TestKind = Literal["pp", "tg", "pg"]
_KINDS: tuple[TestKind, ...] = ("pp", "tg", "pg")
_ORDER = {p.name: i for i, p in enumerate(PARAMETERS)}


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Test:
    """One timed shape: n_prompt tokens of prompt, then n_gen generated ones; one of them may be 0."""

    __test__ = False  # not a pytest class

    n_prompt: int
    n_gen: int

    @property
    def kind(self) -> TestKind:
        if self.n_gen == 0:
            return "pp"
        return "tg" if self.n_prompt == 0 else "pg"

    @property
    def label(self) -> str:
        """As llama-bench shows it: pp512, tg128, pp512+tg128."""
        parts = [f"pp{self.n_prompt}"] if self.n_prompt else []
        parts += [f"tg{self.n_gen}"] if self.n_gen else []
        return "+".join(parts)


def in_bench_order(tests: Iterable[Test]) -> tuple[Test, ...]:
    """pp first, then tg, then pg, as llama-bench runs them; the order within a kind is kept."""
    return tuple(sorted(tests, key=lambda test: _KINDS.index(test.kind)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One question: this model, this test, these parameters.

    params: (canonical name, value) in the order of `PARAMETERS`; a parameter that the sweep leaves open is
    absent, and the engine's default rules.
    """

    model: ModelSource
    test: Test
    params: tuple[tuple[str, Scalar], ...]
    engine: str = "llama-bench"

    def get(self, name: str) -> Scalar | None:
        """Requested value, None where the sweep leaves it to the engine."""
        return next((v for k, v in self.params if k == name), None)

    @property
    def n_depth(self) -> int:
        value = self.get("n_depth")
        return int(value) if value is not None else 0  # llama-bench's own default is 0


def cell_id(cell: Cell, model_identity: str) -> str:
    """16 hex digits that name the question: model content, engine kind, parameters and test.

    Build and machine are left out on purpose: the same cell is compared across them. A depth of 0 is the same
    question as no depth.
    """
    params = {k: v for k, v in cell.params if not (k == "n_depth" and v == 0)}
    text = json.dumps(
        {
            "model": model_identity,
            "engine": cell.engine,
            "params": params,
            "n_prompt": cell.test.n_prompt,
            "n_gen": cell.test.n_gen,
        },
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A full product: one model x every combination of `axes` x every test.

    axes: (canonical name, values) in the order of `PARAMETERS`, values distinct and not empty, in the order in
    which they are to run. tests: distinct, pp first, then tg, then pg, as llama-bench runs them.
    """

    model: ModelSource
    axes: tuple[tuple[str, tuple[Scalar, ...]], ...]
    tests: tuple[Test, ...]
    engine: str = "llama-bench"

    @property
    def n_cells(self) -> int:
        return math.prod((len(values) for _, values in self.axes), start=len(self.tests))

    def cells(self) -> Iterator[Cell]:
        """All cells, lazily, in the order in which llama-bench emits them: last axis fastest, tests within."""
        names = [name for name, _ in self.axes]
        for combination in itertools.product(*(values for _, values in self.axes)):
            params = tuple(zip(names, combination, strict=True))
            for test in self.tests:
                yield Cell(model=self.model, test=test, params=params, engine=self.engine)


def ordered_axes(axes: dict[str, tuple[Scalar, ...]]) -> tuple[tuple[str, tuple[Scalar, ...]], ...]:
    """Axes in the order of `PARAMETERS`."""
    return tuple(sorted(axes.items(), key=lambda item: _ORDER[item[0]]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Cells that share one engine process, in one round.

    block: what the process runs. Every process- and model-scope axis has one value, and so have the axes that
    break the saved depth state if there is a depth above 0. round_index: 0-based pass. turn: groups that differ only in build and
    stand in the same turn are taken one after another (`order: interleaved`); None when grouped.
    """

    build: Build
    model: Model
    block: Block
    round_index: int = 0
    turn: int | None = None

    @property
    def n_cells(self) -> int:
        return self.block.n_cells

    @property
    def group_id(self) -> str:
        """12 hex digits: build (content and name, as one binary may have two), model content, block and round."""
        text = json.dumps(
            [
                self.build.content_hash,
                self.build.label,
                self.model.identity,
                self.block.axes,
                [(t.n_prompt, t.n_gen) for t in self.block.tests],
                self.round_index,
            ],
            separators=(",", ":"),
        )
        return hashlib.sha256(text.encode()).hexdigest()[:12]
