"""docs/findings.md is what the code and the published rates make."""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.results.published import Published, causes, shallow_rows

from llamasweep.results.decode_alarm import decode_shortfall
from llamasweep.results.finding_kinds import KINDS
from llamasweep.results.findings_page import kinds_page

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"

_PUBLISHED = """
## The alarm, held against published rates

The alarm `slow_decode` fires where generation reaches less than 70 % of its ceiling **and** each token takes
more than 10 ms longer than the ceiling says **and** the depth is at most 512. Of the {n_all} published rates
of dense models on one device at such depths it fires on {n_alarms}; the other {n_quiet} stay quiet. These are
the {n_alarms}, each with the causes that the findings give when the rows of one source and device are taken
as a run. Ceilings here are bandwidth by the maker's specification / (file + mean KV cache); that the sources
tell neither machine, load nor repetitions is why some stay unexplained.

"""


def published_part() -> str:
    """The rows that raise the alarm, in the order of the table."""
    rows = shallow_rows()
    alarms = [row for row in rows if row.is_alarm]
    head = _PUBLISHED.format(n_all=len(rows), n_alarms=len(alarms), n_quiet=len(rows) - len(alarms))
    table = [
        "| row | device | backend | engine | build | model | test | t/s | ceiling t/s | share | ms a token above | causes |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *map(_line, alarms),
    ]
    return head + "\n".join(table) + "\n"


def _line(row: Published) -> str:
    lack = decode_shortfall(row.tps, row.ceiling_tps)
    cells = (
        str(row.number),
        row["device"],
        row["backend"],
        row["engine"],
        str(row.build_number or "–"),
        f"{row['model']} {row['quant']}",
        row["test"],
        row["tokens_per_s"],
        row["ceiling_weights_and_kv"],
        f"{lack.fraction:.0%}",
        f"{lack.excess_ms:.1f}",
        causes(row),
    )
    return "| " + " | ".join(cells) + " |"


def test_the_page_of_findings_is_the_one_that_code_and_rates_make() -> None:
    page = kinds_page() + published_part()
    if os.environ.get("LLAMASWEEP_UPDATE_GOLDEN"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "write it anew with: make golden"


def test_the_page_names_every_kind_once() -> None:
    lines = kinds_page().splitlines()
    named = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert named == list(KINDS)
