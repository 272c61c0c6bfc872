"""Which memory a group's weights are read from, and what calculates with them: the numbers that its ceilings rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llamasweep.ceilings.assumptions import Peak
from llamasweep.ceilings.rig import Processor
from llamasweep.machine.calibration import bandwidth_for_run, load_calibration
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.own_rig import own_peaks
from llamasweep.machine.spec_bandwidth import gpu_specs, ram_spec
from llamasweep.sweep.cell import Group
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.predict import Rates
from llamasweep.sweep.spec import SweepSpec
from llamasweep.units import format_bytes_per_s

_ALL_LAYERS = 99
"""What people write for "all of them"; no model of today has more on one device that would not fit the word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bandwidths:
    """Bytes per second, each with its source; None where nobody knows.

    given: by the sweep, and then it rules. ram: measured. gpu: by the specification of the only GPU. given_peak: FLOP
    per second, by the sweep. host, card: the processor and the only GPU with their peaks.
    """

    given: float | None = None
    ram: float | None = None
    ram_source: str | None = None
    gpu: float | None = None
    gpu_source: str | None = None
    given_peak: float | None = None
    host: Processor | None = None
    card: Processor | None = None

    def of(self, group: Group) -> tuple[float | None, str | None]:
        """For one group; None where its weights lie in several memories or in one that nobody measured."""
        if self.given is not None:
            return self.given, "given in the sweep"
        axes = dict(group.block.axes)
        if reads_from_ram(group):
            return self.ram, self.ram_source
        if _all_on_one_gpu(group, axes):
            return self.gpu, self.gpu_source
        return None, None

    def peak_of(self, group: Group) -> tuple[Peak | None, str | None]:
        """The compute rate that bounds the group's prompts, and where it comes from; None where `of` is None, too."""
        if self.given_peak is not None:
            return Peak(flop_per_s=self.given_peak), "given in the sweep"
        if reads_from_ram(group):
            processor = self.host
        elif _all_on_one_gpu(group, dict(group.block.axes)):
            processor = self.card
        else:
            processor = None
        if processor is None or group.model.facts is None:
            return None, None
        peak = processor.peak_for(group.model.facts)
        return peak, None if peak is None else processor.peak_source


def reads_from_ram(group: Group) -> bool:
    """No GPU takes part: the build sees none, or no layer is put on one; and nothing goes to other machines."""
    axes = dict(group.block.axes)
    if "rpc" in axes:
        return False
    return group.build.is_cpu_only or axes.get("n_gpu_layers") == (0,)


def _all_on_one_gpu(group: Group, axes: Mapping[str, tuple[Scalar, ...]]) -> bool:
    devices = group.build.devices
    if devices is None or len(devices) != 1 or "rpc" in axes or "tensor_buft_overrides" in axes:
        return False
    layers = axes.get("n_gpu_layers", (-1,))
    are_all = all(isinstance(n, int) and (n < 0 or n >= _ALL_LAYERS) for n in layers)
    return are_all and axes.get("n_cpu_moe", (0,)) == (0,)


def look_at_bandwidths(spec: SweepSpec, facts: MachineFacts) -> tuple[Bandwidths, list[str]]:
    """What is known before anything is measured, and sentences on where it comes from and what is doubtful."""
    host, card = own_peaks(facts)
    if spec.bandwidth_bytes_per_s is not None:
        given = spec.bandwidth_bytes_per_s
        return Bandwidths(given=given, given_peak=spec.peak_flop_per_s, host=host, card=card), []
    found = bandwidth_for_run(facts)
    notes = list(found.warnings)
    if found.bytes_per_s is not None:
        notes.insert(0, f"memory bandwidth {format_bytes_per_s(found.bytes_per_s)}, {found.source}")
    gpu, gpu_source = _gpu_figure(facts)
    known = Bandwidths(
        ram=found.bytes_per_s,
        ram_source=found.source,
        gpu=gpu,
        gpu_source=gpu_source,
        given_peak=spec.peak_flop_per_s,
        host=host,
        card=card,
    )
    return known, notes


def known_bandwidth(spec: SweepSpec, facts: MachineFacts) -> float | None:
    """Bytes per second for predictions without measuring: given by the sweep, else calibrated; None where neither is."""
    if spec.bandwidth_bytes_per_s is not None:
        return spec.bandwidth_bytes_per_s
    stored = load_calibration(facts.fingerprint)
    return None if stored is None or stored.ram is None else stored.ram.best.best_bytes_per_s


def known_rates(spec: SweepSpec, facts: MachineFacts) -> Rates:
    """What a plan that measures nothing may rest its predictions on."""
    return Rates(
        bandwidth_bytes_per_s=known_bandwidth(spec, facts), flop_per_s=known_peak(spec, facts)
    )


def known_peak(spec: SweepSpec, facts: MachineFacts) -> float | None:
    """FLOP per second for predictions: given by the sweep, else the calibration's matrix product; None where neither is, or
    where a GPU may calculate."""
    if spec.peak_flop_per_s is not None:
        return spec.peak_flop_per_s
    stored = None if facts.gpus else load_calibration(facts.fingerprint)
    return None if stored is None or stored.matrix is None else stored.matrix.best_flop_per_s


def _gpu_figure(facts: MachineFacts) -> tuple[float | None, str | None]:
    """Of the only GPU, by its specification; None where there is none, or several."""
    if len(facts.gpus) != 1:
        return None, None
    (figure,) = gpu_specs(facts, ram_spec(facts))
    if figure.bytes_per_s is None:
        return None, None
    return figure.bytes_per_s, f"specification of {figure.of}: {figure.source}"
