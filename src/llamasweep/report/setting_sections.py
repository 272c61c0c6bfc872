"""Sections beside the plain axes: quantisation ladder, builds side by side, latency; and what an axis shows besides speed."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import (
    batch,
    batch_charts,
    builds_beside,
    builds_charts,
    figures,
    ladder,
    ladder_charts,
    latency,
    latency_charts,
    resource_charts,
    resources,
    same_weights,
    same_weights_chart,
)
from llamasweep.report.chart_section import (
    Chart,
    ChartSection,
    caption,
    in_the_table,
    kind_words,
)
from llamasweep.report.names import shown
from llamasweep.report.rows import Row

PLACEMENT_AXES = ("n_gpu_layers", "n_cpu_moe")
MAX_PER_AXIS = 4


def setting_sections(rows: Sequence[Row]) -> tuple[ChartSection, ...]:
    """The sections that have something to show."""
    sections = (_ladder(rows), _builds(rows), _same_weights(rows), _latency(rows))
    return tuple(section for section in sections if section.charts)


def charts_besides_speed(rows: Sequence[Row], axis: str) -> tuple[Chart, ...]:
    """Roofs of the physical batch; memory of a placement; nothing for other axes."""
    if axis == "n_ubatch":
        return tuple(_batch_chart(view) for view in batch.batches(rows)[:MAX_PER_AXIS])
    if axis not in PLACEMENT_AXES:
        return ()
    return tuple(
        Chart(
            title=view.title,
            subtitle=view.subtitle,
            spec=resource_charts.growth_chart(view),
            caption="Mark: peak while the test ran. Cells of one engine process share what it holds.",
        )
        for view in resources.memory_growth(rows, axis)[:MAX_PER_AXIS]
    )


def _batch_chart(view: batch.Batches) -> Chart:
    has_compute = any(step.compute_tps for _, steps in view.lines for step in steps)
    return Chart(
        title=batch.title(view),
        subtitle=f"{shown(view.panel.family, 60)}, {kind_words('pp')}, {view.panel.test}; both axes logarithmic",
        spec=batch_charts.batch_chart(view),
        caption="Mark: median. Ink line: memory roof, bandwidth ÷ bytes moved per token at that batch. "
        + (
            "Dashed: compute roof, peak ÷ FLOP per token."
            if has_compute
            else "No compute roof: no peak is known for this device."
        ),
    )


def _ladder(rows: Sequence[Row]) -> ChartSection:
    made: list[Chart] = []
    for view in ladder.ladders(rows):
        made.append(_ladder_chart(view))
        quality = ladder.quality(view)
        if quality is not None:
            made.append(
                Chart(
                    title=ladder.quality_title(quality),
                    subtitle=f"{shown(view.family, 60)}, {kind_words('tg')}, {view.test}",
                    spec=ladder_charts.quality_chart(quality),
                    caption=f"The axis of {quality.metric} does not begin at 0. Quality as the sweep file gives it: "
                    f"{'; '.join(quality.sources)}.",
                )
            )
    return ChartSection(
        anchor="ladder",
        title="Quantisation ladder",
        intro="Each quantisation in its fastest setting at the least depth, against the bytes that a token must move.",
        charts=tuple(made),
    )


def _ladder_chart(view: ladder.Ladder) -> Chart:
    words = caption([rung.row for rung in view.rungs], "Mark", has_dots=False)
    if view.bandwidth_bytes_per_s is not None:
        words += f" Ink line: {figures.bandwidth(view.bandwidth_bytes_per_s)} ({view.source}) ÷ bytes per token."
    return Chart(
        title=ladder.title(view),
        subtitle=f"{shown(view.family, 60)}, {kind_words('tg')}, {view.test}",
        spec=ladder_charts.ladder_chart(view),
        caption=words,
    )


def _builds(rows: Sequence[Row]) -> ChartSection:
    return ChartSection(
        anchor="builds",
        title="Builds side by side",
        intro="The same question asked of each build, in the setting in which one of them was fastest.",
        charts=tuple(
            Chart(
                title=builds_beside.title(view),
                subtitle=f"{kind_words(view.kind)}, {view.test}",
                spec=builds_charts.builds_chart(view),
                caption=caption(
                    [row for _, of_line in view.lines for row in of_line], "Mark", has_dots=False
                )
                + f" Filled: build {view.builds[0]}; hollow: the others."
                + in_the_table(view.n_left_out, "more model"),
            )
            for view in builds_beside.builds_beside(rows)
        ),
    )


def _same_weights(rows: Sequence[Row]) -> ChartSection:
    return ChartSection(
        anchor="same-weights",
        title="The server beside llama-bench",
        intro="llama-bench on the very file that the server has, with the settings that the server applied.",
        charts=tuple(
            Chart(
                title=same_weights.title(view),
                subtitle=kind_words(view.kind),
                spec=same_weights_chart.same_weights_chart(view),
                caption=caption([pair.row for pair in view.pairs], "Mark", has_dots=False)
                + f" Filled: the server; hollow: llama-bench. {same_weights.explanation(view)}"
                + in_the_table(view.n_left_out, "more row"),
            )
            for view in same_weights.same_weights(rows)
        ),
    )


def _latency(rows: Sequence[Row]) -> ChartSection:
    return ChartSection(
        anchor="latency",
        title="Latency",
        intro="As the client of a streaming engine saw it, request by request.",
        charts=tuple(
            Chart(
                title=latency.title(view),
                subtitle=latency.MEASURES[view.measure],
                spec=latency_charts.latency_chart(view),
                caption=_latency_caption(view),
            )
            for view in latency.latencies(rows)
        ),
    )


def _latency_caption(view: latency.Latency) -> str:
    timings = [timing for line in view.lines for timing in line]
    text = "Bar: median." if view.axis is None else "Mark: median."
    n_known = sum(timing.p95_s is not None for timing in timings)
    few = [timing for timing in timings if timing.p95_s is not None and timing.has_few_requests]
    if n_known:
        text += " Tick: 95 % of the requests took no longer" if len(few) < n_known else " Tick: p95"
        text += (
            f"; of fewer than {latency.LEAST_FOR_P95} requests it lies between the two slowest."
            if few
            else "."
        )
    if n_known < len(timings):
        text += f" No 95th percentile was recorded for {figures.counted(len(timings) - n_known, 'row')}."
    return text + in_the_table(view.n_left_out, "more line")
