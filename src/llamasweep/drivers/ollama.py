"""Cells of Ollama -> requests -> rows, by its API or by `ollama run --verbose`: what is asked, and what counts as one repetition.

    pp N      the server's own time of a prompt of N tokens
    tg N      its time from the first generated token to the last, with N + 1 asked for
    pg N+M    both together

Both modes have only the server's clock in common, so rates rest on it; times at the client stand beside them in columns. Where a
cell names how many streams it has (`concurrency`), rates rest on the client's clock, as `requests` counts them.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from llamasweep.drivers.ollama_plan import Plan, Reply, plan_of
from llamasweep.drivers.ollama_server import Serving
from llamasweep.drivers.ollama_told import applied_by, doubts_of, placed, time_columns
from llamasweep.drivers.same_weights import FAILED, axes_of, bench_argv, run_bench
from llamasweep.engines.at_once import ask_at_once, first_reason
from llamasweep.engines.driven import DriverRow, Job, Step, progress_line
from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.ollama import read_bench
from llamasweep.engines.ollama_answers import Asked, blob_path, check_room
from llamasweep.engines.ollama_api import OPTIONS, Generate, OllamaAnswer, generate
from llamasweep.engines.ollama_names import RAW_TEMPLATE, cell_name
from llamasweep.engines.ollama_run import MAX_PROMPT_BYTES, describe_run, read_run
from llamasweep.engines.prompts import PromptShape, answered_count, calibrate
from llamasweep.results.request_load import request_load
from llamasweep.run.process import clean_environment
from llamasweep.sweep.cell import Cell

TRIES = 4
"""A model may end an answer early; that many prompts are tried before a repetition is given up."""
SAMPLING: dict[str, int | float] = {"temperature": 0.8, "repeat_penalty": 1.0, "top_k": 40}
"""Said with every request: defaults differ between versions, and greedy sampling runs into the limit of repeats."""

Say = Callable[[str], None]


@dataclass(slots=True)
class Measuring:
    """A model on a server. shapes: prompts by their number of tokens. settings: of the model, by our names."""

    serving: Serving
    job: Job
    shapes: dict[int, PromptShape] = field(default_factory=dict)
    _n_prompts: int = 0

    @property
    def settings(self) -> dict[str, int | float | bool]:
        return {**self.job.options["settings"], **SAMPLING, "seed": 1}

    @property
    def is_raw(self) -> bool:
        return bool(self.job.options["template"] == "raw")

    @property
    def is_verbose(self) -> bool:
        return bool(self.job.options["mode"] == "verbose")

    def request(self, text: str, n_gen: int, **more: Any) -> Generate:
        return Generate(
            model=self.serving.model,
            prompt=text,
            n_gen=n_gen,
            options=self.settings,
            is_raw=self.is_raw,
            **more,
        )

    def text(self, n_tokens: int) -> str:
        """A prompt that no cache has seen, of that many tokens by the server's own count."""
        if n_tokens not in self.shapes:
            self.shapes[n_tokens] = calibrate(n_tokens, answered_count(self._counted))
        self._n_prompts += 1
        return self.shapes[n_tokens].text(self._n_prompts)

    def _counted(self, text: str) -> int | None:
        found = generate(self.serving.address, self.request(text, 1, is_fixed=False))
        return found.durations.prompt_eval_count


def measure_ollama(serving: Serving, job: Job, *, print_row: Say, print_line: Say) -> None:
    """Every cell of the job in order. Raises RequestError where one cannot be measured; rows before it are out."""
    measuring = Measuring(serving=serving, job=job)
    cells = job.cells()
    load_columns = _load(measuring)
    beside = _same_weights(measuring, print_line)
    for index, cell in enumerate(cells):

        def tell(step: Step, repetition: int | None = None, index: int = index) -> None:
            place = None if repetition is None else (repetition, job.n_reps)
            print_line(progress_line(index, len(cells), step, place))

        tell("starting")
        row = _measured(measuring, plan_of(cell), index, tell)
        found = beside.get(index, {})
        lacks = bool(job.options["bench"]) and _is_comparable(cell) and not found
        flags = (*row.flags, FAILED) if lacks else row.flags
        columns = {**load_columns, **row.columns, **found}
        print_row(replace(row, columns=columns, flags=flags).line())


def _same_weights(measuring: Measuring, print_line: Say) -> dict[int, dict[str, Any]]:
    """Columns by the cell's index; empty where the sweep does not ask for them or the file cannot be read here."""
    words, serving = measuring.job.options["bench"], measuring.serving
    blob = blob_path(serving.server.show(serving.model)) if words else None
    if blob is None or not Path(blob).is_file():
        return {}
    bench, applied = read_bench(words), applied_by(serving, {})
    cells = measuring.job.cells()
    line = progress_line(0, len(cells), "warmup prompt", None)
    serving.server.unload(serving.model)
    found: dict[int, dict[str, Any]] = {}
    for index, cell in enumerate(cells):
        if not _is_comparable(cell):
            continue
        argv = bench_argv(bench, blob, cell.test, axes_of(cell, applied), measuring.job.n_reps)
        columns = run_bench(bench, argv, cell.test, Path(serving.home), lambda: print_line(line))
        if columns is not None:
            found[index] = columns
    serving.server.load(serving.model, measuring.settings)
    return found


def _is_comparable(cell: Cell) -> bool:
    """Whether llama-bench asks the same: neither many users nor a prompt that was read before."""
    return request_load(dict(cell.params)).is_one_new_request


def _load(measuring: Measuring) -> dict[str, Any]:
    """Seconds of a load into a new runner, and of the same request when it is loaded."""
    serving = measuring.serving
    serving.server.unload(serving.model)
    cold_s = serving.server.load(serving.model, measuring.settings)
    warm_s = serving.server.load(serving.model, measuring.settings)
    return {"load_cold_s": cold_s, "load_warm_s": warm_s}


def _measured(measuring: Measuring, plan: Plan, index: int, tell: Callable[..., None]) -> DriverRow:
    serving, log = measuring.serving, measuring.serving.log
    check_room(_asked(measuring, plan))
    measuring.text(plan.n_prompt)  # counted before anything is timed
    with _model_for(measuring, plan) as model:
        if measuring.job.warmup:
            tell("warmup prompt")
            _ask(measuring, plan, model, None)
        n_cached_before = len(log.cached_counts)
        rounds: list[list[Reply]] = []
        for repetition in range(measuring.job.n_reps):
            tell("prompt", repetition)
            rounds.append(_ask(measuring, plan, model, _first_tps(plan, rounds)))
        placement, flags = placed(serving, measuring.job, model)
    replies = [reply for found in rounds for reply in found]
    flags |= doubts_of(plan, replies, serving.version, log.cached_counts[n_cached_before:])
    spans = [plan.span(found) for found in rounds]
    return DriverRow(
        cell_index=index,
        test=plan.cell.test,
        samples_ns=tuple(span.end_ns - span.start_ns for span in spans),
        started_ns=tuple(span.start_ns for span in spans),
        n_tokens=tuple(span.n_tokens for span in spans),
        columns={**time_columns(replies, plan.n_streams or 1), **placement},
        applied=applied_by(serving, placement),
        flags=tuple(sorted(flags)),
    )


def _first_tps(plan: Plan, rounds: list[list[Reply]]) -> float | None:
    """Against which a cache shows; None for the few tokens that only start a generation, and for several streams, whose rates
    jump by themselves."""
    if not rounds or not plan.cell.test.n_prompt or len(rounds[0]) > 1:
        return None
    return rounds[0][0].durations.timings.prompt_tps


def _asked(measuring: Measuring, plan: Plan) -> Asked:
    return Asked(
        n_prompt=plan.n_prompt,
        n_gen=plan.n_gen,
        n_ctx=int(measuring.settings["n_ctx"]),
        has_warm_cache=plan.is_warm,
    )


@contextmanager
def _model_for(measuring: Measuring, plan: Plan) -> Iterator[str]:
    """The model's name; for the command line one of the same weights with the parameters that it cannot set."""
    serving = measuring.serving
    if not measuring.is_verbose:
        yield serving.model
        return
    parameters = {OPTIONS[name]: value for name, value in measuring.settings.items()}
    parameters["num_predict"] = plan.n_gen
    template = RAW_TEMPLATE if measuring.is_raw else None
    name = cell_name(serving.owner, serving.model, parameters, template)
    serving.server.derive(name, serving.model, parameters, template=template)
    try:
        serving.server.load(name, {})
        yield name
    finally:
        serving.remove(name)


def _ask(measuring: Measuring, plan: Plan, model: str, first_tps: float | None) -> list[Reply]:
    """One repetition, with a reply per stream; a model that ends its answer early is asked again with other words."""
    for n_left in reversed(range(TRIES)):
        texts = [measuring.text(plan.n_prompt) for _ in range(plan.n_streams or 1)]
        try:
            if plan.is_warm:
                for text in texts:
                    _once(measuring, plan, model, text, None)
            if len(texts) > 1:
                return _at_once(measuring, plan, texts)
            return [_once(measuring, plan, model, texts[0], first_tps)]
        except RequestError as problem:
            if problem.kind != "early_stop" or not n_left:
                raise
    raise AssertionError("not reached")


def _once(
    measuring: Measuring, plan: Plan, model: str, text: str, first_tps: float | None
) -> Reply:
    if measuring.is_verbose:
        return _run_once(measuring, plan, model, text, first_tps)
    found = generate(
        measuring.serving.address, _request(measuring, plan, text), first_prompt_tps=first_tps
    )
    return _replied(found)


def _at_once(measuring: Measuring, plan: Plan, texts: list[str]) -> list[Reply]:
    """All of them together. Raises the first RequestError of its streams."""
    address = measuring.serving.address
    requests = [_request(measuring, plan, text) for text in texts]
    outcomes = ask_at_once(
        len(requests),
        lambda index, ready: _replied(generate(address, requests[index], before_send=ready)),
    )
    problem = first_reason(outcomes)
    if problem is not None:
        raise problem
    return [outcome for outcome in outcomes if isinstance(outcome, Reply)]


def _request(measuring: Measuring, plan: Plan, text: str) -> Generate:
    return measuring.request(text, plan.n_gen, n_prompt=plan.n_prompt, has_warm_cache=plan.is_warm)


def _replied(found: OllamaAnswer) -> Reply:
    return Reply(
        durations=found.durations, ended_ns=time.time_ns(), flags=found.flags, timing=found.timing
    )


def _run_once(
    measuring: Measuring, plan: Plan, model: str, text: str, first_tps: float | None
) -> Reply:
    serving = measuring.serving
    if len(text.encode()) > MAX_PROMPT_BYTES:
        raise RequestError(
            "too_large",
            f"a prompt of {plan.n_prompt} tokens cannot stand on a command line; measure it with mode: api",
        )
    call = describe_run(serving.program, serving.address, model, text)
    done = subprocess.run(
        call.argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=clean_environment((*call.env, ("HOME", serving.home))),
        check=False,
    )
    code = None if done.returncode < 0 else done.returncode
    found = read_run(code, done.stderr, _asked(measuring, plan), first_prompt_tps=first_tps)
    return Reply(durations=found.durations, ended_ns=time.time_ns(), flags=found.flags)
