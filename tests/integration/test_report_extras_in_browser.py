"""The list of reports and the time lines in a real browser: quiet, without a request, fitting, and used with the keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.axe import serious_findings
from tests.integration.browser import NAMES, Tab, browser, program
from tests.unit.report.factory import hostile_run, run_of, sweep_parts
from tests.unit.report.readings_made import run_over_time

from llamasweep.report.index import render_index
from llamasweep.report.render import render_report

pytestmark = pytest.mark.skipif(
    program() is None, reason=f"no browser: install one of {', '.join(NAMES)}, then `make test`"
)

PICTURES = "LLAMASWEEP_PICTURES"
"""A folder that keeps a picture of every page, to look at."""
HOSTILE_NAME = 'b "c" #&<i>?.html'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    pages = {
        "over-time.html": render_report([run_over_time(2, gpu=True)]),
        "sweep.html": render_report([run_of(sweep_parts(threads=(1, 2), depths=(0,)))]),
        HOSTILE_NAME: render_report([hostile_run()]),
    }
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "index.html").write_text(render_index(pages, "0.1.0"), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tab(folder: Path) -> Iterator[Tab]:
    with browser(folder / "profile") as opened:
        yield opened


@pytest.mark.parametrize("name", ["index", "over-time"])
@pytest.mark.parametrize("width", [1400, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_quiet_asks_for_nothing_and_fits(
    tab: Tab, folder: Path, name: str, width: int, theme: str
) -> None:
    tab.open(folder / f"{name}.html", width=width, theme=theme)
    assert tab.said() == []
    assert [url for url in tab.requested() if not url.startswith(("file://", "data:,"))] == []
    assert len([url for url in tab.requested() if url.startswith("file://")]) == 1
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    if kept := os.environ.get(PICTURES):
        (Path(kept) / f"{name}-{width}-{theme}.png").write_bytes(tab.picture())


@pytest.mark.parametrize("name", ["index", "over-time"])
def test_nothing_serious_is_wrong_for_people_who_cannot_see_it(
    tab: Tab, folder: Path, name: str
) -> None:
    for theme in ("light", "dark"):
        tab.open(folder / f"{name}.html", theme=theme)
        assert serious_findings(tab) == []


def test_every_link_of_the_list_opens_its_report(tab: Tab, folder: Path) -> None:
    tab.open(folder / "index.html")
    links = tab.evaluate("[...document.querySelectorAll('#reports a')].map(a => a.href)")
    assert len(links) == 3
    for number in range(3):
        tab.open(folder / "index.html")
        tab.evaluate(f"document.querySelectorAll('#reports a')[{number}].focus()")
        title = tab.evaluate("document.activeElement.textContent")
        tab.events.clear()
        tab.press("Enter")
        tab.wait_for("Page.loadEventFired")
        assert tab.evaluate("document.querySelector('h1').textContent") == title
    assert tab.said() == []


def test_the_list_is_sorted_by_a_press_on_a_heading(tab: Tab, folder: Path) -> None:
    tab.open(folder / "index.html")
    rates = "[...document.querySelectorAll('#reports tbody tr')].map(row => row.cells[3].dataset.v)"
    tab.evaluate(
        "[...document.querySelectorAll('#reports th button')]"
        ".find(b => b.textContent.startsWith('generation')).click()"
    )
    values = [float(text) for text in tab.evaluate(rates)]
    assert values == sorted(values)
    assert len(set(values)) == 3


def test_hostile_names_are_only_text_in_the_list(tab: Tab, folder: Path) -> None:
    tab.open(folder / "index.html")
    assert tab.evaluate("document.querySelectorAll('script').length") == 1
    assert tab.evaluate("document.querySelectorAll('#reports i, #reports img').length") == 0
    shown = tab.evaluate("document.querySelector('#reports').textContent")
    assert "<script>alert(1)</script>" in shown


def test_a_phase_tells_its_sentence_under_the_pointer(tab: Tab, folder: Path) -> None:
    tab.open(folder / "over-time.html")
    words = tab.evaluate(
        "(() => { const mark = [...document.querySelectorAll('#timelines [aria-label]')]"
        ".find(one => one.getAttribute('aria-label').startsWith('pp512'));"
        "mark.dispatchEvent(new MouseEvent('mousemove', {bubbles: true}));"
        "return document.getElementById('tip').textContent; })()"
    )
    assert words.startswith("pp512, 3 repetitions: ")
