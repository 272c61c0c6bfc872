"""The report's structure against an expected outline: headings, navigation, columns, sentences; not its bytes.

`make golden` writes the expected file anew.
"""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path

from tests.unit.report.factory import failed_parts, run_of, sweep_parts

from llamasweep.report.render import render_report

EXPECTED = Path(__file__).parent / "report" / "outline.txt"
SHOWN = {
    "h1": "# ",
    "h2": "## ",
    "h3": "### ",
    "nav": "nav: ",
    "li": "- ",
    "thead": "columns: ",
    "summary": "+ ",
    "p": "",
}


class _Outline(HTMLParser):
    """Collects the words of the elements in SHOWN, a line each."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._inside: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag in SHOWN:
            self._inside.append((tag, []))

    def handle_data(self, data: str) -> None:
        if self._inside and data.strip():
            self._inside[-1][1].append(data.strip())

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1][0] == tag:
            name, words = self._inside.pop()
            separator = " | " if name in ("nav", "thead") else " "
            self.lines.append(SHOWN[name] + re.sub(r"[ \n]+", " ", separator.join(words)))


def test_the_report_has_its_expected_outline() -> None:
    outline = _Outline()
    outline.feed(
        render_report(
            [run_of([*sweep_parts(), *failed_parts()], notes=["The machine was not quiet."])]
        )
    )
    text = "\n".join(outline.lines) + "\n"
    if os.environ.get("LLAMASWEEP_UPDATE_GOLDEN"):
        EXPECTED.write_text(text, encoding="utf-8")
    assert text == EXPECTED.read_text(encoding="utf-8")
