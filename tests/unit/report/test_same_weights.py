"""A server beside llama-bench on the same file: both rates, the gap, and what differs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.report.factory import HOSTILE, Part, measured, run_of

from llamasweep.report.rows import rows_of
from llamasweep.report.same_weights import explanation, pair_words, same_weights, title
from llamasweep.report.same_weights_chart import same_weights_chart
from llamasweep.results.request_times import RequestTimes


def _served(number: int, tps: list[float], bench_tps: float | None, **changes: Any) -> Part:
    found = {
        "same_weights_tps": bench_tps,
        "same_weights_build": "b10488",
        "same_weights_settings": "-t 2 -b 512",
        "server_version": "0.32.15",
        "server_context_tokens": 1024,
        "server_size_bytes": 100,
        "server_vram_bytes": 0,
        "request_mode": "api, raw",
    }
    times = RequestTimes(**{**found, **changes.pop("requests", {})})
    return measured(number, tps, engine="ollama", requests=times, **changes)


def test_shares_are_of_llama_bench_and_the_largest_gap_comes_first() -> None:
    parts = [
        _served(1, [90.0], 100.0, model_label="a"),
        _served(2, [50.0, 60.0, 70.0], 80.0, model_label="b"),
    ]
    (view,) = same_weights(rows_of([run_of(parts)]))
    assert [(pair.bench_tps, pair.share) for pair in view.pairs] == [(80.0, 0.75), (100.0, 0.9)]
    said = title(view).replace("\u202f", " ")
    assert said.startswith("Ollama writes at 75")
    assert said.endswith("of llama-bench's speed on the same file")
    assert "-t 2 -b 512" in pair_words(view.pairs[0])


def test_what_a_prompt_costs_a_server_besides_reading_is_told() -> None:
    part = _served(1, [90.0], 100.0, test_kind="pp", test_label="pp512", n_prompt=512, n_gen=0)
    (view,) = same_weights(rows_of([run_of([part])]))
    assert "Requests: each brings a new prompt" in explanation(view)
    assert "Sampling" not in explanation(view)


def test_rows_without_a_rate_beside_are_not_shown() -> None:
    parts = [_served(1, [90.0], None), measured(2, [80.0])]
    assert same_weights(rows_of([run_of(parts)])) == ()


def test_what_differs_is_told_from_the_rows_own_columns() -> None:
    (view,) = same_weights(rows_of([run_of([_served(1, [90.0], 100.0)])]))
    text = explanation(view).replace("\u202f", "")
    for word in ("b10488", "0.32.15", "1024", "Sampling", "Placement: the same"):
        assert word in text
    own = {"server_vram_bytes": 40, "request_mode": "verbose, own"}  # repacked weights count there
    part = _served(1, [90.0], 100.0, requests=own)
    (view,) = same_weights(rows_of([run_of([part])]))
    assert "Template" in explanation(view)
    assert "Placement: the same" in explanation(view)
    (view,) = same_weights(rows_of([run_of([_served(1, [90.0], 100.0, flags=("cpu_gpu_split",))])]))
    assert "part of the model is on a GPU there" in explanation(view)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (None, "llama-bench b10488, the server 0.32.15."),
        ("b10488", "b10488 on both sides, the server 0.32.15."),
        ("b11434", "llama-bench b10488, the server 0.32.15 with b11434; naming that build"),
    ],
)
def test_the_builds_of_both_sides_are_told_where_they_are_known(
    build: str | None, words: str
) -> None:
    part = _served(1, [90.0], 100.0, requests={"server_build": build})
    (view,) = same_weights(rows_of([run_of([part])]))
    assert f"Builds: {words}" in explanation(view)


def test_rows_with_repetitions_far_apart_do_not_make_the_title() -> None:
    wide = {"same_weights_min_tps": 10.0, "same_weights_max_tps": 120.0}
    shaky = _served(1, [90.0], 60.0, requests=wide, model_label="shaky")
    (view,) = same_weights(rows_of([run_of([shaky, _served(2, [80.0], 100.0, model_label="b")])]))
    assert title(view).replace("\u202f", " ").startswith("Ollama writes at 80 % of")
    assert "leaves out 1 row with repetitions far apart" in explanation(view).replace("\u202f", " ")
    (view,) = same_weights(rows_of([run_of([shaky])]))
    assert title(view).endswith(", with repetitions far apart")
    assert "(10.0 to 120)" in pair_words(view.pairs[0]).replace("\u202f", " ")
    (value,) = same_weights_chart(view)["data"]["values"]
    assert (value["bench_low"], value["bench_high"], value["label_x"]) == (10.0, 120.0, 120.0)


def test_equal_rates_are_told_as_equal() -> None:
    (view,) = same_weights(rows_of([run_of([_served(1, [99.0], 100.0)])]))
    assert "as fast as llama-bench" in title(view)


def test_the_chart_holds_both_rates_and_hostile_names_as_text() -> None:
    part = _served(1, [90.0], 100.0, requests={"same_weights_build": HOSTILE})
    (view,) = same_weights(rows_of([run_of([part])]))
    spec = same_weights_chart(view)
    (value,) = spec["data"]["values"]
    assert (value["median"], value["bench"], value["label_x"]) == (90.0, 100.0, 100.0)
    assert value["label"].replace("\u202f", " ") == "90 %: 90.0 of 100"
    assert "\u202e" not in value["bench_words"]
    assert all("y" in layer["encoding"] for layer in spec["layer"])
