"""What a model runs on: memories, each with what reads it, from the device table, words or numbers. Pure.

Accelerators with memory of their own and the host, or one memory that all share. Knows no model; what
this machine is, is told by `machine`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from llamasweep.ceilings.assumptions import Assumption, Bandwidth, Peak
from llamasweep.ceilings.devices import Device, find_device, find_devices
from llamasweep.errors import UsageError
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.ggml_types import type_by_name
from llamasweep.units import format_gb_per_s

MAX_ACCELERATORS = 16
_COUNTED = re.compile(r"(\d{1,2})\s*[x×*]\s+(.+)", re.IGNORECASE)
_FP4_TYPES = frozenset({"mxfp4", "nvfp4"})


class Processor(NamedTuple):
    """One memory and what calculates on it.

    bandwidth: None where it is not known, and `reason` says why. memory_bytes: None where not known.
    peak_quantised, peak_float: of matrices in quantised types and in F16 or BF16, None where not
    known; peak_source: where they come from. disk: where weights come from that memory does not hold: (in order, at random).
    """

    name: str
    bandwidth: Bandwidth | None = None
    source: str | None = None
    reason: str | None = None
    memory_bytes: int | None = None
    peak_quantised: Peak | None = None
    peak_float: Peak | None = None
    peak_source: str | None = None
    disk: tuple[Bandwidth, Bandwidth] | None = None

    @property
    def bytes_per_s(self) -> float | None:
        """The bandwidth as a number."""
        return None if self.bandwidth is None else self.bandwidth.bytes_per_s

    def peak_for(self, facts: ModelFacts) -> Peak | None:
        """The peak that bounds this model's matrices; a reference where its type has faster units."""
        by_type: dict[str, int] = {}
        for tensor in facts.tensors:
            if len(tensor.ne) > 1:
                kind = tensor.ggml_type
                by_type[kind] = by_type.get(kind, 0) + tensor.n_bytes
        commonest = max(by_type, key=lambda kind: by_type[kind], default="f16")
        if not type_by_name(commonest).is_quantized:
            return self.peak_float
        if self.peak_quantised is not None and _FP4_TYPES & by_type.keys():
            return replace(self.peak_quantised, is_reference=True)
        return self.peak_quantised


class Rig(NamedTuple):
    """Everything that can hold a part of a model.

    host: the processor's memory, or the one memory that processor and graphics share; None where only
    accelerators were named. notes: sentences for the user about where figures come from.
    """

    host: Processor | None
    accelerators: tuple[Processor, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """All names, equal accelerators counted."""
        names = [processor.name for processor in self.accelerators]
        parts = [
            f"{names.count(name)} x {name}" if names.count(name) > 1 else name
            for name in dict.fromkeys(names)
        ]
        if self.host is not None:
            parts.append(self.host.name)
        return " + ".join(parts)

    @property
    def tensor_split(self) -> tuple[float, ...]:
        """Shares of the accelerators: by memory, as llama.cpp divides, or equal where that is unknown."""
        sizes = [processor.memory_bytes for processor in self.accelerators]
        return tuple(float(size or 1) if all(sizes) else 1.0 for size in sizes)

    @property
    def processors(self) -> tuple[Processor, ...]:
        """The host, known or not, and the accelerators: in the order of a placement's devices."""
        host = self.host or Processor(
            name="host", reason="the host's memory was not named, such as DDR5-5600x2"
        )
        return (host, *self.accelerators)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Where each bandwidth comes from, and what to know of it."""
        told = tuple(Assumption(topic="machine", text=note) for note in self.notes)
        return told + tuple(
            Assumption(
                topic="bandwidth",
                text=f"{p.name}: {format_gb_per_s(p.bandwidth.bytes_per_s)}, {p.source}",
            )
            for p in (*self.accelerators, *(() if self.host is None else (self.host,)))
            if p.source and p.bandwidth is not None
        )


def rig_of(
    names: Sequence[str] = (),
    *,
    memory: str | None = None,
    bandwidth_bytes_per_s: float | None = None,
) -> Rig:
    """A rig from what was asked for.

    names: devices by name, memory in words ("DDR5-5600x2"), or several joined by " + " ("2 x RTX
    3090 + DDR5-5600x2"). memory: of the host, in words. bandwidth_bytes_per_s: of one memory, or of
    the host beside accelerators. Raises UsageError.
    """
    parts = [part.strip() for name in names for part in re.split(r"\s\+\s", name)]
    found: list[Processor] = []
    hosts: list[Processor] = []
    for part in parts:
        processors, is_host = _named(part)
        (hosts if is_host else found).extend(processors)
    if memory is not None:
        hosts.append(_of_memory(memory))
    if bandwidth_bytes_per_s is not None:
        hosts.append(_of_number(bandwidth_bytes_per_s))
    if len(hosts) > 1:
        raise UsageError(
            f"{hosts[0].name} and {hosts[1].name} are two memories of one host",
            hint="Name one of them; accelerators with memory of their own can be several.",
        )
    if len(found) > MAX_ACCELERATORS:
        raise UsageError(f"{len(found)} accelerators; {MAX_ACCELERATORS} is the most")
    return Rig(host=hosts[0] if hosts else None, accelerators=tuple(found))


def with_sizes(rig: Rig, *, ram_bytes: int | None, vram_bytes: int | None) -> Rig:
    """The rig with other sizes of memory, where they are given; ram_bytes alone makes a host known."""
    host = rig.host
    if ram_bytes is not None:
        host = host or Processor(name="RAM", reason="the bandwidth of the RAM was not given")
        host = host._replace(memory_bytes=ram_bytes)
    accelerators = rig.accelerators
    if vram_bytes is not None:
        accelerators = tuple(one._replace(memory_bytes=vram_bytes) for one in accelerators)
    return rig._replace(host=host, accelerators=accelerators)


def with_peak(rig: Rig, flop_per_s: float) -> Rig:
    """The rig with a given peak: of its accelerators, or of the host where there are none."""
    peak = Peak(flop_per_s=flop_per_s, basis="given")

    def given(processor: Processor) -> Processor:
        return processor._replace(peak_quantised=peak, peak_float=peak, peak_source="as given")

    if rig.accelerators:
        return rig._replace(accelerators=tuple(map(given, rig.accelerators)))
    return rig if rig.host is None else rig._replace(host=given(rig.host))


def _named(text: str) -> tuple[list[Processor], bool]:
    """(processors, whether they are the host's memory). Raises UsageError."""
    device = _device_or_memory(text)
    if isinstance(device, Processor):
        return [device], True
    if device is not None:
        return [processor_of(device)], device.device_class != "gpu"
    match = _COUNTED.fullmatch(text)
    if match is not None and find_devices(match[2]):
        one = find_device(match[2])
        if one.device_class != "gpu":
            raise UsageError(f"{one.name} cannot be there several times")
        return [processor_of(one)] * int(match[1]), False
    return [processor_of(find_device(text))], False


def _device_or_memory(text: str) -> Device | Processor | None:
    """What the whole text names; None where it names nothing or several things."""
    found = find_devices(text)
    if len(found) == 1:
        return found[0]
    if "DDR" in text.upper() and not found:
        return _of_memory(text)
    return None


def _of_memory(text: str) -> Processor:
    from llamasweep.ceilings.memory_words import (  # noqa: PLC0415  (its patterns take time, and few ask in words)
        parse_memory,
    )

    try:
        words = parse_memory(text)
    except ValueError as problem:
        found = find_devices(text)
        if len(found) == 1 and found[0].device_class != "gpu":
            return processor_of(found[0])
        raise UsageError(str(problem)) from None
    width = f"{words.bus_bits} bit" if words.n_channels is None else f"x{words.n_channels}"
    return Processor(
        name=f"{words.kind}-{words.speed_mts} {width}",
        bandwidth=Bandwidth(bytes_per_s=words.bandwidth_bytes_per_s, basis="spec"),
        source=words.source,
    )


def _of_number(bytes_per_s: float) -> Processor:
    try:
        bandwidth = Bandwidth(bytes_per_s=bytes_per_s, basis="given")
    except ValueError as problem:
        raise UsageError(str(problem)) from None
    return Processor(name="memory", bandwidth=bandwidth, source="as given")


def processor_of(device: Device) -> Processor:
    """A device of the table.

    Quantised matrices are bound by INT8 matrix units where there are any (llama.cpp's MMQ), F16 by
    the FP16 ones; where the table may lack a faster unit, the fastest known rate is a reference.
    """
    source = device.bandwidth_source
    quantised = _peak(device, device.int8_op_per_s)
    plain = _peak(
        device,
        device.fp16_tensor_fp16_accumulate_flop_per_s
        or device.fp16_tensor_fp32_accumulate_flop_per_s,
    )
    return Processor(
        name=device.name,
        bandwidth=Bandwidth(bytes_per_s=device.bandwidth_bytes_per_s, basis="spec"),
        source=source if len(source) > 3 else f"{source}, {device.source}",
        memory_bytes=device.memory_bytes,
        peak_quantised=quantised,
        peak_float=plain,
        peak_source=f"specification of {device.name}: {device.source}"
        if quantised is not None or plain is not None
        else None,
    )


def _peak(device: Device, fastest: float | None) -> Peak | None:
    if fastest is not None:
        return Peak(flop_per_s=fastest, basis="spec")
    known = [
        rate
        for rate in (
            device.int8_op_per_s,
            device.fp16_tensor_fp16_accumulate_flop_per_s,
            device.fp16_tensor_fp32_accumulate_flop_per_s,
            device.fp16_vector_flop_per_s,
            device.fp32_flop_per_s,
        )
        if rate is not None
    ]
    return Peak(flop_per_s=max(known), basis="spec", is_reference=True) if known else None
