"""The report as markdown for a pull request or an issue: findings, rates with their ceilings, what failed.

Every text from outside is escaped for GitHub's markdown: no element, no link, no mention, no line of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.markdown_text import markdown_text as _plain
from llamasweep.report.names import axis_word, shown
from llamasweep.report.rows import NO_REASON, Row, axis_value, varying
from llamasweep.report.strips import setting_word
from llamasweep.report.views import Page

MAX_ROWS = 60
MAX_REASONS = 8


def summary_markdown(view: Page, rows: Sequence[Row]) -> str:
    """The summary of a page; rows: the page's own."""
    parts = [f"### {_plain(view.title)}"]
    parts += [_head(view)]
    if view.findings:
        parts.append("\n".join(f"- {_plain(finding.text)}" for finding in view.findings))
    parts += _rates(rows)
    parts += _reasons(view)
    parts += _failures(view)
    commands = [repeat.command for repeat in view.repeats if repeat.command]
    if commands:
        parts.append("Repeat it:\n\n" + _code("\n".join(commands)))
    return "\n\n".join(parts) + "\n"


def _head(view: Page) -> str:
    lines = [
        f"{_plain(head.where)} · {_plain(head.line)}. {_plain(head.outcome)}."
        for head in view.heads
    ]
    lines.append(f"Trust: {_plain(view.trust.mark)}. llamasweep {_plain(view.version)}.")
    if view.trust.synthetic:
        lines.append(_plain(view.trust.synthetic))
    return "  \n".join(lines)


def _rates(rows: Sequence[Row]) -> list[str]:
    timed = [row for row in rows if row.rates is not None]
    if not timed:
        return []
    axes = varying(timed)
    names = [
        "model",
        *(axis_word(axis) for axis in axes),
        "test",
        "t/s",
        "n",
        *_ceiling_heads(timed),
    ]
    numbers = {"t/s", "n", *_ceiling_heads(timed)}
    lines = [_line(names), _line(["---:" if name in numbers else "---" for name in names])]
    lines += [_line(_cells(row, axes)) for row in timed[:MAX_ROWS]]
    note = (
        "t/s: median ± sample standard deviation of the n repetitions kept; ceiling: the exact one."
    )
    if any(row.attempt.ceiling_is_reference for row in timed):
        note += " A reference is the peak of this machine's own test of compute, which an engine may exceed."
    left_out = len(timed) - MAX_ROWS
    if left_out > 0:
        note += f" {figures.counted(left_out, 'more row')} in the report."
    reasons = Counter(
        (row.kind, row.ceiling.reason or NO_REASON) for row in timed if row.ceiling.value is None
    )
    notes = [
        f"No exact ceiling for {figures.counted(n, f'{_plain(kind)} row')}: {_plain(shown(reason, 300))}."
        for (kind, reason), n in reasons.most_common(MAX_REASONS)
    ]
    return ["\n".join(lines), "  \n".join([note, *notes])]


def _ceiling_heads(rows: Sequence[Row]) -> tuple[str, str]:
    """What the last two columns are called: a reference is no ceiling."""
    known = {
        bool(row.attempt.ceiling_is_reference) for row in rows if row.ceiling.value is not None
    }
    if True not in known:
        return "of ceiling", "ceiling, t/s"
    return "of ceiling or reference", "ceiling or reference, t/s"


def _cells(row: Row, axes: Sequence[str]) -> list[str]:
    rates = row.rates
    assert rates is not None  # noqa: S101  (made of measured rows)
    text = figures.number(rates.median)
    if rates.std is not None:
        text += f" ± {figures.spread(rates.std, rates.median)}"
    fraction, ceiling = row.fraction.value, row.ceiling.value
    return [
        _plain(shown(row.subject, 80)),
        *(_plain(_setting(row, axis)) for axis in axes),
        _plain(shown(row.test, 40)),
        text,
        figures.count(rates.n_kept),
        "no ceiling" if fraction is None else _share(row, fraction),
        "not known" if ceiling is None else figures.number(ceiling),
    ]


def _share(row: Row, fraction: float) -> str:
    if row.attempt.ceiling_is_reference:
        return f"{figures.times(fraction)} the reference"
    return figures.percent(fraction)


def _setting(row: Row, axis: str) -> str:
    value = axis_value(row, axis)
    if value is None:
        return "left to the engine"
    return setting_word(axis, value).removeprefix(f"{axis_word(axis)} ")


def _reasons(view: Page) -> list[str]:
    """Cards of alarms and warnings, each with its first cause and next step."""
    cards = [card for run in view.why for card in run.cards]
    lines = []
    for card in cards[:MAX_REASONS]:
        line = f"- {card.sign} **{_plain(card.title)}**"
        if card.causes:
            cause = card.causes[0]
            line += f". {_sentence(cause.cause)} Next: {_sentence(cause.next_step)}"
        lines.append(line)
    if len(cards) > MAX_REASONS:
        lines.append(f"- {figures.counted(len(cards) - MAX_REASONS, 'more reason')} in the report")
    return ["Why slow:\n\n" + "\n".join(lines)] if lines else []


def _sentence(text: str) -> str:
    return _plain(text if text.endswith((".", "?")) else f"{text}.")


def _failures(view: Page) -> list[str]:
    lines = [
        f"- **{_plain(failure.title)}**, {figures.counted(failure.n_rows, 'cell')}: {_plain(failure.message)}"
        f" ({_plain(failure.end)})"
        for failure in view.failures
    ]
    lines += [
        f"- {_plain(item.title)}, {figures.counted(item.n_rows, 'cell')}: {_plain(item.reason)}"
        for item in view.impossible
    ]
    if view.n_failures_left_out:
        lines.append(
            f"- {figures.counted(view.n_failures_left_out, 'more failed cell')} in the report"
        )
    return ["Not measured:\n\n" + "\n".join(lines)] if lines else []


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{text}\n{fence}"
