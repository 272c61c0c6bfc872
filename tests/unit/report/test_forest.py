"""The forest of two builds: the same verdicts as `compare`, floors of the run's machine, shapes that tell verdicts apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.report.factory import Part, measured, run_of
from tests.unit.stats.rounds_made import BASE_TPS, WOBBLE

from llamasweep.report.forest import forests
from llamasweep.report.forest_section import forest_chart, forest_sections
from llamasweep.report.rows import rows_of
from llamasweep.report.views import page
from llamasweep.results.records import RunData

CELLS = {1: 0.9, 2: 1.0, 3: 1.1, 4: 0.96}
"""Number of the cell -> speed of the new build against the old one."""


def _parts(cells: dict[int, float], n_rounds: int = 10, **changes: Any) -> list[Part]:
    parts: list[Part] = []
    for number, factor in cells.items():
        for r in range(n_rounds):
            base = BASE_TPS[r % len(BASE_TPS)]
            for build, tps in (("b1", base), ("b2", base * factor * WOBBLE[r % len(WOBBLE)])):
                parts.append(
                    measured(
                        number,
                        [tps],
                        attempt_id=f"{number}-{r}-{build}",
                        build_label=build,
                        build_hash=build,
                        round_index=r,
                        requested={"n_threads": number},
                        ceiling_tps=None,
                        **changes,
                    )
                )
    return parts


def _run(parts: list[Part], **info: Any) -> RunData:
    run = run_of(parts)
    quiet = tuple(replace(a, ceiling_fraction=None) for a in run.attempts)
    builds = [{"label": "b1"}, {"label": "b2"}]
    return replace(run, attempts=quiet, info=replace(run.info, builds=builds, **info))


def test_each_cell_has_its_change_interval_and_verdict_what_matters_first() -> None:
    run = _run(_parts(CELLS))
    (forest,) = forests(rows_of([run]), [run])
    assert (forest.a, forest.b) == ("b1", "b2")
    assert [line.verdict for line in forest.lines] == ["slower", "slower", "faster", "same"]
    assert [len(line.pairs) for line in forest.lines] == [10, 10, 10, 10]
    worst = forest.lines[0]
    assert worst.low < worst.ratio < worst.high
    assert len(worst.rows) == 2
    assert forest.sentence.replace("\u202f", " ").startswith(
        "b2 against b1: decode the same within 3 % in 1 of 4 cells; "
    )


def test_the_floor_is_that_of_the_machine_when_it_measured() -> None:
    run = _run(_parts({1: 0.96}), machine={"floors": {"tg:0": 0.06}})
    (forest,) = forests(rows_of([run]), [run])
    (line,) = forest.lines
    assert (line.verdict, line.floor_fraction) == ("same", 0.06)


def test_a_hostile_record_of_floors_is_passed_over() -> None:
    for floors in ("x", {"tg:0": "0.5"}, {"tg:0": -1.0}, None):
        run = _run(_parts({1: 0.96}), machine={"floors": floors})
        (forest,) = forests(rows_of([run]), [run])
        assert forest.lines[0].floor_fraction == 0.03


def test_few_rounds_or_one_build_make_no_forest() -> None:
    few = _run(_parts(CELLS, n_rounds=5))
    assert forests(rows_of([few]), [few]) == ()
    one = run_of([part for part in _parts(CELLS) if part[0].build_label == "b1"])
    assert forest_sections(rows_of([one]), [one]) == ((), ())


def test_verdicts_are_told_apart_by_shape_and_the_floor_is_a_band() -> None:
    run = _run(_parts(CELLS))
    (forest,) = forests(rows_of([run]), [run])
    spec = forest_chart(forest)
    shapes = {
        layer["mark"]["shape"]: layer["mark"]["filled"]
        for layer in spec["layer"]
        if layer["mark"].get("shape")
    }
    assert shapes == {"triangle-down": True, "triangle-up": True, "circle": True}
    band = spec["layer"][0]
    assert band["encoding"]["x"]["field"] == "floor_low"
    value = spec["data"]["values"][0]
    assert (round(value["floor_low"], 2), value["floor_high"]) == (-2.91, 3.0)
    pairs = next(layer for layer in spec["layer"] if "data" in layer)
    assert len(pairs["data"]["values"]) == 40


def test_what_else_differs_is_told_before_the_changes() -> None:
    parts = [
        (replace(a, applied={"flash_attn": "off" if a.build_label == "b1" else "on"}), samples)
        for a, samples in _parts({1: 0.9})
    ]
    run = _run(parts)
    ((section,), (found,)) = forest_sections(rows_of([run]), [run])
    assert section.intro == (
        "What else differs (b1 | b2): flash attention: off | on (a default that changed)."
    )
    assert found.link == "builds"
    assert found.text == section.charts[0].title + "."


def test_the_page_has_one_section_of_builds_and_its_sentence_on_top() -> None:
    made = page([_run(_parts(CELLS))])
    assert [section.anchor for section in made.sections].count("builds") == 1
    assert made.findings[0].text.startswith("b2 against b1: ")
    assert "Hodges–Lehmann" in made.sections[0].charts[0].caption
