"""What every verb that compares shares: its options, what it prints and writes, and the exit code of the gate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llamasweep.cli.terminal import printable
from llamasweep.errors import EXIT_OK, EXIT_SLOWER, EXIT_UNDECIDED, StoreError

if TYPE_CHECKING:
    from llamasweep.run.sides import Side
    from llamasweep.stats.judged import Judgement

_THIN = "\u202f"
_GATE_OPTIONS = (
    click.option(
        "--gate",
        is_flag=True,
        help="Exit code 3 where a cell is slower or newly failing, and it is sure.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Exit code 4 where a cell is undecided, not comparable or not sure.",
    ),
    click.option("--json", "is_json", is_flag=True, help="Print JSON."),
    click.option(
        "--markdown", metavar="FILE", help="Also write a summary for a pull request; - prints it."
    ),
    click.option("--junit", metavar="FILE", help="Also write a JUnit file for a CI server."),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Telling:
    """How a comparison is told. markdown, junit: files, None for none; markdown "-" is stdout."""

    is_gate: bool = False
    is_strict: bool = False
    is_json: bool = False
    markdown: str | None = None
    junit: str | None = None

    def __post_init__(self) -> None:
        """Raises click.UsageError where two outputs want stdout."""
        if self.is_json and self.markdown == "-":
            raise click.UsageError("--json and --markdown - both want stdout; give markdown a file")


def gate_options(function: Any) -> Any:
    """--gate, --strict, --json, --markdown and --junit."""
    for option in reversed(_GATE_OPTIONS):
        function = option(function)
    return function


def telling_of(given: dict[str, Any]) -> Telling:
    """From the options as click gives them."""
    return Telling(
        is_gate=given["gate"],
        is_strict=given["strict"],
        is_json=given["is_json"],
        markdown=given["markdown"],
        junit=given["junit"],
    )


def compared(a: Side, b: Side) -> Judgement:
    """Two sides judged with the floors of their machine."""
    from llamasweep.run.sides import floor_finder
    from llamasweep.stats.judged import judge

    return judge(
        a.rows,
        b.rows,
        is_auto=a.is_auto and b.is_auto and a.run_id == b.run_id,
        is_drawn=a.is_drawn and b.is_drawn,
        floor_of_row=floor_finder(),
        a_facts=a.facts,
        b_facts=b.facts,
    )


def tell(a: Side, b: Side, telling: Telling) -> int:
    """Compare, print, write what was asked for; the exit code.

    Raises StoreError where the gate has nothing to judge: no cell could be compared and none fails anew.
    """
    from llamasweep.report.compare_files import junit_xml, markdown_summary, plain_comparison

    judgement = compared(a, b)
    code = exit_code(judgement, telling)
    if telling.is_json:
        plain = plain_comparison(judgement, a.name, b.name)
        click.echo(json.dumps({**plain, "exit_code": code}, indent=2))
    elif telling.markdown != "-":
        for line in comparison_lines(judgement, a, b):
            click.echo(line)
    if telling.markdown is not None:
        text = markdown_summary(judgement, a.name, b.name, _note(judgement))
        _write(telling.markdown, text, "--markdown")
    if telling.junit is not None:
        text = junit_xml(judgement, a.name, b.name, is_strict=telling.is_strict)
        _write(telling.junit, text, "--junit")
    if telling.is_gate and not any(_says_something(judgement)):
        raise StoreError(
            "the gate has nothing to judge: no cell could be compared",
            hint="Measure the same cells on both sides; the table says why each was left out.",
        )
    return code


def exit_code(judgement: Judgement, telling: Telling) -> int:
    """3 for an alarm under --gate, 4 for what is open under --strict, else 0."""
    from llamasweep.report.compare_files import is_open

    if telling.is_gate and judgement.alarms:
        return EXIT_SLOWER
    if telling.is_strict and any(is_open(judged) for judged in judgement.cells):
        return EXIT_UNDECIDED
    return EXIT_OK


def _says_something(judgement: Judgement) -> Sequence[bool]:
    return [
        judged.cell.comparison is not None or judged.is_official or judged.cell.verdict == "fixed"
        for judged in judgement.cells
    ]


def comparison_lines(judgement: Judgement, a: Side, b: Side) -> list[str]:
    """What else differs, then the sentence, then the table, then the reasons."""
    from llamasweep.cli.results_table import fitted_table
    from llamasweep.report.compare_words import (
        cell_lines,
        difference_lines,
        headline,
        line_cells,
        reason_lines,
        table_heads,
    )

    lines = [f"A: {_named(a)}", f"B: {_named(b)}"]
    told = difference_lines(judgement.differences)
    lines.append("What else differs (A | B):" if told else "Nothing else that is recorded differs.")
    lines += [f"  {line}" for line in told]
    cells = cell_lines(judgement)
    lines += ["", headline(judgement, a.name, b.name)]
    if note := _note(judgement):
        lines.append(note)
    lines.append("")
    shown = [printable(line.replace(_THIN, " ")) for line in lines]
    if cells:
        rows = [[cell.replace(_THIN, " ") for cell in line_cells(line)] for line in cells]
        shown += [fitted_table(table_heads(), rows, right=("A", "B", "rounds"))]
    whys = [printable(text.replace(_THIN, " ")) for text in reason_lines(cells)]
    return [*shown, *(["", *whys] if whys else [])]


def _named(side: Side) -> str:
    """A build with the run that it was measured in, so that an older run is not taken for the newest."""
    if side.run_id is None or side.run_id in side.name:
        return side.name
    return f"{side.name} in {side.run_id}"


def _note(judgement: Judgement) -> str | None:
    """That the evidence is weaker, where it is."""
    kinds = {j.cell.comparison.evidence for j in judgement.cells if j.cell.comparison}
    if "unpaired" not in kinds:
        return None
    return (
        "Measured at different times (unpaired), which is weaker: whatever changed on the machine in between counts "
        "as a difference. `llamasweep ab` measures by turns."
    )


def _write(target: str, text: str, option: str) -> None:
    from llamasweep.cli.report_files import write_whole

    if target == "-":
        click.echo(text, nl=False)
    else:
        write_whole(Path(target), text, option=option, what="")
