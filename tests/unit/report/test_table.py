from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tests.unit.report.factory import (
    NO_PEAK,
    Part,
    failed_parts,
    measured,
    run_of,
    sweep_parts,
    telemetry,
)

from llamasweep.report.flags import flag_meaning, flag_word
from llamasweep.report.rows import rows_of
from llamasweep.report.table import CellText, Table, rate_text, table


def _table(*parts: Part) -> Table:
    return table(rows_of([run_of(parts)]))


def _titles(view: Table) -> list[str]:
    return [column.title for column in view.columns]


def _cell(view: Table, line: int, title: str) -> CellText:
    return view.lines[line].cells[_titles(view).index(title)]


def _note(view: Table, cell: CellText) -> str:
    assert cell.footnote is not None
    return view.footnotes[cell.footnote - 1]


def test_columns_are_what_varies_and_what_was_measured() -> None:
    view = table(rows_of([run_of(sweep_parts())]))
    assert _titles(view) == [
        "model", "quant", "threads", "depth", "test", "t/s", "n", "of ceiling", "of pencil", "size", "RAM", "marks", "status",
    ]  # fmt: skip
    assert view.same == ("ubatch 512",)


def test_figures_absent_everywhere_are_told_once_with_their_reason() -> None:
    view = table(rows_of([run_of(sweep_parts())]))
    assert view.never == (
        ("VRAM", "not measured", ("no GPU in this machine",)),
        (
            "J/token",
            "not measured",
            ("no energy counter: RAPL is not readable in this virtual machine",),
        ),
    )


def test_gpu_figures_stand_in_columns() -> None:
    view = table(rows_of([run_of(sweep_parts(gpu=True))]))
    assert {"VRAM", "J/token"} <= set(_titles(view))
    assert view.never == ()
    assert "energy ÷ tokens, covers gpu" in [column.note for column in view.columns]


def test_a_figure_absent_in_one_row_says_why_there() -> None:
    a = measured(1, [10.0, 10.1], telemetry=telemetry(100, gpu=False))
    b = measured(2, [10.0, 10.1], reasons={"ram_peak_process_bytes": "the process ended too soon"})
    cell = _cell(_table(a, b), 1, "RAM")
    view = _table(a, b)
    assert cell.text == "not measured"
    assert cell.sort is None
    assert _note(view, cell) == "the process ended too soon"


def test_no_cell_of_a_failed_row_reads_as_zero_or_blank() -> None:
    view = table(rows_of([run_of([*sweep_parts(), *failed_parts()])]))
    for line in view.lines:
        for cell in line.cells:
            assert cell.text.strip()
            if line.status != "ok":
                assert cell.fraction is None
    failed = next(line for line in view.lines if line.status == "timeout")
    rate = failed.cells[_titles(view).index("t/s")]
    assert rate.text == "not measured"
    assert rate.footnote is not None
    assert view.footnotes[rate.footnote - 1] == "no progress for 60 s"


def test_a_rate_comes_in_integer_fraction_and_spread() -> None:
    (row,) = rows_of([run_of([measured(1, [40.6, 41.2, 41.8])])])
    assert rate_text(row) == ("41", ".2", "± 0.6")


def test_a_single_repetition_says_that_it_has_no_spread() -> None:
    view = _table(measured(1, [41.2]))
    cell = _cell(view, 0, "t/s")
    assert cell.spread == ""
    assert _note(view, cell) == "no spread from 1 repetition"


def test_discarded_repetitions_are_counted_beside_the_kept() -> None:
    assert _cell(_table(measured(1, [5.0, 10.0, 10.1], n_discarded=1)), 0, "n").text == "2 (+1)"


def test_a_share_without_a_ceiling_says_why() -> None:
    view = table(rows_of([run_of(sweep_parts())]))
    for title in ("of ceiling", "of pencil"):
        cell = _cell(view, 0, title)
        assert cell.text == "no ceiling"
        assert _note(view, cell) == NO_PEAK
        assert _cell(view, 1, title).text.endswith("%")


def test_a_setting_left_to_the_engine_is_said() -> None:
    view = _table(measured(1, [1.0], requested={"type_k": "f16"}), measured(2, [1.0], requested={}))
    assert _cell(view, 0, "K cache").text == "f16"
    assert _cell(view, 1, "K cache").text == "engine's choice"


def test_flags_are_words_and_unknown_ones_keep_their_name() -> None:
    assert flag_word("wide_spread") == "noisy"
    assert flag_word("new_doubt") == "new doubt"
    assert "Close other programs" in flag_meaning("noisy")
    assert flag_word("above_ceiling") == "above the ceiling"
    assert "could not be had" in flag_meaning("unpinned")
    assert flag_meaning("new_doubt")


def test_flags_have_the_words_that_the_documentation_gives_them() -> None:
    text = (Path(__file__).parents[3] / "docs" / "measuring.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| ([^|`]+?) \| `(\w+)` \|", text, re.MULTILINE))
    assert {"above_ceiling", "unpinned", "wide_spread"} <= set(documented.values())
    assert {flag_word(flag) for flag in documented.values()} == set(documented)


def test_engines_stand_in_a_column_where_there_are_several() -> None:
    other = measured(2, [2.0], engine="ollama-cli")
    view = _table(measured(1, [1.0]), other)
    assert [_cell(view, line, "engine").text for line in (0, 1)] == ["llama-bench", "ollama-cli"]
    assert "engine" not in _titles(_table(measured(1, [1.0])))


def test_a_share_of_a_reference_is_said_to_be_one() -> None:
    part, samples = measured(1, [150.0, 151.0, 152.0])
    view = _table((replace(part, ceiling_tps=100.0, ceiling_is_reference=True), samples))
    assert _cell(view, 0, "of ceiling").text == "1.51 times the reference"
