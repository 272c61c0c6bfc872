"""The report of `sweeps/quick.yaml`, measured by the real llama.cpp, in a real browser."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.contract.source import ROOT
from tests.e2e.engines import BUILDS, find_program
from tests.integration.browser import NAMES, browser, program
from tests.integration.running import Desk

from llamasweep.report.render import render_report

pytestmark = [
    pytest.mark.needs_llama,
    pytest.mark.skipif(
        program() is None, reason=f"no browser: install one of {', '.join(NAMES)}, then `make test`"
    ),
]
LIMIT_S = 1200.0
PICTURES = ROOT / "build" / "report-pictures"


def test_the_quick_sweep_of_a_real_engine_is_a_quiet_page_with_its_rates(tmp_path: Path) -> None:
    find_program(BUILDS[0], "llama-bench")
    desk = Desk(folder=tmp_path)
    text = (ROOT / "sweeps" / "quick.yaml").read_text(encoding="utf-8")
    sweep = desk.write_sweep(text + f"\nbuilds: [{BUILDS[0]}]\n", "quick.yaml")
    done = subprocess.run(
        desk.command("run", "--plain", "--no-report", "--", str(sweep)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    run = desk.results()
    page = tmp_path / "quick.html"
    page.write_text(render_report([run]), encoding="utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with browser(tmp_path / "profile") as tab:
        for width, theme in [(w, t) for w in (1400, 360) for t in ("light", "dark")]:
            tab.open(page, width=width, theme=theme)
            assert tab.said() == []
            assert [u for u in tab.requested() if not u.startswith("data:,")] == [page.as_uri()]
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            (PICTURES / f"quick-real-{width}-{theme}.png").write_bytes(tab.picture())
        measured = [a for a in run.attempts if a.median_tps is not None]
        assert measured
        rows = tab.evaluate("document.querySelectorAll('#rows tbody tr').length")
        assert rows == len(run.attempts)
        words = tab.evaluate("document.querySelector('#roofline').textContent")
        assert "GB/s" in words
