"""How a server is started for a group, and what it cannot be asked."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.engines.made import PG, PP, TG, block, build, group, model

from llamasweep.engines.base import CallOptions
from llamasweep.engines.driven import read_job
from llamasweep.engines.llama_server import (
    DEPTH_OF_PROMPT,
    DEPTH_OF_TURN,
    LlamaServer,
    longest_request,
    server_argv,
)
from llamasweep.run.secrets import hide_in_argv, secrets_in
from llamasweep.sweep.cell import Block
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build

HELP = Path(__file__).parents[2] / "golden" / "server_help"
OPTIONS = CallOptions(model_path="/m.gguf", n_reps=3)
ENGINE = LlamaServer()


def server(number: int = 11434) -> Build:
    lines = (HELP / f"b{number}.txt").read_text(encoding="utf-8").splitlines()
    flags = re.findall(r"(?<![\w<|-])--?[A-Za-z][\w-]*", "\n".join(lines))
    return build(
        "b11434", number=number, path="/b/llama-server", options=frozenset(flags), option_help=()
    )


def argv(of: Block, on: Build | None = None, options: CallOptions = OPTIONS) -> tuple[str, ...]:
    return server_argv(group(of, on or server()), options)


def test_the_context_holds_the_longest_test_in_every_slot() -> None:
    words = argv(block(PP, PG, n_depth=5000, concurrency=4))
    assert words[:5] == ("/b/llama-server", "-m", "/m.gguf", "-np", "4")
    assert words[5:7] == ("-c", str(5120 * 4))


def test_the_context_holds_a_conversation_until_its_last_turn() -> None:
    words = argv(block(PP, PG, turn=(1, 400, 100), concurrency=2))
    assert words[5:7] == ("-c", str(22528 * 2))  # 400 x (16 + 8 + 32), in steps of 256


def test_answers_of_a_generated_model_come_back_as_more_tokens() -> None:
    one = model()
    assert one.facts is not None
    made = replace(one, facts=replace(one.facts, is_synthetic=True))
    assert longest_request(block(PG), made) == longest_request(block(PG), one) == 16 + 8 + 32
    assert longest_request(block(PG, turn=10), one) == 10 * (16 + 8 + 32)
    assert longest_request(block(PG, turn=10), made) == 10 * (16 + 4 * 8 + 32)


def test_a_conversation_at_a_depth_is_refused() -> None:
    (one,) = ENGINE.restrictions(block(TG, PG, n_depth=(0, 512), turn=(1, 2)), model(), server())
    assert (one.reason, one.where) == (DEPTH_OF_TURN, {"n_depth": frozenset({512})})


@pytest.mark.parametrize("number", [10488, 11434])
def test_every_flag_is_one_that_the_help_lists(number: int) -> None:
    on = server(number)
    asked: dict[str, Scalar] = {
        "n_threads": 2, "n_batch": 512, "n_ubatch": 128, "type_k": "q8_0", "type_v": "q8_0", "flash_attn": "on",
        "n_gpu_layers": 0, "poll": 0, "load_mode": "mmap", "concurrency": 2,
    }  # fmt: skip
    words = argv(block(TG, **asked), on, CallOptions(model_path="m", n_reps=1, warmup=False))
    flags = [word for word in words[1:] if re.match(r"--?[A-Za-z]", word)]
    assert set(flags) <= on.options
    assert {"-t", "-b", "-ub", "-ctk", "-ctv", "-fa", "-np", "--no-warmup"} <= set(flags)


def test_the_call_is_a_driver_with_the_whole_job() -> None:
    call = ENGINE.describe(group(block(PP, TG, prompt_cache=("cold", "warm")), server()), OPTIONS)
    assert call.argv[1:4] == ("-I", "-m", "llamasweep.drivers")
    job = read_job(call.argv[4:])
    assert job.server_argv[0] == "/b/llama-server"
    assert [c.params for c in job.cells()] == [c.params for c in call.expected]
    assert len(call.expected) == 4


def test_a_prompt_at_a_depth_is_refused_and_generation_is_not() -> None:
    found = ENGINE.restrictions(block(PP, TG, n_depth=(0, 512)), model(), server())
    (one,) = found
    assert one.reason == DEPTH_OF_PROMPT
    assert one.where == {"n_depth": frozenset({512}), "test": frozenset({PP})}


def test_a_secret_among_the_arguments_is_a_word_of_its_own() -> None:
    options = CallOptions(model_path="m", n_reps=1, extra_args=("--api-key", "geheim"))
    call = ENGINE.describe(group(block(TG), server()), options)
    assert secrets_in(call.argv, ()) == (b"geheim",)
    assert "geheim" not in " ".join(hide_in_argv(call.argv, None))


def test_more_streams_than_can_be_driven_are_refused() -> None:
    (one,) = ENGINE.restrictions(block(TG, concurrency=(8, 4096)), model(), server())
    assert one.where == {"concurrency": frozenset({4096})}


def test_what_the_server_has_no_flag_for_is_refused() -> None:
    on = server()
    assert ENGINE.restrictions(block(TG, n_threads=2, concurrency=8), model(), on) == []
    poorer = build("b11434", options=on.options - {"--poll"}, path="/b/llama-server")
    (one,) = ENGINE.restrictions(block(TG, poll=(0, 50)), model(), poorer)
    assert one.where == {"poll": frozenset({0, 50})}
    assert "no flag for poll" in one.reason
