"""Findings in the report: cards by kind, marks of rows, one voice with the flags, and bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.report.factory import HOSTILE, Part, hostile_run, measured, run_of
from tests.unit.results.finding_cases import CASES

from llamasweep.report import why
from llamasweep.report.render import render_report
from llamasweep.report.rows import Row, rows_of
from llamasweep.report.views import page
from llamasweep.results import checks
from llamasweep.results.checks import KINDS, Finding, Kind
from llamasweep.results.findings import make_finding
from llamasweep.results.records import RunData

WIDE = [17.0, 18.5, 21.0]


def _section(*runs: RunData) -> tuple[tuple[Row, ...], tuple[why.RunCards, ...]]:
    found = why.found_in(runs)
    rows = why.with_findings(rows_of(runs), found)
    return rows, why.cards(rows, found)


def _made(parts: Sequence[Part], findings: Sequence[Finding]) -> tuple[why.RunCards, ...]:
    run = run_of(parts)
    found = {run.info.run_id: tuple(findings)}
    return why.cards(why.with_findings(rows_of([run]), found), found)


@pytest.mark.parametrize("kind", CASES)
def test_every_kind_has_a_card_that_tells_what_its_finding_tells(kind: Kind) -> None:
    run = CASES[kind].fires
    findings = [finding for finding in checks.check_run(run) if finding.kind == kind]
    rows, (of_run,) = _section(run)
    (card,) = [card for card in (*of_run.cards, *of_run.notes) if card.kind == kind]
    assert card.title == KINDS[kind].title[0].upper() + KINDS[kind].title[1:]
    assert card.severity == findings[0].severity
    assert card.causes[0].sights[0].seen == findings[0].seen
    assert card.causes[0].cause == findings[0].cause
    assert card.causes[0].next_step == findings[0].next_step
    about = {attempt_id for finding in findings for attempt_id in finding.attempt_ids}
    marked = {row.anchor for row in rows if card.anchor in [mark.link for mark in row.marks]}
    assert marked == {row.anchor for row in rows if about & set(row.attempt_ids)}
    assert card.n_rows == len(marked)
    assert f'id="{card.anchor}"' in render_report([run])


def test_notes_are_folded_and_told_apart_from_warnings_and_alarms_by_sign_and_word() -> None:
    alarm = CASES["slow_decode"].fires
    second = replace(
        alarm,
        info=replace(alarm.info, run_id="second"),
        attempts=tuple(replace(attempt, run_id="second") for attempt in alarm.attempts),
    )
    html = render_report([CASES["kv_growth"].fires, second])
    notes = html[html.index("<details><summary>1 note: kv growth") :]
    assert '<article class="card note" id="why-1-kv_growth">' in notes
    assert "○ </span>" in notes
    assert '<p class="caption">Note, marked “kv growth”</p>' in notes
    assert '<p class="caption">Alarm, marked “slow decode”</p>' in html
    assert "▲ </span>Generation far slower than the memory allows: 1 row" in html


def test_nothing_found_is_no_section() -> None:
    run = run_of([measured(1, [18.0, 18.1])])
    assert page([run]).why == ()
    html = render_report([run])
    assert 'id="why"' not in html
    assert "Why slow</h2>" not in html


def test_a_finding_speaks_in_the_place_of_a_flag_that_says_the_same() -> None:
    flagged = run_of([measured(1, WIDE, flags=("wide_spread", "unpinned"))])
    view = page([flagged])
    (strip,) = view.hero.strips if view.hero else ()
    assert [mark.text for mark in strip.marks] == ["⚑ wide spread", "not pinned"]
    assert [doubt.word for doubt in view.trust.doubts] == ["not pinned"]
    assert view.trust.n_told_by_findings == 1
    assert view.row_data.columns["flags"] == ["wide_spread unpinned"]


def test_a_flag_without_a_finding_keeps_its_voice() -> None:
    view = page([run_of([measured(1, [18.0, 18.1], flags=("throttled",))])])
    assert [doubt.word for doubt in view.trust.doubts] == ["throttled"]
    assert view.trust.n_told_by_findings == 0
    assert [(mark.text, mark.link) for mark in view.table.lines[0].cells[-2].marks] == [
        ("throttled", "trust")
    ]


def test_the_head_tells_the_gravest_with_its_cause() -> None:
    texts = [finding.text for finding in page([run_of([measured(1, [40.0, 40.1])])]).findings]
    assert texts[-1].startswith("Above the ceiling: 1 row of 1. The measured bandwidth is too low")
    assert len([text for text in texts if "too low" in text]) == 1


def test_the_head_counts_what_it_has_no_room_for() -> None:
    kinds: list[Kind] = ["on_battery", "slow_governor", "swapping", "throttled", "vram_full"]
    found = [make_finding(kind, {"n_x": 1}, ["log-0001"]) for kind in kinds]
    parts = [measured(1, [1.0])]
    told = why.sentences(_made(parts, found), rows_of([run_of(parts)]))
    assert len(told) == why.MAX_SENTENCES + 1
    assert told[-1].text == "More warnings stand under Why slow."


def test_each_run_is_checked_by_itself_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def recorded(run: RunData) -> tuple[Finding, ...]:
        seen.append(run.info.run_id)
        return checks.check_run(run)

    monkeypatch.setattr(why, "check_run", recorded)
    first = run_of([measured(1, WIDE)])
    other = run_of([measured(1, WIDE, run_id="other")], run_id="other")
    view = page([first, other])
    assert seen == [first.info.run_id, "other"]
    assert [[card.n_rows for card in of_run.cards] for of_run in view.why] == [[1], [1]]
    assert [line.cells[-2].marks[0].link for line in view.table.lines] == [
        "why-1-wide_spread",
        "why-2-wide_spread",
    ]


def test_what_a_later_try_replaced_marks_no_row() -> None:
    replaced, samples = measured(1, WIDE)
    later, later_samples = measured(2, [18.0, 18.1, 18.2])
    again = replace(later, cell_id=replaced.cell_id, attempt_index=1)
    (row,), section = _section(run_of([(replaced, samples), (again, later_samples)]))
    assert row.marks == ()
    assert section == ()


def test_a_card_is_bounded_and_counts_the_rest() -> None:
    n_rows = 60
    parts = [measured(n, [1.0], requested={"n_threads": n}) for n in range(n_rows)]
    found = [
        make_finding(
            "on_battery", {"n_seen": n}, [f"log-{n:04d}"], cause=f"Cause {n % 7}.", severity="note"
        )
        for n in range(n_rows)
    ]
    (of_run,) = _made(parts, found)
    (card,) = of_run.notes
    assert card.n_rows == n_rows
    assert (len(card.causes), card.n_left_out) == (why.MAX_CAUSES, 3)
    cause = card.causes[0]
    assert len(cause.sights) + len(cause.more_sights) == why.MAX_SIGHTS
    assert cause.n_left_out == 3
    wide = make_finding("on_battery", {"n_seen": 1}, [f"log-{n:04d}" for n in range(n_rows)])
    (sight,) = _made(parts, [wide])[0].cards[0].causes[0].sights
    assert (len(sight.rows), sight.n_rows) == (why.MAX_ROWS_NAMED, n_rows)


def test_many_rows_with_findings_stay_a_page_of_bounded_size() -> None:
    parts = [
        measured(n, [3.0 + n / 500, 4.0, 5.0], requested={"n_threads": n}, flags=("wide_spread",))
        for n in range(200)
    ]
    html = render_report([run_of(parts)])
    section = html[html.index('<section id="why">') : html.index('<section id="trust">')]
    assert "⚑" in section
    assert len(section.encode()) < 60_000
    assert len(html.encode()) < 2_000_000


def test_hostile_evidence_is_shown_as_text() -> None:
    finding = make_finding("on_battery", {"power_source": HOSTILE}, ["log-0700"], cause=HOSTILE)
    run = hostile_run()
    found = {run.info.run_id: (finding,)}
    rows = why.with_findings(rows_of([run]), found)
    (of_run,) = why.cards(rows, found)
    cause = of_run.cards[0].causes[0]
    for text in (cause.cause, cause.sights[0].seen):
        assert "\\u202egnp.exe" in text
        assert not re.search("[\u202a-\u202e\u2028\n]", text)
