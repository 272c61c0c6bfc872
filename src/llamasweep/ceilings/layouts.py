"""Ways to lay a model out on a rig, and what each needs: the search space of `fit`. Pure.

The weights of a layout do not depend on the context, so that each layout is placed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from llamasweep.ceilings.architecture import read_architecture
from llamasweep.ceilings.kv_cache import ContextSettings, context_memory
from llamasweep.ceilings.memory_fit import DeviceNeed, MemoryFit, memory_fit
from llamasweep.ceilings.placement import HOST, Placement, PlacementSettings, place
from llamasweep.ceilings.rig import Rig
from llamasweep.ceilings.traffic import weight_traffic
from llamasweep.gguf.facts import ModelFacts

Where = Literal["accelerators", "experts on the host", "layers on the host", "host"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """What the engine is told. n_gpu_layers: the output layer counts as one, L + 1 = all."""

    where: Where
    n_gpu_layers: int
    n_cpu_moe: int


class Layouts:
    """The layouts of one model on one rig, with what stays free on each device."""

    def __init__(self, facts: ModelFacts, rig: Rig, reserve_bytes: tuple[int, ...]) -> None:
        self._facts, self._rig, self._reserve = facts, rig, reserve_bytes
        self._placed: dict[Layout, Placement] = {}
        self.n_layers = len(read_architecture(facts).layers)
        self._has_experts = bool(weight_traffic(facts).routed)

    @property
    def host_only(self) -> Layout:
        """Everything in the host's memory."""
        return Layout(where="host", n_gpu_layers=0, n_cpu_moe=0)

    @property
    def all_on_accelerators(self) -> Layout:
        """Everything on accelerators, but for the embedding table."""
        return Layout(where="accelerators", n_gpu_layers=self.n_layers + 1, n_cpu_moe=0)

    def with_experts_on_host(self, n_cpu_moe: int) -> Layout:
        """All layers on accelerators, the experts of the first n_cpu_moe of them on the host."""
        return Layout(
            where="experts on the host", n_gpu_layers=self.n_layers + 1, n_cpu_moe=n_cpu_moe
        )

    def with_layers_on_host(self, n_gpu_layers: int) -> Layout:
        """The last n_gpu_layers on accelerators."""
        return Layout(where="layers on the host", n_gpu_layers=n_gpu_layers, n_cpu_moe=0)

    def extremes(self) -> list[Layout]:
        """Of each kind the one that leaves most room for context."""
        if not self._rig.accelerators:
            return [self.host_only]
        found = [self.all_on_accelerators]
        if self._rig.host is not None:
            if self._has_experts:
                found.append(self.with_experts_on_host(self.n_layers))
            found.append(self.host_only)
        return found

    def candidates(self, settings: ContextSettings) -> list[Layout]:
        """Of each kind the one that uses accelerators most and still fits them."""
        if not self._rig.accelerators:
            return [self.host_only]
        if self._fits_accelerators(self.all_on_accelerators, settings):
            return [self.all_on_accelerators]
        if self._rig.host is None:
            return []
        found = []
        if self._has_experts:
            n_cpu_moe = smallest(
                1,
                self.n_layers,
                lambda n: self._fits_accelerators(self.with_experts_on_host(n), settings),
            )
            if n_cpu_moe is not None:
                found.append(self.with_experts_on_host(n_cpu_moe))
        n_on_host = smallest(
            1,
            self.n_layers,
            lambda n: self._fits_accelerators(
                self.with_layers_on_host(self.n_layers + 1 - n), settings
            ),
        )
        if n_on_host is not None:
            found.append(self.with_layers_on_host(self.n_layers + 1 - n_on_host))
        return [*found, self.host_only]

    def _fits_accelerators(self, layout: Layout, settings: ContextSettings) -> bool:
        needs = self.fit(layout, settings).devices
        return all(need.fits is not False for need in needs if need.index != HOST)

    def fits(self, layout: Layout, settings: ContextSettings) -> bool | None:
        """Whether every device has room; None where a size is not known."""
        answers = [need.fits for need in self._counted(layout, settings)]
        return False if False in answers else None if None in answers else True

    def fit(self, layout: Layout, settings: ContextSettings) -> MemoryFit:
        """Need and availability, device by device."""
        return memory_fit(
            self._facts,
            settings,
            self.placed(layout, settings),
            available_bytes=[processor.memory_bytes for processor in self._rig.processors],
            reserve_bytes=self._reserve,
        )

    def placed(self, layout: Layout, settings: ContextSettings) -> Placement:
        """Where everything goes with this context."""
        known = self._placed.get(layout)
        if known is None:
            known = place(
                self._facts,
                settings,
                PlacementSettings(
                    n_gpu_layers=layout.n_gpu_layers,
                    n_cpu_moe=layout.n_cpu_moe,
                    tensor_split=self._rig.tensor_split,
                ),
            )
            self._placed[layout] = known
        held = [cache.stored_bytes for cache in context_memory(self._facts, settings).layers]
        return replace(
            known,
            devices=tuple(
                replace(device, context_bytes=sum(held[i] for i in device.context_layers))
                for device in known.devices
            ),
        )

    def missing_bytes(self, layout: Layout, settings: ContextSettings) -> int | None:
        """What lacks over all devices; None where a size is not known."""
        needs = self._counted(layout, settings)
        missing = 0
        for need in needs:
            if need.available_bytes is None:
                return None
            missing += max(0, need.total_bytes - need.available_bytes)
        return missing

    def _counted(self, layout: Layout, settings: ContextSettings) -> list[DeviceNeed]:
        """Devices that must have room; a host that was not told counts only where it holds layers."""
        is_host_told = self._rig.host is not None or layout.where != "accelerators"
        return [
            need
            for need in self.fit(layout, settings).devices
            if need.total_bytes and (need.index != HOST or is_host_told)
        ]


def smallest(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """The smallest number for which something holds that then holds for all above; None where for none."""
    if low > high or not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
