"""Two builds in a report and the page of histories in a real browser: quiet, fitting, accessible, and led to the runs by a click.

Pictures are kept in `build/report-pictures/`, to be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.source import ROOT
from tests.integration.axe import serious_findings
from tests.integration.browser import NAMES, Tab, browser, program
from tests.unit.report.factory import HOSTILE
from tests.unit.report.test_forest import _parts, _run
from tests.unit.report.test_history import _stepped

from llamasweep.report.history import history
from llamasweep.report.history_page import render_history
from llamasweep.report.render import render_report
from llamasweep.results.annotations import Annotation
from llamasweep.results.records import RunData

pytestmark = pytest.mark.skipif(
    program() is None, reason=f"no browser: install one of {', '.join(NAMES)}, then `make test`"
)

PICTURES = ROOT / "build" / "report-pictures"
PAGES = ("two-builds", "history")
VIEWS = [(width, theme) for width in (1400, 360) for theme in ("light", "dark")]
CELLS = {1: 0.9, 2: 1.0, 3: 1.1, 4: 0.97, 5: 1.004}
NOTES = (
    Annotation(at="b10300", text="new memory modules"),
    Annotation(at="b10800", text=f"{HOSTILE} and a long sentence after it " * 4),
)


def history_runs() -> list[RunData]:
    """Two cells: one becomes slower, one stays; the kernel changes before the end."""
    runs = []
    for index, run in enumerate(_stepped(at=5)):
        steady = tuple(
            replace(a, cell_id="pp", test_kind="pp", test_label="pp512", n_prompt=512, n_gen=0, median_tps=2000.0 + index % 3,
                    attempt_id=f"pp{a.attempt_id}")
            for a in run.attempts
        )  # fmt: skip
        info = replace(run.info, machine={"kernel": "6.1" if index < 10 else "6.9"})
        runs.append(replace(run, info=info, attempts=(*run.attempts, *steady)))
    return runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    (folder / "two-builds.html").write_text(render_report([_run(_parts(CELLS))]), encoding="utf-8")
    found = history(history_runs(), notes=NOTES)
    newest = found[0].points[-1].run_ids[0]
    (folder / f"{newest}.html").write_text("<title>the run</title><p>its report", encoding="utf-8")
    html = render_history(found, "0.1.0", {f"{newest}.html"})
    (folder / "history.html").write_text(html, encoding="utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def tab(folder: Path) -> Iterator[Tab]:
    with browser(folder / "profile") as opened:
        yield opened


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "theme"), VIEWS)
def test_the_page_is_quiet_asks_for_nothing_and_fits(
    tab: Tab, folder: Path, name: str, width: int, theme: str
) -> None:
    tab.open(folder / f"{name}.html", width=width, theme=theme)
    assert tab.said() == []
    asked = [url for url in tab.requested() if not url.startswith("data:,")]
    assert asked == [(folder / f"{name}.html").as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    (PICTURES / f"{name}-{width}-{theme}.png").write_bytes(tab.picture())


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (360, "dark")])
def test_axe_finds_nothing_serious(
    tab: Tab, folder: Path, name: str, width: int, theme: str
) -> None:
    tab.open(folder / f"{name}.html", width=width, theme=theme)
    tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert serious_findings(tab) == []


def test_the_forest_has_a_mark_per_cell_with_its_sentence(tab: Tab, folder: Path) -> None:
    tab.open(folder / "two-builds.html")
    words = tab.evaluate(
        "[...document.querySelectorAll('#builds svg [data-rows][aria-label]')].map(one => one.getAttribute('aria-label'))"
    )
    assert len(words) == len(CELLS)
    assert "slower" in words[0]
    title = tab.evaluate("document.querySelector('#builds figcaption h3').textContent")
    assert "b2 against b1" in title


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_can_be_read_across_the_band_of_the_floor(tab: Tab, folder: Path, theme: str) -> None:
    tab.open(folder / "two-builds.html", theme=theme)
    colours = [
        tab.evaluate(f"getComputedStyle(document.querySelector(`#builds svg {mark}`)).fill")
        for mark in ('[fill="#e3e5e8"]', 'text[fill="#1d2126"]')
    ]
    band, text = (_luminance(colour) for colour in colours)
    assert (max(band, text) + 0.05) / (min(band, text) + 0.05) >= 4.5, colours


def _luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)`, as WCAG 2 defines it."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_click_on_a_point_shows_the_runs_behind_it_and_their_link_opens(
    tab: Tab, folder: Path
) -> None:
    tab.open(folder / "history.html")
    assert tab.evaluate("[...document.querySelectorAll('#history details')].some(d => d.open)") is (
        False
    )
    tab.evaluate(
        "[...document.querySelectorAll('#history svg [data-rows][aria-label]')]"
        ".find(one => one.getAttribute('aria-label').startsWith('b11100'))"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    row = tab.evaluate("document.querySelector('tr.shown').textContent")
    assert row.startswith("b11100")
    assert tab.evaluate("document.querySelector('tr.shown').closest('details').open") is True
    tab.events.clear()
    tab.press("Enter")  # the link has the focus
    tab.wait_for("Page.loadEventFired")
    assert tab.evaluate("document.title") == "the run"
    assert tab.said() == []


def test_a_note_is_told_under_the_pointer_and_is_only_text(tab: Tab, folder: Path) -> None:
    tab.open(folder / "history.html")
    told = tab.evaluate(
        "[...document.querySelectorAll('#history [aria-label^=\"note: \"]')].map(one => {"
        "one.dispatchEvent(new MouseEvent('mousemove', {bubbles: true}));"
        "return document.getElementById('tip').textContent; })"
    )
    assert told[0] == "note: new memory modules"
    assert len(told) == 4
    assert tab.evaluate("document.querySelectorAll('script').length") == 1
    assert "<script>alert" in tab.evaluate("document.querySelector('#history').textContent")


def test_cells_are_filtered_by_words(tab: Tab, folder: Path) -> None:
    tab.open(folder / "history.html")
    tab.evaluate(
        "(() => { const box = document.querySelector('#history-filter input'); box.value = 'pp512 b10300';"
        "box.dispatchEvent(new Event('input')); })()"
    )
    shown = "[...document.querySelectorAll('#history figure')].filter(one => one.offsetHeight > 0)"
    assert tab.evaluate(f"{shown}.length") == 1
    assert tab.evaluate("document.querySelector('#history-filter output').textContent") == "1 of 2"
