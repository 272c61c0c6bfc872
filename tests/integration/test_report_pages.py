"""Six kinds of report in a real browser: quiet, asking for nothing, fitting phone and desk in both themes, and accessible.

Pictures of all of them are kept in `build/report-pictures/`, to be looked at.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pynvml
import pytest
from tests.contract.source import ROOT
from tests.fakes.builds import write_build
from tests.integration.axe import serious_findings
from tests.integration.browser import NAMES, Tab, browser, program
from tests.integration.running import Desk
from tests.unit.report.factory import failed_parts, measured, run_of
from tests.unit.report.readings_made import LENGTH_S, LOAD_S, START_NS, run_over_time
from tests.unit.report.wide import every_axis_run, generated_run
from tests.unit.telemetry.synthetic_nvml import SyntheticGpu, SyntheticNvml

from llamasweep.report.render import render_report
from llamasweep.results.records import Reading, RunData
from llamasweep.telemetry.nvidia import close_nvml, open_nvml

pytestmark = pytest.mark.skipif(
    program() is None, reason=f"no browser: install one of {', '.join(NAMES)}, then `make test`"
)

PICTURES = ROOT / "build" / "report-pictures"
PAGES = ("quick", "every-axis", "failures", "one-cell", "generated-5000", "synthetic-gpu")
VIEWS = [(width, theme) for width in (1400, 360) for theme in ("light", "dark")]
INTERVAL_S = 0.25


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The tab and the written pages."""

    tab: Tab
    folder: Path

    def open(self, name: str, width: int = 1400, theme: str = "light") -> Tab:
        self.tab.open(self.folder / f"{name}.html", width=width, theme=theme)
        return self.tab


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("pages")
    runs: dict[str, RunData] = {
        "quick": quick_run(tmp_path_factory.mktemp("quick")),
        "every-axis": every_axis_run(),
        "failures": run_of(failed_parts()),
        "one-cell": run_of([measured(1, [10.0, 10.1, 10.3])]),
        "generated-5000": generated_run(5000),
        "synthetic-gpu": synthetic_gpu_run(),
    }
    for name in PAGES:
        (folder / f"{name}.html").write_text(render_report([runs[name]]), encoding="utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with browser(folder / "profile") as tab:
        yield Pages(tab=tab, folder=folder)


def quick_run(folder: Path) -> RunData:
    """sweeps/quick.yaml through the real command line, measured by the fake engine."""
    program = write_build(folder / "bin", behaviour={"pp_tps": 2e5, "tg_tps": 3e4})
    desk = Desk(folder=folder)
    cache, path = folder / "cache", f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    ended = desk.call(
        "run",
        "--plain",
        "--no-report",
        "--",
        str(ROOT / "sweeps" / "quick.yaml"),
        env={"PATH": path, "LLAMASWEEP_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.code == 0, ended.stderr
    return desk.results()


def synthetic_gpu_run() -> RunData:
    """Telemetry as the NVML source reads it from a synthetic library, beside invented repetitions; the page says so."""
    gpu = SyntheticGpu(memory_used=400 << 20, processes=[(4242, 0)])
    named: dict[str, Any] = {
        "gpu_name": "Synthetic GPU (stand-in for NVML, not measured)",
        "build_backends": "CUDA",
    }
    run = run_over_time(gpu=True, sweep_name="synthetic GPU telemetry")
    attempts = tuple(replace(attempt, **named) for attempt in run.attempts)
    others = [reading for reading in run.readings if reading.source != "nvml"]
    return replace(run, attempts=attempts, readings=(*others, *_nvml_readings(gpu)))


def _nvml_readings(gpu: SyntheticGpu) -> list[Reading]:
    """A load, then work that heats the device until it throttles."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pynvml, "nvmlLib", SyntheticNvml(gpu))
        patch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        source, reason = open_nvml(lambda: frozenset({4242}))
        assert source is not None, reason
        readings: list[Reading] = []
        for step in range(int(LENGTH_S / INTERVAL_S)):
            t = step * INTERVAL_S
            loaded, heat = min(1.0, t / LOAD_S), min(1.0, t / (0.7 * LENGTH_S))
            gpu.memory_used = (400 << 20) + round(loaded * 5.1e9)
            gpu.gpu_percent = 97 if t > LOAD_S else 4
            gpu.power_mw = 310_000 if t > LOAD_S else 61_000
            gpu.energy_mj += round(gpu.power_mw * INTERVAL_S)
            gpu.temperature = round(41 + 43 * heat)
            gpu.throttle_mask = pynvml.nvmlClocksThrottleReasonSwThermalSlowdown * (heat == 1.0)
            gpu.sm_mhz = 2280 if heat == 1.0 else 2610
            time_ns = START_NS + round(t * 1e9)
            readings += [replace(reading, time_ns=time_ns) for reading in source.read(4242)]
        close_nvml()
        return readings


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "theme"), VIEWS)
def test_every_kind_of_report_is_quiet_asks_for_nothing_and_fits(
    pages: Pages, name: str, width: int, theme: str
) -> None:
    tab = pages.open(name, width, theme)
    assert tab.said() == []
    asked = [url for url in tab.requested() if not url.startswith("data:,")]
    assert asked == [(pages.folder / f"{name}.html").as_uri()]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    (PICTURES / f"{name}-{width}-{theme}.png").write_bytes(tab.picture())


@pytest.mark.parametrize("name", [name for name in PAGES if name != "generated-5000"])
@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (360, "dark")])
def test_axe_finds_nothing_serious(pages: Pages, name: str, width: int, theme: str) -> None:
    """Without the 5,000 cells: made by the same templates, they would take minutes."""
    assert serious_findings(pages.open(name, width, theme)) == []


def test_generated_and_synthetic_runs_are_named_so_in_the_page(pages: Pages) -> None:
    words = "document.querySelector('header').textContent"
    assert "5000 generated cells, not measured" in pages.open("generated-5000").evaluate(words)
    assert "Synthetic GPU (stand-in for NVML" in pages.open("synthetic-gpu").evaluate(words)


def test_sizes_are_bounded_and_the_page_is_the_same_each_time(pages: Pages) -> None:
    sizes = {name: (pages.folder / f"{name}.html").stat().st_size for name in PAGES}
    assert sizes["generated-5000"] < 6_000_000
    assert sizes["every-axis"] < 2_000_000
    again = render_report([every_axis_run()])
    assert (pages.folder / "every-axis.html").read_text(encoding="utf-8") == again


def test_every_axis_has_its_panel(pages: Pages) -> None:
    tab = pages.open("every-axis")
    ids = tab.evaluate("[...document.querySelectorAll('main > section')].map(one => one.id)")
    wanted = ["ceiling", "feel", "rates", "axis-n_depth", "axis-n_threads", "axis-n_gpu_layers"]
    wanted += ["axis-n_cpu_moe", "axis-n_ubatch", "axis-type_k", "axis-flash_attn"]
    wanted += ["ladder", "builds", "roofline", "memory", "failures", "impossible", "trust", "rows"]
    assert [one for one in wanted if one not in ids] == []


def test_without_javascript_tables_and_charts_are_there(pages: Pages) -> None:
    tab = pages.open("every-axis")
    tab.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        pages.open("every-axis")
        assert tab.evaluate("document.getElementById('filters').hidden") is True
        assert tab.evaluate("document.getElementById('downloads').hidden") is True
        assert tab.evaluate("document.querySelectorAll('#rows tbody tr').length") > 70
        heights = tab.evaluate(
            "[...document.querySelectorAll('.chart svg')].map(one => one.getBoundingClientRect().height)"
        )
        assert heights
        assert min(heights) > 50
    finally:
        tab.send("Emulation.setScriptExecutionDisabled", value=False)


def test_a_printed_page_is_white_and_hides_what_only_a_screen_needs(pages: Pages) -> None:
    tab = pages.open("every-axis", theme="dark")
    tab.send("Emulation.setEmulatedMedia", media="print")
    try:
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        assert tab.evaluate("getComputedStyle(document.querySelector('.bar')).display") == "none"
        ink = tab.evaluate("getComputedStyle(document.querySelector('h1')).color")
        assert re.fullmatch(r"rgb\(0, 0, 0\)", ink)
    finally:
        tab.send("Emulation.setEmulatedMedia", media="")
