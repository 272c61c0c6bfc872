"""Sections behind the speeds: roofline, memory, energy. Each is absent where nothing of it was measured."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.report import figures, resource_charts, resources, roofline, roofline_chart
from llamasweep.report.chart_section import Chart, ChartSection
from llamasweep.report.names import shown
from llamasweep.report.rows import Row
from llamasweep.results.records import RunData

MAX_GROWTH = 4


def resource_sections(
    rows: Sequence[Row], runs: Sequence[RunData] = ()
) -> tuple[ChartSection, ...]:
    """The sections that have something to show. runs: for what their machines tell of the memory."""
    sections = (_roofline(rows, runs), _memory(rows), _energy(rows))
    return tuple(section for section in sections if section.charts)


def _roofline(rows: Sequence[Row], runs: Sequence[RunData]) -> ChartSection:
    return ChartSection(
        anchor="roofline",
        title="Roofline",
        intro="How much is calculated for each byte that is moved, and how fast: left of the bend memory sets the limit, "
        "right of it compute. Both axes are logarithmic.",
        charts=tuple(_roof_chart(view) for view in roofline.rooflines(rows, runs)),
    )


def _roof_chart(view: roofline.Roofline) -> Chart:
    caption = f"Slanted line: memory, {figures.bandwidth(view.bandwidth_bytes_per_s)}, {shown(view.source, 120)}. "
    caption += "".join(
        f"Dashed: {roof.word} of the same memory, {figures.bandwidth(roof.bytes_per_s)}. "
        for roof in view.other_roofs
    )
    caption += (
        f"Level line: compute, {figures.compute(view.peak_flop_per_s)}, "
        + (
            "a reference to compare with and no bound: the engine's kernels may beat it."
            if view.is_peak_reference
            else "the peak that the ceiling of prompts rests on."
        )
        if view.peak_flop_per_s
        else "No compute roof: no peak is known for this device."
    )
    more = (
        f" {figures.counted(view.n_left_out, 'slower model')} not shown." if view.n_left_out else ""
    )
    return Chart(
        title=roofline.title(view),
        subtitle="generation round, prompts square; medians at the least depth",
        spec=roofline_chart.roofline_chart(view),
        caption=caption + " Rate = tokens per second × FLOP per token." + more,
    )


def _memory(rows: Sequence[Row]) -> ChartSection:
    beside = [
        Chart(
            title=view.title,
            subtitle=view.subtitle,
            spec=resource_charts.memory_chart(view),
            caption="Bar: peak. Thick tick: size of all tensors."
            + (
                " Hollow diamond: predicted before it was measured, weights + context + a bound of the compute buffer. The "
                "program itself and a second copy of weights, which llama.cpp keeps where it repacks them, are not in it."
                if any(bar.predicted is not None for bar in view.bars)
                else ""
            ),
        )
        for view in resources.memory_bars(rows)
    ]
    along = [
        Chart(
            title=view.title,
            subtitle=view.subtitle,
            spec=resource_charts.growth_chart(view),
            caption="Mark: peak while the test ran. Cells of one engine process share what it holds.",
        )
        for view in resources.memory_growth(rows)[:MAX_GROWTH]
    ]
    return ChartSection(anchor="memory", title="Memory", intro="", charts=(*beside, *along))


def _energy(rows: Sequence[Row]) -> ChartSection:
    return ChartSection(
        anchor="energy",
        title="Energy",
        intro="",
        charts=tuple(
            Chart(
                title=view.title,
                subtitle=view.subtitle,
                spec=resource_charts.energy_chart(view, kind),
                caption="Bar: energy of the repetitions ÷ their tokens. Other parts of the machine are not in it.",
            )
            for kind, view in resources.energy_bars(rows)
        ),
    )
