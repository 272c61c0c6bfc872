"""The list of all reports of a folder as a page: key figures in, HTML out. Reads no file itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from llamasweep.report.key_figures import KeyFigures, read_key_figures
from llamasweep.report.names import shown
from llamasweep.report.render import render_template

MAX_REPORTS = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A report in the list. name: of its file; link: to it, from the same folder."""

    name: str
    link: str
    key: KeyFigures


def render_index(heads: Mapping[str, str], version: str) -> str:
    """The list. heads: file name -> the beginning of the page (key_figures.HEAD_LENGTH characters are enough)."""
    keys = {name: read_key_figures(head) for name, head in heads.items()}
    listed = [
        Listed(
            name=shown(name), link="./" + quote(name, safe="", errors="surrogateescape"), key=key
        )
        for name, key in keys.items()
        if key is not None
    ]
    listed.sort(key=lambda report: report.name)
    listed.sort(key=lambda report: report.key.started_at, reverse=True)
    return render_template(
        "index.html.j2",
        ("page.js",),
        reports=listed[:MAX_REPORTS],
        n_others=len(keys) - len(listed),
        n_left_out=max(0, len(listed) - MAX_REPORTS),
        version=shown(version, 40),
    )
