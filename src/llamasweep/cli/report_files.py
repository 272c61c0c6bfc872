"""Writing what `llamasweep report` makes: each file whole or not at all, pictures beside each other, the list of reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llamasweep.report.pictures import Picture

REPORTS_VARIABLE = "LLAMASWEEP_REPORTS"
INDEX_NAME = "index.html"
HISTORY_NAME = "history.html"
"""The page of `llamasweep history` in the same folder, which is no report."""


def write_whole(
    target: Path, text: str | bytes, *, option: str, what: str = "the report to "
) -> None:
    """A file on disk is always a whole one; a device or pipe is written to. Raises StoreError; option, what: to name in it."""
    from llamasweep.store.files import named_error, put_named

    data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        put_named(target, data)
    except OSError as problem:
        raise named_error(target, problem, option, what) from problem


def write_pictures(
    pictures: Sequence[Picture], *, png: Path | None, svg: Path | None
) -> list[Path]:
    """Every picture in the folders that were asked for; where they are."""
    from llamasweep.report.pictures import picture_png, picture_svg

    written = []
    for picture in pictures:
        if svg is not None:
            written.append(svg / f"{picture.name}.svg")
            write_whole(written[-1], picture_svg(picture), option="--svg")
        if png is not None:
            written.append(png / f"{picture.name}.png")
            write_whole(written[-1], picture_png(picture), option="--png")
    return written


def write_index(folder: Path, version: str) -> Path:
    """The list of all reports of the folder, made from the pages that are in it now."""
    from llamasweep.report.index import render_index
    from llamasweep.report.key_figures import HEAD_LENGTH

    heads = {
        path.name: _head(path, HEAD_LENGTH)
        for path in sorted(folder.glob("*.html"))
        if path.name not in (INDEX_NAME, HISTORY_NAME) and not path.name.startswith(".")
    }
    target = folder / INDEX_NAME
    write_whole(target, render_index(heads, version), option=f"--out or {REPORTS_VARIABLE}")
    return target


def _head(path: Path, length: int) -> str:
    """The beginning of a page, '' where it cannot be read: then it is counted as no report."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            return stream.read(4 * length).decode("utf-8", "replace")
    except OSError:
        return ""
