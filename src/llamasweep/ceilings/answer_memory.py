"""What an answer says of memory: which device holds what, whether it fits, what the disk would do. Pure."""

from __future__ import annotations

from typing import NamedTuple

from llamasweep.ceilings.answer_parts import DiskPart, MemoryPart, PlacementPart
from llamasweep.ceilings.assumptions import Assumption
from llamasweep.ceilings.kv_cache import layer_read_bytes
from llamasweep.ceilings.memory_fit import (
    DEVICE_RESERVE_BYTES,
    SYSTEM_RESERVE_BYTES,
    DeviceNeed,
    DiskTier,
    MemoryFit,
    disk_decode,
    memory_fit,
)
from llamasweep.ceilings.placed_model import busy_devices
from llamasweep.ceilings.placement import HOST, Placement, place
from llamasweep.ceilings.question import Question
from llamasweep.ceilings.rig import Rig
from llamasweep.gguf.facts import ModelFacts

SIZE_UNKNOWN = "how much memory there is was not told ({names})"
HOST_HAS_ROOM = Assumption(
    topic="memory",
    text="the host, whose memory was not told, has room for the embedding table and the program",
)
ONE_MEMORY = Assumption(
    topic="placement",
    text="there is one memory only, so that n_gpu_layers and n_cpu_moe move nothing",
)


class MemoryAnswer(NamedTuple):
    """The parts of an answer, and the placement that they describe."""

    placed: Placement
    fit: MemoryFit
    part: MemoryPart
    placement: tuple[PlacementPart, ...]
    assumptions: tuple[Assumption, ...]
    reasons: dict[str, str]


def memory_answer(facts: ModelFacts, question: Question, rig: Rig) -> MemoryAnswer:
    """Where everything goes and whether it fits. Raises NotModelledError, ModelFileError."""
    placed = place(facts, question.settings, question.placement(rig))
    processors = rig.processors
    moved = layer_read_bytes(facts, question.settings, question.n_depth, question.n_gen)
    reserve = (question_reserve(question), *[DEVICE_RESERVE_BYTES] * len(rig.accelerators))
    fit = memory_fit(
        facts,
        question.settings,
        placed,
        available_bytes=[processor.memory_bytes for processor in processors],
        reserve_bytes=reserve,
    )
    is_host_left_out = rig.host is None and HOST not in busy_devices(facts, placed)
    counted = [
        need
        for need in fit.devices
        if need.total_bytes and not (need.index == HOST and is_host_left_out)
    ]
    return MemoryAnswer(
        placed=placed,
        fit=fit,
        part=_part(facts, question, rig, fit, counted),
        placement=tuple(
            _device(need, placed, rig, moved) for need in fit.devices if need.total_bytes
        ),
        assumptions=(
            *placed.assumptions,
            *fit.assumptions,
            *((HOST_HAS_ROOM,) if is_host_left_out else ()),
            *((ONE_MEMORY,) if not rig.accelerators and _asks_to_move(question) else ()),
        ),
        reasons=_reasons(rig, counted),
    )


def question_reserve(question: Question) -> int:
    """Bytes that stay free on the host."""
    return SYSTEM_RESERVE_BYTES if question.reserve_bytes is None else question.reserve_bytes


def _asks_to_move(question: Question) -> bool:
    return question.n_gpu_layers != -1 or question.n_cpu_moe > 0


def _part(
    facts: ModelFacts, question: Question, rig: Rig, fit: MemoryFit, counted: list[DeviceNeed]
) -> MemoryPart:
    sizes = [need.available_bytes for need in counted]
    answers = [need.fits for need in counted]
    fits = False if False in answers else None if None in answers else True
    return MemoryPart(
        weights_bytes=sum(need.weights_bytes for need in counted),
        context_bytes=sum(need.context_bytes for need in counted),
        compute_bytes_upper=sum(need.compute_bytes_upper for need in counted),
        reserve_bytes=sum(need.reserve_bytes for need in counted),
        total_bytes=sum(need.total_bytes for need in counted),
        available_bytes=None if None in sizes else sum(s for s in sizes if s is not None),
        fits=fits,
        resident_bytes=fit.resident_bytes,
        mapped_bytes=fit.mapped_bytes,
        disk=_disk(facts, question, rig, fit),
    )


def _disk(facts: ModelFacts, question: Question, rig: Rig, fit: MemoryFit) -> DiskPart | None:
    """Only where all is on the host, its weights do not fit, and the disk is known."""
    host = rig.processors[HOST]
    is_alone = all(not need.total_bytes for need in fit.devices[1:])
    if not is_alone or not fit.mapped_bytes or fit.resident_bytes is None:
        return None
    if host.disk is None or host.bandwidth is None:
        return None
    found = disk_decode(
        facts,
        question.settings,
        resident_bytes=fit.resident_bytes,
        n_depth=question.n_depth,
        n_gen=question.n_gen,
        disk=DiskTier(ram=host.bandwidth, sequential=host.disk[0], random=host.disk[1]),
    )
    return DiskPart(
        least_bytes_per_token=found.least_cold_bytes,
        most_bytes_per_token=found.most_cold_bytes,
        fastest_tps=found.fastest_tps,
        slowest_tps=found.slowest_tps,
    )


def _device(
    need: DeviceNeed, placed: Placement, rig: Rig, moved: tuple[float, ...]
) -> PlacementPart:
    device, processor = placed.devices[need.index], rig.processors[need.index]
    return PlacementPart(
        device=processor.name,
        weights_bytes=need.weights_bytes,
        context_bytes=need.context_bytes,
        active_bytes=device.active_bytes,
        read_bytes_per_token=device.active_bytes + sum(moved[i] for i in device.context_layers),
        n_layers=len(device.layers),
        compute_bytes_upper=need.compute_bytes_upper,
        reserve_bytes=need.reserve_bytes,
        total_bytes=need.total_bytes,
        available_bytes=need.available_bytes,
        fits=need.fits,
        bandwidth_bytes_per_s=processor.bytes_per_s,
    )


def _reasons(rig: Rig, counted: list[DeviceNeed]) -> dict[str, str]:
    unknown = [rig.processors[n.index].name for n in counted if n.available_bytes is None]
    if not unknown:
        return {}
    why = SIZE_UNKNOWN.format(names=" and ".join(dict.fromkeys(unknown)))
    return {"memory.available_bytes": why, "memory.fits": why}
