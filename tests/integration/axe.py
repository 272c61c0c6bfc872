"""The accessibility rules of axe-core in an open page. They come from npm (`make axe`); without them a test is skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.browser import Tab

SCRIPT = Path(__file__).parents[1] / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


def serious_findings(tab: Tab) -> list[str]:
    """What axe calls serious or critical, with the elements; skips where axe is not installed."""
    if not SCRIPT.is_file():
        pytest.skip("no axe-core: run `make axe` (it needs npm)")
    tab.evaluate(SCRIPT.read_text(encoding="utf-8") + ";0")
    found: list[dict[str, Any]] = json.loads(
        tab.evaluate(
            "axe.run(document, {resultTypes: ['violations']})"
            ".then(all => JSON.stringify(all.violations.map(one => "
            "({id: one.id, impact: one.impact, "
            "nodes: one.nodes.slice(0, 4).map(n => n.html.slice(0, 160) + n.failureSummary)}))))"
        )
    )
    return [
        f"{one['impact']} {one['id']}: {one['nodes']}" for one in found if one["impact"] in SERIOUS
    ]
