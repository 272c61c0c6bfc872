"""Conversations in the report: the first token turn by turn, cold and warm, and what the page says of them."""

from __future__ import annotations

from tests.unit.report.factory import measured, run_of
from tests.unit.report.talks import TURNS, talk_parts
from tests.unit.report.wide import streamed

from llamasweep.report import findings, panel_titles, panels
from llamasweep.report.headline import headline
from llamasweep.report.latency import latencies, title
from llamasweep.report.latency_charts import latency_chart
from llamasweep.report.names import load_words
from llamasweep.report.rows import rows_of
from llamasweep.report.strips import setting_word
from llamasweep.results.request_load import RequestLoad

ROWS = rows_of([run_of(talk_parts())])


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def test_the_first_token_is_drawn_along_the_turns_as_two_lines() -> None:
    (view,) = latencies(ROWS)
    assert view.axis == "turn"
    assert [line[0].label for line in view.lines] == ["prompt cache cold", "prompt cache warm"]
    assert all([timing.x for timing in line] == list(TURNS) for line in view.lines)
    assert plain(title(view)) == (
        "Time to the first token at turn 8: 800 ms (prompt cache cold), 180 ms (prompt cache warm)"
    )
    chart = latency_chart(view)
    assert len(chart["data"]["values"]) == 8
    assert chart["layer"][0]["encoding"]["x"]["title"] == "turn of the conversation"


def test_a_conversation_without_a_cache_to_compare_is_told_from_its_first_turn_to_its_last() -> (
    None
):
    (view,) = latencies(rows_of([run_of(talk_parts(caches=("cold",)))]))
    assert plain(title(view)) == "Time to the first token: 100 ms at turn 1, 800 ms at turn 8"


def test_the_page_tells_what_the_cache_saves_at_the_last_turn() -> None:
    (found,) = findings.turns(ROWS)
    assert plain(found.text) == (
        "At turn 8 of a conversation the first token comes after 0.180 s where the server kept what was said before, "
        "after 0.800 s where it reads all of it again (tiny-llama Q4_0, pp96+tg16)."
    )
    assert len(found.anchors) == 2
    assert findings.turns(rows_of([run_of(talk_parts(caches=("warm",)))])) == []


def test_the_title_speaks_of_one_new_request() -> None:
    assert plain(headline(ROWS, "a machine")).endswith("does 960 tokens a second in pp96+tg16")


def test_rates_along_the_turns_say_what_is_left_of_the_first() -> None:
    rows = rows_of([run_of(talk_parts(kind="pp"))])
    (panel,) = panels.panels(rows, "turn")
    assert plain(panel_titles.panel_title(panel)) == (
        "Prompt reading at turn 8 of a conversation goes at 489 % of the speed of turn 1 (prompt cache warm)"
    )


def test_a_load_of_turns_has_words() -> None:
    assert load_words(RequestLoad(is_warm=True, turn=3)) == (
        "a prompt read before, turn 3 of a conversation"
    )
    assert sorted([RequestLoad(turn=2), RequestLoad(is_warm=True), RequestLoad()])[0].turn == 1


def test_the_same_prompt_twice_is_no_turn_of_a_conversation() -> None:
    twice = measured(90, [10.0], engine="llama-server", requested={"prompt_cache": "warm"})
    cold = measured(91, [10.0], engine="llama-server", requested={"prompt_cache": "cold"})
    *_, row, other = rows_of([run_of([*talk_parts(), streamed(twice), streamed(cold)])])
    assert "turn" not in row.settings
    assert other.settings["turn"] == 1
    assert setting_word("turn", None) == "no conversation"
    assert setting_word("turn", 2) == "turn 2"
