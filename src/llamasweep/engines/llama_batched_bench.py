"""llama-batched-bench as an engine: how it is called for one cell, and what it cannot measure. Pure.

It measures each cell once and has no `-r`, so that a driver of ours asks for the same number of streams several times in one
process, for one cell after another. Prompts of all streams are read together, then all streams take one token a step.
"""

from __future__ import annotations

import math

from llamasweep.engines.base import Call, CallOptions
from llamasweep.engines.driven import Driven, program_call
from llamasweep.engines.llama_bench_flags import model_restrictions
from llamasweep.engines.llama_bench_output import LogFacts, LogReader
from llamasweep.engines.llama_server import OF_REQUESTS, flag_restrictions, telling_words
from llamasweep.results.request_load import request_load
from llamasweep.results.server_flags import SPELLED
from llamasweep.sweep.blocks import TEST
from llamasweep.sweep.cell import Block, Cell, Group
from llamasweep.sweep.matrix import Restriction
from llamasweep.sweep.subjects import Build, Model

BATCHED_BENCH = "llama-batched-bench"
MAX_STREAMS = 256
"""LLAMA_MAX_SEQ of b10488 and b11434."""
OWN_WORDS = frozenset({"-npp", "-ntg", "-npl", "-tgs", "--output-format"})
"""What the cells say; in `extra_args` they would make other cells of them."""
DEPTH_OF_PROMPT = (
    "llama-batched-bench reads prompts into an empty cache; "
    "ask for a longer one (pp4608) instead of pp512 at depth 4096"
)
NO_PROMPT_CACHE = (
    "llama-batched-bench reads every prompt anew; `engine: llama-server` measures a cached one"
)
NO_CONVERSATION = "llama-batched-bench holds no conversation; `engine: llama-server` does"
_STEP_TOKENS = 256
_DEFAULT_N_BATCH = 2048


class LlamaBatchedBench(Driven):
    """A process for each cell, started by a driver that answers for the whole group."""

    name = BATCHED_BENCH

    def restrictions(self, block: Block, model: Model, build: Build) -> list[Restriction]:
        if not build.knows("--output-format"):
            reason = f"llama-batched-bench of {build.label} has no --output-format jsonl"
            return [Restriction(reason=reason, where={})]
        found = model_restrictions(block, model, build)
        axes = dict(block.axes)
        deep = frozenset(depth for depth in axes.get("n_depth", ()) if depth != 0)
        prompts = frozenset(test for test in block.tests if test.n_prompt > 0)
        if deep and prompts:
            where = {"n_depth": deep, TEST: prompts}
            found.append(Restriction(reason=DEPTH_OF_PROMPT, where=where))
        if many := frozenset(n for n in axes.get("concurrency", ()) if int(n) > MAX_STREAMS):
            reason = f"llama.cpp keeps at most {MAX_STREAMS} sequences"
            found.append(Restriction(reason=reason, where={"concurrency": many}))
        if "warm" in axes.get("prompt_cache", ()):
            where_warm = {"prompt_cache": frozenset({"warm"})}
            found.append(Restriction(reason=NO_PROMPT_CACHE, where=where_warm))
        if turns := axes.get("turn"):
            where_turn = {"turn": frozenset(turns)}
            found.append(Restriction(reason=NO_CONVERSATION, where=where_turn))
        return found + flag_restrictions(self.name, block, build)

    def describe(self, group: Group, options: CallOptions) -> Call:
        return program_call(self.name, program_argv(group, options), group, options)

    def tell_what_cannot_be_said(self, group: Group, options: CallOptions) -> list[str]:
        if options.warmup:
            return []
        return [
            f"llama-batched-bench of {group.build.label} warms up with 16 tokens, whatever it is told"
        ]

    def log_facts(self, log: LogReader, index: int) -> LogFacts:
        """Each cell has a process of its own, which says it anew."""
        return log.facts(index)


def program_argv(group: Group, options: CallOptions) -> tuple[str, ...]:
    """The call without the words of a cell, which the driver puts behind the program."""
    build = group.build
    axes = {name: values[0] for name, values in group.block.axes if name not in OF_REQUESTS}
    argv = [build.path, "-m", options.model_path, "--output-format", "jsonl"]
    if "n_threads" in axes:
        argv += ["-t", str(axes["n_threads"])]
    for name, value in axes.items():
        if name in SPELLED:
            argv += SPELLED[name](value, build.number)
    return (*argv, *telling_words(build), *options.extra_args)


def lengths_of(cell: Cell) -> tuple[int, int]:
    """(-npp, -ntg) of a cell: a generation at a depth is one behind a prompt of that many tokens."""
    test = cell.test
    return (cell.n_depth if test.kind == "tg" else test.n_prompt), test.n_gen


def streams_of(cell: Cell) -> int:
    """Sequences at once; one where the sweep names none."""
    return request_load(dict(cell.params)).n_streams


def cell_words(cell: Cell, n_runs: int) -> tuple[str, ...]:
    """The words of one cell, measured n_runs times.

    Context: streams x (prompt + answer), each rounded up to 256 tokens as llama.cpp does, and at least a logical batch in all,
    below which the program aborts.
    """
    n_prompt, n_gen = lengths_of(cell)
    n_streams = streams_of(cell)
    n_batch = int(cell.get("n_batch") or _DEFAULT_N_BATCH)
    of_stream = max(n_prompt + n_gen, math.ceil(n_batch / n_streams))
    n_ctx = n_streams * math.ceil(of_stream / _STEP_TOKENS) * _STEP_TOKENS
    return (
        *("-c", str(n_ctx), "-npp", str(n_prompt), "-ntg", str(n_gen)),
        *("-npl", ",".join([str(n_streams)] * n_runs)),
    )
