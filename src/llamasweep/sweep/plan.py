"""Blocks, models and builds -> a plan: groups in order, what cannot run and why, how long it takes. Pure.

Works on factors: a million cells are counted, grouped and predicted without being listed. Resume is
`remaining`, group by group.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from llamasweep.sweep.blocks import Restriction, cut, names_of, overlay, ranks, split, with_values
from llamasweep.sweep.cell import Block
from llamasweep.sweep.footprint import memory_warning
from llamasweep.sweep.grouping import Groups, Part, parts_of, remaining
from llamasweep.sweep.matrix import Words, build_exclusions
from llamasweep.sweep.predict import Rates, group_cost
from llamasweep.sweep.spec import AUTO_FIRST_ROUNDS, AxisValues, SweepSpec
from llamasweep.sweep.subjects import Build, Model, ModelSource

__all__ = ["Groups", "Plan", "Surroundings", "make_plan", "remaining"]

Refusals = Callable[[Block, Model, Build], list[Restriction]]
"""What a build cannot do of a block, with the reason for people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a plan is told of this machine.

    words: meaning of `physical` and its like. ram_bytes: all of its memory, None =
    unknown.
    """

    words: Words
    ram_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a sweep will do.

    groups: processes in the order in which they run, made lazily. unsupported: cells that a build
    cannot run, with the reason; no cell of them is in a group. unreadable: cells of models that
    cannot be read, likewise. n_cells: attempts, over all builds and rounds. n_model_loads: one for
    each process. Both are the most there can be of `rounds: auto`. predicted_s: of all groups, of `rounds: auto` without
    those that confirm. basis: sentences on what the prediction rests on.
    warnings: sentences on what may go wrong.
    """

    groups: Groups
    unsupported: tuple[tuple[Build, Model, Block, str], ...]
    unreadable: tuple[tuple[Build, Model, Block, str], ...]
    n_cells: int
    n_model_loads: int
    predicted_s: float
    basis: tuple[str, ...]
    warnings: tuple[str, ...]
    spec: SweepSpec

    @property
    def n_unsupported(self) -> int:
        """Cells, counted once per build and not per round."""
        return sum(block.n_cells for _, _, block, _ in self.unsupported)

    @property
    def n_unreadable(self) -> int:
        """Cells of models that cannot be read, counted once per build and not per round."""
        return sum(block.n_cells for _, _, block, _ in self.unreadable)

    def remaining_s(self, n_groups_done: int, rates: Rates) -> float:
        """Predicted seconds of the groups after the first `n_groups_done`.

        Exact to the part of a grouped plan, and to the share of the round of an interleaved one.
        """
        per_round = self.groups.n_per_round
        if per_round == 0:
            return 0.0
        done_rounds, place = divmod(n_groups_done, per_round)
        costs = [_part_s(part, self.spec, rates, {}) for part in self.groups.parts]
        whole_s = (_likely_rounds(self.spec, done_rounds) - done_rounds) * sum(costs)
        if self.spec.order == "interleaved":
            return max(0.0, whole_s - sum(costs) * place / per_round)
        part_index, offset = self.groups.part_at(place)
        done_s = sum(costs[:part_index])
        if offset:
            done_s += costs[part_index] * offset / self.groups.n_in_part(part_index)
        return max(0.0, whole_s - done_s)


def make_plan(
    spec: SweepSpec,
    blocks: Sequence[Block],
    *,
    models: Mapping[ModelSource, Model],
    builds: Sequence[Build],
    restrictions: Refusals,
    rates: Rates,
    surroundings: Surroundings | None = None,
) -> Plan:
    """The plan of a sweep whose matrix is `blocks` (of `matrix.expand`).

    models: what each source turned out to be. restrictions: what a build cannot run; asked once
    per block, model and build.
    """
    around = surroundings or Surroundings(words={})
    draft = _Draft(spec, builds, restrictions, around)
    by_model: dict[ModelSource, list[Block]] = {}
    for block in blocks:
        by_model.setdefault(block.model, []).append(block)
    for source, of_model in by_model.items():
        draft.add(models[source], of_model)
    basis: dict[str, None] = {}
    predicted_s = _likely_rounds(spec, 0) * sum(
        _part_s(part, spec, rates, basis) for part in draft.parts
    )
    groups = Groups(
        draft.parts,
        rounds=spec.n_rounds,
        order=spec.order,
        isolation=spec.isolation,
        seed=spec.seed,
    )
    return Plan(
        groups=groups,
        unsupported=tuple(draft.unsupported),
        unreadable=tuple(draft.unreadable),
        n_cells=spec.n_rounds * sum(part.n_cells * len(part.builds) for part in draft.parts),
        n_model_loads=len(groups),
        predicted_s=predicted_s,
        basis=tuple(basis),
        warnings=tuple(draft.warnings),
        spec=spec,
    )


class _Draft:
    """Collects parts and what cannot run, model by model."""

    def __init__(
        self,
        spec: SweepSpec,
        builds: Sequence[Build],
        restrictions: Refusals,
        around: Surroundings,
    ) -> None:
        self.spec, self.builds, self.restrictions, self.around = spec, builds, restrictions, around
        self.parts: list[Part] = []
        self.unsupported: list[tuple[Build, Model, Block, str]] = []
        self.unreadable: list[tuple[Build, Model, Block, str]] = []
        self.warnings: list[str] = []

    def add(self, model: Model, blocks: list[Block]) -> None:
        as_written = Block(
            model=model.source,
            axes=self._numbers(),
            tests=self.spec.tests,
            engine=self.spec.engine,
        )
        order = ranks([as_written, *blocks])
        allowed = [(build, self._allowed(model, build, blocks)) for build in self.builds]
        reason = model.reason_against
        if reason is not None:
            self.unreadable += [(b, model, block, reason) for b, of_b in allowed for block in of_b]
            return
        for builds, shared in self._by_builds(allowed):
            self.parts += parts_of(model, builds, shared, order)
        runnable = [block for _, of_build in allowed for block in of_build]
        warning = memory_warning(model, runnable, self.around.ram_bytes)
        self.warnings += [warning] if warning else []

    def _numbers(self) -> AxisValues:
        """The sweep's axes as written, words as numbers: the order in which values run."""
        words = self.around.words
        return tuple(
            (name, tuple(words.get(v, v) if isinstance(v, str) else v for v in values))
            for name, values in self.spec.axes
        )

    def _allowed(self, model: Model, build: Build, blocks: list[Block]) -> list[Block]:
        """What this build can run of the model's blocks; the rest is noted."""
        quant_of = {model.source: model.facts.quant_short} if model.facts else {}
        allowed: list[Block] = []
        for block in blocks:
            pieces = [block]
            for where in build_exclusions(
                self.spec, build.label, block, self.around.words, quant_of
            ):
                pieces = [left for piece in pieces for left in cut(piece, where)[1]]
            for piece in pieces:
                if model.reason_against is not None:
                    allowed.append(piece)
                    continue
                good, refused = split(piece, self.restrictions(piece, model, build))
                allowed += good
                self.unsupported += [(build, model, bad, reason) for bad, reason in refused]
        return allowed

    def _by_builds(
        self, allowed: list[tuple[Build, list[Block]]]
    ) -> list[tuple[tuple[Build, ...], list[Block]]]:
        """Grouped: each build by itself. Interleaved: what several builds share, so that they can take turns."""
        if self.spec.order == "grouped":
            return [((build,), blocks) for build, blocks in allowed]
        if all(blocks == allowed[0][1] for _, blocks in allowed):
            return [(tuple(build for build, _ in allowed), allowed[0][1])]
        alike: dict[tuple[str, ...], list[tuple[Block, Build]]] = {}
        for build, blocks in allowed:
            for block in blocks:
                alike.setdefault(names_of(block), []).append((block, build))
        shared: dict[tuple[str, ...], tuple[tuple[Build, ...], list[Block]]] = {}
        for fragments in alike.values():
            for block, builds in overlay(fragments):
                key = tuple(build.label for build in builds)
                shared.setdefault(key, (builds, []))[1].append(block)
        return list(shared.values())


def _likely_rounds(spec: SweepSpec, n_done: int) -> int:
    """Rounds to reckon with: of `rounds: auto` those that confirm only once they have begun."""
    if spec.rounds == "auto" and n_done < AUTO_FIRST_ROUNDS:
        return AUTO_FIRST_ROUNDS
    return spec.n_rounds


def _part_s(part: Part, spec: SweepSpec, rates: Rates, basis: dict[str, None]) -> float:
    """Predicted seconds of a part in one round, for all its builds; sentences go to `basis`."""
    depths, streams = part.depths(), part.streams()
    n_keys_each = part.n_keys / len(depths) / len(streams)
    total_s = 0.0
    for n_depth, n_streams in itertools.product(depths, streams):
        for rest in part.rests:
            block = with_values(rest, "n_depth", (n_depth,))
            if n_streams != 1:
                block = with_values(block, "concurrency", (n_streams,))
            cost = group_cost(
                part.model,
                block,
                rates,
                repetitions=spec.repetitions,
                warmup=spec.warmup,
            )
            n_processes = rest.n_cells if spec.isolation == "cell" else 1
            total_s += n_keys_each * (cost.once_s * n_processes + cost.cells_s)
            basis.update(dict.fromkeys(cost.basis))
    return total_s * len(part.builds)
