"""Cells of an OpenAI-compatible server -> requests -> rows: what is asked, and what counts as one repetition.

    pp N      a prompt of N tokens and one answered token; a repetition lasts from send to that token (TTFT)
    tg N      N + 1 tokens answered; it lasts from the first of them to the last, N tokens
    pg N+M    both; it lasts from send to the last token

With several streams a repetition lasts from the first such moment of any stream to the last of any, and counts the tokens of all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from llamasweep.engines.driven import DriverRow, Job, Step, progress_line
from llamasweep.engines.http_exchange import RequestError, ServerAddress, call_json
from llamasweep.engines.openai_client import (
    Answer,
    Completion,
    Dialect,
    complete,
    complete_at_once,
)
from llamasweep.engines.prompts import (
    Count,
    PromptShape,
    answered_count,
    calibrate,
    llama_server_count,
)
from llamasweep.results.latency import RequestTiming, Spread, latency_figures
from llamasweep.sweep.cell import Cell
from llamasweep.sweep.parameters import Scalar

SHORT_PROMPT_TOKENS = 16
"""A prompt that only starts a generation; a tag needs about ten."""

Say = Callable[[str], None]


@dataclass(slots=True)
class Asking:
    """A server and what is known of it. shapes: prompts by their number of tokens."""

    address: ServerAddress
    model: str
    dialect: Dialect
    job: Job
    shapes: dict[int, PromptShape] = field(default_factory=dict)
    _n_prompts: int = 0

    def shape(self, n_tokens: int) -> PromptShape:
        """A prompt of that many tokens by the server's own count. Raises RequestError."""
        if n_tokens not in self.shapes:
            self.shapes[n_tokens] = calibrate(n_tokens, self._count())
        return self.shapes[n_tokens]

    def _count(self) -> Count:
        if self.dialect == "llama-server":
            return llama_server_count(self.address)
        return answered_count(
            lambda text: complete(self.address, self.request(text, 1)).timing.n_prompt
        )

    def fresh_texts(self, n_tokens: int, n_streams: int) -> list[str]:
        """Prompts that no cache has seen, the same ones in every run of this job."""
        shape = self.shape(n_tokens)
        first, self._n_prompts = self._n_prompts, self._n_prompts + n_streams
        return [shape.text(1 + first + i) for i in range(n_streams)]

    def request(self, text: str, n_gen: int, *, is_warm: bool = False) -> Completion:
        """One request; is_warm lets the server use what it has cached."""
        return Completion(
            model=self.model,
            prompt=text,
            n_gen=n_gen,
            is_chat=False,
            seed=1,
            dialect=self.dialect,
            has_prompt_cache=is_warm,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """What a cell asks for. n_prompt: tokens of the prompt; n_gen: tokens answered."""

    cell: Cell
    n_prompt: int
    n_gen: int
    n_streams: int
    is_warm: bool

    @property
    def n_tokens(self) -> int:
        """Of one repetition."""
        return self.n_streams * (self.cell.test.n_prompt + self.cell.test.n_gen)


def _plan(cell: Cell) -> _Plan:
    test = cell.test
    kind = test.kind
    return _Plan(
        cell=cell,
        n_prompt=test.n_prompt if kind != "tg" else max(cell.n_depth, SHORT_PROMPT_TOKENS),
        n_gen={"pp": 1, "tg": test.n_gen + 1, "pg": test.n_gen}[kind],
        n_streams=int(cell.get("concurrency") or 1),
        is_warm=cell.get("prompt_cache") == "warm",
    )


def measure_cells(asking: Asking, *, print_row: Say, print_line: Say) -> None:
    """Every cell of the job in order. Raises RequestError where one cannot be measured; rows before it are out."""
    cells = asking.job.cells()
    applied = _applied(asking)
    for index, cell in enumerate(cells):

        def tell(step: Step, repetition: int | None = None, index: int = index) -> None:
            place = None if repetition is None else (repetition, asking.job.n_reps)
            print_line(progress_line(index, len(cells), step, place))

        tell("starting")
        print_row(_measured(asking, _plan(cell), index, applied, tell).line())


def _measured(
    asking: Asking,
    plan: _Plan,
    index: int,
    applied: dict[str, Scalar],
    tell: Callable[..., None],
) -> DriverRow:
    if asking.job.warmup:
        tell("warmup prompt")
        _ask(asking, plan)
    rounds: list[list[Answer]] = []
    for repetition in range(asking.job.n_reps):
        tell("prompt", repetition)
        rounds.append(_ask(asking, plan))
    spans = [_span(plan, [a.timing for a in answers]) for answers in rounds]
    offset_ns = time.time_ns() - time.monotonic_ns()
    answers = [answer for answers in rounds for answer in answers]
    return DriverRow(
        cell_index=index,
        test=plan.cell.test,
        n_depth=plan.cell.n_depth,
        samples_ns=tuple(end - start for start, end in spans),
        started_ns=tuple(start + offset_ns for start, _ in spans),
        n_tokens=plan.n_tokens,
        columns=_columns([a.timing for a in answers], plan.n_streams),
        applied=applied,
        flags=_flags(answers, plan),
    )


def _ask(asking: Asking, plan: _Plan) -> list[Answer]:
    """One repetition. Raises the first RequestError of its streams."""
    texts = asking.fresh_texts(plan.n_prompt, plan.n_streams)
    requests = [asking.request(text, plan.n_gen, is_warm=plan.is_warm) for text in texts]
    if plan.is_warm:
        for request in requests:
            complete(asking.address, request)
    if len(requests) == 1:
        outcomes: Sequence[Any] = (complete(asking.address, requests[0]),)
    else:
        outcomes = complete_at_once(asking.address, requests)
    answers: list[Answer] = []
    for outcome in outcomes:
        if isinstance(outcome, RequestError):
            raise outcome
        answers.append(_whole(outcome, plan))
    return answers


def _whole(answer: Answer, plan: _Plan) -> Answer:
    """An answer as long as asked: a shorter one would be counted with the wrong number of tokens."""
    if answer.timing.n_gen < plan.n_gen:
        raise RequestError(
            "early_stop",
            f"the answer ended after {answer.timing.n_gen} of {plan.n_gen} tokens "
            f"({answer.timing.finish_reason or 'no reason given'})",
        )
    return answer


def _span(plan: _Plan, timings: Sequence[RequestTiming]) -> tuple[int, int]:
    """Monotonic start and end of a repetition."""
    first = [t.event_ns[0] for t in timings]
    kind = plan.cell.test.kind
    start = min(first) if kind == "tg" else min(t.sent_ns for t in timings)
    end = max(first) if kind == "pp" else max(t.event_ns[-1] for t in timings)
    if end <= start:
        raise RequestError("no_tokens", "all tokens came in one event; their rate cannot be told")
    return start, end


def _columns(timings: Sequence[RequestTiming], n_streams: int) -> dict[str, float | int]:
    """Latency columns, without those that nothing is known of."""
    figures = latency_figures(timings, n_streams=n_streams)
    found: dict[str, float | int | None] = {
        "n_requests": figures.n_requests,
        "user_median_tps": figures.user_tps.median,
        "n_cached_tokens": figures.n_cached,
        "n_requests_counted_here": figures.n_counted,
        "n_prompt_counted": _middle([t.n_prompt for t in timings]),
        "server_pp_tps": _middle([t.server.prompt_tps if t.server else None for t in timings]),
        "server_tg_tps": _middle([t.server.decode_tps if t.server else None for t in timings]),
    }
    for name, spread in _spreads(figures):
        for which in ("median", "p95", "p99"):
            value = getattr(spread, which)
            found[f"{name}_{which}_s"] = None if value is None else value / 1e3
    return {name: value for name, value in found.items() if value is not None}


def _spreads(figures: Any) -> list[tuple[str, Spread]]:
    gaps = figures.itl_ms if figures.are_events_tokens else Spread(n=0)
    return [
        ("ttft", figures.ttft_ms),
        ("tpot", figures.tpot_ms),
        ("itl", gaps),
        ("e2e", figures.e2e_ms),
    ]


def _middle(values: Sequence[float | int | None]) -> float | int | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    middle = median(known)
    return int(middle) if all(isinstance(value, int) for value in known) else middle


def _flags(answers: Sequence[Answer], plan: _Plan) -> tuple[str, ...]:
    found = {flag for answer in answers for flag in answer.flags}
    if any(a.timing.n_prompt not in (None, plan.n_prompt) for a in answers):
        found.add("prompt_length_differs")
    return tuple(sorted(found))


def _applied(asking: Asking) -> dict[str, Scalar]:
    """What the server says of itself."""
    if asking.dialect != "llama-server":
        return {}
    props = call_json(asking.address, "GET", "/props")
    slots = props.get("total_slots") if isinstance(props, dict) else None
    return {"concurrency": slots} if isinstance(slots, int) and slots > 0 else {}
