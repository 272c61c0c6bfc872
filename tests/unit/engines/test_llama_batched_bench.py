"""How llama-batched-bench is called for a cell, and what it cannot be asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.engines.made import PG, PP, TG, block, build, cell, group, model

from llamasweep.engines.base import CallOptions
from llamasweep.engines.driven import DriverRow, progress_line, read_job
from llamasweep.engines.known import engine_named
from llamasweep.engines.llama_batched_bench import (
    DEPTH_OF_PROMPT,
    MAX_STREAMS,
    NO_CONVERSATION,
    NO_PROMPT_CACHE,
    LlamaBatchedBench,
    cell_words,
    lengths_of,
    program_argv,
)
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.subjects import Build

HELP = Path(__file__).parents[2] / "golden" / "batched_bench" / "help-b11434.txt"
OPTIONS = CallOptions(model_path="/m.gguf", n_reps=3)
ENGINE = LlamaBatchedBench()


def batched() -> Build:
    lines = [line for line in HELP.read_text(encoding="utf-8").splitlines() if line[:1] == "-"]
    flags = re.findall(r"(?<![\w<|-])--?[A-Za-z][\w-]*", "\n".join(lines))
    return build(
        "b11434",
        number=11434,
        path="/b/llama-batched-bench",
        options=frozenset(flags),
        option_help=(),
    )


def words_of(words: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2], strict=True))


def test_it_is_known_by_its_name() -> None:
    assert engine_named("llama-batched-bench").name == "llama-batched-bench"


def test_repetitions_are_the_same_number_of_streams_several_times() -> None:
    assert words_of(cell_words(cell(PG, concurrency=4), 3)) == {
        "-c": "2048",
        "-npp": "16",
        "-ntg": "8",
        "-npl": "4,4,4",
    }


def test_a_generation_at_a_depth_stands_behind_a_prompt_of_that_length() -> None:
    assert lengths_of(cell(TG, n_depth=512)) == (512, 8)
    assert lengths_of(cell(TG)) == (0, 8)
    assert lengths_of(cell(PP)) == (16, 0)


@pytest.mark.parametrize(
    ("n_streams", "n_batch", "n_ctx"),
    [(1, None, 2048), (3, None, 2304), (8, None, 6144), (8, 256, 6144), (1, 256, 768)],
)
def test_the_context_holds_every_stream_and_a_batch(
    n_streams: int, n_batch: int | None, n_ctx: int
) -> None:
    """Streams take steps of 256 each, and below a batch the program aborts."""
    given: dict[str, Scalar] = {"concurrency": n_streams}
    if n_batch is not None:
        given["n_batch"] = n_batch
    depth = 760 if n_streams != 3 else 0
    assert words_of(cell_words(cell(TG, n_depth=depth, **given), 1))["-c"] == str(n_ctx)


def test_every_flag_is_one_that_the_help_lists() -> None:
    asked: dict[str, Scalar] = {
        "n_threads": 2, "n_batch": 512, "n_ubatch": 128, "type_k": "q8_0", "type_v": "q8_0", "flash_attn": "on",
        "n_gpu_layers": 0, "poll": 0, "load_mode": "mmap", "concurrency": 2,
    }  # fmt: skip
    words = program_argv(group(block(TG, **asked), batched()), OPTIONS)
    words += cell_words(cell(TG, **asked), 2)
    flags = {word for word in words[1:] if re.match(r"--?[A-Za-z]", word)}
    assert flags <= batched().options
    assert {"-t", "-b", "-ub", "-ctk", "-fa", "-npl", "--output-format"} <= flags


def test_the_call_is_a_driver_with_the_whole_job() -> None:
    options = CallOptions(model_path="/m.gguf", n_reps=3, extra_args=("--mlock",))
    call = ENGINE.describe(group(block(PP, TG, concurrency=4), batched()), options)
    job = read_job(call.argv[4:])
    assert job.engine == "llama-batched-bench"
    assert job.server_argv[:3] == ("/b/llama-batched-bench", "-m", "/m.gguf")
    assert job.server_argv[-1] == "--mlock"
    assert [one.test for one in job.cells()] == [PP, TG]


def test_what_it_cannot_measure_is_refused_with_the_reason() -> None:
    of = block(
        PP, TG, n_depth=(0, 64), concurrency=(1, 300), prompt_cache=("cold", "warm"), turn=(1, 2)
    )
    found = {one.reason: one.where for one in ENGINE.restrictions(of, model(), batched())}
    assert found == {
        DEPTH_OF_PROMPT: {"n_depth": frozenset({64}), "test": frozenset({PP})},
        f"llama.cpp keeps at most {MAX_STREAMS} sequences": {"concurrency": frozenset({300})},
        NO_PROMPT_CACHE: {"prompt_cache": frozenset({"warm"})},
        NO_CONVERSATION: {"turn": frozenset({1, 2})},
    }


def test_a_flag_that_the_build_lacks_and_a_setting_of_others_are_refused() -> None:
    poorer = build("b11434", options=batched().options - {"--poll"}, path="/b/x")
    reasons = [
        one.reason for one in ENGINE.restrictions(block(TG, poll=50, num_ctx=4096), model(), poorer)
    ]
    assert reasons == [
        "num_ctx is Ollama's; llama-batched-bench gets the context that the tests need",
        "llama-batched-bench of b11434 has no flag for poll",
    ]


def test_a_build_without_lines_for_programs_is_refused_whole() -> None:
    older = build("b11434", options=frozenset({"-npl"}))
    (one,) = ENGINE.restrictions(block(TG), model(), older)
    assert one.where == {}


def test_that_it_always_warms_up_is_told() -> None:
    unwarmed = CallOptions(model_path="m", n_reps=1, warmup=False)
    (note,) = ENGINE.tell_what_cannot_be_said(group(block(TG), batched()), unwarmed)
    assert "16 tokens" in note
    assert ENGINE.tell_what_cannot_be_said(group(block(TG), batched()), OPTIONS) == []


def test_each_cell_has_the_context_of_its_own_process() -> None:
    log = ENGINE.log_reader()
    for index, n_ctx in enumerate((2048, 4096)):
        log.feed(progress_line(index, 2, "starting", None))
        log.feed(f"llama_context: n_ctx                 = {n_ctx}")
    line = DriverRow(
        cell_index=1,
        test=TG,
        samples_ns=(10,),
        started_ns=(1,),
        n_tokens=(32,),
        columns={},
        applied={"concurrency": 4, "n_threads": 2},
    ).line()
    row = ENGINE.parse_row(line.encode())
    assert row is not None
    found = ENGINE.verify(cell(TG, concurrency=4, n_threads=2), 1, row, log, cpu_only=True)
    assert found.n_ctx == 4096
    assert found.applied["concurrency"] == 4
    assert found.n_tokens == (32,)
    assert found.differences == ()
