"""Which rows a mark of a chart stands for: written before its sentence, and an attribute of the drawing afterwards.

Vega-Lite gives marks no attributes of one's own, but a description; so the numbers of the rows travel in it. The page's
script dims marks by this attribute where a filter leaves their rows out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llamasweep.report.rows import Row

_TOLD = re.compile(
    r' aria-label="⟦([\d,]+)⟧([^"]*)" role="graphics-symbol"( aria-roledescription="[^"]*")?'
)
_GROUP = re.compile(
    r'(<g class="mark-[^"]*") role="graphics-\w+" aria-roledescription="[^"]*"( aria-label=)?'
)


def told(rows: Iterable[Row], words: str = "") -> str:
    """The description of a mark: the rows that it stands for and its sentence. Without words it is silent to screen readers."""
    return told_numbers([row.anchor.removeprefix("row-") for row in rows], words)


def told_numbers(numbers: Iterable[object], words: str = "") -> str:
    """The same for rows of a page of another kind, by the numbers in their ids."""
    return f"⟦{','.join(dict.fromkeys(map(str, numbers)))}⟧{words}"


def with_rows(svg: str) -> str:
    """The drawing with `data-rows="row-1 row-7"` on each mark that told its rows; groups without a name are no symbols."""
    return _TOLD.sub(_attributes, _GROUP.sub(_only_named, svg))


def _only_named(group: re.Match[str]) -> str:
    return group[0] if group[2] else group[1]


def _attributes(told_by: re.Match[str]) -> str:
    numbers, words, role = told_by.groups()
    rows = " ".join(f"row-{number}" for number in numbers.split(","))
    if not words:
        return f' data-rows="{rows}" aria-hidden="true"'
    return f' data-rows="{rows}" aria-label="{words}" role="graphics-symbol"{role or ""}'
