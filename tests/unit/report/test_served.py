"""A server asked by several users at once and with a warm prompt: sentences for one person speak of one new request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.report.factory import Part, run_of
from tests.unit.report.wide import WARM_TPS, served_parts

from llamasweep.report import (
    feel,
    findings,
    marks,
    panel_titles,
    panels,
    speed_sections,
    strips,
)
from llamasweep.report.comparison import median
from llamasweep.report.headline import headline
from llamasweep.report.rows import Row, rows_of
from llamasweep.report.tracks import Track
from llamasweep.report.use_it import Use, use
from llamasweep.report.views import page
from llamasweep.results.best import best_of


def _rows(parts: Sequence[Part]) -> tuple[Row, ...]:
    return rows_of([run_of(parts)])


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")


def _use(parts: Sequence[Part]) -> Use:
    shown = use([run_of(parts)], {})
    assert shown is not None
    return shown


def test_the_title_speaks_of_one_new_request() -> None:
    title = _plain(headline(_rows(served_parts()), "a Ryzen"))
    assert title.startswith("tiny-llama Q4_0 on a Ryzen writes 18.0 tokens a second, ")
    assert title.endswith("and reads 400")


def test_where_only_many_were_asked_at_once_the_title_says_so() -> None:
    title = _plain(headline(_rows(served_parts((8,))), "X"))
    assert title == (
        "tiny-llama Q4_0 on X writes 44.0 tokens a second (8 requests at once) and reads 430 (8 requests at once)"
    )


def test_the_share_of_the_ceiling_is_not_lost_to_a_row_of_many_users() -> None:
    assert "Generation reaches 78 % of the exact ceiling" in _plain(
        findings.shares(_rows(served_parts()))[0].text
    )


def test_what_it_feels_like_is_never_made_of_a_sum_over_users() -> None:
    view = feel.feel(_rows(served_parts()))
    assert view is not None
    (model,) = view.models
    assert _plain(model.waits[0].first_token) == "2.5 s"  # 1000 tokens at 400 t/s
    assert feel.feel(_rows(served_parts((8,)))) is None


def test_the_best_setting_is_one_for_one_request() -> None:
    (best,) = best_of(run_of(served_parts()))
    chosen = {purpose: choice.chosen for purpose, choice in best.choices.items()}
    assert {kind: row.rate.median for kind, row in chosen.items()} == {"tg": 18.0, "pp": 400.0}
    assert {row.get("concurrency") for row in chosen.values()} == {1}
    assert (best.n_other_loads, [c.n_others for c in best.choices.values()]) == (7, [0, 0])


def test_the_commands_serve_as_many_at_once_as_were_measured() -> None:
    one = _use(served_parts())
    assert all("-c 4096 -np 1" in card.server for card in one.models[0].cards)
    assert any("7 rows were not compared" in note for note in one.notes)
    many = _use(served_parts((8,)))
    (card,) = many.models[0].cards
    assert "-c 32768 -np 8" in card.server
    assert card.ollama_server == "OLLAMA_NUM_PARALLEL=8 ollama serve"
    assert not any("cannot be told" in note for note in card.ollama_notes)
    assert "tg64 at depth 0, 8 requests at once" in card.evidence[0]
    (note,) = [note for note in many.notes if "-np" in note]
    assert _plain(note).startswith("-c 32768 makes room for 8 requests of 4096 tokens; ")
    assert note.endswith("-np 8: 8 requests at once, as measured.")


def test_strips_name_the_load_or_say_that_it_is_the_least() -> None:
    few = strips.hero(_rows(served_parts()))
    assert few is not None
    assert [strip.setting for strip in few.strips] == [
        "concurrency 8, prompt cache cold",
        "concurrency 4, prompt cache cold",
        "concurrency 2, prompt cache cold",
        "concurrency 1, prompt cache cold",
        "concurrency 1, prompt cache warm",
    ]
    many = strips.hero(_rows(served_parts(threads=(1, 2, 3, 4))))
    assert many is not None
    (strip,) = many.strips
    assert isinstance(strip.tg, Track)
    assert median(strip.tg.row) == 18.0
    assert many.choice == (
        "Each strip is of the least load, one new request where that was asked, and the fastest of its settings of threads"
    )


def test_models_side_by_side_are_of_the_least_load() -> None:
    (section,) = speed_sections.rates_section(_rows(served_parts()))
    assert "of the least load" in section.intro
    assert [_plain(chart.title) for chart in section.charts] == [
        "tiny-llama Q4_0 writes 18.0 tokens a second",
        "tiny-llama Q4_0 reads 400 tokens a second",
    ]


def test_the_ceiling_of_one_point_is_drawn_as_no_line_and_named_nowhere() -> None:
    (panel, _) = panels.panels(_rows(served_parts()), "concurrency")
    assert marks.ceilings(panel) == {}
    chart = speed_sections.axis_sections(_rows(served_parts()))[0].charts[0]
    assert "ceiling" not in chart.caption
    assert "ceiling" not in [row.get("label") for row in _values(chart.spec)]


def _values(spec: Any) -> list[dict[str, Any]]:
    """All data of a chart."""
    if isinstance(spec, dict):
        own = spec.get("values")
        rows = [row for row in own if isinstance(row, dict)] if isinstance(own, list) else []
        return rows + [row for item in spec.values() for row in _values(item)]
    return [row for item in spec for row in _values(item)] if isinstance(spec, list) else []


def test_bars_of_many_requests_say_so() -> None:
    (section,) = speed_sections.rates_section(_rows(served_parts((8,))))
    assert _plain(section.charts[0].title) == (
        "tiny-llama Q4_0 writes 44.0 tokens a second (8 requests at once)"
    )


def test_panels_along_the_load_say_what_all_and_what_each_gets() -> None:
    rows = _rows(served_parts())
    titles = [_plain(panel_titles.panel_title(p)) for p in panels.panels(rows, "concurrency")]
    assert titles == [
        "8 requests at once write 2.44 times the tokens a second of 1 in all, 31 % for each, "
        "at 3.27 times the latency (TPOT)",
        "8 requests at once read 1.07 times the tokens a second of 1 in all, 13 % for each, "
        "at 7.44 times the latency (TTFT)",
    ]
    (base, samples), *others = served_parts((1, 8))
    shaky = (replace(base, min_tps=10.0, max_tps=50.0), samples)
    (tg, _) = panels.panels(_rows([shaky, *others]), "concurrency")
    assert panel_titles.panel_title(tg).endswith("the latency (TPOT), with overlapping ranges")
    (cache,) = panels.panels(rows, "prompt_cache")
    assert _plain(panel_titles.panel_title(cache)) == (
        "Prompt reading goes 12.5 times as fast with a prompt that the server has read before"
    )


def test_a_panel_of_a_setting_is_held_at_one_request() -> None:
    for panel in panels.panels(_rows(served_parts(threads=(1, 2))), "n_threads"):
        assert "concurrency 1" in panel.fixed
        assert "prompt cache warm" not in panel.fixed


@pytest.mark.parametrize("streams", [(1, 2, 4, 8), (8,)])
def test_the_list_of_reports_has_the_rows_of_the_title(streams: tuple[int, ...]) -> None:
    view = page([run_of(served_parts(streams))])
    assert view.key.tg is not None
    assert view.key.pp is not None
    assert view.key.pp.median_tps < WARM_TPS
    for best in (view.key.tg, view.key.pp):
        assert f"{best.median_tps:.3g}" in view.title
