from __future__ import annotations

from dataclasses import replace

from tests.unit.report.factory import (
    BANDWIDTH,
    NO_PEAK,
    READ_SHARE,
    SIZES,
    failed_parts,
    lost,
    measured,
    run_of,
    sweep_parts,
)

from llamasweep.report.rows import NO_REASON, constant, rows_of, varying


def test_one_round_is_shown_as_its_record_tells_it() -> None:
    part = measured(1, [5.0, 10.0, 11.0, 12.0], n_discarded=1)
    (row,) = rows_of([run_of([part])])
    assert row.rates is not None
    assert (row.rates.median, row.rates.low, row.rates.high) == (11.0, 10.0, 12.0)
    assert (row.rates.kept, row.rates.discarded) == ((10.0, 11.0, 12.0), (5.0,))
    assert (row.rates.n_kept, row.rates.n_discarded) == (3, 1)
    assert row.pencil_fraction.value == 11.0 / (BANDWIDTH / SIZES["Q4_0"])


def test_rounds_of_a_cell_are_one_row_over_all_kept_repetitions() -> None:
    first = measured(1, [10.0, 10.0], round_index=0)
    second = measured(2, [12.0, 14.0], round_index=1, cell_id=first[0].cell_id)
    (row,) = rows_of([run_of([first, second])])
    assert row.rates is not None
    assert row.rates.median == 11.0
    assert row.rates.n_kept == 4
    assert row.pencil_fraction.value == 11.0 / (BANDWIDTH / SIZES["Q4_0"])
    assert row.ceiling.value == BANDWIDTH / (SIZES["Q4_0"] * READ_SHARE)
    assert row.fraction.value == 11.0 / row.ceiling.value
    assert row.n_rounds == 2


def test_a_retry_takes_the_place_of_what_failed() -> None:
    failed = lost(1, status="failed", error_message="no")
    again = measured(2, [10.0, 10.1], attempt_index=1, cell_id=failed[0].cell_id)
    (row,) = rows_of([run_of([failed, again])])
    assert row.status == "ok"
    assert row.n_rounds_failed == 0
    assert row.flags == ()


def test_a_failed_round_beside_a_good_one_is_a_doubt() -> None:
    good = measured(1, [10.0, 10.1])
    bad = lost(2, status="failed", round_index=1, cell_id=good[0].cell_id)
    (row,) = rows_of([run_of([good, bad])])
    assert row.status == "ok"
    assert row.flags == ("round_failed",)


def test_two_builds_of_one_label_stay_two_rows() -> None:
    a = measured(1, [10.0, 10.1], build_hash="1" * 32)
    b = measured(2, [12.0, 12.1], build_hash="2" * 32, cell_id=a[0].cell_id)
    assert len(rows_of([run_of([a, b])])) == 2


def test_absent_figures_keep_their_reason_and_are_never_zero() -> None:
    part = measured(1, [10.0], reasons={"telemetry": "telemetry was switched off in the sweep"})
    (row,) = rows_of([run_of([part])])
    for figure in (row.ram_bytes, row.vram_bytes, row.energy_j):
        assert figure.value is None
        assert figure.reason == "telemetry was switched off in the sweep"
    assert row.rates is not None
    assert row.rates.std is None


def test_every_missing_ceiling_says_why() -> None:
    unknown = replace(
        measured(1, [10.0])[0],
        ceiling_bandwidth_bytes_per_s=None,
        ceiling_tps=None,
        pencil_ceiling_tps=None,
        pencil_fraction=None,
    )
    prompt = measured(2, [90.0], test_kind="pp", n_prompt=512, n_gen=0)
    odd = replace(measured(3, [10.0])[0], ceiling_tps=None, pencil_ceiling_tps=None)
    rows = rows_of([run_of([(unknown, []), prompt, (odd, [])])])
    for name in ("ceiling", "fraction", "pencil_ceiling", "pencil_fraction"):
        reasons = [getattr(row, name).reason for row in rows]
        assert reasons == ["the memory bandwidth is not known", NO_PEAK, NO_REASON]


def test_a_pencil_ceiling_alone_of_an_older_run_is_told_as_such() -> None:
    row, samples = measured(1, [10.0])
    old = replace(row, ceiling_tps=None, ceiling_bandwidth_bytes_per_s=None)
    (one,) = rows_of([run_of([(old, samples)])])
    assert one.ceiling.reason == one.fraction.reason == "the run kept none"
    assert one.pencil_fraction.value is not None


def test_failed_rows_have_no_rates() -> None:
    assert all(row.rates is None for row in rows_of([run_of(failed_parts())]))


def test_ok_without_any_figure_is_not_invented() -> None:
    (row,) = rows_of([run_of([lost(1)])])
    assert row.rates is None


def test_figures_without_samples_are_still_shown() -> None:
    only, _ = measured(1, [10.0, 11.0, 12.0])
    (row,) = rows_of([run_of([(only, [])])])
    assert row.rates is not None
    assert row.rates.median == 11.0
    assert row.rates.kept == ()


def test_models_that_would_share_a_name_keep_their_whole_label() -> None:
    a = measured(1, [10.0], model_label="m-Q4_0")
    b = measured(2, [10.0], model_label="m Q4_0", cell_id="x")
    assert [row.family for row in rows_of([run_of([a, b])])] == ["m-Q4_0", "m Q4_0"]


def test_varying_and_constant_settings_share_all_names() -> None:
    rows = rows_of([run_of(sweep_parts())])
    assert varying(rows) == ("n_threads", "n_depth")
    assert constant(rows) == {"n_ubatch": 512}


def test_a_setting_left_open_in_some_rows_varies() -> None:
    a = measured(1, [10.0], requested={"n_threads": 2})
    b = measured(2, [10.0], requested={})
    assert varying(rows_of([run_of([a, b])])) == ("n_threads",)


def test_builds_and_runs_vary_too() -> None:
    a = run_of([measured(1, [10.0])])
    b = run_of([measured(1, [10.0], run_id="other", build_label="10488")], run_id="other")
    assert varying(rows_of([a, b])) == ("run_id", "build")
