"""The records: a cell tried once, its timed repetitions, the readings beside it, and the run they belong to.

One field, one declaration: Parquet columns, `--json`, the report and docs/schema.md are derived from the
dataclass fields below (name, type, unit, sentence) and from `sweep.parameters`. None means "not measured" or "not known",
never 0; where a reason is worth telling it stands in `Attempt.reasons`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from llamasweep.results.declared import column, needed
from llamasweep.results.request_times import RequestTimes
from llamasweep.sweep.parameters import Scalar

SCHEMA_VERSION = 1

Status = Literal["ok", "failed", "timeout", "out_of_memory", "unsupported", "skipped"]
STATUSES: tuple[Status, ...] = (
    "ok",
    "failed",
    "timeout",
    "out_of_memory",
    "unsupported",
    "skipped",
)
FAILED_STATUSES: frozenset[Status] = frozenset({"failed", "timeout", "out_of_memory"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One timed repetition."""

    attempt_id: str = needed("attempt that it belongs to")
    cell_id: str = needed("question that was measured")
    repetition_index: int = needed("0-based, in the order measured", unit="count")
    n_tokens: int = needed("tokens processed or generated in it", unit="count")
    duration_ns: int = needed("wall time as the engine gives it, unaltered", unit="ns")
    tps: float = needed("n_tokens / duration", unit="tps")
    is_discarded: bool = needed("left out of the median because not level yet")
    started_at: datetime | None = column("when its progress line came, UTC")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One raw reading of one source at one time."""

    time_ns: int = needed("Unix time of the reading", unit="ns")
    source: str = needed("where from: psutil, nvml, rapl, amdgpu, i915, thermal …")
    device: str = needed("device or scope: process, system, gpu0, package-0 …")
    metric: str = needed("what, with its unit: rss_bytes, power_w, sm_clock_mhz …")
    value: float = needed("the reading")


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """A span of the engine's work, cut from its progress lines.

    kind: load, warmup, depth, test, repetition. cell_index: within the group, None for load. repetition_index: for
    kind "repetition". Times are Unix ns on the runner's clock; end is None where the process died in it.
    """

    kind: str = needed("load, warmup, depth, test or repetition")
    cell_index: int | None = column("0-based place in the group")
    repetition_index: int | None = column("0-based repetition")
    start_ns: int = needed("Unix time", unit="ns")
    end_ns: int | None = column("Unix time", unit="ns")


@dataclass(frozen=True, kw_only=True, slots=True)
class TelemetryFigures:
    """Readings folded over the measured phase of one cell; None with a reason in `Attempt.reasons`."""

    ram_peak_process_bytes: int | None = column(
        "peak resident set of the engine's process tree", unit="bytes"
    )
    ram_peak_pss_bytes: int | None = column(
        "peak proportional set size of it, where cheap", unit="bytes"
    )
    ram_peak_system_bytes: int | None = column(
        "peak memory in use on the whole machine", unit="bytes"
    )
    swap_peak_bytes: int | None = column("peak swap in use on the machine", unit="bytes")
    vram_peak_device_bytes: int | None = column(
        "peak device memory in use, all used devices together", unit="bytes"
    )
    vram_peak_process_bytes: int | None = column(
        "peak device memory of the engine's own processes", unit="bytes"
    )
    n_major_faults: int | None = column(
        "major page faults of the engine in the phase", unit="count"
    )
    disk_read_bytes: int | None = column(
        "bytes the engine read from disk in the phase", unit="bytes"
    )
    cpu_use_fraction: float | None = column(
        "CPU time of the engine / (cores x wall time)", unit="fraction"
    )
    cpu_use_other_fraction: float | None = column(
        "CPU use of everything else on the machine", unit="fraction"
    )
    cpu_clock_mean_mhz: float | None = column("mean clock of the cores", unit="mhz")
    cpu_temperature_peak_c: float | None = column("hottest CPU sensor", unit="c")
    gpu_use_mean_fraction: float | None = column(
        "mean utilisation of used devices", unit="fraction"
    )
    gpu_clock_mean_mhz: float | None = column("mean SM clock of used devices", unit="mhz")
    gpu_memory_clock_mean_mhz: float | None = column(
        "mean memory clock of used devices", unit="mhz"
    )
    gpu_temperature_peak_c: float | None = column("hottest used device", unit="c")
    gpu_power_mean_w: float | None = column("mean power of used devices", unit="w")
    gpu_energy_j: float | None = column("energy of used devices in the phase", unit="j")
    cpu_energy_j: float | None = column("RAPL package energy in the phase, all packages", unit="j")
    energy_per_token_j: float | None = column(
        "(GPU + CPU energy) / tokens of the phase; which parts, see energy_scope", unit="j"
    )
    energy_scope: str | None = column("what the energy covers: gpu, cpu, gpu+cpu")
    throttled_fraction: float | None = column(
        "share of readings with a thermal or power throttle reason", unit="fraction"
    )
    n_telemetry_readings: int | None = column("readings that fell in the phase", unit="count")


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """A cell tried once: a status and either samples or an error. One row of cells.parquet.

    `requested` and `applied` become two columns per parameter, `n_threads` and `n_threads_applied`; the fields of
    `telemetry` and `requests` become columns of their own. Everything else is a column of the field's name.
    """

    # -- identity
    run_id: str = needed("run that it belongs to")
    attempt_id: str = needed("unique in the run")
    cell_id: str = needed("hash of the question: model content, engine, parameters, test")
    group_id: str = needed("engine process that it shared")
    round_index: int = needed("0-based pass", unit="count")
    attempt_index: int = needed("0 for the first try, 1 for the first retry …", unit="count")
    sweep_name: str = needed("name of the sweep")
    engine: str = needed("llama-bench")
    # -- outcome
    status: Status = needed("ok, failed, timeout, out_of_memory, unsupported or skipped")
    error_kind: str | None = column(
        "short name of the error, such as model_missing, signal, garbage_output"
    )
    error_message: str | None = column("true reason in a sentence, None if ok")
    exit_code: int | None = column(
        "of the engine process; None if it was not started or was ended by a signal", unit="count"
    )
    exit_signal: str | None = column("SIGSEGV …, None if none")
    stderr_tail: str | None = column("last lines of the engine's stderr, None if ok or not started")
    log_path: str | None = column("of the group's log, relative to the run's folder")
    started_at: datetime | None = column("start of the cell, UTC")
    finished_at: datetime | None = column("its row's arrival, UTC")
    # -- build and machine
    build_label: str | None = column("name of the build")
    build_number: int | None = column(
        "llama.cpp build number, None where the binary does not tell", unit="count"
    )
    build_commit: str | None = column("commit, None where unknown")
    build_hash: str | None = column("hash of the binary")
    build_backends: str | None = column("as the binary tells, CPU, CUDA …")
    machine_fingerprint: str | None = column("hash of the machine's facts")
    cpu_name: str | None = column("as the engine names it")
    gpu_name: str | None = column(
        "as the engine names it; all devices present, not only those used"
    )
    # -- model
    model_label: str = needed("name in the sweep")
    model_hash: str | None = column("hash of header, samples of the data, and size")
    model_file: str | None = column("file name without folder")
    model_arch: str | None = column("general.architecture")
    model_quant: str | None = column("quantisation from the file, as people write it: Q4_K_M")
    model_type: str | None = column("as llama-bench names it")
    model_size_bytes: int | None = column("sum of all tensors, as llama-bench counts", unit="bytes")
    model_n_params: int | None = column("sum of all elements, as llama-bench counts", unit="count")
    model_bits_per_weight: float | None = column("size * 8 / parameters")
    model_is_synthetic: bool | None = column("random weights generated by llamasweep")
    quality_metric: str | None = column("what the sweep file says of quality")
    quality_value: float | None = column("its value")
    quality_source: str | None = column("where it comes from")
    # -- test
    test_kind: str = needed("pp, tg or pg")
    test_label: str = needed("pp512, tg128, pp512+tg128")
    n_prompt: int = needed("tokens of prompt timed", unit="count")
    n_gen: int = needed("tokens generated timed", unit="count")
    n_depth: int = needed("tokens in the KV cache before timing", unit="count")
    n_reps_requested: int | None = column("repetitions asked for", unit="count")
    # -- parameters
    requested: dict[str, Scalar] = field(
        default_factory=dict,
        metadata={"doc": "parameters as the sweep asks, None = the engine's default"},
    )
    applied: dict[str, Scalar] = field(
        default_factory=dict,
        metadata={"doc": "as the engine applied them, None = only echoed or not told"},
    )
    n_ctx_applied: int | None = column("context allocated by the engine", unit="count")
    n_gpu_layers_offloaded: int | None = column(
        "layers that the log says were offloaded", unit="count"
    )
    # -- figures over the samples that were kept
    n_samples: int | None = column("repetitions kept", unit="count")
    n_discarded: int | None = column(
        "leading repetitions left out because not level yet", unit="count"
    )
    median_tps: float | None = column("median of the samples' rates", unit="tps")
    mean_tps: float | None = column("arithmetic mean", unit="tps")
    sample_std_tps: float | None = column(
        "sample standard deviation (n - 1), None below 2", unit="tps"
    )
    mad_tps: float | None = column("median absolute deviation, not scaled", unit="tps")
    min_tps: float | None = column("slowest", unit="tps")
    max_tps: float | None = column("fastest", unit="tps")
    engine_mean_tps: float | None = column(
        "avg_ts as the engine prints it, over all repetitions", unit="tps"
    )
    load_s: float | None = column("process start to first test, shared by the group", unit="s")
    depth_s: float | None = column("untimed prefill of the depth for this cell", unit="s")
    # -- ceilings: what the hardware allows, made before the cell was measured
    ceiling_bandwidth_bytes_per_s: float | None = column(
        "memory bandwidth that the ceilings rest on", unit="bytes_per_s"
    )
    ceiling_bandwidth_source: str | None = column(
        "given in the sweep, measured, or the device table"
    )
    ceiling_peak_flop_per_s: float | None = column(
        "peak compute rate that the ceiling rests on, as well", unit="flop_per_s"
    )
    ceiling_peak_source: str | None = column(
        "given in the sweep, the device table, or the calibration's matrix product"
    )
    ceiling_is_reference: bool | None = column(
        "the exact ceiling rests on a peak that the engine's kernels may beat: a line to compare with, no bound"
    )
    pencil_ceiling_tps: float | None = column(
        "bandwidth / model size, as people compute it", unit="tps"
    )
    pencil_fraction: float | None = column(
        "median / pencil ceiling; may pass 1 without being wrong", unit="fraction"
    )
    ceiling_tps: float | None = column(
        "exact ceiling: active bytes and KV cache at the mean depth, roofline for prompts",
        unit="tps",
    )
    ceiling_fraction: float | None = column(
        "median / exact ceiling; above 1.02 an assumption is wrong, unless ceiling_is_reference",
        unit="fraction",
    )
    ceiling_bound: str | None = column("what bounds it: memory or compute")
    estimate_tps: float | None = column(
        "what several streams are likely to generate together: their memory time and compute time added; None of one stream",
        unit="tps",
    )
    stream_tps: float | None = column(
        "median / streams at once: what each of several gets; None of one stream", unit="tps"
    )
    bytes_per_token: float | None = column(
        "bytes moved per token by the exact ceiling", unit="bytes"
    )
    flop_per_token: float | None = column(
        "calculations per token by the exact ceiling", unit="flop"
    )
    arithmetic_intensity: float | None = column(
        "flop_per_token / bytes_per_token", unit="flop_per_byte"
    )
    achieved_bytes_per_s: float | None = column(
        "median rate x bytes per token; tg only", unit="bytes_per_s"
    )
    achieved_flop_per_s: float | None = column(
        "median rate x calculations per token; pp only", unit="flop_per_s"
    )
    ceiling_assumptions: tuple[str, ...] = field(
        default=(), metadata={"doc": "what the exact ceiling takes for granted", "unit": None}
    )
    # -- memory that it should take, made before it was measured
    predicted_ram_bytes: int | None = column(
        "weights, context and a bound of the compute buffer in RAM, by the arithmetic of `llamasweep fit`",
        unit="bytes",
    )
    predicted_vram_bytes: int | None = column(
        "the same on the GPU; None where none holds a layer or the engine chooses", unit="bytes"
    )
    # -- trust
    flags: tuple[str, ...] = field(
        default=(),
        metadata={
            "doc": "doubts: applied_differs, busy_neighbour, contaminated_memory, first_sample_slow, unpinned …",
            "unit": None,
        },
    )
    differences: tuple[str, ...] = field(
        default=(),
        metadata={
            "doc": "applied != requested, as 'n_batch: asked 2048, applied 512'",
            "unit": None,
        },
    )
    reasons: dict[str, str] = field(
        default_factory=dict, metadata={"doc": "column -> why it is None", "unit": None}
    )
    telemetry: TelemetryFigures | None = field(
        default=None, metadata={"doc": "folded readings", "unit": None}
    )
    requests: RequestTimes | None = field(
        default=None, metadata={"doc": "requests to a server, folded", "unit": None}
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunInfo:
    """What run.json holds. Plain JSON values only, so that it can be read without llamasweep."""

    schema_version: int
    llamasweep_version: str
    run_id: str
    sweep_name: str
    sweep_file: str | None
    sweep_resolved: dict[str, Any]
    """The sweep as understood, after `extends`, words and defaults."""
    started_at: str
    finished_at: str | None
    """UTC ISO time; None while it goes on or after a kill."""
    seed: int
    machine: dict[str, Any]
    builds: list[dict[str, Any]]
    models: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    """group_id, argv, environment that was set, log path, exit code, times, sampler cost."""
    notes: list[str]
    """What was noticed on the way: changed files, no sensor for a cooldown, not quiet …"""
    n_cells_planned: int
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunData:
    """A run as views, comparisons and exports get it."""

    info: RunInfo
    attempts: tuple[Attempt, ...]
    samples: tuple[Sample, ...]
    readings: tuple[Reading, ...] = ()
