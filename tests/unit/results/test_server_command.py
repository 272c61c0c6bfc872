from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.results.made import attempt, run_of

from llamasweep.results.contenders import Contender, contenders
from llamasweep.results.server_command import ServerCommand, server_beside, server_command
from llamasweep.results.server_flags import SPELLED, context_for
from llamasweep.sweep.parameters import PARAMETERS, Scalar

HELP = Path(__file__).parents[2] / "golden" / "server_help"
BUILDS = (10488, 11434)
NOT_IN_EVERY_BUILD = {"rpc": 11434, "lazy_mode": 11434}
"""Parameter -> the build whose llama-server has it: RPC is a choice when building, the other came later."""
VALUES: dict[str, tuple[Scalar, ...]] = {
    "numa": ("isolate",), "prio": (1,), "rpc": ("a:1/b:2",), "fit_target": (256,), "fit_min_ctx": (512,),
    "n_gpu_layers": (7, -1), "n_cpu_moe": (2,), "split_mode": ("row",), "load_mode": ("mmap", "none", "dio"),
    "lazy_mode": ("off",), "main_gpu": (1,), "devices": ("CUDA0/CUDA1",), "tensor_split": ("3/1",),
    "tensor_buft_overrides": ("exps=CPU;attn=CPU",), "no_host": (True, False), "repack": (False, True),
    "embeddings": (True, False), "no_op_offload": (True, False), "n_batch": (512,), "n_ubatch": (256,),
    "type_k": ("q8_0",), "type_v": ("f16",), "no_kv_offload": (True, False), "flash_attn": ("on", "off", "auto"),
    "n_threads": (2,), "concurrency": (4,), "prompt_cache": ("warm",), "turn": (3,), "cpu_mask": ("0x3",),
    "cpu_strict": (True, False), "poll": (0,),
}  # fmt: skip


def flags_of(number: int) -> set[str]:
    """What the left column of the help lists."""
    lines = (HELP / f"b{number}.txt").read_text(encoding="utf-8").splitlines()
    left = [re.split(r"(?<=\S)  +(?=[^\s-])", line)[0] for line in lines if line.startswith("-")]
    return {flag for line in left for flag in re.findall(r"(?<![\w<|-])--?[A-Za-z][\w-]*", line)}


def setting(number: int | None = 11434, **asked: Scalar) -> Contender:
    (row,) = contenders(run_of([attempt(1, requested=asked, applied={}, build_number=number)]))
    return row


def command(row: Contender, **changes: Any) -> ServerCommand:
    plain: dict[str, Any] = {
        "server_path": "llama-server",
        "model_path": "m.gguf",
        "n_context": 4096,
    }
    return server_command(row, **(plain | changes))


def said(number: int | None = 11434, **asked: Scalar) -> tuple[str, ...]:
    """What follows the words that every command has."""
    return command(setting(number, **asked)).argv[7:]


def test_the_help_is_read_as_it_stands() -> None:
    assert {"-t", "--threads", "-nr", "--no-repack", "-np", "-fa", "-lm"} <= flags_of(10488)
    assert "-lzm" not in flags_of(10488)
    assert "-lzm" in flags_of(11434)


def test_every_setting_of_a_cell_is_spelled() -> None:
    assert set(SPELLED) == {p.name for p in PARAMETERS} - {"n_depth", "num_ctx"} == set(VALUES)


@pytest.mark.parametrize("number", BUILDS)
@pytest.mark.parametrize("name", sorted(VALUES))
def test_every_flag_is_in_the_help_of_the_build(number: int, name: str) -> None:
    if NOT_IN_EVERY_BUILD.get(name, number) != number:
        assert name in NOT_IN_EVERY_BUILD
        return
    known = flags_of(number)
    for value in VALUES[name]:
        argv = command(setting(number, **{name: value}), n_threads_batch=9).argv
        flags = [word for word in argv if word.startswith("-") and not word[1:].isdigit()]
        assert set(flags) <= known, value


def test_the_words_are_those_that_the_server_takes() -> None:
    assert said(n_gpu_layers=-1) == ("-ngl", "auto")
    assert said(n_gpu_layers=20) == ("-ngl", "20")
    assert said(tensor_split="3/1") == ("-ts", "3,1")
    assert said(devices="auto") == ()
    assert said(devices="CUDA0/CUDA1") == ("-dev", "CUDA0,CUDA1")
    assert said(tensor_buft_overrides="a=CPU;b=CPU") == ("-ot", "a=CPU,b=CPU")
    assert said(repack=False) == ("--no-repack",)
    assert said(repack=True, no_host=False, no_kv_offload=False) == ()
    assert said(cpu_strict=True) == ("--cpu-strict", "1")
    assert said(flash_attn="off", type_k="q8_0") == ("-fa", "off", "-ctk", "q8_0")


def test_older_builds_are_spoken_to_in_their_words() -> None:
    assert said(10000, load_mode="none") == ("--no-mmap",)
    assert said(10000, load_mode="mmap") == ()
    assert said(11434, load_mode="none") == ("-lm", "none")
    assert said(5000, flash_attn="on") == ("-fa",)
    assert said(5000, flash_attn="off") == ()
    assert command(setting(5000)).notes[0].startswith("The flags are those of b10488 and later")
    assert command(setting(None)).notes != ()
    assert command(setting(11434)).notes == ()


def test_threads_are_said_for_generation_and_where_they_differ_for_prompts() -> None:
    row = setting(n_threads=4)
    start = ("llama-server", "-m", "m.gguf", "-c", "4096", "-np", "1", "-t", "4")
    assert command(row).argv == start
    assert command(row, n_threads_batch=8).argv == (*start, "-tb", "8")
    assert command(row, n_threads_batch=4).argv == start


def test_the_context_holds_what_was_measured_and_no_less_than_a_talk_needs() -> None:
    assert [context_for(n) for n in (1, 4096, 4097, 33000)] == [4096, 4096, 4352, 33024]


@pytest.mark.parametrize(
    ("bench", "server"),
    [
        ("/opt/a b/llama-bench", "/opt/a b/llama-server"),
        ("~/b/llama-bench.exe", "~/b/llama-server.exe"),
        ("/opt/a b/llama-server", "/opt/a b/llama-server"),
        (r"C:\Program Files\llama\llama-bench.exe", r"C:\Program Files\llama\llama-server.exe"),
        (r"C:\b\llama-server.exe", r"C:\b\llama-server.exe"),
        (r"\\box\b\llama-bench.exe", r"\\box\b\llama-server.exe"),
        ("/opt/llama", "llama-server"),
        (None, "llama-server"),
    ],
)
def test_the_server_is_looked_for_beside_the_bench(bench: str | None, server: str) -> None:
    assert server_beside(bench) == server


def test_what_the_server_cannot_be_told_is_named() -> None:
    row = setting(tomorrow=1)
    assert command(row).notes == ("llama-server has no flag for tomorrow.",)
