"""Cells of an OpenAI-compatible server -> requests -> rows: what is asked, and what counts as one repetition.

    pp N      a prompt of N tokens and one answered token; a repetition lasts from send to that token (TTFT)
    tg N      N + 1 tokens answered; it lasts from the first of them to the last, N tokens
    pg N+M    both; it lasts from send to the last token

With several streams pp and pg last from the first such moment of any stream to the last of any, and count the tokens of all. tg
lasts while all streams answer at once, from the latest first token to the earliest last one, and counts the tokens in between: so
no prompt of another stream is in it.

With a turn all that was said before goes in front of the prompt, and the tokens of the whole are counted (`conversations`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from llamasweep.drivers import conversations
from llamasweep.drivers.conversations import Held, Prompt, Talk
from llamasweep.engines.at_once import first_reason
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
from llamasweep.results.request_load import request_load
from llamasweep.sweep.cell import Cell, TestKind
from llamasweep.sweep.parameters import Scalar

LENGTH_TOLERANCE_TOKENS = 4
"""A prompt may miss its length by so much, and is counted as it is; one that misses it by more is another test."""
SHORT_PROMPT_TOKENS = 16
"""A prompt that only starts a generation; a tag needs about ten."""

_NEVER_CACHED_TOKENS = 32
"""Of a prompt that was read before, so many tokens at most are read again."""

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

    @property
    def is_chat(self) -> bool:
        """Whether prompts go through the model's template."""
        return bool(self.job.options.get("is_chat"))

    def shape(self, n_tokens: int) -> PromptShape:
        """A prompt of that many tokens by the server's own count. Raises RequestError."""
        if n_tokens not in self.shapes:
            self.shapes[n_tokens] = calibrate(n_tokens, self._count())
        return self.shapes[n_tokens]

    def _count(self) -> Count:
        if self.dialect == "llama-server" and not self.is_chat:
            return llama_server_count(self.address)
        return answered_count(
            lambda text: complete(self.address, self.request(text, 1)).timing.n_prompt
        )

    def fresh_texts(self, n_tokens: int, n_streams: int) -> list[str]:
        """Prompts that no cache has seen, the same ones in every run of this job."""
        shape = self.shape(n_tokens)
        first, self._n_prompts = self._n_prompts, self._n_prompts + n_streams
        return [shape.text(1 + first + i) for i in range(n_streams)]

    def request(self, text: Prompt, n_gen: int, *, is_warm: bool = False) -> Completion:
        """One request; is_warm lets the server use what it has cached."""
        return Completion(
            model=self.model,
            prompt=text,
            n_gen=n_gen,
            is_chat=self.is_chat,
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
    turns = conversations.turns_of(cells)
    talks: dict[conversations.Key, Held] = {}

    def tell(index: int, step: Step, repetition: int | None = None) -> None:
        place = None if repetition is None else (repetition, asking.job.n_reps)
        print_line(progress_line(index, len(cells), step, place))

    for index, cell in enumerate(cells):
        plan, key = _plan(cell), conversations.key_of(cell)
        if key not in turns:
            tell(index, "starting")
            rounds = _rounds(asking, plan, lambda step, r=None, i=index: tell(i, step, r))
            flags = _flags(rounds, plan)
        else:
            if key not in talks:
                talks[key] = _held(asking, plan, turns[key], tell)
            turn = request_load(dict(cell.params)).turn
            rounds = talks[key].of_turn(turn)
            flags = _flags_of_turn(rounds, talks[key].rounds.get(turn - 1), plan)
        print_row(_row(plan, index, rounds, applied, flags).line())


def _rounds(asking: Asking, plan: _Plan, tell: Callable[..., None]) -> list[list[Answer]]:
    """The answers of each repetition, and of its streams."""
    if asking.job.warmup:
        tell("warmup prompt")
        _ask(asking, plan)
    rounds: list[list[Answer]] = []
    for repetition in range(asking.job.n_reps):
        tell("prompt", repetition)
        rounds.append(_ask(asking, plan))
    return rounds


def _held(asking: Asking, plan: _Plan, cells: Mapping[int, int], tell: Callable[..., None]) -> Held:
    """The conversations of all these turns. cells: turn -> index of its cell."""
    for index in cells.values():
        tell(index, "starting")
    first = min(cells.values())

    def ask(turn: int, prompts: Sequence[Prompt]) -> list[Answer]:
        check = _whole if turn == 1 else _long_enough
        return [check(answer, plan) for answer in _sent(asking, plan, prompts)]

    if asking.job.warmup:
        tell(first, "warmup prompt")
        _sent(asking, plan, asking.fresh_texts(plan.n_prompt, plan.n_streams))
    return conversations.hold(
        Talk(n_message=plan.n_prompt, is_chat=asking.is_chat, is_warm=plan.is_warm),
        n_turns=max(cells),
        first_turn=min(cells),
        n_reps=asking.job.n_reps,
        fresh=lambda: asking.fresh_texts(plan.n_prompt, plan.n_streams),
        ask=ask,
        tell=lambda repetition, turn: tell(cells.get(turn, first), "prompt", repetition),
    )


def _row(
    plan: _Plan,
    index: int,
    rounds: Sequence[Sequence[Answer]],
    applied: dict[str, Scalar],
    flags: tuple[str, ...],
) -> DriverRow:
    spans = [span_of(plan.cell.test.kind, [a.timing for a in answers]) for answers in rounds]
    offset_ns = time.time_ns() - time.monotonic_ns()
    timings = [answer.timing for answers in rounds for answer in answers]
    return DriverRow(
        cell_index=index,
        test=plan.cell.test,
        samples_ns=tuple(span.end_ns - span.start_ns for span in spans),
        started_ns=tuple(span.start_ns + offset_ns for span in spans),
        n_tokens=tuple(span.n_tokens for span in spans),
        columns=latency_columns(timings, plan.n_streams),
        applied=applied,
        flags=flags,
    )


def _ask(asking: Asking, plan: _Plan) -> list[Answer]:
    """One repetition. Raises the first RequestError of its streams."""
    texts = asking.fresh_texts(plan.n_prompt, plan.n_streams)
    if plan.is_warm:
        for text in texts:
            complete(asking.address, asking.request(text, plan.n_gen, is_warm=True))
    return [_whole(answer, plan) for answer in _sent(asking, plan, texts)]


def _sent(asking: Asking, plan: _Plan, prompts: Sequence[Prompt]) -> list[Answer]:
    """One prompt per stream, all at once. Raises the first RequestError of them."""
    requests = [asking.request(prompt, plan.n_gen, is_warm=plan.is_warm) for prompt in prompts]
    if len(requests) == 1:
        return [complete(asking.address, requests[0])]
    outcomes = complete_at_once(asking.address, requests)
    problem = first_reason(outcomes)
    if problem is not None:
        raise problem
    return [outcome for outcome in outcomes if isinstance(outcome, Answer)]


def _whole(answer: Answer, plan: _Plan) -> Answer:
    """A prompt and an answer as long as asked: another test would stand in the row else."""
    n_prompt = answer.timing.n_prompt
    if n_prompt is not None and abs(n_prompt - plan.n_prompt) > LENGTH_TOLERANCE_TOKENS:
        raise RequestError(
            "prompt_truncated",
            f"the server counts {n_prompt} tokens in a prompt of {plan.n_prompt}",
        )
    return _long_enough(answer, plan)


def _long_enough(answer: Answer, plan: _Plan) -> Answer:
    if answer.timing.n_gen < plan.n_gen:
        raise RequestError(
            "early_stop",
            f"the answer ended after {answer.timing.n_gen} of {plan.n_gen} tokens "
            f"({answer.timing.finish_reason or 'no reason given'})",
        )
    return answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A repetition: monotonic start and end, and the tokens that count in between."""

    start_ns: int
    end_ns: int
    n_tokens: int


def span_of(kind: TestKind, timings: Sequence[RequestTiming]) -> Span:
    """What one repetition of a test is, over all its streams; see the head of this module.

    Tokens of a prompt are as the server counts them. Raises RequestError where no time passed, or where streams never
    answered at the same time.
    """
    first = [t.event_ns[0] for t in timings]
    last = [t.event_ns[-1] for t in timings]
    sent = min(t.sent_ns for t in timings)
    if kind == "tg":
        span = _while_all_answer(timings, max(first), min(last))
    elif kind == "pp":
        span = Span(start_ns=sent, end_ns=max(first), n_tokens=sum(map(_prompt_tokens, timings)))
    else:
        n_tokens = sum(_prompt_tokens(t) + t.n_gen for t in timings)
        span = Span(start_ns=sent, end_ns=max(last), n_tokens=n_tokens)
    if span.n_tokens < 1 or span.end_ns <= span.start_ns:
        raise RequestError("no_tokens", "all tokens came in one event; their rate cannot be told")
    return span


def _while_all_answer(timings: Sequence[RequestTiming], start_ns: int, end_ns: int) -> Span:
    if len(timings) == 1:
        return Span(start_ns=start_ns, end_ns=end_ns, n_tokens=timings[0].n_gen - 1)
    if not all(t.has_one_token_per_event for t in timings):
        raise RequestError(
            "no_tokens", "several tokens came in one event; streams at once cannot be counted"
        )
    if end_ns <= start_ns:
        raise RequestError(
            "no_tokens", "the streams never answered at the same time; ask for more tokens"
        )
    n_tokens = sum(start_ns < at <= end_ns for t in timings for at in t.event_ns)
    return Span(start_ns=start_ns, end_ns=end_ns, n_tokens=n_tokens)


def _prompt_tokens(timing: RequestTiming) -> int:
    if timing.n_prompt is None:
        raise RequestError("garbage_output", "the server does not tell how long the prompt was")
    return timing.n_prompt


def latency_columns(timings: Sequence[RequestTiming], n_streams: int) -> dict[str, float | int]:
    """Latency columns, without those that nothing is known of."""
    figures = latency_figures(timings, n_streams=n_streams)
    found: dict[str, float | int | None] = {
        "n_requests": figures.n_requests,
        "user_median_tps": figures.user_tps.median,
        "n_cached_tokens": figures.n_cached,
        "n_requests_counted_here": figures.n_counted,
        "n_prompt_counted": middle([t.n_prompt for t in timings]),
        "server_pp_tps": middle([t.server.prompt_tps if t.server else None for t in timings]),
        "server_tg_tps": middle([t.server.decode_tps if t.server else None for t in timings]),
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


def middle(values: Sequence[float | int | None]) -> float | int | None:
    """The median of what is known, a whole number of whole numbers; None of nothing."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    middle = median(known)
    return int(middle) if all(isinstance(value, int) for value in known) else middle


def _flags(rounds: Sequence[Sequence[Answer]], plan: _Plan) -> tuple[str, ...]:
    answers = [answer for found in rounds for answer in found]
    found = {flag for answer in answers for flag in answer.flags}
    if any(a.timing.n_prompt not in (None, plan.n_prompt) for a in answers):
        found.add("prompt_length_differs")
    cached = [a.timing.n_cached for a in answers if a.timing.n_cached is not None]
    if plan.is_warm and any(n < plan.n_prompt - _NEVER_CACHED_TOKENS for n in cached):
        found.add("prompt_not_cached")
    return tuple(sorted(found))


def _flags_of_turn(
    rounds: Sequence[Sequence[Answer]],
    before: Sequence[Sequence[Answer]] | None,
    plan: _Plan,
) -> tuple[str, ...]:
    """before: the turn before it in the same repetitions, None for the first."""
    found = {flag for answers in rounds for answer in answers for flag in answer.flags}
    pairs = zip(before or (), rounds, strict=False)
    if plan.is_warm and any(conversations.was_read_again(then, now) for then, now in pairs):
        found.add("prompt_not_cached")
    return tuple(sorted(found))


def _applied(asking: Asking) -> dict[str, Scalar]:
    """What the server says of itself."""
    if asking.dialect != "llama-server":
        return {}
    props = call_json(asking.address, "GET", "/props")
    slots = props.get("total_slots") if isinstance(props, dict) else None
    return {"concurrency": slots} if isinstance(slots, int) and slots > 0 else {}
