"""The list of reports: key figures go into a page and come back, and whatever else claims to be a report is harmless."""

from __future__ import annotations

import html
import json
import re
from dataclasses import asdict, replace
from typing import Any

import pytest
from tests.unit.report.factory import (
    HOSTILE,
    failed_parts,
    hostile_run,
    info,
    measured,
    run_of,
    sweep_parts,
)
from tests.unit.report.test_page import parse

from llamasweep.report.index import render_index
from llamasweep.report.key_figures import HEAD_LENGTH, KeyFigures, read_key_figures
from llamasweep.report.render import render_report
from llamasweep.report.views import page

RUN = run_of([*sweep_parts(), *failed_parts()])


@pytest.fixture(scope="module")
def full() -> str:
    return render_report([RUN])


def _head(plain: Any) -> str:
    return f'<meta name="llamasweep-report" content="{html.escape(json.dumps(plain))}">'


def _claimed(**changes: Any) -> str:
    key = page([RUN]).key
    return _head({"format": 1, **asdict(key), **changes})


def test_the_figures_of_a_page_are_read_back_from_its_beginning(full: str) -> None:
    key = read_key_figures(full[:HEAD_LENGTH])
    assert key == page([RUN]).key
    assert key is not None
    assert key.tg is not None
    rates = [
        a.median_tps
        for a in RUN.attempts
        if a.test_kind == "tg" and a.median_tps is not None and not a.flags
    ]
    assert key.tg.median_tps == max(rates)
    assert (key.n_cells, key.n_measured, key.n_failed) == (79, 72, 4)


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({"ceiling_tps": 20.0}, 0.9),
        ({"ceiling_tps": 20.0, "ceiling_is_reference": True}, None),
        ({"ceiling_tps": 15.0}, None),
        ({"ceiling_tps": None}, None),
    ],
)
def test_a_share_is_listed_only_of_a_ceiling_that_holds(
    changes: dict[str, Any], share: float | None
) -> None:
    row, samples = measured(1, [18.0, 18.0])
    key = page([run_of([(replace(row, **changes), samples)])]).key
    assert key.tg is not None
    assert key.tg.ceiling_fraction == share


def test_the_list_has_the_rows_of_the_title_and_no_faster_ones() -> None:
    short = measured(1, [30.0, 30.0], n_gen=16, test_label="tg16", requested={"n_threads": 1})
    key = page([run_of([short, measured(2, [18.0, 18.0])])]).key
    assert key.tg is not None
    assert (key.tg.test, key.tg.median_tps) == ("tg32", 18.0)
    assert "writes 18.0" in key.title


def test_hostile_figures_are_read_back_as_text() -> None:
    key = read_key_figures(render_report([hostile_run()]))
    assert key is not None
    assert "<script>alert(1)</script>" in key.title
    assert HOSTILE not in key.title


def test_a_run_without_a_rate_has_none() -> None:
    key = page([run_of(failed_parts())]).key
    assert (key.tg, key.pp) == (None, None)
    assert read_key_figures(_head({"format": 1, **asdict(key)})) == key


@pytest.mark.parametrize(
    "head",
    [
        "",
        "<html>another page</html>",
        _head([]),
        _head({"format": 99}),
        _head("x"),
        '<meta name="llamasweep-report" content="{&quot;format&quot;: 1">',
        '<meta name="llamasweep-report" content="' + "[" * 7000 + '">',
        " " * HEAD_LENGTH + _head({"format": 1}),
    ],
)
def test_another_page_is_no_report(head: str) -> None:
    assert read_key_figures(head) is None
    assert "1 other page in this folder is no report" in render_index({"x.html": head}, "0.1.0")


@pytest.mark.parametrize(
    "changes",
    [
        {"title": 7, "n_cells": "many", "n_failed": -1, "n_runs": True, "n_measured": 10**30},
        {"tg": {"median_tps": "fast"}, "pp": [1]},
        {"tg": {"median_tps": 1e300}, "pp": {"median_tps": -4.0}},
        {"title": HOSTILE, "machine": HOSTILE, "started_at": HOSTILE, "sweeps": HOSTILE},
    ],
)
def test_wrong_kinds_of_figures_are_absent_or_harmless(changes: dict[str, Any]) -> None:
    text = render_index({"x.html": _claimed(**changes)}, "0.1.0")
    parsed = parse(text)
    assert parsed.badly_nested == []
    assert [script.get("type") for script in parsed.all("script")] == [None]
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u2028\ud800-\udfff]", text)


def test_reports_are_listed_newest_first_with_a_link_to_each(full: str) -> None:
    later = replace(RUN, info=info(started_at="2027-01-01T00:00:00+00:00"))
    parsed = parse(render_index({"a.html": full, "b c#?.html": render_report([later])}, "0.1.0"))
    links = [a["href"] for a in parsed.all("a")]
    assert links == ["./b%20c%23%3F.html", "./a.html"]
    assert parsed.texts["h1"] == ["2 reports"]


@pytest.mark.parametrize(
    "name", ["javascript:alert(1).html", '"><script>x</script>.html', "é\udcff.html"]
)
def test_a_hostile_file_name_is_only_a_name(name: str, full: str) -> None:
    parsed = parse(render_index({name: full}, "0.1.0"))
    (link,) = parsed.all("a")
    assert re.fullmatch(r"\./[A-Za-z0-9%._~()-]+", link["href"])
    assert len(parsed.all("script")) == 1


def test_the_list_has_the_policy_of_the_page(full: str) -> None:
    def policy(text: str) -> str:
        return re.sub(r"sha256-[^']+", "sha256", parse(text).all("meta")[1]["content"])

    assert policy(render_index({"a.html": full}, "0.1.0")) == policy(full)
    assert "http" not in re.sub(r"http-equiv", "", render_index({"a.html": full}, "0.1.0"))


def test_key_figures_hold_no_number_that_json_has_not() -> None:
    key: KeyFigures = page([RUN]).key
    assert json.loads(key.to_json())["format"] == 1
