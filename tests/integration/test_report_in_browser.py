"""The report in a real browser: quiet, filtered, sorted, taken away, and used with the keyboard alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest
from tests.integration.browser import NAMES, Tab, browser, program
from tests.unit.report.factory import (
    failed_parts,
    hostile_parts,
    hostile_run,
    measured,
    run_of,
    sweep_parts,
)

from llamasweep.report.render import render_report
from llamasweep.results.records import RunData

pytestmark = pytest.mark.skipif(
    program() is None, reason=f"no browser: install one of {', '.join(NAMES)}, then `make test`"
)

FULL = run_of([*sweep_parts(), *failed_parts()])
RUNS: dict[str, RunData] = {
    "full": FULL,
    "gpu": run_of(sweep_parts(gpu=True)),
    "failures": run_of(failed_parts()),
    "one": run_of([measured(1, [10.0, 10.1])]),
    "hostile": hostile_run(),
    "empty": run_of([]),
}
PICTURES = "LLAMASWEEP_PICTURES"
"""A folder that keeps a picture of every page, to look at."""
OPEN_ROWS = "[...document.querySelectorAll('#rows tbody tr')].filter(row => !row.hidden)"


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The tab and the written pages."""

    tab: Tab
    folder: Path

    def open(self, name: str, fragment: str = "", width: int = 1400, theme: str = "light") -> Tab:
        self.tab.open(self.folder / f"{name}.html", fragment=fragment, width=width, theme=theme)
        return self.tab


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("pages")
    for name, run in RUNS.items():
        (folder / f"{name}.html").write_text(render_report([run]), encoding="utf-8")
    with browser(folder / "profile") as tab:
        tab.send(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(folder),
            eventsEnabled=True,
        )
        yield Pages(tab=tab, folder=folder)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (360, "dark")])
def test_every_page_is_quiet_asks_for_nothing_and_fits(
    pages: Pages, name: str, width: int, theme: str
) -> None:
    tab = pages.open(name, width=width, theme=theme)
    assert tab.said() == []
    assert [url for url in tab.requested() if not url.startswith(("file://", "data:,"))] == []
    assert len([url for url in tab.requested() if url.startswith("file://")]) == 1
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("document.querySelector('h1').textContent.length") > 0
    if kept := os.environ.get(PICTURES):
        (Path(kept) / f"{name}-{width}-{theme}.png").write_bytes(tab.picture())


def test_a_filter_acts_on_rows_and_strips_and_stands_in_the_url(pages: Pages) -> None:
    tab = pages.open("full")
    assert tab.evaluate("document.getElementById('filters').hidden") is False
    _choose(tab, "Quantisation", "Q4_0")
    assert tab.evaluate(f"{OPEN_ROWS}.every(row => row.cells[1].textContent === 'Q4_0')") is True
    strips = "[...document.querySelectorAll('.strip[data-rows]')].filter(strip => !strip.hidden)"
    assert tab.evaluate(f"{strips}.every(s => s.textContent.includes('Q4_0'))") is True
    _choose(tab, "Depth", "512")
    assert tab.evaluate("location.hash") == "#?quant=Q4_0&depth=512"
    assert tab.evaluate(f"{OPEN_ROWS}.length") == 12
    assert tab.evaluate("document.getElementById('count').textContent") == "Filter: 12 of 79 rows"
    tab.evaluate("document.getElementById('clear').click()")
    assert tab.evaluate(f"{OPEN_ROWS}.length") == 79
    assert tab.said() == []


MARKS = "[...document.querySelectorAll('.chart svg [data-rows]')]"
SHOWN_FIGURES = "[...document.querySelectorAll('figure.chart')].filter(one => !one.hidden)"


def test_a_filter_dims_the_marks_of_other_rows_and_the_captions_count_them(pages: Pages) -> None:
    tab = pages.open("full")
    assert tab.evaluate(f"{MARKS}.length") > 100
    assert tab.evaluate(f"{MARKS}.filter(mark => mark.classList.contains('off')).length") == 0
    _choose(tab, "Quantisation", "Q4_0")
    open_ids = f"new Set({OPEN_ROWS}.map(row => row.id))"
    assert tab.evaluate(
        f"(open => {MARKS}.every(mark => mark.classList.contains('off') !== "
        f"mark.dataset.rows.split(' ').some(id => open.has(id))))({open_ids})"
    )
    notes = tab.evaluate(f"{SHOWN_FIGURES}.map(one => one.querySelector('.matched').textContent)")
    assert notes
    assert all(re.match(r"Filter: \d+ of \d+ rows shown", note) for note in notes)
    assert notes[0].startswith("Filter: 2 of 4 rows shown")
    tab.evaluate("document.getElementById('clear').click()")
    assert tab.evaluate(f"{MARKS}.filter(mark => mark.classList.contains('off')).length") == 0
    assert tab.evaluate(f"{SHOWN_FIGURES}.every(one => one.querySelector('.matched').hidden)")


def test_charts_without_a_matching_row_give_way_and_their_section_says_so(pages: Pages) -> None:
    tab = pages.open("full", fragment="#?model=tiny-qwen3&test=tg32")
    n_open = tab.evaluate(
        f"{SHOWN_FIGURES}.map(one => one.querySelectorAll('[data-rows]:not(.off)').length)"
    )
    assert n_open
    assert min(n_open) > 0
    note = tab.evaluate("document.querySelector('#axis-n_depth > .matched').textContent")
    assert note == "3 of 4 charts hidden: nothing there matches the filter."
    assert tab.said() == []


def test_a_link_with_a_fragment_shows_the_same_view(pages: Pages) -> None:
    tab = pages.open("full", fragment="#rows?model=tiny-qwen3&threads=2&nonsense=%E0%A4%A")
    assert tab.evaluate(f"{OPEN_ROWS}.length") == 2 * 3 * 2
    assert tab.evaluate("location.hash") == "#rows?model=tiny-qwen3&threads=2"
    tab.evaluate("document.querySelector('nav a[href=\"#trust\"]').click()")
    assert tab.evaluate("new Promise(done => setTimeout(() => done(location.hash)))") == (
        "#trust?model=tiny-qwen3&threads=2"
    )


def test_a_link_to_a_row_that_is_filtered_out_shows_it(pages: Pages) -> None:
    tab = pages.open("full", fragment="#row-1?test=tg32")
    assert tab.evaluate("document.getElementById('row-1').hidden") is False
    assert tab.evaluate("location.hash") == "#row-1"


def test_the_mark_of_a_row_leads_to_its_card_even_where_notes_are_folded(pages: Pages) -> None:
    tab = pages.open("full")
    card = "document.getElementById('why-1-first_repetition_slow')"
    folded = f"{card}.closest('details')"
    assert tab.evaluate(f"{folded}.open") is False
    tab.evaluate(
        "document.querySelector('#rows .mark[href=\"#why-1-first_repetition_slow\"]').click()"
    )
    tab.evaluate("new Promise(done => setTimeout(done))")
    assert tab.evaluate(f"{folded}.open") is True
    assert tab.evaluate(f"{card}.getBoundingClientRect().height") > 0
    assert tab.said() == []


def test_rows_are_sorted_with_absent_values_last(pages: Pages) -> None:
    tab = pages.open("full")
    place = "[...document.querySelectorAll('#rows th[scope=col]')].findIndex(th => th.textContent === 't/s')"
    rates = f"[...document.querySelectorAll('#rows tbody tr')].map(row => row.cells[{tab.evaluate(place)}].dataset.v)"
    press = "[...document.querySelectorAll('#rows th button')].find(b => b.textContent === 't/s').click()"
    for direction in (1, -1):
        tab.evaluate(press)
        texts = tab.evaluate(rates)
        values = [float(text) for text in texts if text]
        assert values == sorted(values, reverse=direction < 0)
        assert texts[len(values) :] == [""] * (79 - len(values))


def test_the_downloaded_csv_is_what_pandas_reads_from_the_records(pages: Pages) -> None:
    tab = pages.open("full", fragment="#rows?test=tg32&quant=Q8_0")
    tab.evaluate("document.getElementById('csv').click()")
    tab.wait_for("Browser.downloadProgress", state="completed")
    (path,) = pages.folder.glob("*.csv")
    frame = pd.read_csv(path)
    attempts = [a for a in FULL.attempts if a.test_label == "tg32" and a.model_quant == "Q8_0"]
    assert path.stem == FULL.info.run_id
    assert len(frame) == len(attempts)
    for column in ("median_tps", "sample_std_tps", "ceiling_tps", "ceiling_fraction"):
        expected = pd.Series([getattr(a, column) for a in attempts], dtype=float, name=column)
        pd.testing.assert_series_equal(frame[column], expected, check_exact=True)
    assert frame["n_threads"].tolist() == [a.requested["n_threads"] for a in attempts]
    assert frame["error_message"].fillna("").tolist() == [a.error_message or "" for a in attempts]


def test_a_text_that_begins_like_a_formula_is_downloaded_as_text(pages: Pages) -> None:
    formula = "=HYPERLINK(1)"
    part = measured(9, [5.0], run_id="formulas", model_label=formula, error_message="-2+3")
    text = render_report([run_of([part], run_id="formulas")])
    (pages.folder / "formulas.html").write_text(text, encoding="utf-8")
    tab = pages.open("formulas")
    tab.evaluate("document.getElementById('csv').click()")
    tab.wait_for("Browser.downloadProgress", state="completed")
    path = pages.folder / "formulas.csv"
    frame = pd.read_csv(path)
    path.unlink()
    assert "'" + formula in frame.iloc[0].tolist()
    assert frame["error_message"].tolist() == ["'-2+3"]
    assert frame["median_tps"].tolist() == [5.0]


def test_the_copied_markdown_reads_back_to_the_same_numbers(pages: Pages) -> None:
    tab = pages.open("full", fragment="#rows?model=tiny-llama&depth=512")
    tab.evaluate(
        "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }"
    )
    tab.evaluate("document.getElementById('copy-markdown').click()")
    lines = str(tab.evaluate("window.copied")).splitlines()
    attempts = [
        a for a in FULL.attempts if a.n_depth == 512 and a.model_label.startswith("tiny-llama")
    ]
    body = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in lines[2 : 2 + len(attempts)]
    ]
    assert re.fullmatch(r"\|( -+:? \|)+", lines[1])
    for cells, attempt in zip(body, attempts, strict=True):
        assert attempt.median_tps is not None
        assert float(cells[-1].split(" ± ")[0]) == pytest.approx(attempt.median_tps, abs=0.005)
        assert cells[-2] == f"{attempt.test_label} @ d512"
    assert lines[2 + len(attempts)] == ""
    assert lines[-1].startswith("build: ")


def test_columns_are_hidden_by_choice_and_the_link_keeps_them_so(pages: Pages) -> None:
    tab = pages.open("full")
    assert tab.evaluate("document.getElementById('columns').hidden") is False
    tab.evaluate("document.querySelector('#columns > summary').click()")
    _untick(tab, "of pencil")
    _untick(tab, "quant")
    assert tab.evaluate("location.hash") == "#?hide=of%20pencil,quant"
    assert _shown_columns(tab)[:2] == ["model", "ubatch"]
    assert "of pencil" not in _shown_columns(tab)
    assert (
        tab.evaluate("document.querySelector('#columns > summary').textContent")
        == "Columns: 2 hidden"
    )
    _choose(tab, "Depth", "512")
    assert tab.evaluate("location.hash") == "#?depth=512&hide=of%20pencil,quant"
    again = pages.open("full", fragment="#rows?hide=RAM,nonsense,%E0%A4%A,model,__proto__")
    assert "RAM" not in _shown_columns(again)
    assert _shown_columns(again)[0] == "model"
    assert again.evaluate("location.hash") == "#rows?hide=RAM"
    _untick(again, "RAM")
    assert again.evaluate("location.hash") == "#rows"
    assert "RAM" in _shown_columns(again)
    assert again.said() == []


def test_columns_are_chosen_with_the_keyboard_alone(pages: Pages) -> None:
    tab = pages.open("full")
    tab.evaluate("document.querySelector('#columns > summary').focus()")
    tab.press("Enter")
    assert tab.evaluate("document.getElementById('columns').open") is True
    tab.press("Tab")
    assert tab.evaluate("document.activeElement.type") == "checkbox"
    tab.press(" ")
    assert tab.evaluate("location.hash") == "#?hide=quant"


def test_the_downloaded_json_holds_the_rows_that_match_with_absent_as_null(pages: Pages) -> None:
    tab = pages.open("full", fragment="#rows?test=tg32&hide=RAM")
    tab.evaluate("document.getElementById('json').click()")
    tab.wait_for("Browser.downloadProgress", state="completed")
    (path,) = pages.folder.glob("*.json")
    told = json.loads(path.read_text(encoding="utf-8"))
    attempts = [a for a in FULL.attempts if a.test_label == "tg32"]
    assert [row["median_tps"] for row in told] == [a.median_tps for a in attempts]
    assert [row["status"] for row in told] == [a.status for a in attempts]
    peaks = [a.telemetry.ram_peak_process_bytes if a.telemetry else None for a in attempts]
    assert [row["ram_peak_process_bytes"] for row in told] == peaks
    assert None in peaks


def _untick(tab: Tab, title: str) -> None:
    tab.evaluate(
        "(title => [...document.querySelectorAll('#column-choices label')]"
        f".find(one => one.textContent === title).querySelector('input').click())({title!r})"
    )


def _shown_columns(tab: Tab) -> list[str]:
    return list(
        tab.evaluate(
            "[...document.querySelectorAll('#rows thead th')].filter(th => th.offsetWidth > 0).map(th => th.textContent)"
        )
    )


def test_filters_work_with_the_keyboard_alone(pages: Pages) -> None:
    tab = pages.open("full")
    tab.evaluate("document.getElementById('count').focus()")
    tab.press("Enter")
    assert tab.evaluate("document.getElementById('filters').open") is True
    tab.press("Tab")
    assert tab.evaluate("document.activeElement.tagName") == "SELECT"
    tab.press("ArrowDown")
    assert tab.evaluate("location.hash") == "#?model=tiny-llama"


def test_the_table_is_sorted_and_copied_with_the_keyboard_alone(pages: Pages) -> None:
    tab = pages.open("full")
    tab.evaluate("document.getElementById('copy-markdown').focus()")
    tab.evaluate(
        "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }"
    )
    tab.press("Enter")
    assert str(tab.evaluate("window.copied")).startswith("| model ")
    header = "document.querySelector('#rows th[scope=col]')"
    tab.evaluate(f"{header}.querySelector('button').focus()")
    tab.press("Enter")
    assert tab.evaluate(f"{header}.getAttribute('aria-sort')") == "ascending"
    tab.press("Tab")
    assert tab.evaluate("document.activeElement.closest('th').cellIndex") == 1


def test_hostile_names_can_be_filtered_by_and_act_as_nothing(pages: Pages) -> None:
    hostile = run_of([*hostile_parts(), measured(9, [5.0])])
    (pages.folder / "mixed.html").write_text(render_report([hostile]), encoding="utf-8")
    tab = pages.open("mixed")
    hostile_name = tab.evaluate(
        "document.querySelector('#choices option:nth-child(2)').textContent"
    )
    assert hostile_name.startswith('"><script>alert(1)</script>\\n')
    tab.evaluate(
        "(select => { select.selectedIndex = 1; select.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#choices select'))"
    )
    assert tab.evaluate(f"{OPEN_ROWS}.length") == 4
    assert tab.evaluate("document.querySelectorAll('script').length") == 2
    hash_text = tab.evaluate("location.hash")
    assert pages.open("mixed", fragment=hash_text).evaluate(f"{OPEN_ROWS}.length") == 4
    assert tab.said() == []


def _choose(tab: Tab, title: str, value: str) -> None:
    tab.evaluate(
        "((title, value) => { const label = [...document.querySelectorAll('#choices label')]"
        ".find(one => one.firstChild.textContent === title); const select = label.querySelector('select');"
        "select.value = value; select.dispatchEvent(new Event('change')); })"
        f"({title!r}, {'=' + value!r})"
    )


def test_a_share_of_many_times_the_ceiling_fits_a_narrow_page(pages: Pages) -> None:
    row, samples = measured(1, [30_000.0, 30_100.0])
    run = run_of([(replace(row, ceiling_tps=200.0, pencil_ceiling_tps=180.0), samples)])
    (pages.folder / "far-above.html").write_text(render_report([run]), encoding="utf-8")
    tab = pages.open("far-above", width=360)
    assert "15\u202f0" in tab.evaluate("document.querySelector('.share').textContent")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
