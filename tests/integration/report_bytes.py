"""Prints a hash of everything that the report writes of invented runs; `python -m tests.integration.report_bytes [again]`.

With `again` another page and another picture are drawn before, in the same process.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator

from tests.unit.report.factory import failed_parts, run_of, sweep_parts
from tests.unit.report.readings_made import run_over_time

from llamasweep.report.index import render_index
from llamasweep.report.pictures import picture_png, picture_svg, pictures
from llamasweep.report.redact import redacted
from llamasweep.report.render import render_page
from llamasweep.report.rows import rows_of
from llamasweep.report.summary_markdown import summary_markdown
from llamasweep.report.views import page


def outputs() -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each thing that is written."""
    small = sweep_parts(models=("tiny-llama",), quants=("Q4_0",), threads=(1, 2), depths=(0,))
    runs = [run_of([*small, *failed_parts()]), run_over_time(gpu=True)]
    for name, shown in (("plain", runs), ("redacted", list(redacted(runs, ("box", "ann"))))):
        view = page(shown)
        html = render_page(view)
        yield f"{name} page", html.encode()
        yield f"{name} markdown", summary_markdown(view, rows_of(shown)).encode()
        yield f"{name} list", render_index({"a.html": html, "b.html": html}, "0.1.0").encode()
    for picture in pictures(page(runs))[-2:]:
        yield picture.name + ".svg", picture_svg(picture).encode()
        yield picture.name + ".png", picture_png(picture)


def main() -> None:
    """One line per output."""
    if sys.argv[1:] == ["again"]:
        other = page([run_over_time(2)])
        render_page(other)
        picture_svg(pictures(other)[0])
    for name, data in outputs():
        print(hashlib.sha256(data).hexdigest(), name)  # noqa: T201  (what it is for)


if __name__ == "__main__":
    main()
