"""A real Ollama: made a model, asked by its command line and by its API, and held against our own clock."""

from __future__ import annotations

import json
import statistics
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.e2e.engines import find_ollama

from llamasweep.cli import app
from llamasweep.engines.http_exchange import RequestError, ServerAddress, free_port, parse_base_url
from llamasweep.engines.ollama_answers import (
    Asked,
    blob_path,
    check_placement,
    has_engine_inside,
    run_adds_space,
)
from llamasweep.engines.ollama_api import Generate, OllamaAnswer, OllamaServer, generate
from llamasweep.engines.ollama_names import own_name
from llamasweep.engines.ollama_run import RunResult, describe_run, read_run
from llamasweep.engines.ollama_server import (
    ServerLog,
    describe_server,
    wait_until_ready,
)
from llamasweep.engines.openai_client import Answer, Completion, complete, complete_at_once
from llamasweep.engines.prompts import PromptShape, answered_count, calibrate
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.header import read_model
from llamasweep.gguf.synth import cached_model
from llamasweep.run import lock
from llamasweep.run.process import clean_environment
from llamasweep.run.server_process import ServerProcess

pytestmark = pytest.mark.needs_llama

N_PROMPT, N_GEN, N_CTX = 256, 64, 1024
OPTIONS: dict[str, int | float | bool] = {
    "n_ctx": N_CTX,
    "n_batch": 256,
    "n_threads": 1,
    "temperature": 0.8,
    "seed": 7,
}
PARAMETERS = {"num_ctx": N_CTX, "num_batch": 256, "num_thread": 1, "num_predict": N_GEN, "seed": 7}


@dataclass(frozen=True)
class Ollama:
    program: Path
    address: ServerAddress
    server: OllamaServer
    log: ServerLog
    version: str
    model: str
    file: Path
    models: Path


@pytest.fixture(scope="module")
def ollama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ollama]:
    program = find_ollama()
    folder = tmp_path_factory.mktemp("ollama")
    port = free_port()
    call = describe_server(str(program), port, models=str(folder / "models"), home=str(folder))
    log = ServerLog()
    with ServerProcess(call.argv, env=call.env, cwd=folder, on_line=log.feed) as running:
        address = parse_base_url(f"http://127.0.0.1:{port}")
        server = OllamaServer(address)
        version = wait_until_ready(server, is_alive=running.is_alive)
        file = cached_model("tiny-llama", "Q8_0")
        name = own_name("tiny-llama", {})
        server.create_from_file(name, file)
        yield Ollama(program, address, server, log, version, name, file, folder / "models")


@pytest.fixture(scope="module")
def shape(ollama: Ollama) -> PromptShape:
    """A prompt of 256 tokens by this server's count."""
    options = {**OPTIONS, "n_ctx": 2 * N_CTX}

    def ask(text: str) -> int | None:
        request = Generate(
            model=ollama.model, prompt=text, n_gen=1, options=options, is_fixed=False
        )
        return generate(ollama.address, request).durations.prompt_eval_count

    found = calibrate(N_PROMPT, answered_count(ask))
    assert found.is_exact
    return found


def ask_api(ollama: Ollama, prompt: str, **more: object) -> OllamaAnswer:
    request = Generate(
        model=ollama.model,
        prompt=prompt,
        n_gen=N_GEN,
        options=OPTIONS,
        n_prompt=N_PROMPT,
        **more,  # type: ignore[arg-type]
    )
    return generate(ollama.address, request)


def ask_cli(ollama: Ollama, model: str, prompt: str) -> RunResult:
    call = describe_run(str(ollama.program), ollama.address, model, prompt)
    done = subprocess.run(
        call.argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=clean_environment(call.env),
        timeout=120,
        check=False,
    )
    return read_run(
        done.returncode, done.stderr, Asked(n_prompt=N_PROMPT, n_gen=N_GEN, n_ctx=N_CTX)
    )


@pytest.fixture(scope="module")
def derived(ollama: Ollama) -> Iterator[str]:
    """The same weights with the parameters that the command line cannot set."""
    name = own_name(ollama.model, PARAMETERS)
    ollama.server.derive(name, ollama.model, PARAMETERS)
    yield name
    ollama.server.delete(name)


def test_the_server_says_who_it_is_and_what_it_computes_with(ollama: Ollama) -> None:
    assert ollama.version in str(ollama.program)
    assert ollama.log.libraries
    assert ollama.server.has(ollama.model)
    assert not ollama.server.has("nobody-made-this")


def test_the_blob_is_the_model_with_the_same_tensors(ollama: Ollama) -> None:
    path = blob_path(ollama.server.show(ollama.model))
    assert path is not None
    ours, theirs = read_model(ollama.file), read_model(Path(path))
    assert _tensors(theirs) == _tensors(ours)


def _tensors(facts: ModelFacts) -> tuple[object, ...]:
    return facts.n_params, facts.size_bytes, facts.quant_short


def test_both_modes_and_our_own_clock_agree(
    ollama: Ollama, derived: str, shape: PromptShape
) -> None:
    ollama.server.load(derived, OPTIONS)
    ask_cli(ollama, derived, shape.text(1))
    runs = [ask_cli(ollama, derived, shape.text(seed)) for seed in range(2, 8)]
    ollama.server.load(ollama.model, OPTIONS)
    ask_api(ollama, shape.text(10))
    answers = [ask_api(ollama, shape.text(seed)) for seed in range(11, 17)]
    n_by_cli = N_PROMPT + (run_adds_space(ollama.version) is True)
    assert {(r.durations.prompt_eval_count, r.durations.eval_count) for r in runs} == {
        (n_by_cli, N_GEN)
    }
    assert {(a.durations.prompt_eval_count, a.durations.eval_count) for a in answers} == {
        (N_PROMPT, N_GEN)
    }
    assert all(not run.block.disagreements for run in runs)
    by_cli = [_known(run.durations.timings.decode_tps) for run in runs]
    by_api = [_known(one.durations.timings.decode_tps) for one in answers]
    by_us = [_known(one.timing.decode_tps) for one in answers]
    assert statistics.median(by_cli) == pytest.approx(
        statistics.median(by_api), rel=_noise(by_cli, by_api)
    )
    agreeing = [one for one in answers if "clocks_differ" not in one.flags]
    assert len(agreeing) >= len(answers) // 2
    assert statistics.median(by_us) == pytest.approx(
        statistics.median(by_api), rel=_noise(by_us, by_api)
    )
    for one in answers:
        assert one.durations.prompt_eval_duration_ns is not None
        assert one.timing.ttft_ms >= one.durations.prompt_eval_duration_ns / 1e6
        assert one.timing.e2e_ms <= _known(one.durations.total_duration_ns) / 1e6 + 50


def _noise(*groups: list[float]) -> float:
    """Half the spread of all repetitions, and at least a quarter: two cores that others use as well."""
    return max(0.25, *((max(g) - min(g)) / statistics.median(g) for g in groups))


def _known(value: float | None) -> float:
    assert value is not None
    return value


def test_a_repeated_prompt_is_seen_and_new_ones_are_not_cached(
    ollama: Ollama, shape: PromptShape
) -> None:
    first = ask_api(ollama, shape.text(100))
    assert "prompt_cached" not in first.flags
    n_before = len(ollama.log.cached_counts)
    again = generate(
        ollama.address,
        Generate(
            model=ollama.model,
            prompt=shape.text(100),
            n_gen=N_GEN,
            options=OPTIONS,
            n_prompt=N_PROMPT,
        ),
        first_prompt_tps=first.durations.timings.prompt_tps,
    )
    assert "prompt_cached" in again.flags
    other = ask_api(ollama, shape.text(101))
    assert "prompt_cached" not in other.flags
    if has_engine_inside(ollama.version) is False:
        told = ollama.log.cached_counts[n_before:]
        assert max(told) > N_PROMPT / 2
        assert told[-1] <= 16


def test_a_prompt_that_does_not_fit_is_a_failure_before_and_at_the_server(
    ollama: Ollama, shape: PromptShape
) -> None:
    small = {**OPTIONS, "n_ctx": 128}
    request = Generate(
        model=ollama.model, prompt=shape.text(5), n_gen=16, options=small, n_prompt=N_PROMPT
    )
    with pytest.raises(RequestError, match="exceed num_ctx 128") as caught:
        generate(ollama.address, request)
    assert caught.value.kind == "context_too_small"
    unknown = Generate(model=ollama.model, prompt=shape.text(5), n_gen=16, options=small)
    if has_engine_inside(ollama.version) is False:
        with pytest.raises(RequestError) as caught:
            generate(ollama.address, unknown)
        assert caught.value.kind == "context_too_small"
    ollama.server.load(ollama.model, OPTIONS)


def test_a_prompt_that_the_command_line_lets_be_cut_is_a_failure(
    ollama: Ollama, shape: PromptShape
) -> None:
    small = {**PARAMETERS, "num_ctx": 128}
    name = own_name(ollama.model, small)
    ollama.server.derive(name, ollama.model, small)
    try:
        with pytest.raises(RequestError) as caught:
            ask_cli(ollama, name, shape.text(6))
        assert caught.value.kind == "prompt_truncated"
    finally:
        ollama.server.delete(name)


def test_the_log_tells_what_was_applied(ollama: Ollama, shape: PromptShape) -> None:
    ollama.server.load(ollama.model, OPTIONS)
    ask_api(ollama, shape.text(7))
    applied = ollama.log.applied
    assert (applied["n_ctx"], applied["n_batch"], applied["n_threads"]) == (N_CTX, 256, 1)
    flags = check_placement(
        ollama.server.running(), ollama.model, n_ctx=N_CTX, knows_gpu=ollama.log.knows_gpu
    )
    assert flags == ()


def test_a_model_that_is_gone_is_a_failure_that_says_so(ollama: Ollama, derived: str) -> None:
    name = own_name(ollama.model, {"num_ctx": 77})
    ollama.server.derive(name, ollama.model, {"num_ctx": 77})
    ollama.server.delete(name)
    ollama.server.delete(name)
    with pytest.raises(RequestError, match="not found") as caught:
        generate(ollama.address, Generate(model=name, prompt="1 x", n_gen=4))
    assert caught.value.kind == "model_missing"
    assert ollama.server.has(derived)


def test_a_server_that_is_killed_in_mid_answer_is_a_failure(ollama: Ollama, tmp_path: Path) -> None:
    port = free_port()
    call = describe_server(str(ollama.program), port, models=str(ollama.models), home=str(tmp_path))
    address = parse_base_url(f"http://127.0.0.1:{port}")
    server = OllamaServer(address)
    request = Generate(model=ollama.model, prompt="1 x", n_gen=900, options=OPTIONS)
    caught: list[RequestError] = []

    def ask() -> None:
        try:
            generate(address, request)
        except RequestError as problem:
            caught.append(problem)

    with ServerProcess(call.argv, env=call.env, cwd=tmp_path) as running:
        wait_until_ready(server, is_alive=running.is_alive)
        server.load(ollama.model, OPTIONS)
        asking = threading.Thread(target=ask)
        asking.start()
        asking.join(0.5)
    asking.join(30)
    assert [problem.kind for problem in caught] in (["cut_short"], ["server_error"])


def test_the_openai_interface_is_measured_alike(
    ollama: Ollama, derived: str, shape: PromptShape
) -> None:
    ollama.server.load(derived, {})
    request = Completion(model=derived, prompt=shape.text(20), n_gen=N_GEN, dialect="ollama")
    complete(ollama.address, request)
    answer = complete(ollama.address, Completion(model=derived, prompt=shape.text(21), n_gen=N_GEN))
    assert (answer.timing.n_gen, answer.timing.is_counted) == (N_GEN, False)
    many = complete_at_once(
        ollama.address,
        [Completion(model=derived, prompt=shape.text(30 + i), n_gen=16) for i in range(3)],
    )
    assert all(isinstance(one, Answer) for one in many)


def test_feel_finds_the_file_behind_a_model_for_its_ceiling(
    ollama: Ollama, derived: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "sweep.lock")
    words = ["feel", derived, "--base-url", ollama.address.url, "--runs", "2"]
    done = CliRunner().invoke(app, [*words, "--n-prompt", "200", "--n-gen", "32", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["kind"] == "ollama"
    assert told["n_prompt"] == pytest.approx(200, rel=0.05)
    assert told["ceiling_tps"] is not None
    assert told["ttft_ms"]["n"] == 2


def test_loading_takes_time_only_the_first_time(ollama: Ollama) -> None:
    ollama.server.load(ollama.model, OPTIONS)
    ollama.server.unload(ollama.model)
    cold_s = ollama.server.load(ollama.model, OPTIONS)
    warm_s = ollama.server.load(ollama.model, OPTIONS)
    assert cold_s > warm_s
