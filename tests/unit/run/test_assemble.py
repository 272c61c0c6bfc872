"""Hand-written logs and the rows that must come of them; every number is worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.logs import (
    COMMON,
    LOG_ID,
    SECOND_NS,
    START_NS,
    Script,
    cell,
    description,
    row,
    write_log,
)

from llamasweep.results.records import Attempt, Reading
from llamasweep.run.assemble import Assembled, assemble

S = SECOND_NS
NO_FILE = "gguf_init_from_file: failed to open GGUF file 'm.gguf' (No such file or directory)"
GENERIC = "llama_bench: error: failed to load model 'm.gguf'"
PP, TG = cell(8, 0, 1), cell(0, 4, 2)


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(START_NS / 1e9 + seconds, tz=UTC)


def two_cells() -> Script:
    """pp8 three times in 2, 1 and 1 s; then tg4 three times in 2 s each."""
    script = Script().bench(1, 2, "starting", "warmup prompt run", each_s=1)  # 1 s, 2 s
    script.bench(1, 2, "prompt run 1/3", "prompt run 2/3", "prompt run 3/3", each_s=2)  # 4, 6, 8
    script.after_s(2).out(row(8, 0, [2 * S, S, S], avg_ts=7.0))  # 10 s
    script.bench(2, 2, "starting", "warmup generation run", each_s=1)  # 11, 12
    script.bench(2, 2, *(f"generation run {i}/3" for i in (1, 2, 3)), each_s=2)  # 14, 16, 18
    return script.after_s(2).out(row(0, 4, [2 * S] * 3))  # 20 s


def assembled(
    tmp_path: Path,
    script: Script,
    cells: list[dict[str, Any]] | None = None,
    *,
    end: dict[str, Any] | None,
    readings: tuple[Reading, ...] = (),
    **described: Any,
) -> Assembled:
    what = description(cells or [PP, TG], **described)
    return assemble(write_log(tmp_path, what, script, end=end, readings=readings))


# -- rows


def test_rows_become_attempts_with_their_figures(tmp_path: Path) -> None:
    found = assembled(tmp_path, two_cells(), end={})
    pp, tg = found.attempts
    assert (pp.status, tg.status) == ("ok", "ok")
    assert (pp.attempt_id, tg.attempt_id) == (f"{LOG_ID}-0000", f"{LOG_ID}-0001")
    assert (pp.cell_id, tg.cell_id) == (PP["cell_id"], TG["cell_id"])
    assert (pp.test_label, pp.test_kind, tg.test_label) == ("pp8", "pp", "tg4")
    assert (pp.n_samples, pp.n_discarded) == (3, 0)
    assert (pp.median_tps, pp.mean_tps, pp.min_tps, pp.max_tps) == (8.0, 20 / 3, 4.0, 8.0)
    assert pp.sample_std_tps == pytest.approx((16 / 3) ** 0.5)
    assert pp.mad_tps == 0.0
    assert pp.engine_mean_tps == 7.0
    assert tg.engine_mean_tps is None
    assert (tg.median_tps, tg.sample_std_tps) == (2.0, 0.0)
    assert pp.log_path == f"logs/{LOG_ID}.jsonl"
    assert (pp.run_id, pp.model_label, pp.build_hash) == (
        COMMON["run_id"],
        "tiny",
        COMMON["build_hash"],
    )
    assert (found.failure, found.n_cells, found.next_index) == (None, 2, 2)


def test_times_come_from_the_progress_lines(tmp_path: Path) -> None:
    pp, tg = assembled(tmp_path, two_cells(), end={}).attempts
    assert (pp.started_at, pp.finished_at) == (at(1), at(10))
    assert (tg.started_at, tg.finished_at) == (at(11), at(20))
    assert pp.load_s == tg.load_s == 2.0  # start of the process to the warm-up
    assert pp.depth_s is None


def test_samples_equal_the_engines_own_to_the_nanosecond(tmp_path: Path) -> None:
    odd = [123_456_789_012_345_678, 1, 999_999_999]
    script = Script().bench(1, 1, "starting", "prompt run 1/3").out(row(8, 0, odd))
    found = assembled(tmp_path, script, [PP], end={})
    assert [s.duration_ns for s in found.samples] == odd
    assert [s.repetition_index for s in found.samples] == [0, 1, 2]
    assert [s.n_tokens for s in found.samples] == [8, 8, 8]
    assert found.samples[1].tps == 8e9
    assert {s.attempt_id for s in found.samples} == {found.attempts[0].attempt_id}


def test_every_repetition_knows_when_it_began(tmp_path: Path) -> None:
    found = assembled(tmp_path, two_cells(), end={})
    assert [s.started_at for s in found.samples] == [at(s) for s in (4, 6, 8, 14, 16, 18)]


def test_a_leading_repetition_that_is_not_level_is_kept_and_left_out(tmp_path: Path) -> None:
    """8 tokens in 10, 1, 1, 1 s: 0.8 is far from the later 8.0, whose MAD is 0 (1 % of 8 stands in)."""
    script = Script().bench(1, 1, "starting").out(row(8, 0, [10 * S, S, S, S], avg_ts=6.2))
    found = assembled(tmp_path, script, [PP], end={})
    (attempt,) = found.attempts
    assert (attempt.n_samples, attempt.n_discarded) == (3, 1)
    assert (attempt.median_tps, attempt.mean_tps, attempt.min_tps) == (8.0, 8.0, 8.0)
    assert attempt.engine_mean_tps == 6.2  # the engine's own is over all of them
    assert [s.is_discarded for s in found.samples] == [True, False, False, False]


def test_a_number_to_discard_is_obeyed(tmp_path: Path) -> None:
    found = assembled(tmp_path, two_cells(), end={}, discard=2)
    assert [(a.n_samples, a.n_discarded) for a in found.attempts] == [(1, 2), (1, 2)]
    assert found.attempts[0].sample_std_tps is None


@pytest.mark.parametrize(
    ("samples_s", "flags"),
    [
        ((1.0, 1.0, 1.0), ()),
        ((1.0, 1.2, 0.9), ("wide_spread",)),
        ((1.2, 1.0, 1.0), ("first_sample_slow",)),
        ((1.0, 2.0), ()),  # two values have no spread worth a word
    ],
)
def test_spread_is_flagged(
    tmp_path: Path, samples_s: tuple[float, ...], flags: tuple[str, ...]
) -> None:
    """Rates 8, 6.67, 8.89: MAD 0.89 times 1.48 is over 5 % of the median 8."""
    script = Script().bench(1, 1, "starting").out(row(8, 0, [round(s * S) for s in samples_s]))
    common = COMMON | {"n_reps_requested": len(samples_s)}
    (attempt,) = assembled(tmp_path, script, [PP], end={}, common=common).attempts
    assert attempt.flags == flags


def test_flags_of_the_group_stand_on_every_row(tmp_path: Path) -> None:
    found = assembled(tmp_path, two_cells(), end={}, flags=["contaminated_memory"])
    assert all(a.flags[0] == "contaminated_memory" for a in found.attempts)


def test_what_the_engine_says_of_itself_is_kept_and_zero_is_unknown(tmp_path: Path) -> None:
    fields = {"cpu_info": "EPYC", "gpu_info": "", "backends": "CPU", "model_type": "llama 7B"}
    script = Script().out(row(8, 0, [S], build_number=0, build_commit="unknown", **fields))
    (attempt,) = assembled(tmp_path, script, [PP], end={}).attempts
    assert (attempt.cpu_name, attempt.gpu_name, attempt.model_type) == ("EPYC", None, "llama 7B")
    assert (attempt.build_number, attempt.build_commit) == (None, None)
    script = Script().out(row(8, 0, [S], build_number=4748, build_commit="abc"))
    (attempt,) = assembled(tmp_path / "b", script, [PP], end={}).attempts
    assert (attempt.build_number, attempt.build_commit) == (4748, "abc")


@pytest.mark.parametrize("value", ["x", True, None, [1], -3])
def test_an_average_that_is_no_number_is_absent(tmp_path: Path, value: Any) -> None:
    script = Script().out(row(8, 0, [S], avg_ts=value, build_number=value, build_commit=value))
    (attempt,) = assembled(tmp_path, script, [PP], end={}).attempts
    assert attempt.engine_mean_tps == (-3.0 if value == -3 else None)
    assert attempt.build_number is None
    assert attempt.build_commit == ("x" if value == "x" else None)


@pytest.mark.parametrize("value", [b"1e999", b"nan", b"1" + b"0" * 400])
def test_an_average_beyond_all_numbers_is_absent(tmp_path: Path, value: bytes) -> None:
    line = row(8, 0, [S])[:-1] + b', "avg_ts": ' + value + b"}"
    (attempt,) = assembled(tmp_path, Script().out(line), [PP], end={}).attempts
    assert attempt.status == "ok"
    assert attempt.engine_mean_tps is None


def test_another_number_of_repetitions_than_asked_is_a_difference(tmp_path: Path) -> None:
    script = Script().bench(1, 1, "starting").out(row(8, 0, [S, S]))
    (attempt,) = assembled(tmp_path, script, [PP], end={}).attempts
    assert attempt.differences == ("repetitions: asked 3, applied 2",)
    assert attempt.flags == ("applied_differs",)


def test_requested_and_applied_stand_side_by_side(tmp_path: Path) -> None:
    asked = cell(8, 0, 1, n_batch=2048, n_threads=2, flash_attn="auto")
    script = Script().bench(1, 1, "starting")
    script.err(
        "llama_context: n_ctx                 = 256",
        "llama_context: n_batch               = 8",
        "llama_context: flash_attn            = auto",
        "resolve_fused_ops: Flash Attention enabled",
    )
    script.out(row(8, 0, [S], n_batch=2048, n_threads=2, flash_attn=-1))
    common = COMMON | {"n_reps_requested": 1}
    (attempt,) = assembled(tmp_path, script, [asked], end={}, common=common).attempts
    assert attempt.requested == {"n_batch": 2048, "n_threads": 2, "flash_attn": "auto"}
    assert attempt.applied["n_batch"] == 8
    assert attempt.applied["flash_attn"] == "on"
    assert attempt.n_ctx_applied == 256
    assert attempt.differences == ("n_batch: asked 2048, applied 8",)
    assert attempt.flags == ("clamped",)


def test_the_layers_that_the_log_counts_are_kept(tmp_path: Path) -> None:
    script = Script().bench(1, 1, "starting").err("load_tensors: offloaded 20/33 layers to GPU")
    script.out(row(8, 0, [S]))
    (attempt,) = assembled(tmp_path, script, [PP], end={}, cpu_only=False).attempts
    assert attempt.n_gpu_layers_offloaded == 20
    assert attempt.applied["n_gpu_layers"] == 20


# -- depth


def at_a_depth(fill_s: float, restore_s: float) -> Script:
    """Three repetitions of 2 s; before each the depth is filled or restored."""
    script = Script().bench(1, 1, "starting", "warmup prompt run", "depth run 1/3")  # 1, 2, 3
    script.bench(1, 1, "prompt run 1/3", each_s=fill_s)
    script.bench(1, 1, "depth run 2/3 (cached)", each_s=2)
    script.bench(1, 1, "prompt run 2/3", each_s=restore_s)
    script.bench(1, 1, "depth run 3/3 (cached)", each_s=2)
    script.bench(1, 1, "prompt run 3/3", each_s=restore_s)
    return script.after_s(2).out(row(8, 0, [2 * S] * 3, n_depth=64))


def test_the_time_of_the_depth_is_told(tmp_path: Path) -> None:
    of = cell(8, 0, 1, n_depth=64)
    (attempt,) = assembled(tmp_path, at_a_depth(5, 0.25), [of], end={}).attempts
    assert attempt.n_depth == 64
    assert attempt.depth_s == 5.5


def _power(until_s: float, watts: float) -> tuple[Reading, ...]:
    """CPU energy at a steady power, read every half second."""
    return tuple(
        Reading(
            time_ns=START_NS + round(i * S / 2),
            source="rapl",
            device="package-0",
            metric="energy_j",
            value=watts * i / 2,
        )
        for i in range(round(until_s * 2) + 1)
    )


def test_energy_per_token_is_that_of_the_repetitions(tmp_path: Path) -> None:
    """tg4 takes 2 s three times without a pause; 10 W x 6 s / 12 tokens. Between those of pp8 two seconds are not timed."""
    found = assembled(
        tmp_path, two_cells(), end={}, readings=_power(25, 10.0), telemetry_interval_s=0.5
    )
    paused, telemetry = (attempt.telemetry for attempt in found.attempts)
    assert telemetry is not None
    assert telemetry.cpu_energy_j == pytest.approx(60.0)
    assert telemetry.energy_per_token_j == pytest.approx(60.0 / 12)
    assert telemetry.energy_scope == "cpu"
    assert paused is not None
    assert paused.energy_per_token_j is None


def test_energy_per_token_is_unknown_where_the_depth_was_filled_in_between(tmp_path: Path) -> None:
    """Old builds fill the depth again before every repetition; its energy is not that of the tokens."""
    of = cell(8, 0, 1, n_depth=64)
    (attempt,) = assembled(
        tmp_path,
        at_a_depth(5, 5),
        [of],
        end={},
        readings=_power(40, 10.0),
        telemetry_interval_s=0.5,
    ).attempts
    assert attempt.telemetry is not None
    assert attempt.telemetry.energy_per_token_j is None
    assert "depth" in attempt.reasons["energy_per_token_j"]


def test_a_quick_restore_of_the_depth_leaves_the_energy_per_token(tmp_path: Path) -> None:
    of = cell(8, 0, 1, n_depth=64)
    (attempt,) = assembled(
        tmp_path,
        at_a_depth(5, 0.05),
        [of],
        end={},
        readings=_power(40, 10.0),
        telemetry_interval_s=0.5,
    ).attempts
    assert attempt.telemetry is not None
    assert attempt.telemetry.energy_per_token_j == pytest.approx(10 * 6.1 / 24)


# -- telemetry


def test_telemetry_that_was_switched_off_is_absent_with_that_reason(tmp_path: Path) -> None:
    (attempt, _) = assembled(tmp_path, two_cells(), end={}).attempts
    assert attempt.telemetry is None
    assert attempt.reasons == {"telemetry": "telemetry was switched off in the sweep"}


def test_telemetry_without_progress_lines_is_absent_with_that_reason(tmp_path: Path) -> None:
    script = Script().out(row(8, 0, [S]))
    (attempt,) = assembled(tmp_path, script, [PP], end={}, telemetry_interval_s=0.5).attempts
    assert attempt.telemetry is None
    assert attempt.reasons == {"telemetry": "no progress lines tell when the test ran"}
    assert (attempt.started_at, attempt.load_s) == (None, None)


def test_an_absent_sensor_is_none_with_its_reason(tmp_path: Path) -> None:
    found = assembled(
        tmp_path,
        two_cells(),
        end={"absent": {"thermal": "no sensor"}},
        telemetry_interval_s=0.5,
        absent={"rapl": "not readable"},
    )
    telemetry = found.attempts[0].telemetry
    assert telemetry is not None
    assert (telemetry.cpu_energy_j, telemetry.cpu_temperature_peak_c) == (None, None)
    assert "not readable" in found.attempts[0].reasons["cpu_energy_j"]
    assert "no sensor" in found.attempts[0].reasons["cpu_temperature_peak_c"]


def _readings(
    device: str, metric: str, *values: float, source: str = "proc"
) -> tuple[Reading, ...]:
    """One reading a second from the start on."""
    return tuple(
        Reading(time_ns=START_NS + i * S, source=source, device=device, metric=metric, value=v)
        for i, v in enumerate(values)
    )


def test_memory_at_its_peak_is_that_of_the_cells_own_phase(tmp_path: Path) -> None:
    rss = _readings("process", "rss_bytes", *[1e9] * 12, *[3e9] * 12)
    pp, tg = assembled(
        tmp_path, two_cells(), end={}, readings=rss, telemetry_interval_s=0.5
    ).attempts
    assert pp.telemetry is not None
    assert tg.telemetry is not None
    assert pp.telemetry.ram_peak_process_bytes == 1_000_000_000
    assert tg.telemetry.ram_peak_process_bytes == 3_000_000_000


def test_pages_read_from_disk_are_flagged(tmp_path: Path) -> None:
    rising = [float(i) for i in range(25)]
    readings = _readings("process", "major_faults_count", *rising)
    readings += _readings("process", "disk_read_bytes", *rising)
    pp, _ = assembled(
        tmp_path, two_cells(), end={}, readings=readings, telemetry_interval_s=0.5
    ).attempts
    assert "paged_from_disk" in pp.flags


def test_throttling_is_flagged(tmp_path: Path) -> None:
    readings = _readings("cpu", "is_throttled", *[0.0] * 6, *[1.0] * 20, source="thermal")
    pp, tg = assembled(
        tmp_path, two_cells(), end={}, readings=readings, telemetry_interval_s=0.5
    ).attempts
    assert tg.telemetry is not None
    assert tg.telemetry.throttled_fraction == 1.0
    assert "throttled" in pp.flags
    assert "throttled" in tg.flags


def test_a_busy_neighbour_is_flagged(tmp_path: Path) -> None:
    """The engine uses 1 of 2 cores, the machine both."""
    steps = [float(i) for i in range(25)]
    readings = _readings("process", "cpu_time_s", *steps)
    readings += _readings("system", "cpu_busy_s", *(2 * s for s in steps))
    pp, _ = assembled(
        tmp_path, two_cells(), end={}, readings=readings, telemetry_interval_s=0.5
    ).attempts
    assert pp.telemetry is not None
    assert pp.telemetry.cpu_use_other_fraction == pytest.approx(0.5)
    assert "busy_neighbour" in pp.flags


# -- ceilings


def test_the_row_gets_its_share_of_the_ceiling_that_the_log_holds(tmp_path: Path) -> None:
    """tg4 ran at 2 t/s, of 10 by pencil and 8 exactly."""
    kept = {
        "pencil_ceiling_tps": 10.0,
        "ceiling_tps": 8.0,
        "ceiling_bound": "memory",
        "bytes_per_token": 5e9,
        "ceiling_assumptions": ["memory is read at 40.0 GB/s (given)"],
        "ceiling_bandwidth_bytes_per_s": 40e9,
        "ceiling_bandwidth_source": "given in the sweep",
        "reason": None,
    }
    pp, tg = assembled(tmp_path, two_cells(), [PP, TG | {"ceiling": kept}], end={}).attempts
    assert (tg.pencil_fraction, tg.ceiling_fraction) == (0.2, 0.25)
    assert tg.achieved_bytes_per_s == 10e9
    assert tg.ceiling_assumptions == ("memory is read at 40.0 GB/s (given)",)
    assert (pp.ceiling_tps, pp.ceiling_fraction, pp.achieved_flop_per_s) == (None, None, None)


# -- failures


def one_row_then_death() -> Script:
    script = Script().bench(1, 3, "starting", "prompt run 1/1").after_s(1).out(row(8, 0, [S]))
    return script.bench(2, 3, "starting", "warmup generation run")


THREE = [PP, TG, cell(16, 0, 3)]


def _short(found: Assembled) -> list[tuple[str, str | None]]:
    return [(a.status, a.error_kind) for a in found.attempts]


def test_the_cell_at_which_a_process_died_gets_the_failure(tmp_path: Path) -> None:
    script = one_row_then_death().err("last words")
    found = assembled(tmp_path, script, THREE, end={"exit_code": None, "exit_signal": "SIGSEGV"})
    assert _short(found) == [("ok", None), ("failed", "signal")]
    assert found.next_index == 2
    bad = found.attempts[1]
    assert bad.cell_id == TG["cell_id"]
    assert (bad.exit_code, bad.exit_signal) == (None, "SIGSEGV")
    assert bad.error_message == "the engine was ended by SIGSEGV"
    assert bad.stderr_tail is not None
    assert bad.stderr_tail.endswith("last words")
    assert bad.started_at == at(4)
    assert bad.finished_at == at(5)
    assert (bad.median_tps, bad.n_samples, bad.telemetry) == (None, None, None)
    assert len(found.samples) == 1


def test_a_model_that_does_not_load_fails_every_cell(tmp_path: Path) -> None:
    script = Script().bench(1, 3, "starting").err(NO_FILE, GENERIC)
    found = assembled(tmp_path, script, THREE, end={"exit_code": 1})
    assert _short(found) == [("failed", "model_missing")] * 3
    assert found.next_index == 3
    assert [a.started_at for a in found.attempts] == [at(1), None, None]
    assert all(a.error_message == NO_FILE for a in found.attempts)


def test_a_bad_argument_fails_every_cell_though_no_progress_line_came(tmp_path: Path) -> None:
    script = Script().err("error: invalid parameter for argument: --bogus")
    found = assembled(tmp_path, script, THREE, end={"exit_code": 1})
    assert _short(found) == [("failed", "bad_argument")] * 3


def test_a_hang_is_a_timeout_with_its_sentence(tmp_path: Path) -> None:
    end = {"reason": "timeout", "message": "no sign of life", "exit_signal": "SIGKILL"}
    found = assembled(tmp_path, one_row_then_death(), THREE, end=end | {"exit_code": None})
    assert _short(found) == [("ok", None), ("timeout", "hang")]
    assert found.attempts[1].error_message == "no sign of life"


def test_a_stop_leaves_what_was_not_measured_without_a_row(tmp_path: Path) -> None:
    found = assembled(tmp_path, one_row_then_death(), THREE, end={"reason": "stopped"})
    assert _short(found) == [("ok", None)]
    assert (found.failure, found.next_index) == (None, 1)


def test_a_killed_runner_leaves_its_finished_rows(tmp_path: Path) -> None:
    found = assembled(tmp_path, one_row_then_death(), THREE, end=None)
    assert _short(found) == [("ok", None)]
    assert found.failure is None
    assert found.attempts[0].finished_at == at(3)


def test_a_row_torn_by_a_kill_is_measured_again(tmp_path: Path) -> None:
    script = one_row_then_death().out(row(0, 4, [S])[:-5], is_cut=True)
    found = assembled(tmp_path, script, THREE, end=None)
    assert _short(found) == [("ok", None)]
    assert found.next_index == 1


def test_an_answer_to_another_question_is_a_failure_and_has_no_samples(tmp_path: Path) -> None:
    script = Script().bench(1, 2, "starting").out(row(999, 0, [S])).out(row(0, 4, [S]))
    found = assembled(tmp_path, script, end={})
    assert _short(found) == [("failed", "row_mismatch"), ("ok", None)]
    assert found.attempts[0].error_message == "the engine measured n_prompt 999 instead of 8"
    assert [s.cell_id for s in found.samples] == [TG["cell_id"]]


def test_rows_of_tests_that_nobody_asked_for_are_not_taken(tmp_path: Path) -> None:
    """extra_args can add tests; then no row can be trusted to answer the cell in its place."""
    script = Script().bench(1, 4, "starting").out(row(8, 0, [S])).out(row(0, 4, [S]))
    found = assembled(tmp_path, script, end={})
    assert _short(found) == [("failed", "row_mismatch")] * 2
    assert found.attempts[0].error_message == (
        "the engine ran 4 tests where 2 were asked for; look at extra_args"
    )


def test_a_garbage_row_fails_its_own_cell_and_the_next_keeps_its_times(tmp_path: Path) -> None:
    script = Script().bench(1, 2, "starting").after_s(1).out(b"garbage")
    script.bench(2, 2, "starting", "generation run 1/1").after_s(2).out(row(0, 4, [2 * S]))
    found = assembled(tmp_path, script, end={})
    by_cell = {a.cell_id: a for a in found.attempts}
    assert by_cell[PP["cell_id"]].error_kind == "garbage_output"
    good = by_cell[TG["cell_id"]]
    assert (good.status, good.started_at, good.finished_at) == ("ok", at(3), at(6))
    assert found.next_index == 2


def test_the_home_folder_is_not_in_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    script = Script().err("llama_bench: error: failed to load model '/home/alice/m.gguf'")
    (attempt,) = assembled(tmp_path, script, [PP], end={"exit_code": 1}).attempts
    assert attempt.error_message is not None
    assert attempt.stderr_tail is not None
    assert "alice" not in attempt.error_message + attempt.stderr_tail
    assert "'~/m.gguf'" in attempt.error_message


def test_a_long_stderr_is_kept_in_part(tmp_path: Path) -> None:
    script = Script().err(*("x" * 500 for _ in range(100)))
    (attempt,) = assembled(tmp_path, script, [PP], end={"exit_code": 1}).attempts
    assert attempt.stderr_tail is not None
    assert len(attempt.stderr_tail) <= 4000


def test_an_engine_that_says_nothing_leaves_no_tail(tmp_path: Path) -> None:
    (attempt,) = assembled(tmp_path, Script(), [PP], end={"exit_code": 1}).attempts
    assert attempt.stderr_tail is None


def test_the_number_of_the_try_comes_from_the_description(tmp_path: Path) -> None:
    again = PP | {"attempt_index": 2}
    found = assembled(tmp_path, Script().out(row(8, 0, [S])), [again], end={})
    attempt: Attempt = found.attempts[0]
    assert attempt.attempt_index == 2
