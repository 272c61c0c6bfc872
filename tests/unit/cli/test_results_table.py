"""Tables on wide, narrow and very narrow screens."""

from __future__ import annotations

from llamasweep.cli.results_table import fitted_table

_HEADS = ("model", "t/s")
_ROWS = [["a long name of a model", "1.5"], ["b", "120"]]


def test_a_wide_table_has_a_line_per_row() -> None:
    assert fitted_table(_HEADS, _ROWS, right=("t/s",), width=80).splitlines() == [
        "model                   t/s",
        "a long name of a model  1.5",
        "b                       120",
    ]


def test_a_narrow_table_folds_and_loses_nothing() -> None:
    lines = fitted_table(_HEADS, _ROWS, width=23).splitlines()
    assert max(map(len, lines)) <= 23
    joined = "".join(line.split("  ")[0].strip() for line in lines).replace(" ", "")
    assert "alongnameofamodel" in joined


def test_a_very_narrow_table_is_stacked() -> None:
    assert fitted_table(_HEADS, _ROWS, width=15).splitlines() == [
        "model  a long name of a model", "t/s    1.5", "", "model  b", "t/s    120",
    ]  # fmt: skip


def test_hostile_text_is_shown_escaped_and_markup_is_text() -> None:
    text = fitted_table(("name",), [["\x1b[2J\n[red]x[/red] <b> \u202e"]], width=80)
    assert text.splitlines()[1] == "\\x1b[2J\\n[red]x[/red] <b> \\u202e"
