"""Whole sweeps on a fake Ollama whose durations are told exactly: rates, columns, and each lie as a flag or a failed row."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.fakes.ollama_server import FakeOllama, fake_ollama
from tests.integration.running import Desk

from llamasweep.cache import cache_root
from llamasweep.drivers.ollama_server import owner_of
from llamasweep.engines.ollama_names import cell_name
from llamasweep.results.records import Attempt

HEAD = "engine: ollama\nmode: api\nbandwidth: 20 GB/s\ntelemetry: off\nmodels: [{ollama: m}]\n"
N_REPS = 3


def measured(
    desk: Desk, fake: FakeOllama, *, tests: str = "[pp64, tg16, pg32+8]", more: str = ""
) -> Sequence[Attempt]:
    text = f"{HEAD}base_url: {fake.url}\nrepetitions: {N_REPS}\ntests: {tests}\n{more}"
    desk.run(desk.write_sweep(text))
    return desk.rows()


def test_rates_are_the_servers_own_and_what_it_tells_stands_in_columns(desk: Desk) -> None:
    with fake_ollama() as fake:
        rows = {row.test_kind: row for row in measured(desk, fake, more="matrix: {num_ctx: 256}\n")}
    assert {row.status for row in rows.values()} == {"ok"}, [r.error_message for r in rows.values()]
    assert rows["pp"].median_tps == pytest.approx(1000)
    assert rows["tg"].median_tps == pytest.approx(100)  # 17 asked for, 16 gaps of 10 ms
    assert rows["pg"].median_tps == pytest.approx(40 / 0.102)
    found = rows["pp"].requests
    assert found is not None
    assert (found.server_version, found.request_mode) == ("0.32.15", "api, raw")
    assert (found.server_context_tokens, found.n_prompt_counted) == (256, 64)
    assert found.server_model_digest == "d" * 64
    assert found.load_cold_s is not None
    assert found.ttft_median_s is not None
    assert rows["pp"].applied["num_ctx"] == 256
    assert (
        rows["pp"].reasons["ceiling_tps"]
        == "the file of the model that the server has is not known"
    )


def test_every_request_has_a_new_prompt_and_says_all_options(desk: Desk) -> None:
    with fake_ollama() as fake:
        (row,) = measured(desk, fake, tests="[pp64]", more="matrix: {threads: 3}\n")
        timed = fake.generations()[-N_REPS:]
    assert row.status == "ok"
    assert len({body["prompt"].split()[0] for body in timed}) == N_REPS
    for body in timed:
        assert (body["raw"], body["think"], body["truncate"]) == (True, False, False)
        options = body["options"]
        assert (options["num_ctx"], options["num_batch"], options["num_thread"]) == (4096, 512, 3)
        assert {"temperature", "seed", "repeat_penalty", "num_predict"} <= options.keys()
    assert "/api/pull" not in {path for path, _ in fake.requests}


def test_a_warm_prompt_is_asked_twice_and_is_no_doubt(desk: Desk) -> None:
    with fake_ollama() as fake:
        rows = measured(desk, fake, tests="[pp64]", more="matrix: {prompt_cache: [cold, warm]}\n")
    rates = {row.requested["prompt_cache"]: row for row in rows}
    assert rates["cold"].median_tps == pytest.approx(1000)
    assert rates["warm"].median_tps == pytest.approx(64_000)
    assert "prompt_cached" not in (*rates["cold"].flags, *rates["warm"].flags)


@pytest.mark.parametrize(
    ("behaviour", "flag"),
    [
        ({"caches_after": 4}, "prompt_cached"),
        ({"vram_fraction": 0.5}, "cpu_gpu_split"),
        ({"n_ctx_given": 128}, "context_differs"),
        ({"version": "0.0.0"}, "version_unknown"),
        ({"version": "0.5.1"}, "coarse_clock"),
        ({"loaded": {"other:latest": 64}}, "other_models_loaded"),
    ],
)
def test_what_makes_a_figure_doubtful_is_flagged(
    desk: Desk, behaviour: dict[str, object], flag: str
) -> None:
    with fake_ollama(**behaviour) as fake:
        (row,) = measured(desk, fake, tests="[pp64]", more="warmup: off\n")
    assert row.status == "ok", row.error_message
    assert flag in row.flags


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ({"stops_after": 3}, "early_stop"),
        ({"is_forgetful": True}, "no_final_chunk"),
    ],
)
def test_what_is_no_measurement_is_a_failed_row(
    desk: Desk, behaviour: dict[str, object], kind: str
) -> None:
    with fake_ollama(**behaviour) as fake:
        (row,) = measured(desk, fake, tests="[tg16]")
    assert (row.status, row.error_kind) == ("failed", kind)
    assert row.median_tps is None


def test_a_prompt_that_the_server_cuts_is_no_measurement(desk: Desk) -> None:
    with fake_ollama(reads_at_most=40) as fake:
        short, long = measured(desk, fake, tests="[pp32, pp200]")
    assert short.status == "ok"
    assert long.status == "failed"
    assert long.error_kind in ("prompt_truncated", "context_too_small")


def test_a_model_that_is_removed_fails_the_rest_and_keeps_what_was_measured(desk: Desk) -> None:
    with fake_ollama() as fake:
        fake.n_answers_left = 14
        rows = measured(desk, fake, tests="[pp64, tg16, pg32+8]")
    assert rows[0].status == "ok"
    gone = [row for row in rows if row.status == "failed"]
    assert gone
    assert {row.error_kind for row in gone} == {"model_missing"}


def test_a_model_that_the_server_lacks_is_never_fetched(desk: Desk) -> None:
    with fake_ollama(models={"other:latest"}) as fake:
        (row,) = measured(desk, fake, tests="[pp64]")
    assert row.status == "failed"
    assert "Ollama has no model 'm' here" in (row.error_message or "")
    assert row.error_kind == "model_missing"
    assert {path for path, _ in fake.requests} <= {"/api/show"}


def test_what_a_server_of_somebody_else_cannot_be_told_is_unsupported(desk: Desk) -> None:
    with fake_ollama() as fake:
        (row,) = measured(desk, fake, tests="[tg16]", more="matrix: {kv_type: q8_0}\n")
    assert row.status == "unsupported"
    assert "is not ours to set" in (row.error_message or "")
    assert not fake.generations()


def test_prompt_times_that_a_version_gets_wrong_are_not_measured(desk: Desk) -> None:
    with fake_ollama(version="0.12.5") as fake:
        rows = {row.test_kind: row for row in measured(desk, fake, tests="[pp64, tg16]")}
    assert (rows["pp"].status, rows["tg"].status) == ("unsupported", "ok")
    assert "only the last batch" in (rows["pp"].error_message or "")


def test_no_server_at_the_address_is_said_before_anything_runs(desk: Desk) -> None:
    ended = desk.run(desk.write_sweep(f"{HEAD}base_url: http://127.0.0.1:9\n"))
    assert ended.code not in (0, 1)
    assert "no Ollama answers" in ended.stderr


def test_models_that_a_killed_run_left_behind_are_removed_and_no_others(desk: Desk) -> None:
    other = "llamasweep-cell-00000000-0123456789abcdef:latest"
    with fake_ollama() as fake:
        owner = owner_of(str(cache_root() / "ollama-models"))
        left = f"{cell_name(owner, 'm', {'num_ctx': 77}, None)}:latest"
        fake.models |= {left, other}
        (row,) = measured(desk, fake, tests="[pp64]")
        assert fake.models == {"m:latest", other}
    assert row.status == "ok"
