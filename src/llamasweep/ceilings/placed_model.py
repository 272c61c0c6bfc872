"""A model laid out on a rig: who holds it, and how fast it generates there. Pure.

One memory's model is asked of `decode`; one that is spread over several, of `placement`.
"""

from __future__ import annotations

from typing import NamedTuple

from llamasweep.ceilings.answer_parts import DecodePart
from llamasweep.ceilings.assumptions import Assumption, Bandwidth
from llamasweep.ceilings.decode import decode_ceiling
from llamasweep.ceilings.flop import decode_flop
from llamasweep.ceilings.kv_cache import ContextSettings, layer_read_bytes
from llamasweep.ceilings.placement import HOST, Machine, Placement, placed_decode
from llamasweep.ceilings.rig import Processor, Rig
from llamasweep.ceilings.traffic import weight_traffic
from llamasweep.gguf.facts import ModelFacts

SPREAD_BANDWIDTH = Assumption(
    topic="bandwidth",
    text="several memories hold the model; its bandwidth here is bytes per token / the sum of their times",
)

_ENOUGH = Bandwidth(bytes_per_s=1e12)
"""Of a host that was not told and reads a few kilobytes per token: they take no time that counts."""


class DecodeAnswer(NamedTuple):
    """Generation. reason: why there is no ceiling, None where there is one."""

    part: DecodePart
    assumptions: tuple[Assumption, ...]
    reason: str | None = None


class PlacedModel(NamedTuple):
    """A model, its context, the rig and where everything lies on it."""

    facts: ModelFacts
    settings: ContextSettings
    rig: Rig
    placed: Placement

    @property
    def holder(self) -> Processor | None:
        """The one processor that reads everything but rows of the embedding; None where several do."""
        busy = busy_devices(self.facts, self.placed)
        return self.rig.processors[busy[0]] if len(busy) == 1 else None

    def decode(self, *, n_depth: int, n_gen: int) -> DecodeAnswer:
        """Generation of n_gen tokens behind n_depth others. Raises NotModelledError, ModelFileError."""
        holder = self.holder
        if holder is None:
            return self._decode_spread(n_depth, n_gen)
        if holder.bandwidth is None:
            return self._decode_counts(n_depth, n_gen, _unknown(holder))
        found = decode_ceiling(
            self.facts,
            self.settings,
            n_depth=n_depth,
            n_gen=n_gen,
            bandwidth=holder.bandwidth,
            peak=holder.peak_for(self.facts),
        )
        part = DecodePart(
            n_depth=n_depth,
            n_gen=n_gen,
            bytes_per_token=found.bytes_per_token,
            weight_bytes_per_token=found.weight_bytes,
            bandwidth_bytes_per_s=found.bandwidth_bytes_per_s,
            ceiling_tps=found.ceiling_tps,
            bound=found.bound,
            pencil_ceiling_tps=found.pencil_ceiling_tps,
            pencil_with_kv_tps=found.pencil_with_kv_tps,
            flop_per_token=found.flop_per_token,
            flop_per_byte=found.flop_per_byte,
            ridge_flop_per_byte=found.ridge_flop_per_byte,
        )
        return DecodeAnswer(part=part, assumptions=found.assumptions)

    def _decode_spread(self, n_depth: int, n_gen: int) -> DecodeAnswer:
        """Several memories: their times add. The pencil figure takes whole models, as people do."""
        bandwidths = self._bandwidths()
        if isinstance(bandwidths, str):
            return self._decode_counts(n_depth, n_gen, bandwidths)
        found = placed_decode(
            self.facts,
            self.settings,
            self.placed,
            Machine(bandwidths=bandwidths),
            n_depth=n_depth,
            n_gen=n_gen,
        )
        devices = list(zip(self.placed.devices, bandwidths, strict=True))
        weights_s = sum(device.active_bytes / b.bytes_per_s for device, b in devices)
        pencil_s = sum(device.weights_bytes / b.bytes_per_s for device, b in devices)
        n_weight_bytes = sum(device.active_bytes for device, _ in devices)
        n_bytes = n_weight_bytes + sum(self._context_read(n_depth, n_gen))
        flop = decode_flop(self.facts, n_depth, n_gen)
        part = DecodePart(
            n_depth=n_depth,
            n_gen=n_gen,
            bytes_per_token=n_bytes,
            weight_bytes_per_token=n_weight_bytes,
            bandwidth_bytes_per_s=n_bytes * found.ceiling_tps,
            ceiling_tps=found.ceiling_tps,
            bound="memory",
            pencil_ceiling_tps=1 / pencil_s,
            pencil_with_kv_tps=1 / (pencil_s + sum(found.device_s) - weights_s),
            flop_per_token=flop,
            flop_per_byte=flop / n_bytes,
        )
        return DecodeAnswer(part=part, assumptions=(SPREAD_BANDWIDTH, *found.assumptions))

    def _bandwidths(self) -> tuple[Bandwidth, ...] | str:
        """Of all devices, or why that of one which is needed is not known."""
        busy = busy_devices(self.facts, self.placed)
        found = []
        for device, processor in zip(self.placed.devices, self.rig.processors, strict=True):
            if processor.bandwidth is not None:
                found.append(processor.bandwidth)
            elif device.index in busy:
                return _unknown(processor)
            else:
                found.append(_ENOUGH)
        return tuple(found)

    def _decode_counts(self, n_depth: int, n_gen: int, why: str) -> DecodeAnswer:
        """Bytes and FLOP, and no rate."""
        traffic = weight_traffic(self.facts)
        n_bytes = traffic.active_bytes + sum(self._context_read(n_depth, n_gen))
        flop = decode_flop(self.facts, n_depth, n_gen)
        part = DecodePart(
            n_depth=n_depth,
            n_gen=n_gen,
            bytes_per_token=n_bytes,
            weight_bytes_per_token=traffic.active_bytes,
            flop_per_token=flop,
            flop_per_byte=flop / n_bytes,
        )
        return DecodeAnswer(part=part, assumptions=traffic.assumptions, reason=why)

    def _context_read(self, n_depth: int, n_gen: int) -> tuple[float, ...]:
        return layer_read_bytes(self.facts, self.settings, n_depth, n_gen)


def busy_devices(facts: ModelFacts, placed: Placement) -> list[int]:
    """Devices that read more per token than rows of the embedding."""
    n_row_bytes = weight_traffic(facts).row_bytes
    return [
        device.index
        for device in placed.devices
        if device.active_bytes > (n_row_bytes if device.index == HOST else 0)
        or device.context_layers
    ]


def _unknown(processor: Processor) -> str:
    return f"{processor.name}: {processor.reason or 'its bandwidth is not known'}"
