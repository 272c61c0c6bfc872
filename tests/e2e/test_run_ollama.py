"""Whole sweeps on a real Ollama: both modes, the cache of prompts, and what becomes of a server or model that goes away."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pytest
from tests.e2e.engines import find_ollama, find_program
from tests.integration.running import Desk, engines_alive

from llamasweep import load_results
from llamasweep.engines.http_exchange import free_port, parse_base_url
from llamasweep.engines.ollama_answers import has_engine_inside, run_adds_space
from llamasweep.engines.ollama_api import OllamaServer
from llamasweep.engines.ollama_names import own_name
from llamasweep.engines.ollama_server import describe_server, wait_until_ready
from llamasweep.gguf.synth import cached_model
from llamasweep.run.server_process import ServerProcess

pytestmark = pytest.mark.needs_llama
SHIPPED = Path(__file__).parents[2] / "sweeps" / "ollama.yaml"
HEAD = "engine: ollama\nbandwidth: 20 GB/s\nmodels: [{synth: tiny-llama, quants: [Q8_0]}]\n"


def results(desk: Desk, name: str = "sweep") -> Any:
    """The cells of the newest run of a sweep."""
    return load_results(max((desk.folder / "results").glob(f"*-{name}-*")))


def run(desk: Desk, text: str, name: str = "sweep") -> Any:
    ended = desk.run(desk.write_sweep(text, f"{name}.yaml"))
    assert ended.code in (0, 1), ended.stderr
    return results(desk, name)


def test_both_modes_measure_the_shipped_sweep_alike(desk: Desk) -> None:
    found = {}
    for mode in ("api", "verbose"):
        text = f"extends: {SHIPPED}\nmode: {mode}\nbuilds: ['{find_ollama()}']\nrepetitions: 3\n"
        cells = run(desk, text + "bandwidth: 20 GB/s\n", f"by-{mode}")
        assert set(cells["status"]) == {"ok"}, cells["error_message"].dropna().unique()
        assert len(cells) == 16
        assert (cells["num_ctx_applied"] == cells["num_ctx"]).all()
        assert (cells["n_threads_applied"] == cells["n_threads"]).all()
        assert (cells["n_batch_applied"] == 512).all()
        assert (cells["load_cold_s"] > cells["load_warm_s"]).all()
        n_prompt = 256 + (mode == "verbose" and run_adds_space(version()) is True)
        assert (cells.loc[cells["test_kind"] == "pp", "n_prompt_counted"] == n_prompt).all()
        assert (cells.loc[cells["test_kind"] == "tg", "ceiling_tps"] > 0).all()
        assert set(cells["request_mode"]) == {f"{mode}, raw"}
        assert not [row for row in cells["flags"] if _is_doubted(set(row))]
        found[mode] = cells.set_index("cell_id")
    api, verbose = found["api"], found["verbose"]
    assert set(api.index) == set(verbose.index)
    for kind in ("pp", "tg"):
        of_kind = api[api["test_kind"] == kind].index
        ratios = verbose.loc[of_kind, "median_tps"] / api.loc[of_kind, "median_tps"]
        assert median(ratios) == pytest.approx(1, rel=0.4)  # two cores that others use as well
    written = api[api["test_kind"] == "tg"]
    assert median(written["user_median_tps"] / written["server_tg_tps"]) == pytest.approx(
        1, rel=0.35
    )
    assert verbose["ttft_median_s"].isna().all()
    assert not engines_alive([str(desk.folder)])


def version() -> str:
    """Of the Ollama under test."""
    return find_ollama().parts[-3]


def _is_doubted(flags: set[str]) -> bool:
    """Where no log counts cached tokens, a first repetition that a busy machine slowed looks like a cache of the others."""
    is_guess = "first_sample_slow" in flags and has_engine_inside(version())
    return "unloaded" in flags or ("prompt_cached" in flags and not is_guess)


@pytest.mark.parametrize("mode", ["api", "verbose"])
def test_a_repeated_prompt_does_not_inflate_the_rate_unless_asked_to(desk: Desk, mode: str) -> None:
    cells = run(
        desk,
        f"{HEAD}mode: {mode}\nbuilds: ['{find_ollama()}']\ntests: [pp256]\nrepetitions: 3\n"
        "matrix: {threads: 1, prompt_cache: [cold, warm]}\n",
    ).set_index("prompt_cache")
    assert set(cells["status"]) == {"ok"}, cells["error_message"].dropna().unique()
    assert cells.loc["warm", "median_tps"] > 3 * cells.loc["cold", "median_tps"]
    for state in ("cold", "warm"):
        assert "prompt_cached" not in cells.loc[state, "flags"]
    assert cells.loc["cold", "max_tps"] < 3 * cells.loc["cold", "min_tps"]


def test_a_prompt_that_does_not_fit_is_unsupported_and_the_rest_is_measured(desk: Desk) -> None:
    cells = run(
        desk,
        f"{HEAD}mode: api\nbuilds: ['{find_ollama()}']\ntests: [pp64, pp2000]\nrepetitions: 1\n"
        "matrix: {num_ctx: 512, threads: 1}\n",
    ).set_index("test_label")
    assert cells.loc["pp64", "status"] == "ok"
    assert cells.loc["pp2000", "status"] == "unsupported"
    assert "do not fit num_ctx 512" in cells.loc["pp2000", "error_message"]


def test_server_wide_settings_are_cells_of_another_server(desk: Desk) -> None:
    cells = run(
        desk,
        f"{HEAD}mode: api\nbuilds: ['{find_ollama()}']\ntests: [tg16]\nrepetitions: 2\n"
        "matrix: {threads: 1, kv_type: [f16, q8_0], fa: on}\n",
    )
    assert set(cells["status"]) == {"ok"}, cells["error_message"].dropna().unique()
    assert len(cells["group_id"].unique()) == 2
    if has_engine_inside(version()):  # no flash attention on a CPU
        assert set(cells["type_k_applied"]) == {"f16"}
        assert set(cells["flash_attn_applied"]) == {"off"}
        told = cells.set_index("type_k").loc["q8_0", "differences"]
        assert "type_k: asked q8_0, applied f16" in told
        return
    assert (cells["type_k_applied"] == cells["type_k"]).all()
    assert (cells["flash_attn_applied"] == "on").all()


def test_several_streams_are_measured_on_a_server_with_as_many_slots(desk: Desk) -> None:
    cells = run(
        desk,
        f"{HEAD}mode: api\nbuilds: ['{find_ollama()}']\ntests: [pp128, tg192]\nrepetitions: 3\n"
        "matrix: {threads: 1, num_ctx: 512, concurrency: [1, 3]}\n",
    )
    assert set(cells["status"]) == {"ok"}, cells["error_message"].dropna().unique()
    assert (cells["concurrency_applied"] == cells["concurrency"]).all()
    assert (cells["num_ctx_applied"] == 512).all()
    assert (cells["n_requests"] == 3 * cells["concurrency"]).all()
    rows = cells.set_index(["test_kind", "concurrency"])
    assert rows.loc[("pp", 3), "ttft_median_s"] > 1.2 * rows.loc[("pp", 1), "ttft_median_s"]
    assert rows.loc[("tg", 3), "median_tps"] > rows.loc[("tg", 1), "median_tps"] / 2
    assert rows.loc[("tg", 3), "tpot_median_s"] > rows.loc[("tg", 1), "tpot_median_s"]
    one = rows.loc[("tg", 1)]
    assert one["median_tps"] == pytest.approx(one["server_tg_tps"], rel=0.35)


def test_llama_bench_measures_the_very_file_that_ollama_serves(desk: Desk) -> None:
    find_program("10488", "llama-bench")
    cells = run(
        desk,
        f"{HEAD}mode: api\nbuilds: ['{find_ollama()}']\nsame_weights: 10488\ntests: [pp256, tg64]\n"
        "repetitions: 3\nmatrix: {threads: 1, num_ctx: 512}\n",
    ).set_index("test_kind")
    assert set(cells["status"]) == {"ok"}, cells["error_message"].dropna().unique()
    assert [label.lstrip("b") for label in cells["same_weights_build"]] == ["10488"] * 2
    for kind in ("pp", "tg"):
        found = cells.loc[kind]
        assert found["same_weights_tps"] > 0
        assert 0.3 < found["median_tps"] / found["same_weights_tps"] < 2
        assert "-t 1" in found["same_weights_settings"]
        assert "-b 512" in found["same_weights_settings"]
        assert "no_same_weights" not in found["flags"]
        told = "" if has_engine_inside(version()) else "b10488"
        assert cells["server_build"].fillna("")[kind] == told
    page = desk.folder / "page.html"
    assert desk.call("report", "--out", str(page)).code == 0
    text = page.read_text(encoding="utf-8")
    assert "The server beside llama-bench" in text
    assert "on the same file" in text


def after_first_row(desk: Desk, sweep: Path, act: Callable[[subprocess.Popen[str]], None]) -> None:
    """Run the sweep and act when its first row has come."""
    process = desk.start("run", "--plain", "--no-report", "--", str(sweep))
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if "[1/" in line:
            act(process)
            break
    else:
        pytest.fail("".join(said))
    process.communicate(timeout=120)


def test_a_server_that_is_killed_costs_its_cells_and_no_others(desk: Desk) -> None:
    sweep = desk.write_sweep(
        f"{HEAD}mode: api\nbuilds: ['{find_ollama()}']\ntests: [pp64, tg512]\nrepetitions: 4\n"
        "matrix: {threads: [1, 2], num_ctx: 1024}\n"
    )

    def kill(process: subprocess.Popen[str]) -> None:
        children = psutil.Process(process.pid).children(recursive=True)
        (server,) = (one for one in children if one.cmdline()[1:] == ["serve"])
        server.kill()

    after_first_row(desk, sweep, kill)
    cells = results(desk).set_index(["n_threads", "test_kind"])
    assert cells.loc[(1, "pp"), "status"] == "ok"
    assert cells.loc[(1, "tg"), "status"] == "failed"
    assert cells.loc[(1, "tg"), "error_kind"] == "server_died"
    assert set(cells.loc[2, "status"]) == {"ok"}


@dataclass(frozen=True)
class There:
    """A server that is there already."""

    url: str
    server: OllamaServer


@pytest.fixture
def there(tmp_path: Path) -> Iterator[There]:
    port = free_port()
    home = tmp_path / "ollama"
    home.mkdir()
    call = describe_server(str(find_ollama()), port, models=str(home / "models"), home=str(home))
    with ServerProcess(call.argv, env=call.env, cwd=home) as running:
        server = OllamaServer(parse_base_url(f"http://127.0.0.1:{port}"))
        wait_until_ready(server, is_alive=running.is_alive)
        yield There(f"http://127.0.0.1:{port}", server)


def test_a_model_of_a_server_that_is_there_is_measured_and_its_removal_noticed(
    desk: Desk, there: There
) -> None:
    name = own_name("mine", {})
    there.server.create_from_file(name, cached_model("tiny-llama", "Q8_0"))
    sweep = desk.write_sweep(
        f"engine: ollama\nmode: api\nbase_url: {there.url}\nbandwidth: 20 GB/s\nmodels: [{{ollama: {name}}}]\n"
        "tests: [pp64, tg256]\nrepetitions: 4\nmatrix: {threads: [1, 2], num_ctx: 1024}\n"
    )
    after_first_row(desk, sweep, lambda _process: there.server.delete(name))
    cells = results(desk).set_index(["n_threads", "test_kind"])
    first = cells.loc[(1, "pp")]
    assert (first["status"], first["model_quant"], first["model_arch"]) == ("ok", "Q8_0", "llama")
    assert first["model_size_bytes"] > 40_000_000
    assert first["ceiling_tps"] > 0
    failed = cells.drop((1, "pp"))
    assert set(failed["status"]) == {"failed"}
    assert set(failed["error_kind"]) == {"model_missing"}


def test_what_a_killed_run_left_on_a_server_is_removed_by_the_next(
    desk: Desk, there: There
) -> None:
    mine, alike = own_name("mine", {}), "llamasweep-cell-00000000-0123456789abcdef"
    there.server.create_from_file(mine, cached_model("tiny-llama", "Q8_0"))
    there.server.derive(alike, mine, {"num_ctx": 77})  # of another owner
    sweep = desk.write_sweep(
        f"engine: ollama\nmode: verbose\nbase_url: {there.url}\nmodels: [{{ollama: {mine}}}]\nbandwidth: 20 GB/s\n"
        "tests: [tg16, tg256]\nrepetitions: 3\nmatrix: {threads: 1, num_ctx: 512}\n"
    )

    after_first_row(desk, sweep, lambda process: process.kill())
    (left,) = {row["name"] for row in there.server.models()} - {f"{mine}:latest", f"{alike}:latest"}
    assert left.startswith("llamasweep-cell-")
    text = sweep.read_text().replace("tg16, tg256", "tg8").replace("verbose", "api")
    cells = run(desk, text, "next")

    assert set(cells["status"]) == {"ok"}
    assert {row["name"] for row in there.server.models()} == {f"{mine}:latest", f"{alike}:latest"}


def test_a_server_that_is_there_is_left_as_it_was(desk: Desk, there: There) -> None:
    name = own_name("mine", {})
    there.server.create_from_file(name, cached_model("tiny-llama", "Q8_0"))
    before = [row["name"] for row in there.server.models()]
    cells = run(
        desk,
        f"engine: ollama\nbase_url: {there.url}\nmodels: [{{ollama: {name}}}]\nbandwidth: 20 GB/s\n"
        "tests: [tg16]\nrepetitions: 2\nmatrix: {threads: 1, num_ctx: 512, kv_type: [f16]}\n",
    )
    assert set(cells["status"]) == {"unsupported"}
    cells = run(
        desk,
        f"engine: ollama\nbase_url: {there.url}\nmodels: [{{ollama: {name}}}]\nbandwidth: 20 GB/s\n"
        "tests: [tg16]\nrepetitions: 2\nmatrix: {threads: 1, num_ctx: 512}\n",
        "again",
    )
    assert set(cells["status"]) == {"ok"}
    assert [row["name"] for row in there.server.models()] == before
