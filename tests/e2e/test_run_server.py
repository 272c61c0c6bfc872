"""Whole sweeps on the real llama-server: rates by two clocks, streams together, the prompt cache, and a model it cannot load."""

from __future__ import annotations

import math

import pytest
from tests.e2e.engines import find_program
from tests.fakes.models import write_model
from tests.integration.running import Desk, engines_alive

from llamasweep import load_results

pytestmark = pytest.mark.needs_llama
HEAD = "version: 1\nengine: llama-server\nbandwidth: 20 GB/s\nwarmup: true\n"
MODEL = "models: [{synth: tiny-llama, quants: [Q4_0]}]\n"


@pytest.mark.parametrize("build", ["11434", "10488"])
def test_streams_are_measured_by_the_client_and_by_the_server(desk: Desk, build: str) -> None:
    find_program(build, "llama-server")
    sweep = desk.write_sweep(
        f"{HEAD}{MODEL}builds: [{build}]\ntests: [pp128, tg64, pg64+8]\nrepetitions: 3\n"
        "matrix: {threads: [1], concurrency: [1, 4]}\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 0, ended.stderr
    (run,) = (desk.folder / "results").iterdir()
    cells = load_results(run)
    assert set(cells["status"]) == {"ok"}
    assert len(cells) == 6
    assert (cells["concurrency_applied"] == cells["concurrency"]).all()
    assert (cells["n_requests"] == 3 * cells["concurrency"]).all()
    assert cells["ttft_median_s"].notna().all()
    assert (cells["ttft_median_s"] <= cells["ttft_p95_s"]).all()
    assert (cells["n_requests_counted_here"] == 0).all()
    one = {r["test_kind"]: r for r in cells.to_dict("records") if r["concurrency"] == 1}
    # Two clocks on one stream: ours also sees HTTP, a few milliseconds of a hundred.
    assert one["pp"]["median_tps"] == pytest.approx(one["pp"]["server_pp_tps"], rel=0.35)
    assert one["tg"]["median_tps"] == pytest.approx(one["tg"]["server_tg_tps"], rel=0.35)
    assert one["pp"]["n_prompt_counted"] == 128
    assert one["tg"]["ceiling_tps"] > 0
    four = {r["test_kind"]: r for r in cells.to_dict("records") if r["concurrency"] == 4}
    assert four["tg"]["ceiling_tps"] > one["tg"]["ceiling_tps"]
    assert four["tg"]["ceiling_fraction"] == pytest.approx(
        four["tg"]["median_tps"] / four["tg"]["ceiling_tps"]
    )
    assert four["tg"]["stream_tps"] == pytest.approx(four["tg"]["median_tps"] / 4)
    assert math.isnan(four["pg"]["ceiling_tps"])  # its streams overlap
    for kind, measure in (("pp", "ttft"), ("tg", "tpot"), ("pg", "e2e")):
        row, alone = four[kind], one[kind]
        assert row["throughput_ratio"] == pytest.approx(row["median_tps"] / alone["median_tps"])
        longer = row[f"{measure}_median_s"] / alone[f"{measure}_median_s"]
        assert row["latency_ratio"] == pytest.approx(longer)
    assert "4 streams: " in ended.stdout + ended.stderr
    assert not engines_alive([str(desk.folder)])


def test_a_prompt_that_was_read_before_is_answered_sooner(desk: Desk) -> None:
    find_program("11434", "llama-server")
    sweep = desk.write_sweep(
        f"{HEAD}{MODEL}builds: [11434]\ntests: [pp512]\nrepetitions: 3\n"
        "matrix: {threads: [1], prompt_cache: [cold, warm]}\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 0, ended.stderr
    (run,) = (desk.folder / "results").iterdir()
    cells = {r["prompt_cache"]: r for r in load_results(run).to_dict("records")}
    assert cells["warm"]["ttft_median_s"] < cells["cold"]["ttft_median_s"] / 3
    assert cells["cold"]["n_cached_tokens"] <= 16
    assert cells["warm"]["n_cached_tokens"] >= 500
    assert "prompt_not_cached" not in cells["warm"]["flags"]


def test_the_first_token_of_a_long_conversation_comes_sooner_from_the_cache(desk: Desk) -> None:
    find_program("11434", "llama-server")
    sweep = desk.write_sweep(
        f"{HEAD}{MODEL}builds: [11434]\ntests: [pg128+16]\nrepetitions: 3\n"
        "matrix: {threads: [1], prompt_cache: [cold, warm], turns: [1, 2, 6]}\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 0, ended.stderr
    assert "first token at turn 6 after" in ended.stdout
    (run,) = (desk.folder / "results").iterdir()
    cells = load_results(run)
    assert set(cells["status"]) == {"ok"}, cells["error_message"].dropna().unique()
    assert (cells["n_samples"] == 3).all()
    rows = {(r["prompt_cache"], r["turn"]): r for r in cells.to_dict("records")}
    assert len(rows) == 6
    for cache in ("cold", "warm"):
        first, second, last = (rows[cache, turn] for turn in (1, 2, 6))
        assert first["n_prompt_counted"] == 128
        # An answer of this model comes back as up to three tokens for each that it wrote.
        assert 2 * 128 + 8 <= second["n_prompt_counted"] <= 2 * 128 + 3 * 16 + 8
        assert 6 * 128 + 5 * 8 <= last["n_prompt_counted"] <= 6 * 128 + 5 * 3 * 16 + 40
        assert last["ceiling_tps"] != last["ceiling_tps"]  # none
    assert rows["cold", 6]["n_cached_tokens"] <= 16
    assert rows["warm", 6]["n_cached_tokens"] >= 5 * 128
    assert "prompt_not_cached" not in rows["warm", 6]["flags"]
    assert rows["warm", 6]["ttft_median_s"] < rows["cold", 6]["ttft_median_s"] / 1.5
    assert rows["cold", 6]["ttft_median_s"] > 3 * rows["cold", 1]["ttft_median_s"]
    page = desk.folder / "page.html"
    assert desk.call("report", "--out", str(page)).code == 0
    assert "of a conversation the first token comes after" in page.read_text(encoding="utf-8")


def test_a_model_that_the_server_cannot_load_is_a_row_with_its_own_words(desk: Desk) -> None:
    find_program("11434", "llama-server")
    alien = write_model(desk.folder / "alien.gguf", arch="llamazilla")
    sweep = desk.write_sweep(
        f"{HEAD}models: [{{path: {alien}}}]\nbuilds: [11434]\ntests: [pp16, tg4]\nrepetitions: 1\n"
    )

    ended = desk.run(sweep)

    assert ended.code == 1
    (run,) = (desk.folder / "results").iterdir()
    cells = load_results(run)
    assert set(cells["error_kind"]) == {"unknown_architecture"}
    assert len(cells) == 2
    assert "llamazilla" in cells["error_message"].iloc[0]
    assert not engines_alive([str(desk.folder)])
