"""Baselines: rows to a small JSON and back, and hostile files refused with a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.stats.rounds_made import row, rows

from llamasweep.results.baseline import baseline_of, baseline_rows, plain_baseline, read_baseline
from llamasweep.results.request_times import RequestTimes
from llamasweep.stats import compare_sides


def _plain() -> dict[str, Any]:
    measured = rows(
        range(6), build_label="11434", requested={"n_threads": 2}, applied={"n_batch": 512}
    )
    crashed = [row(r, None, cell_id="other", error_kind="signal") for r in range(2)]
    plain = plain_baseline(baseline_of([*measured, *crashed], {"governor": "performance"}))
    read: dict[str, Any] = json.loads(json.dumps(plain))
    return read


def test_a_baseline_read_again_compares_as_the_rows_that_it_was_made_of() -> None:
    again = baseline_rows(read_baseline(_plain()))
    timed = [one for one in again if one.cell_id == "cell"]
    assert [one.median_tps for one in timed] == [100.0, 101.0, 99.5, 100.4, 100.9, 99.2]
    assert timed[0].requested == {"n_threads": 2}
    assert timed[0].applied == {"n_batch": 512}
    later = rows(
        range(6), 0.8, run_id="later", requested={"n_threads": 2}, applied={"n_batch": 512}
    )
    (slower,) = compare_sides(timed, later).cells
    assert slower.verdict == "slower"
    assert slower.comparison is not None
    assert slower.comparison.evidence == "unpaired"


def test_a_cell_that_failed_is_kept_as_failed() -> None:
    (failed,) = [one for one in baseline_rows(read_baseline(_plain())) if one.cell_id == "other"]
    assert (failed.status, failed.median_tps, failed.error_kind) == ("failed", None, "signal")


def test_a_baseline_keeps_how_a_server_was_asked() -> None:
    asked = rows(range(6), requests=RequestTimes(request_mode="verbose, raw"))
    plain = json.loads(json.dumps(plain_baseline(baseline_of(asked, {}))))
    again = baseline_rows(read_baseline(plain))
    other = rows(range(6), run_id="later", requests=RequestTimes(request_mode="api, raw"))
    (found,) = compare_sides(again, other).cells
    assert (found.verdict, found.reasons) == ("not_comparable", ("other_applied_settings",))
    assert "request_mode" not in json.dumps(_plain())


def test_a_cell_that_stands_twice_is_refused() -> None:
    plain = _plain()
    plain["cells"].append(plain["cells"][0])
    with pytest.raises(ValueError, match=r"cells\[2\] is the same cell as cells\[0\]"):
        read_baseline(plain)


def test_nothing_measured_makes_no_baseline() -> None:
    with pytest.raises(ValueError, match="no cell was measured"):
        baseline_of([row(0, None, status="unsupported")], {})


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("kind",), "something", "its kind is 'something'"),
        (("format",), 99, "its format 99 is not known"),
        (("cells",), [], "cells is no list"),
        (("cells", 0, "rates_tps"), [1.0, float("nan")], "which is no speed"),
        (("cells", 0, "rates_tps"), [-1.0], "which is no speed"),
        (("cells", 0, "rates_tps"), [5e-324], "which is no speed"),
        (("cells", 0, "rates_tps"), [10**400], "which is no speed"),
        (("cells", 0, "rates_tps"), [1e308], "which is no speed"),
        (("cells", 0, "settings"), {"n_threads": float("nan")}, "which is no setting"),
        (("cells", 0, "applied"), {"n_threads": 10**400}, "which is no setting"),
        (("cells", 0, "rates_tps"), ["fast"], "which is no number"),
        (("cells", 0, "kind"), "zz", r"cells\[0\].kind is 'zz'"),
        (("cells", 0, "n_depth"), True, "is no whole number"),
        (("cells", 0, "settings"), {"evil": 1}, "which is no parameter"),
        (("cells", 0, "model"), "m" * 501, "is no text"),
        (("build",), None, "build is no object"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_place(
    place: tuple[Any, ...], value: object, said: str
) -> None:
    plain = _plain()
    inner: Any = plain
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match=said):
        read_baseline(plain)
