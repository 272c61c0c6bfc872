"""This machine as a rig for ceilings: its calibration, else its specification, else two seconds of measuring.

What is measured here is not kept; `calibrate` measures properly.
"""

from __future__ import annotations

from collections.abc import Callable

from llamasweep.ceilings.assumptions import Bandwidth as CeilingBandwidth
from llamasweep.ceilings.assumptions import Peak
from llamasweep.ceilings.devices import match_reported, socs_named_in
from llamasweep.ceilings.rig import Processor, Rig, processor_of
from llamasweep.machine.bandwidth import Bandwidth, measure_quickly
from llamasweep.machine.calibration import Calibration, load_calibration
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.gpus import Gpu
from llamasweep.machine.spec_bandwidth import SpecFigure, gpu_specs, ram_spec
from llamasweep.units import format_seconds

NOT_CALIBRATED = "this machine is not calibrated (`llamasweep calibrate`)"


def own_rig(
    facts: MachineFacts,
    *,
    load: Callable[[str], Calibration | None] = load_calibration,
    measure: Callable[..., Bandwidth | None] = measure_quickly,
    ram_spec_of: Callable[[MachineFacts], SpecFigure] = ram_spec,
) -> Rig:
    """Host and accelerators with memory of their own. load, measure and ram_spec_of: stand-ins."""
    stored = load(facts.fingerprint)
    spec = ram_spec_of(facts) if stored is None else stored.spec_ram
    notes: list[str] = []
    host = _host(facts, stored, spec, measure, notes)
    accelerators = [
        _accelerator(gpu, figure)
        for gpu, figure in zip(facts.gpus, gpu_specs(facts, spec), strict=True)
        if gpu.shares_system_memory is not True and gpu.memory_bytes
    ]
    return Rig(host=host, accelerators=tuple(accelerators), notes=tuple(notes))


def own_peaks(
    facts: MachineFacts, *, load: Callable[[str], Calibration | None] = load_calibration
) -> tuple[Processor, Processor | None]:
    """The processor and the only GPU, known for their peaks; no GPU where there is none, several or one of no table."""
    host = _with_peak_of_table(Processor(name="this machine"), facts)
    stored = load(facts.fingerprint)
    if stored is not None:
        host = _with_calibration(host, stored)
    if len(facts.gpus) != 1:
        return host, None
    device = match_reported(facts.gpus[0].name, facts.gpus[0].memory_bytes)
    return host, None if device is None else processor_of(device)


def _host(
    facts: MachineFacts,
    stored: Calibration | None,
    spec: SpecFigure,
    measure: Callable[..., Bandwidth | None],
    notes: list[str],
) -> Processor:
    host = Processor(name="this machine", memory_bytes=facts.ram_bytes)
    host = _with_peak_of_table(host, facts)
    if stored is not None:
        host = _with_calibration(host, stored)
        if host.bandwidth is not None:
            notes.extend(f"the calibration of this machine warned: {w}" for w in stored.warnings)
            return host
    if spec.bytes_per_s is not None:
        notes.append(f"{NOT_CALIBRATED}: its bandwidth is that of the specification")
        return host._replace(
            bandwidth=CeilingBandwidth(bytes_per_s=spec.bytes_per_s, basis="spec"),
            source=spec.source,
        )
    told: list[str] = []
    found = measure(facts, on_reason=told.append)
    if found is None:
        why = told[0] if told else "no reason told"
        return host._replace(reason=f"its bandwidth could not be measured: {why}")
    notes.append(
        f"{NOT_CALIBRATED}: its bandwidth was measured in a second"
        + (", and varied; something else uses the memory" if found.is_noisy else "")
    )
    return host._replace(
        bandwidth=CeilingBandwidth(bytes_per_s=found.best_bytes_per_s, basis="measured"),
        source=f"measured just now with {_threads(found)}",
    )


def _threads(point: Bandwidth) -> str:
    return f"{point.n_threads} thread{'s' if point.n_threads > 1 else ''}"


def _with_peak_of_table(host: Processor, facts: MachineFacts) -> Processor:
    """Chips whose graphics share the memory: their peaks are in the device table."""
    named = socs_named_in(facts.cpu_name or "") or socs_named_in(facts.system_name or "")
    if len(named) != 1:
        return host
    known = processor_of(named[0])
    return host._replace(
        name=f"this machine ({known.name})",
        peak_quantised=known.peak_quantised,
        peak_float=known.peak_float,
        peak_source=known.peak_source,
    )


def _with_calibration(host: Processor, stored: Calibration) -> Processor:
    """Measured bandwidth, disk, and matrices as a reference where the table has no peak."""
    age = "just now" if stored.age_s() < 60 else f"{format_seconds(round(stored.age_s()))} ago"
    if stored.ram is not None:
        best = stored.ram.best
        host = host._replace(
            bandwidth=CeilingBandwidth(bytes_per_s=best.best_bytes_per_s, basis="measured"),
            source=f"calibrated {age} with {_threads(best)}",
        )
    if stored.matrix is not None and host.peak_quantised is None:
        peak = Peak(flop_per_s=stored.matrix.best_flop_per_s, basis="measured", is_reference=True)
        host = host._replace(
            peak_quantised=peak,
            peak_float=peak,
            peak_source=f"calibrated {age}, {stored.matrix.method}",
        )
    if stored.disk is not None:
        host = host._replace(
            disk=(
                CeilingBandwidth(bytes_per_s=stored.disk.sequential_bytes_per_s, basis="measured"),
                CeilingBandwidth(bytes_per_s=stored.disk.random_bytes_per_s, basis="measured"),
            ),
        )
    return host


def _accelerator(gpu: Gpu, spec: SpecFigure) -> Processor:
    device = match_reported(gpu.name, gpu.memory_bytes)
    known = Processor(name=gpu.name) if device is None else processor_of(device)
    return known._replace(
        name=gpu.name,
        memory_bytes=gpu.memory_bytes,
        bandwidth=None
        if spec.bytes_per_s is None
        else CeilingBandwidth(bytes_per_s=spec.bytes_per_s, basis="spec"),
        source=spec.source,
        reason=spec.reason,
    )
