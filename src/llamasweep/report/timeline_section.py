"""The section of time lines: a chart per engine process, what each shows in a sentence, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.report.chart_section import Chart, ChartSection
from llamasweep.report.lanes import MACHINE, N_BUCKETS, Lane
from llamasweep.report.timeline_chart import SHADED, timeline_chart
from llamasweep.report.timelines import ProcessLine, ProcessLines, process_lines
from llamasweep.results.records import RunData

_TOLD = {
    "power": "{} of power",
    "cpu": "{}",
    "temperature": "{}",
    "vram": "{} of VRAM",
    "ram": "{} of RAM",
}


def timeline_sections(runs: Sequence[RunData]) -> tuple[ChartSection, ...]:
    """The section, empty where no reading was taken or nothing moved."""
    view = process_lines(runs)
    if not view.drawn:
        return ()
    return (
        ChartSection(
            anchor="timelines",
            title="Time lines",
            intro=_intro(view),
            charts=tuple(_chart(line) for line in view.drawn),
        ),
    )


def _intro(view: ProcessLines) -> str:
    text = (
        "What the sensors told while each engine process ran. Of each line the lowest and the highest reading of every "
        f"{N_BUCKETS}th of the time are drawn; CPU, disk and faults are means over half a second."
    )
    if view.n_left_out:
        text += (
            f" Of {figures.counted(view.n_processes, 'process', 'processes')} {len(view.drawn)} are drawn, those that "
            "failed or were throttled first, then the longest; the readings of all are in telemetry.parquet in the "
            "run's folder."
        )
    if view.n_still:
        text += f" In {figures.count(view.n_still)} nothing that was read moved."
    return text


def _chart(line: ProcessLine) -> Chart:
    parts = [f"engine process {line.place}"]
    parts += [f"build {line.build}"] if line.build else []
    parts += [figures.counted(line.n_cells, "cell")] if line.n_cells else []
    return Chart(
        title=title(line),
        subtitle=" · ".join([*parts, figures.duration(line.length_s)]),
        spec=timeline_chart(line),
        caption=_caption(line),
    )


def title(line: ProcessLine) -> str:
    """What a time line shows: failures and throttling before peaks, without a full stop."""
    if line.n_failed:
        return f"{line.subject}: {figures.counted(line.n_failed, 'cell')} of {line.n_cells} failed"
    if line.throttled:
        return f"{line.subject}: throttled in {figures.percent(line.throttled)} of the readings"
    told = [words for lane in line.lanes.lanes if (words := _peak_words(lane))][:2]
    if told:
        return f"{line.subject} takes up to {' and '.join(told)}"
    first = line.lanes.lanes[0]
    whose = f" of the {MACHINE}" if first.lines[0].name == MACHINE else ""
    return f"{line.subject}: {first.title}{whose} up to {first.high_text}"


def _peak_words(lane: Lane) -> str:
    """The highest of what belongs to the engine or to a device; '' where a lane has only the whole machine."""
    own = [one for one in lane.lines if one.name != MACHINE]
    if lane.key not in _TOLD or not own:
        return ""
    highest = max(own, key=lambda one: one.high)
    words = _TOLD[lane.key].format(highest.high_text)
    return words if len(own) == 1 else f"{words} ({highest.name})"


def _caption(line: ProcessLine) -> str:
    shaded = [kind for kind in SHADED if any(s.kind == kind for s in line.spans)]
    text = f"{figures.counted(line.n_readings, 'reading')}. "
    text += f"Shaded: {', '.join(shaded)}." if shaded else "The engine told no times of its tests."
    if line.throttled is None:
        text += " No sensor tells of throttling."
    elif not line.throttled:
        text += " No reading told of throttling."
    if line.lanes.level:
        text += f" Level throughout: {', '.join(line.lanes.level[:12])}."
    if line.lanes.more:
        text += f" Not drawn: {', '.join(line.lanes.more[:12])}."
    return text
