"""The measured rows of one run as the checks need them: values in force, where a row ran, and rows that differ in one thing.

Pure look-up. What follows from it is in the modules of checks.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, TypeVar

from llamasweep.results.decode_alarm import DecodeShortfall, decode_shortfall, is_decode_alarm
from llamasweep.results.machine_record import MachineRecord, entry_of, positive_number
from llamasweep.results.records import Attempt, RunData, Sample, TelemetryFigures
from llamasweep.results.request_load import request_load
from llamasweep.sweep.parameters import Scalar

Axis = Literal["n_threads", "n_depth", "n_ubatch", "kv_type", "quant", "build"]
"""What the rows of a group may differ in."""

_PARAMETERS_OF: dict[Axis, tuple[str, ...]] = {
    "n_threads": ("n_threads",),
    "n_ubatch": ("n_ubatch", "n_batch"),
    "kv_type": ("type_k", "type_v"),
}
BUSY_FROM = 0.10
"""Share of the processor that others use, from which a row is disturbed."""

MEASURED_HERE = ("calibrated", "measured")
"""How the source of a bandwidth begins that was measured on this machine."""

_HOST_BACKENDS = frozenset({"CPU", "BLAS"})
_NO_FIGURES = TelemetryFigures()


class MeasuredRows:
    """Rows with a rate, in the order of the run, and what the run knows around them."""

    def __init__(self, run: RunData) -> None:
        self.rows: tuple[Attempt, ...] = tuple(
            _finite(row)
            for row in run.attempts
            if row.status == "ok" and positive_number(row.median_tps)
        )
        self.machine = MachineRecord(plain=run.info.machine)
        self.throttle_masks: tuple[tuple[int, float], ...] = tuple(
            (r.time_ns, r.value) for r in run.readings if r.metric == "throttle_reasons_mask"
        )
        self._info = run.info
        self._samples: dict[str, list[Sample]] = defaultdict(list)
        for sample in run.samples:
            self._samples[sample.attempt_id].append(sample)
        self._rounds: dict[tuple[object, ...], list[Attempt]] = defaultdict(list)
        for row in self.rows:
            self._rounds[row.cell_id, row.build_hash].append(row)
        self._most_layers: dict[str | None, int] = {}
        for row in self.rows:
            if row.n_gpu_layers_offloaded is not None:
                seen = max(row.n_gpu_layers_offloaded, self._most_layers.get(row.model_hash, 0))
                self._most_layers[row.model_hash] = seen
        self._groups: dict[Axis, dict[tuple[object, ...], list[Attempt]]] = {}

    def rates(self, row: Attempt) -> tuple[float, ...]:
        """Rates of its repetitions in the order measured, discarded ones among them."""
        samples = sorted(self._samples.get(row.attempt_id, ()), key=lambda s: s.repetition_index)
        return tuple(sample.tps for sample in samples)

    def kept_rates(self, row: Attempt) -> tuple[float, ...]:
        """The same without those that were discarded."""
        samples = sorted(self._samples.get(row.attempt_id, ()), key=lambda s: s.repetition_index)
        return tuple(sample.tps for sample in samples if not sample.is_discarded)

    def build(self, row: Attempt) -> MachineRecord:
        """The run's entry of its build."""
        return entry_of(self._info.builds, "content_hash", row.build_hash)

    def model(self, row: Attempt) -> MachineRecord:
        """The run's entry of its model."""
        return entry_of(self._info.models, "content_hash", row.model_hash)

    @property
    def ram_bandwidth_bytes_per_s(self) -> float | None:
        """As measured: by the calibration if the run keeps it, else what the rows on the CPU had their ceilings from."""
        calibrated = self.machine.number("calibration", "ram", "best_bytes_per_s")
        of_rows = (
            row.ceiling_bandwidth_bytes_per_s
            for row in self.rows
            if ran_on_cpu(row) and (row.ceiling_bandwidth_source or "").startswith(MEASURED_HERE)
        )
        return calibrated or next((value for value in of_rows if positive_number(value)), None)

    def most_layers(self, row: Attempt) -> int | None:
        """Most layers of its model that a row of this run had on a GPU; None where there was none."""
        return (self._most_layers.get(row.model_hash) or None) if row.model_hash else None

    def rounds(self, row: Attempt) -> Sequence[Attempt]:
        """Rows that answer the same question with the same build; it is among them."""
        return self._rounds[row.cell_id, row.build_hash]

    def beside(self, row: Attempt, axis: Axis) -> Sequence[Attempt]:
        """Rows of the run that differ from it in nothing but this (and in their round); it is among them."""
        if axis not in self._groups:
            grouped: dict[tuple[object, ...], list[Attempt]] = defaultdict(list)
            for other in self.rows:
                grouped[_question(other, axis)].append(other)
            self._groups[axis] = dict(grouped)
        return self._groups[axis].get(_question(row, axis), ())

    def comparable(self, row: Attempt, axis: Axis) -> Sequence[Attempt]:
        """The same without rows that other load disturbed; none where it disturbed this one."""
        if is_disturbed(row):
            return ()
        return [other for other in self.beside(row, axis) if not is_disturbed(other)]

    def groups(self, axis: Axis) -> Iterable[Sequence[Attempt]]:
        """All groups of rows that differ in nothing but this."""
        for row in self.rows:
            group = self.beside(row, axis)
            if group[0] is row:
                yield group


def _finite(row: Attempt) -> Attempt:
    """The row without numbers that are none: a file may hold them, and every comparison with one is false."""
    plain = _without_nonsense(row)
    if plain.telemetry is None:
        return plain
    return replace(plain, telemetry=_without_nonsense(plain.telemetry))


_Record = TypeVar("_Record", Attempt, TelemetryFigures)


_NAMES = {kind: tuple(f.name for f in fields(kind)) for kind in (Attempt, TelemetryFigures)}


def _without_nonsense(record: _Record) -> _Record:
    wrong: dict[str, Any] = {
        name: None
        for name in _NAMES[type(record)]
        if isinstance(value := getattr(record, name), float) and not math.isfinite(value)
    }
    return replace(record, **wrong) if wrong else record


def _question(row: Attempt, without: Axis) -> tuple[object, ...]:
    """All that makes rows comparable, less one axis."""
    left_out = {"n_depth", *_PARAMETERS_OF.get(without, ())}
    asked = tuple(sorted((k, str(v)) for k, v in row.requested.items() if k not in left_out))
    is_quant, is_build = without == "quant", without == "build"
    return (
        (row.model_arch, row.model_n_params) if is_quant else (row.model_hash or row.model_label),
        None if is_build else (row.build_hash or row.build_label),
        row.engine,
        (row.n_prompt, row.n_gen, None if without == "n_depth" else row.n_depth),
        asked,
    )


# -- one row
def in_force(row: Attempt, name: str) -> Scalar | None:
    """A parameter as applied, else as asked; None where it was left to the engine and is not told."""
    value = row.applied.get(name)
    return row.requested.get(name) if value is None else value


def whole_in_force(row: Attempt, name: str) -> int | None:
    """The same where it is a whole number."""
    value = in_force(row, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def median(row: Attempt) -> float:
    """Its rate. Raises ValueError for a row without one: such a row is not among the measured."""
    if row.median_tps is None:
        raise ValueError(f"attempt {row.attempt_id} has no rate")
    return float(row.median_tps)


def fastest(rows: Iterable[Attempt]) -> Attempt | None:
    """The row with the highest median, None of none."""
    return max(rows, key=median, default=None)


def figures(row: Attempt) -> TelemetryFigures:
    """Its telemetry; all None where there is none."""
    return row.telemetry if row.telemetry is not None else _NO_FIGURES


def backends(row: Attempt) -> frozenset[str]:
    """What the engine says it can use, without numbers of devices."""
    return frozenset(part.strip() for part in (row.build_backends or "").split(",") if part.strip())


def ran_on_cpu(row: Attempt) -> bool | None:
    """True: all layers and no GPU. False: at least one layer on a GPU. None: not told."""
    offloaded = row.n_gpu_layers_offloaded
    if offloaded is None:
        offloaded = whole_in_force(row, "n_gpu_layers")
    known = backends(row)
    if (known and known <= _HOST_BACKENDS) or in_force(row, "devices") == "none":
        return True
    if offloaded is None or offloaded < 0:
        return None
    return offloaded == 0


def is_disturbed(row: Attempt) -> bool:
    """Whether others are known to have used the processor: such a row tells nothing by comparison."""
    use = figures(row).cpu_use_other_fraction
    return use is not None and use >= BUSY_FROM


def is_faster(a: Attempt, b: Attempt, ratio: float) -> bool:
    """Whether a is at least that many times as fast, and, where both were repeated, in all repetitions faster.

    Single repetitions cannot show more; what rests on them says so by `measured_once`.
    """
    if median(a) < ratio * median(b):
        return False
    if not (_is_repeated(a) and _is_repeated(b)) or a.min_tps is None or b.max_tps is None:
        return True
    return a.min_tps > b.max_tps


def measured_once(*rows: Attempt) -> dict[str, str]:
    """Evidence that a comparison rests on single repetitions, {} where each is known to have more or nobody told."""
    return {"measured": "once"} if any(row.n_samples == 1 for row in rows) else {}


def _is_repeated(row: Attempt) -> bool:
    return row.n_samples is not None and row.n_samples > 1


def has_ceiling(row: Attempt) -> bool:
    """Whether its share of a ceiling is known."""
    return positive_number(row.ceiling_tps) is not None


def model_words(row: Attempt) -> str:
    """`tiny-llama Q4_0`, the type left out where the label says it."""
    quant = row.model_quant
    return (
        f"{row.model_label} {quant}" if quant and quant not in row.model_label else row.model_label
    )


def has_several_streams(row: Attempt) -> bool:
    """Whether its rate is one of several streams together: rules about a token's time are no rules for it."""
    return request_load(row.requested).n_streams > 1


def shortfall(row: Attempt) -> DecodeShortfall | None:
    """Of a generation test of one stream with a ceiling; None otherwise."""
    ceiling_tps = positive_number(row.ceiling_tps)
    if row.test_kind != "tg" or ceiling_tps is None or has_several_streams(row):
        return None
    return decode_shortfall(median(row), ceiling_tps)


def is_alarming(row: Attempt) -> bool:
    """The alarm rule for decode by one stream."""
    ceiling_tps = positive_number(row.ceiling_tps)
    if row.test_kind != "tg" or ceiling_tps is None or has_several_streams(row):
        return False
    return is_decode_alarm(median(row), ceiling_tps, row.n_depth)


def share(row: Attempt) -> float | None:
    """Median / ceiling of any test; None without a ceiling, and where it rests on a reference and so is no bound."""
    return None if row.ceiling_is_reference else _share(row)


def reference_share(row: Attempt) -> float | None:
    """The same where it rests on a reference; None for bounds."""
    return _share(row) if row.ceiling_is_reference else None


def _share(row: Attempt) -> float | None:
    ceiling_tps = positive_number(row.ceiling_tps)
    return None if ceiling_tps is None else median(row) / ceiling_tps


Numbers = Mapping[str, int | float | str | None]
"""Evidence before it is a finding."""
