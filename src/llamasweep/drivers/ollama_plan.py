"""What a cell of Ollama asks for, and what of an answer counts as its repetition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.drivers.requests import Span, span_of
from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.ollama import LEAST_PROMPT_TOKENS
from llamasweep.engines.ollama_answers import OllamaDurations
from llamasweep.results.latency import RequestTiming
from llamasweep.sweep.cell import Cell


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """One request that was answered. ended_ns: Unix time. timing: at the client, None for `ollama run`."""

    durations: OllamaDurations
    ended_ns: int
    flags: tuple[str, ...]
    timing: RequestTiming | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a cell asks for. n_prompt, n_gen: tokens of the request. n_streams: at once; None where the cell names no number, and
    Ollama's own clock counts."""

    cell: Cell
    n_prompt: int
    n_gen: int
    is_warm: bool
    n_streams: int | None = None

    def span(self, replies: Sequence[Reply]) -> Span:
        """A repetition, in Unix time: of several streams by our clock, since no server's clock spans them, and so too of the one
        that they are held against. Raises RequestError where nobody told."""
        timings = [reply.timing for reply in replies if reply.timing is not None]
        if self.n_streams is not None and timings:
            found = span_of(self.cell.test.kind, timings)
            offset_ns = time.time_ns() - time.monotonic_ns()
            return Span(
                start_ns=found.start_ns + offset_ns,
                end_ns=found.end_ns + offset_ns,
                n_tokens=found.n_tokens,
            )
        (reply,) = replies
        start_ns = self.started_ns(reply)
        return Span(
            start_ns=start_ns,
            end_ns=start_ns + self.span_ns(reply.durations),
            n_tokens=self.n_tokens(reply.durations),
        )

    def n_tokens(self, found: OllamaDurations) -> int:
        """What one repetition counts, by the server's own count. Raises RequestError where it did not tell."""
        kind = self.cell.test.kind
        if kind == "pp":
            return self._n_read(found)
        if found.eval_count is None:
            raise RequestError("garbage_output", "Ollama does not tell how long the answer was")
        if kind == "tg":
            return found.eval_count - 1  # its clock starts at the first token
        return self._n_read(found) + found.eval_count

    def _n_read(self, found: OllamaDurations) -> int:
        """Tokens of the prompt that were read; a warm prompt counts whole, that is what it measures."""
        if found.prompt_eval_count is None:
            raise RequestError("garbage_output", "Ollama does not tell how long the prompt was")
        n_cached = found.prompt_eval_cached_count
        if (
            self.is_warm or n_cached is None
        ):  # not told: `check_answer` doubts a prompt that was read too fast
            return found.prompt_eval_count
        return found.prompt_eval_count - n_cached

    def started_ns(self, reply: Reply) -> int:
        """Unix time at which it began, told from the end of the request."""
        end_ns = reply.ended_ns
        answered_ns = reply.durations.eval_duration_ns
        if self.cell.test.kind == "pp" and answered_ns is not None:
            end_ns -= answered_ns  # the one token that is asked for comes after the prompt
        return end_ns - self.span_ns(reply.durations)

    def span_ns(self, found: OllamaDurations) -> int:
        """What one repetition took. Raises RequestError where the server did not tell."""
        kind = self.cell.test.kind
        parts = {
            "pp": (found.prompt_eval_duration_ns,),
            "tg": (found.eval_duration_ns,),
            "pg": (found.prompt_eval_duration_ns, found.eval_duration_ns),
        }[kind]
        if any(not part for part in parts):
            raise RequestError("no_final_chunk", "Ollama did not tell how long it took")
        return sum(part for part in parts if part is not None)


def plan_of(cell: Cell) -> Plan:
    """The request of a cell."""
    test, streams = cell.test, cell.get("concurrency")
    return Plan(
        cell=cell,
        n_prompt=test.n_prompt if test.n_prompt else max(cell.n_depth, LEAST_PROMPT_TOKENS),
        n_gen={"pp": 1, "tg": test.n_gen + 1, "pg": test.n_gen}[test.kind],
        is_warm=cell.get("prompt_cache") == "warm",
        n_streams=None if streams is None else int(streams),
    )
