"""The summary for a pull request: the numbers of the rows, and nothing that markdown would take for its own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import failed_parts, hostile_run, measured, run_of, sweep_parts

from llamasweep.report import summary_markdown as module
from llamasweep.report.rows import rows_of
from llamasweep.report.summary_markdown import summary_markdown
from llamasweep.report.views import page
from llamasweep.results.records import RunData


def _summary(run: RunData) -> str:
    return summary_markdown(page([run]), rows_of([run]))


def _table(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_rates_and_ceilings_read_back_to_the_same_numbers() -> None:
    run = run_of(sweep_parts())
    head, _, *lines = _table(_summary(run))
    assert head[0] == "model"
    assert head[-5:] == ["test", "t/s", "n", "of ceiling", "ceiling, t/s"]
    for cells, attempt in zip(lines, run.attempts, strict=False):
        assert attempt.median_tps is not None
        assert float(cells[-4].split(" ± ")[0]) == pytest.approx(attempt.median_tps, rel=0.005)
        if attempt.ceiling_tps is None:
            assert cells[-2:] == ["no ceiling", "not known"]
        else:
            assert float(cells[-1]) == pytest.approx(attempt.ceiling_tps, rel=0.005)


def test_a_reference_is_not_called_a_ceiling() -> None:
    prompt: dict[str, Any] = {
        "test_kind": "pp", "test_label": "pp512", "n_prompt": 512, "n_gen": 0,
    }  # fmt: skip
    part, samples = measured(1, [150.0, 151.0, 152.0], **prompt)
    of = replace(part, ceiling_tps=100.0, ceiling_is_reference=True, ceiling_bound="compute")
    text = _summary(run_of([(of, samples)]))
    head, _, cells = _table(text)
    assert (head[-2], cells[-2]) == ("of ceiling or reference", "1.51 times the reference")
    assert "151" not in cells[-2]
    assert "which an engine may exceed" in text


def test_findings_failures_and_the_command_are_in_it() -> None:
    run = run_of([*sweep_parts(), *failed_parts()])
    text = _summary(run)
    assert text.startswith("### On AMD EPYC 7763")
    for finding in page([run]).findings:
        assert finding.text[:20].replace("_", r"\_") in text
    assert "- **Failed: signal**, 1 cell: the engine was ended by SIGSEGV" in text
    assert "- Not possible here, 2 cells: quantised V needs flash attention" in text
    assert "```sh\nllamasweep run sweeps/quick.yaml\n```" in text
    assert "No exact ceiling for 36 pp rows: no peak compute rate is known" in text


def test_warnings_stand_with_their_cause_and_next_step() -> None:
    run = run_of([measured(1, [8.0, 8.1, 8.05]), measured(2, [8.0, 8.1, 8.05], n_depth=512)])
    view = page([run])
    text = summary_markdown(view, rows_of([run]))
    cards = [card for one in view.why for card in one.cards]
    assert cards
    assert text.count("\n- ▲ **") + text.count("\n- ⚑ **") == len(cards)
    assert "Why slow:\n\n- " in text
    assert " Next: Measure again" in text


def test_rows_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 5)
    text = _summary(run_of(sweep_parts()))
    assert len(_table(text)) == 5 + 2
    assert "67 more rows in the report." in text


def test_a_run_with_only_failures_has_no_table_of_rates() -> None:
    assert _table(_summary(run_of(failed_parts()))) == []


def test_hostile_names_are_only_text() -> None:
    text = _summary(hostile_run())
    outside = re.sub(r"```.*?```", "", text, flags=re.S)
    assert re.findall(r"<(?!!-- -->)", outside) == []
    for line in _table(text):
        assert len(line) == len(_table(text)[0])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("@someone", "@<!-- -->someone"),
        ("see https://x.y/z", "see https:<!-- -->//x.y/z"),
        ("www.x.y", "www<!-- -->.x.y"),
        ("a|b", r"a\|b"),
        ("# [x](y) `z` *a* #12", r"\# \[x\](y) \`z\` \*a\* \#12"),
        ("a\nb", r"a\\nb"),
        ("&lt;", "&amp;lt;"),
    ],
)
def test_a_name_cannot_be_more_than_text(name: str, shown: str) -> None:
    run = run_of([measured(1, [5.0, 5.1], model_label=name, model_quant=None)])
    assert _table(_summary(run))[2][0] == shown


def test_a_command_with_backticks_stays_in_its_block() -> None:
    run = run_of([measured(1, [5.0])], sweep_file="a```b.yaml")
    assert "````sh\n" in _summary(run)
