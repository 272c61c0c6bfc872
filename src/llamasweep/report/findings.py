"""Sentences made from the data: what was found of speeds, and what went wrong. No sentence praises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.comparison import compare, is_repeated, load, median, shallowest
from llamasweep.report.figures import THIN
from llamasweep.report.headline import BROKEN_ABOVE, allowed_words
from llamasweep.report.names import shown
from llamasweep.report.rows import Row, varying
from llamasweep.report.strips import of_least_load, per_model
from llamasweep.report.told import Number, Told
from llamasweep.results.conversations import last_turns
from llamasweep.results.records import FAILED_STATUSES

MAX_KINDS = 4
"""Kinds of failures that are named."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One sentence and the part of the page that shows it (an id, without #).

    numbers: every number in it. anchors: rows that these are made of. names: what it takes over as it is.
    """

    text: str
    link: str
    numbers: tuple[Number, ...] = ()
    anchors: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def finding(text: str, link: str, told: Told) -> Finding:
    """A sentence with everything that was noted while it was written."""
    return Finding(
        text=text,
        link=link,
        numbers=tuple(told.numbers),
        anchors=told.anchors,
        names=tuple(told.names),
    )


def shares(rows: Sequence[Row]) -> list[Finding]:
    """What the fastest settings reach of their ceilings."""
    pairs = per_model([row for row in rows if row.rates is not None])
    tg = [one for one, _ in pairs if one is not None]
    pp = [one for _, one in pairs if one is not None]
    found = []
    for words, of_kind in ((_generation_share, tg), (_prompt_share, pp)):
        told = Told()
        text = words(of_kind, told)
        if text:
            found.append(finding(text + ".", "ceiling", told))
    return found


def _generation_share(rows: Sequence[Row], told: Told) -> str:
    exact, above = _within(rows)
    pencil = [row for row in rows if row.pencil_fraction.value is not None and row not in above]
    by_pencil = "the pencil ceiling (bandwidth ÷ model size)"
    if not exact:
        if not pencil or above:
            return _above_words(above, told)
        reason = next((row.ceiling.reason for row in rows if row.ceiling.reason), None)
        return (
            f"Generation reaches {_span(pencil, 'share of pencil', told)} of {by_pencil} at its fastest "
            f"setting; people quote {_quoted(told)}. No exact ceiling: "
            f"{told.name(shown(reason or '', 200))}"
        )
    text = (
        f"Generation reaches {_span(exact, 'share of ceiling', told)} of the exact ceiling (bandwidth ÷ bytes "
        "that a token must move) at its fastest setting"
    )
    if pencil:
        text += (
            f"; of {by_pencil} it is {_span(pencil, 'share of pencil', told)}, where people quote "
            f"{_quoted(told)}"
        )
    return f"{text}. {_above_words(above, told)}" if above else text


def _prompt_share(rows: Sequence[Row], told: Told) -> str:
    known, above = _within(rows)
    if not known:
        return _above_words(above, told)
    bounds = {allowed_words(row) for row in known}
    what = bounds.pop() if len(bounds) == 1 else "its ceiling"
    text = f"Prompt reading reaches {_span(known, 'share of ceiling', told)} of {what}"
    return f"{text}. {_above_words(above, told)}" if above else text


def _within(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """(rows with a share of their ceiling that can be, rows above what can be), of one stream; a reference may be exceeded."""
    alone = (row for row in rows if load(row).n_streams == 1)
    known = [row for row in alone if row.fraction.value is not None]
    above = [
        row
        for row in known
        if row.fraction.value is not None
        and row.fraction.value > BROKEN_ABOVE
        and not row.attempt.ceiling_is_reference
    ]
    return [row for row in known if row not in above], above


def _above_words(rows: Sequence[Row], told: Told) -> str:
    if not rows:
        return ""
    n = told.number(figures.counted(len(rows), "row"), len(rows), "rows", rows)
    kind = {"tg": "generation", "pp": "prompt reading"}[rows[0].kind]
    verb, its = ("lies", "its") if len(rows) == 1 else ("lie", "their")
    return (
        f"{n} of {kind} {verb} above {its} exact ceiling, so an assumption of that ceiling is wrong"
    )


def _quoted(told: Told) -> str:
    return f"{told.number('70', 0.7, 'fixed')} to {told.number('85', 0.85, 'fixed')}{THIN}%"


def _span(rows: Sequence[Row], of: str, told: Told) -> str:
    """The lowest and the highest share of the rows."""

    def share(row: Row) -> float:
        measured = row.fraction if of == "share of ceiling" else row.pencil_fraction
        assert measured.value is not None  # noqa: S101  (the caller looked)
        return measured.value

    ends = [min(rows, key=share), max(rows, key=share)]
    low, high = (told.number(figures.percent(share(row)), share(row), of, [row]) for row in ends)
    return figures.span(low, high)


def ladder(rows: Sequence[Row]) -> list[Finding]:
    """Per model, the first three: the smallest file against the largest, at equal settings."""
    found = []
    tg = shallowest(of_least_load([row for row in rows if row.rates is not None], "tg"))
    for family in dict.fromkeys(row.family for row in tg):
        sized = [row for row in tg if row.family == family and row.attempt.model_size_bytes]
        pair = _ladder_pair(sized)
        if pair is None:
            continue
        found.append(_ladder_finding(family, *pair))
    return found[:3]


def _ladder_finding(family: str, small: Row, large: Row) -> Finding:
    told = Told()
    ratio = median(small) / median(large)
    share = _size_bytes(small) / _size_bytes(large)
    name, quant, other = (told.name(word) for word in (shown(family), small.quant, large.quant))
    verdict = compare(small, large)
    pair = [small, large]
    if verdict == "undecided" and not is_repeated(small, large):
        speed = told.number(figures.percent(ratio), ratio, "ratio", pair)
        words = f"generates at {speed} of the speed of {other}, measured once"
    elif verdict == "undecided":
        words = f"and {other} differ by less than their spread shows"
    elif verdict == "slower":
        slower = told.number(figures.percent(ratio), ratio, "ratio", pair)
        words = f"generates at {slower} of the speed of {other} although it is smaller"
    else:
        size = told.number(figures.percent(share), share, "size ratio", pair)
        if verdict == "faster":
            times = told.number(figures.times(ratio), ratio, "ratio", pair)
            words = f"generates {times} as fast as {other} at {size} of the size"
        else:
            words = f"generates as fast as {other}, at {size} of the size"
    return finding(f"{name}: {quant} {words}.", "rates", told)


def _ladder_pair(rows: Sequence[Row]) -> tuple[Row, Row] | None:
    by_setting: dict[tuple[object, ...], list[Row]] = {}
    axes = varying(rows)
    for row in rows:
        key = (row.run_id, row.build, *(row.settings.get(axis) for axis in axes))
        by_setting.setdefault(key, []).append(row)
    groups = [group for group in by_setting.values() if len({row.quant for row in group}) > 1]
    if not groups:
        return None
    group = max(groups, key=lambda rows_: (len({r.quant for r in rows_}), max(map(median, rows_))))
    ordered = sorted(group, key=_size_bytes)
    return (ordered[0], ordered[-1]) if ordered[0].quant != ordered[-1].quant else None


def _size_bytes(row: Row) -> int:
    n_bytes = row.attempt.model_size_bytes
    assert n_bytes  # noqa: S101  (ladder took rows with a size only)
    return n_bytes


def turns(rows: Sequence[Row]) -> list[Finding]:
    """What the first token of a long conversation waits for, of the one where the cache saves most."""
    row_of = {(row.run_id, row.attempt.attempt_id): row for row in rows}
    pairs = [
        tuple(row_of[one.run_id, one.attempt_id] for one in (last.cold, last.warm))
        for last in last_turns([row.attempt for row in rows])
        if last.cold is not None and last.warm is not None
    ]
    if not pairs:
        return []
    cold, warm = max(pairs, key=lambda pair: _ttft_s(pair[0]) / _ttft_s(pair[1]))
    told = Told()
    n = int(cold.settings["turn"])  # type: ignore[call-overload]
    turn = told.number(figures.count(n), n, "turn", [cold])
    of = told.name(f"{cold.subject}, {cold.test}")
    kept, read = (
        f"{told.number(figures.number(_ttft_s(row)), _ttft_s(row), 'first token', [row])}{THIN}s"
        for row in (warm, cold)
    )
    text = (
        f"At turn {turn} of a conversation the first token comes after {kept} where the server kept "
        f"what was said before, after {read} where it reads all of it again ({of})."
    )
    return [finding(text, "latency", told)]


def _ttft_s(row: Row) -> float:
    times = row.attempt.requests
    assert times is not None  # noqa: S101  (last_turns looked)
    assert times.ttft_median_s is not None  # noqa: S101  (the same)
    return times.ttft_median_s


def failures(rows: Sequence[Row]) -> list[Finding]:
    failed = [row for row in rows if row.status in FAILED_STATUSES]
    if not failed:
        return []
    told = Told()
    by_kind: dict[str, list[Row]] = {}
    for row in failed:
        kind = row.attempt.exit_signal or row.attempt.error_kind or row.status
        by_kind.setdefault(kind.replace("_", " "), []).append(row)
    text = told.number(figures.counted(len(failed), "cell"), len(failed), "rows", failed)
    commonest = sorted(by_kind.items(), key=lambda item: -len(item[1]))[:MAX_KINDS]
    words = ", ".join(
        f"{told.number(figures.count(len(of_kind)), len(of_kind), 'rows', of_kind)} × "
        f"{told.name(shown(kind, 40))}"
        for kind, of_kind in commonest
    )
    return [finding(f"{text} failed: {words}.", "failures", told)]
