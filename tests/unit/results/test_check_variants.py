"""What a kind says differently by its evidence, and what must not be mistaken for it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.results.finding_cases import (
    GPU,
    MIB,
    ONE_CHANNEL,
    TWO_CHANNELS,
    deep,
    half_on_cpu,
    kv_type,
    layered,
    on_machine,
    reference,
    threads,
    ubatch,
    with_rates,
)
from tests.unit.results.finding_cases import measured as measured_at
from tests.unit.results.made import (
    FINISHED,
    GIB,
    MACHINE,
    STARTED,
    attempt,
    on_gpu,
    prompt,
    run_of,
    seen,
)

from llamasweep.results.checks import Finding, Kind, check_run
from llamasweep.results.measured_rows import (
    MeasuredRows,
    is_alarming,
    is_faster,
    median,
    ran_on_cpu,
    reference_share,
    share,
    shortfall,
)
from llamasweep.results.placement_checks import n_layers
from llamasweep.results.records import Attempt, Reading, RunData
from llamasweep.results.repetition_checks import falling_p


def found(run: RunData, kind: Kind) -> Finding | None:
    return next((finding for finding in check_run(run) if finding.kind == kind), None)


def said(run: RunData, kind: Kind) -> Finding:
    finding = found(run, kind)
    assert finding is not None
    return finding


def value(finding: Finding, name: str) -> Any:
    return next((item.value for item in finding.evidence if item.name == name), None)


# -- ceilings
def test_a_model_in_the_cache_breaks_the_ceiling_without_alarm() -> None:
    finding = said(on_machine(attempt(median_tps=20.0, bytes_per_token=40e6)), "above_ceiling")
    assert finding.severity == "warning"
    assert "cache" in finding.cause
    assert value(finding, "last_level_cache_bytes") == 32 * MIB


@pytest.mark.parametrize("median_tps", [0.5, 400.0])
def test_a_reference_peak_raises_no_alarm_however_far_off(median_tps: float) -> None:
    run = run_of([reference(0, median_tps)])

    assert {finding.kind for finding in check_run(run)} <= {"above_reference"}
    assert share(run.attempts[0]) is None
    assert reference_share(run.attempts[0]) == median_tps / 100


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ceiling_bandwidth_source": "given in the sweep"}, "given in the sweep is too low"),
        ({}, "measured bandwidth is too low"),
        ({"ceiling_bandwidth_source": "specification of RTX 4070"}, "specification"),
        ({"ceiling_bandwidth_source": None}, "specification"),
        ({"ceiling_bound": "compute"}, "peak"),
    ],
)
def test_the_broken_assumption_is_named(changes: dict[str, Any], words: str) -> None:
    finding = said(on_machine(attempt(median_tps=20.0, **changes)), "above_ceiling")
    assert words in finding.cause
    assert finding.severity == "alarm"


def test_an_assumption_that_was_not_recorded_is_still_named() -> None:
    finding = said(run_of([attempt(median_tps=20.0, ceiling_assumptions=())]), "above_ceiling")
    assert value(finding, "assumption") == "the bandwidth that the ceiling rests on"


def test_a_tiny_model_far_below_its_ceiling_is_a_note() -> None:
    finding = said(run_of([on_gpu(median_tps=500.0, ceiling_tps=9000.0)]), "far_below_ceiling")
    assert finding.severity == "note"
    assert found(run_of([on_gpu(median_tps=500.0, ceiling_tps=9000.0)]), "small_active_set") is None


def test_prompts_far_below_their_ceiling_ask_for_the_device() -> None:
    row = prompt(median_tps=90.0, ceiling_tps=900.0)
    assert "the device" in said(run_of([row]), "far_below_ceiling").cause


def test_a_small_model_on_narrow_memory_is_no_small_active_set() -> None:
    row = attempt(median_tps=130.0, ceiling_tps=300.0)
    assert found(run_of([row]), "small_active_set") is None
    wide = replace(row, ceiling_bandwidth_bytes_per_s=256e9)
    assert found(run_of([wide]), "small_active_set") is not None


def test_a_deep_row_raises_no_alarm_and_is_no_small_active_set() -> None:
    rows = [
        attempt(median_tps=6.0, n_depth=4096),
        on_gpu(1, median_tps=130.0, ceiling_tps=300.0, n_depth=4096),
    ]
    assert check_run(run_of(rows)) == ()


# -- kernels and builds
def quants(
    number: int, quant: str, median_tps: float, ceiling_tps: float, **changes: Any
) -> Attempt:
    return attempt(
        number,
        model_quant=quant,
        model_hash=quant,
        median_tps=median_tps,
        ceiling_tps=ceiling_tps,
        **changes,
    )


def test_a_quantisation_that_lags_behind_another_is_bound_by_unpacking() -> None:
    rows = [
        quants(0, "Q5_0", 5.3, 11.4),
        quants(1, "BF16", 3.9, 4.0),
        quants(2, "Q4_0", 11.0, 13.7),
    ]
    finding = said(run_of(rows), "dequantisation_bound")
    assert value(finding, "other_quantisation") == "BF16"
    assert value(finding, "its_share_of_the_ceiling_fraction") == pytest.approx(0.975)
    assert finding.attempt_ids == ("a0",)


@pytest.mark.parametrize(
    "others",
    [
        [quants(1, "BF16", 2.5, 4.0)],  # loses 150 ms itself
        [quants(1, "BF16", 3.9, 4.0, model_n_params=7_000_000_000)],  # another model
        [quants(1, "BF16", 3.9, 4.0, requested={"n_threads": 16})],  # other settings
        [quants(1, "Q5_0", 11.0, 11.4)],  # the same
        [],
    ],
)
def test_unpacking_needs_a_comparable_quantisation(others: list[Attempt]) -> None:
    rows = [quants(0, "Q5_0", 5.3, 11.4), *others]
    assert found(run_of(rows), "dequantisation_bound") is None


def test_unpacking_is_not_claimed_of_models_that_cannot_be_told_apart() -> None:
    rows = [quants(0, "Q5_0", 5.3, 11.4), quants(1, "BF16", 3.9, 4.0)]
    unknown = [replace(row, model_n_params=None) for row in rows]
    assert found(run_of(unknown), "dequantisation_bound") is None


def test_unpacking_on_a_gpu_is_a_matter_of_kernels() -> None:
    rows = [
        on_gpu(0, model_quant="Q3_K_S", median_tps=20.0, ceiling_tps=60.0),
        on_gpu(1, model_quant="Q8_0", model_hash="Q8_0", median_tps=30.0, ceiling_tps=36.0),
    ]
    finding = said(run_of(rows), "dequantisation_bound")
    assert "kernels of this build" in finding.cause
    assert value(finding, "n_threads") is None


def test_an_i_quant_on_a_gpu_needs_a_comparison() -> None:
    row = on_gpu(model_quant="IQ3_S", median_tps=20.0, ceiling_tps=60.0)
    assert found(run_of([row]), "dequantisation_bound") is None


def test_another_build_on_other_memory_is_no_comparison() -> None:
    slow = attempt(median_tps=6.0)
    other = attempt(1, build_hash="cuda", median_tps=90.0, ceiling_bandwidth_bytes_per_s=504e9)
    assert found(run_of([slow, other]), "slower_build") is None
    assert found(run_of([slow]), "slower_build") is None


@pytest.mark.parametrize(
    ("gpu", "is_old"),
    [("AMD Radeon RX 6800 XT", True), ("QUALCOMM Adreno(TM) 750", False), (None, False)],
)
def test_opencl_is_old_where_todays_does_not_run(gpu: str | None, *, is_old: bool) -> None:
    row = attempt(build_backends="OpenCL", gpu_name=gpu, build_number=None, median_tps=6.0)
    assert (found(run_of([row]), "old_build") is not None) is is_old


def test_a_build_without_a_list_of_instructions_is_not_accused() -> None:
    machine = {**MACHINE, "cpu_features": ["avx2"]}
    builds = [{"content_hash": "build", "cpu_features": ["avx2", "fma"]}]
    assert (
        found(run_of([attempt()], machine=machine, builds=builds), "missing_instructions") is None
    )


# -- depth
def test_depth_is_judged_by_its_ends_and_by_the_middle_of_the_rounds() -> None:
    rows = [
        deep(0, 0, 9.0, 12.0),
        deep(1, 0, 2.0, 12.0),
        deep(2, 0, 9.1, 12.0),
        deep(3, 4096, 8.0, 11.0),
        deep(4, 16384, 4.5, 8.0),
    ]
    assert said(run_of(rows), "depth_loss").attempt_ids == ("a0", "a4")


def test_a_share_that_rises_with_depth_explains_nothing() -> None:
    assert check_run(run_of([deep(0, 0, 8.5, 12.0), deep(1, 16384, 7.9, 8.0)])) == ()


def test_disturbed_rows_are_not_compared() -> None:
    rows = [deep(0, 0, 9.0, 12.0), seen(deep(1, 16384, 4.5, 8.0), cpu_use_other_fraction=0.5)]
    assert found(run_of(rows), "depth_loss") is None
    slow = seen(attempt(median_tps=6.0), cpu_use_other_fraction=0.5)
    other = attempt(1, build_hash="other", median_tps=10.0)
    assert found(run_of([slow, other]), "slower_build") is None


# -- placement
def test_room_on_the_gpu_makes_a_warning_with_advice() -> None:
    finding = said(
        layered(half_on_cpu(vram_peak_device_bytes=6 * GIB), gpus=[GPU]), "partly_on_cpu"
    )
    assert finding.severity == "warning"
    assert "has room left" in finding.next_step
    full = said(layered(half_on_cpu(vram_peak_device_bytes=11 * GIB), gpus=[GPU]), "partly_on_cpu")
    assert full.severity == "note"


def test_fewer_layers_than_asked_are_told() -> None:
    row = replace(half_on_cpu(), differences=("n_gpu_layers: asked 99, applied 16",))
    finding = said(layered(row), "partly_on_cpu")
    assert value(finding, "differs") == "n_gpu_layers: asked 99, applied 16"
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"n_cpu_moe": 12}, "n_layers_with_experts_on_the_cpu"),
        ({"no_kv_offload": True}, "kv_cache"),
        ({"tensor_buft_overrides": "ffn_.*=CPU"}, "tensors_kept_on_the_cpu"),
    ],
)
def test_other_ways_to_the_cpu_are_named(asked: dict[str, Any], name: str) -> None:
    finding = said(run_of([on_gpu(requested=asked, applied={})]), "partly_on_cpu")
    assert value(finding, name)


def test_without_a_record_of_layers_the_run_itself_tells_how_many_fit() -> None:
    rows = [on_gpu(0), on_gpu(1, n_gpu_layers_offloaded=20, requested={"n_gpu_layers": 20})]
    run = run_of(rows)
    assert n_layers(MeasuredRows(run), rows[1]) == 33
    assert said(run, "partly_on_cpu").attempt_ids == ("a1",)
    assert n_layers(MeasuredRows(run), replace(rows[0], model_hash=None)) is None


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"build_backends": "CPU"}, True),
        ({"build_backends": "BLAS,CPU"}, True),
        ({"build_backends": "CUDA", "requested": {"devices": "none"}}, True),
        ({"build_backends": "CUDA", "requested": {"n_gpu_layers": 0}}, True),
        ({"build_backends": "CUDA", "n_gpu_layers_offloaded": 5}, False),
        ({"build_backends": "CUDA", "requested": {"n_gpu_layers": 20}}, False),
        ({"build_backends": "CUDA", "requested": {"n_gpu_layers": -1}}, None),
        ({"build_backends": None}, None),
    ],
)
def test_where_a_row_ran(changes: dict[str, Any], where: bool | None) -> None:
    plain = {"applied": {}, "requested": {}} | changes
    assert ran_on_cpu(attempt(**plain)) is where


@pytest.mark.parametrize(
    ("figures", "ram"),
    [
        ({"gpu_use_mean_fraction": 0.2}, {}),
        ({"gpu_use_mean_fraction": 0.2}, {"best_bytes_per_s": 90e9}),
        ({}, {"best_bytes_per_s": 50e9}),
    ],
)
def test_a_gpu_waits_for_ram_only_where_ram_is_busy(
    figures: dict[str, Any], ram: dict[str, Any]
) -> None:
    run = layered(half_on_cpu(**figures), calibration={"ram": ram})
    assert found(run, "gpu_waits_for_ram") is None


def test_a_gpu_waits_for_a_dense_model_without_a_ceiling() -> None:
    row = replace(half_on_cpu(gpu_use_mean_fraction=0.2), bytes_per_token=None)
    assert found(layered(row), "gpu_waits_for_ram") is not None
    unknown = run_of([row], machine={**MACHINE, "calibration": {"ram": {"best_bytes_per_s": 50e9}}})
    assert found(unknown, "gpu_waits_for_ram") is None


def test_experts_on_the_cpu_do_not_tell_how_much_is_read_from_ram() -> None:
    row = seen(on_gpu(requested={"n_cpu_moe": 9}, applied={}), gpu_use_mean_fraction=0.2)
    assert found(layered(row), "gpu_waits_for_ram") is None


def test_a_display_is_no_gpu_that_was_forgotten() -> None:
    assert (
        found(
            on_machine(attempt(), gpus=[{"memory_bytes": 256 * MIB}, {"name": "iGPU"}]),
            "gpu_unused",
        )
        is None
    )
    assert (
        found(on_machine(attempt(requested={"devices": "none"}), gpus=[GPU]), "gpu_unused") is None
    )


def test_full_memory_of_one_of_two_gpus_cannot_be_told() -> None:
    row = seen(on_gpu(), vram_peak_device_bytes=12 * GIB)
    assert found(on_machine(row, gpus=[GPU, GPU]), "vram_full") is None


def test_attention_on_the_cpu_shows_without_an_f16_row_too() -> None:
    row = kv_type(0, "q5_1", 20.0, gpu_use_mean_fraction=0.1, cpu_use_fraction=0.5)
    finding = said(on_machine(row), "kv_cache_on_cpu")
    assert value(finding, "busy_cpu_cores") == "8.0"
    busy_gpu = kv_type(0, "q5_1", 20.0, gpu_use_mean_fraction=0.9, cpu_use_fraction=0.5)
    one_core = kv_type(0, "q5_1", 20.0, gpu_use_mean_fraction=0.1, cpu_use_fraction=0.06)
    unseen = kv_type(0, "q5_1", 20.0, gpu_use_mean_fraction=0.1)
    for quiet in (busy_gpu, one_core, unseen):
        assert found(on_machine(quiet), "kv_cache_on_cpu") is None


def test_a_quantised_cache_on_the_cpu_itself_falls_back_to_nothing() -> None:
    rows = [
        attempt(0, requested={"type_k": "q5_1"}, applied={}, median_tps=5.0),
        attempt(1, requested={}, applied={}),
    ]
    assert found(run_of(rows), "kv_cache_on_cpu") is None


# -- threads and neighbours
def test_a_quota_counts_like_processors() -> None:
    finding = said(on_machine(threads(0, 4, 9.0), cpu_quota=2.5), "more_threads_than_cpus")
    assert value(finding, "cpu_quota") == "2.5"
    assert found(on_machine(threads(0, 3, 9.0), cpu_quota=2.5), "more_threads_than_cpus") is None


def test_siblings_are_a_note_where_nothing_was_compared() -> None:
    finding = said(on_machine(threads(0, 12, 9.0)), "smt_siblings")
    assert finding.severity == "note"
    assert (
        said(on_machine(threads(0, 12, 9.0), threads(1, 8, 10.0)), "smt_siblings").severity
        == "warning"
    )


def test_threads_left_to_the_engine_are_not_judged() -> None:
    assert check_run(on_machine(attempt(requested={}, applied={}))) == ()
    assert check_run(on_machine(attempt(requested={"n_threads": "8"}, applied={}))) == ()


def test_the_run_itself_shows_too_many_threads_without_a_calibration() -> None:
    finding = said(on_machine(threads(0, 8, 9.0), threads(1, 4, 10.0)), "threads_beyond_knee")
    assert finding.severity == "warning"
    assert "memory is busy" in finding.cause
    assert found(on_machine(threads(0, 8, 9.9), threads(1, 4, 10.0)), "threads_beyond_knee") is None


def test_a_loss_that_memory_cannot_explain_is_put_on_waiting_threads() -> None:
    finding = said(on_machine(threads(0, 8, 2.0), threads(1, 4, 10.0)), "threads_beyond_knee")
    assert "hold each other up" in finding.cause


def test_a_knee_alone_is_a_note() -> None:
    run = on_machine(threads(0, 8, 9.9), calibration={"ram": {"knee_threads": 4}})
    assert said(run, "threads_beyond_knee").severity == "note"
    assert (
        found(on_machine(prompt(), calibration={"ram": {"knee_threads": 4}}), "threads_beyond_knee")
        is None
    )


def test_rates_whose_ranges_overlap_are_not_faster() -> None:
    a = attempt(0, median_tps=11.0, n_samples=3, min_tps=9.0, max_tps=12.0)
    b = attempt(1, median_tps=10.0, n_samples=3, min_tps=9.5, max_tps=10.5)
    assert not is_faster(a, b, 1.05)
    assert is_faster(replace(a, min_tps=10.6), b, 1.05)
    assert is_faster(replace(a, n_samples=1), b, 1.05)
    assert is_faster(replace(a, min_tps=None), b, 1.05)
    assert is_faster(replace(a, n_samples=None), b, 1.05)
    assert not is_faster(a, b, 1.2)


def test_a_finding_that_rests_on_single_repetitions_says_so() -> None:
    slow, fast = threads(0, 4, 9.0), threads(1, 8, 12.0)
    once = [replace(row, n_samples=1) for row in (slow, fast)]
    seen = said(on_machine(*once), "too_few_threads").seen
    assert seen.endswith("measured once")
    repeated = [
        replace(row, n_samples=3, min_tps=row.median_tps, max_tps=row.median_tps)
        for row in (slow, fast)
    ]
    assert "measured once" not in said(on_machine(*repeated), "too_few_threads").seen


def test_a_row_without_a_rate_has_no_median() -> None:
    with pytest.raises(ValueError, match="a7 has no rate"):
        median(attempt(7, median_tps=None))


@pytest.mark.parametrize("ceiling_tps", [None, 0.0])
def test_without_a_ceiling_there_is_no_share_and_no_alarm(ceiling_tps: float | None) -> None:
    row = attempt(0, median_tps=1.0, ceiling_tps=ceiling_tps)
    assert share(row) is None
    assert shortfall(row) is None
    assert not is_alarming(row)


@pytest.mark.parametrize(
    ("row", "others", "name"),
    [
        (
            threads(0, 16, 10.0, cell_id="same"),
            [threads(1, 16, 30.0, cell_id="same")],
            "in_another_round_tps",
        ),
        (threads(0, 16, 10.0), [threads(1, 8, 30.0)], "with_fewer_threads_tps"),
    ],
)
def test_a_collapse_shows_against_other_rows(
    row: Attempt, others: list[Attempt], name: str
) -> None:
    finding = said(on_machine(seen(row, cpu_use_other_fraction=0.3), *others), "barrier_collapse")
    assert value(finding, name) == 30.0


def test_a_collapse_shows_within_a_row() -> None:
    run = with_rates([10.0, 10.0, 4.0])
    disturbed = replace(run, attempts=(seen(threads(0, 16, 10.0), cpu_use_other_fraction=0.3),))
    assert value(said(disturbed, "barrier_collapse"), "slowest_repetition_tps") == 4.0


@pytest.mark.parametrize("row", [threads(0, 1, 0.5), threads(0, 4, 0.5), on_gpu(median_tps=10.0)])
def test_without_a_barrier_or_a_crowd_it_is_only_a_neighbour(row: Attempt) -> None:
    run = on_machine(seen(row, cpu_use_other_fraction=0.3))
    assert found(run, "barrier_collapse") is None
    assert found(run, "busy_neighbour") is not None


# -- memory
def test_a_model_larger_than_ram_is_read_again_and_again() -> None:
    row = seen(attempt(model_size_bytes=70 * GIB), n_major_faults=900, disk_read_bytes=GIB)
    assert "does not fit" in said(on_machine(row), "paged_from_disk").cause


def test_old_swap_counts_only_where_ram_is_full() -> None:
    full = seen(attempt(), swap_peak_bytes=GIB, ram_peak_system_bytes=62 * GIB)
    half = seen(attempt(), swap_peak_bytes=GIB, ram_peak_system_bytes=30 * GIB)
    assert found(on_machine(full), "swapping") is not None
    assert found(on_machine(half), "swapping") is None


def test_more_than_one_channel_gives_more_than_one_channel() -> None:
    assert (
        found(run_of([attempt(**measured_at(52))], machine=ONE_CHANNEL), "one_memory_channel")
        is None
    )
    lpddr = {**ONE_CHANNEL, "ram_type": "LPDDR5"}
    assert found(run_of([attempt(**measured_at(38))], machine=lpddr), "one_memory_channel") is None


def test_two_channels_as_fast_as_one_are_told() -> None:
    finding = said(run_of([attempt(**measured_at(40))], machine=TWO_CHANNELS), "memory_below_rated")
    assert "one of them may not work" in finding.cause
    other = said(run_of([attempt(**measured_at(52))], machine=TWO_CHANNELS), "memory_below_rated")
    assert "one of them" not in other.cause


def test_memory_is_judged_by_measured_bandwidth_only() -> None:
    row = attempt(ceiling_bandwidth_source="given in the sweep", **measured_at(38))
    assert check_run(run_of([row], machine=ONE_CHANNEL)) == ()
    calibrated = {
        **TWO_CHANNELS,
        "calibration": {"ram": {"best_bytes_per_s": 50e9}, "spec_ram": {"bytes_per_s": 100e9}},
    }
    assert (
        value(
            said(run_of([row], machine=calibrated), "memory_below_rated"),
            "specification_bytes_per_s",
        )
        == 100e9
    )
    assert check_run(run_of([on_gpu()], machine=calibrated)) == ()


def test_a_gpu_memory_clock_below_its_highest() -> None:
    row = seen(on_gpu(), gpu_memory_clock_mean_mhz=5001.0)
    assert "did not raise" in said(on_machine(row, gpus=[GPU]), "memory_below_rated").cause
    assert (
        found(
            on_machine(seen(on_gpu(), gpu_memory_clock_mean_mhz=10501.0), gpus=[GPU]),
            "memory_below_rated",
        )
        is None
    )


# -- power
@pytest.mark.parametrize(
    ("masks", "limit", "severity"),
    [
        ([0x4, 0x0], "power", "note"),
        ([0x4, 0x20], "power and heat", "warning"),
        ([0x40], "heat", "warning"),
        ([0x8], "hardware", "warning"),
        ([0x1], None, "warning"),
        ([], None, "warning"),
    ],
)
def test_the_limit_that_throttled_a_gpu(masks: list[int], limit: str | None, severity: str) -> None:
    row = seen(on_gpu(), throttled_fraction=0.5, gpu_power_mean_w=200.0)
    middle_ns = int(STARTED.timestamp() * 1e9) + 10**9
    late_ns = int(FINISHED.timestamp() * 1e9) + 10**9
    readings = [
        Reading(time_ns=time_ns, source="nvml", device="gpu0", metric=metric, value=float(mask))
        for time_ns, metric, mask in [
            *((middle_ns, "throttle_reasons_mask", mask) for mask in masks),
            (late_ns, "throttle_reasons_mask", 0x40),
            (middle_ns, "power_w", 0x40),
        ]
    ]
    finding = said(run_of([row], readings=readings), "throttled")
    assert value(finding, "limit") == limit
    assert finding.severity == severity
    unknown_time = run_of([replace(row, started_at=None)], readings=readings)
    assert value(said(unknown_time, "throttled"), "limit") is None


def test_an_energy_preference_slows_drivers_that_govern_themselves() -> None:
    facts = {
        "governor": "powersave",
        "frequency_driver": "intel_pstate",
        "energy_preference": "power",
    }
    assert found(on_machine(attempt(), **facts), "slow_governor") is not None
    assert found(on_machine(on_gpu(), **facts), "slow_governor") is None


# -- settings
def test_a_prompt_that_memory_bounds_has_too_small_batches() -> None:
    row = replace(ubatch(0, 32, 50.0), ceiling_bound="memory", ceiling_tps=80.0)
    finding = said(run_of([row]), "small_ubatch")
    assert value(finding, "bound_by_the_ceiling") == "memory"
    assert found(run_of([replace(row, ceiling_bound="compute")]), "small_ubatch") is None
    assert found(run_of([replace(row, n_prompt=32)]), "small_ubatch") is None


# -- repetitions
def test_a_slow_start_that_was_left_out_is_told_as_such() -> None:
    finding = said(with_rates([5.0, 10.0, 10.1, 10.0], n_discarded=1), "first_repetition_slow")
    assert value(finding, "in_the_median") == "no, left out"


def test_whether_a_slow_start_was_left_out_is_not_guessed() -> None:
    run = with_rates([5.0, 10.0, 10.1, 10.0])
    rows = tuple(replace(row, n_discarded=None) for row in run.attempts)
    finding = said(replace(run, attempts=rows), "first_repetition_slow")
    assert "in_the_median" not in {item.name for item in finding.evidence}


def test_a_slow_start_within_the_spread_is_none() -> None:
    assert found(with_rates([8.0, 10.0, 7.5, 12.0, 9.5]), "first_repetition_slow") is None


def test_few_repetitions_say_nothing() -> None:
    assert check_run(with_rates([5.0, 10.0])) == ()


@pytest.mark.parametrize("n", range(6))
def test_the_chance_of_a_fall_is_that_of_all_orders(n: int) -> None:
    """Counted over all permutations."""
    orders = list(itertools.permutations(range(n)))

    def n_rising(order: tuple[int, ...]) -> int:
        return sum(a < b for a, b in itertools.combinations(order, 2))

    for order in orders:
        as_steady = sum(n_rising(other) <= n_rising(order) for other in orders)
        assert falling_p(order) == pytest.approx(as_steady / len(orders))


# -- too few threads
def test_an_alarm_with_one_thread_is_explained_by_a_row_with_more() -> None:
    run = on_machine(threads(0, 1, 3.0), threads(1, 8, 10.0))

    assert "fewer threads than the memory needs" in said(run, "slow_decode").cause
    assert said(run, "too_few_threads").severity == "warning"


def test_without_rows_to_compare_the_knee_explains_an_alarm_and_nothing_else() -> None:
    knee = {"ram": {"knee_threads": 4}}

    finding = said(on_machine(threads(0, 1, 3.0), calibration=knee), "too_few_threads")
    assert value(finding, "n_threads_at_the_knee") == 4
    assert found(on_machine(threads(0, 1, 11.0), calibration=knee), "too_few_threads") is None
    assert found(on_machine(threads(0, 4, 3.0), calibration=knee), "too_few_threads") is None
    assert found(on_machine(threads(0, 1, 3.0)), "too_few_threads") is None


def test_more_threads_that_are_no_faster_explain_nothing_whatever_the_knee() -> None:
    knee = {"ram": {"knee_threads": 8}}
    run = on_machine(threads(0, 1, 3.0), threads(1, 8, 3.1), calibration=knee)

    assert found(run, "too_few_threads") is None


def test_a_faster_sibling_is_a_note_where_the_row_raises_no_alarm() -> None:
    run = on_machine(threads(0, 2, 9.0), threads(1, 8, 11.0))

    assert said(run, "too_few_threads").severity == "note"


def test_a_disturbed_row_with_more_threads_is_no_evidence() -> None:
    busy = seen(threads(1, 8, 10.0), cpu_use_other_fraction=0.5)

    assert found(on_machine(threads(0, 1, 3.0), busy), "too_few_threads") is None


# -- instructions
@pytest.mark.parametrize(
    ("built_for", "missing"),
    [
        (["avx", "f16c"], "avx2, fma, amx_int8"),
        ([], "avx2, fma, f16c, amx_int8"),
        (["avx2", "fma", "f16c"], None),  # AMX alone may be left out on purpose
        (None, None),
    ],
)
def test_a_build_without_avx2_is_told_on_a_machine_that_has_it(
    built_for: list[str] | None, missing: str | None
) -> None:
    machine = {**MACHINE, "cpu_features": ["avx", "avx2", "f16c", "fma", "amx_int8"]}
    builds = [{"content_hash": "build", "cpu_features": built_for}]

    finding = found(run_of([attempt()], machine=machine, builds=builds), "missing_instructions")

    assert (None if finding is None else value(finding, "missing_in_the_build")) == missing


@pytest.mark.parametrize(
    ("fraction", "shown"), [(0.4321, "43.2 %"), (9.99, "999 %"), (15.34, "1,534 %")]
)
def test_shares_are_never_written_with_exponents(fraction: float, shown: str) -> None:
    finding = said(run_of([attempt(median_tps=12.0 * max(1.1, fraction))]), "above_ceiling")
    item = replace(finding.evidence[0], value=fraction)
    assert item.text == f"share of the ceiling {shown}"
