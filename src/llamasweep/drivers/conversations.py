"""Conversations that grow: a new message each turn, sent with all that was said before, and the answer read to its end.

    warm   the server may keep what it has read, as in a chat: at a turn it reads the last answer and the new message
    cold   the first message is another one each time, so that the whole conversation is new to the server

Knows what is sent at each turn and what counts as one that went well. A conversation is had once a repetition, up to the last
turn that is asked for, and each turn of it is a repetition of that turn's row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.openai_client import Answer
from llamasweep.sweep.cell import Cell, Test
from llamasweep.sweep.parameters import Scalar

Prompt = str | tuple[tuple[str, str], ...]
"""The text of a completion, or (role, text) in order."""
AskAll = Callable[[int, Sequence[Prompt]], list[Answer]]
"""At a turn, send one prompt per stream at once; raises RequestError where a stream fails or ends early."""
Fresh = Callable[[], list[str]]
"""A message of the asked length for each stream, which no cache has seen."""

_NEVER_CACHED_TOKENS = 32
"""Of what was sent a turn before, so many tokens at most are read again: a server cuts its cache at a border, and an answer may
be cut into other tokens when it comes back as text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Talk:
    """What a conversation asks. n_message: tokens of each message. is_warm: what was said before may come from the cache."""

    n_message: int
    is_chat: bool
    is_warm: bool


@dataclass(slots=True)
class Held:
    """Answers by turn, then repetition, then stream. failure: the first one, at failed_turn; no turn from there on is whole."""

    rounds: dict[int, list[list[Answer]]] = field(default_factory=dict)
    failed_turn: int | None = None
    failure: RequestError | None = None

    def of_turn(self, turn: int) -> list[list[Answer]]:
        """Raises the RequestError that ended the conversation there or before."""
        if self.failure is not None and self.failed_turn is not None and turn >= self.failed_turn:
            raise RequestError(
                self.failure.kind, f"at turn {self.failed_turn}: {self.failure.message}"
            )
        return self.rounds[turn]


def hold(
    talk: Talk,
    *,
    n_turns: int,
    n_reps: int,
    fresh: Fresh,
    ask: AskAll,
    tell: Callable[[int, int], object],
    first_turn: int = 1,
) -> Held:
    """As many conversations as repetitions. tell: told the repetition and the turn before each request. first_turn: that is asked
    for.

    A turn that fails ends its conversation, and those after it stop before that turn, or are not had at all where no turn that is
    asked for comes before it; a second failure ends them all.
    """
    held = Held()
    for repetition in range(n_reps):
        has_failed_before = held.failure is not None
        last = n_turns if held.failed_turn is None else held.failed_turn - 1
        if last < first_turn:
            break
        try:
            _converse(talk, held, last, fresh, ask, partial(tell, repetition))
        except RequestError as problem:
            if has_failed_before:
                break
            held.failure = problem
            held.failed_turn = 1 + sum(len(found) > repetition for found in held.rounds.values())
    return held


def _converse(
    talk: Talk, held: Held, n_turns: int, fresh: Fresh, ask: AskAll, tell: Callable[[int], object]
) -> None:
    messages: list[list[str]] = []
    answers: list[list[str]] = []
    before: list[Answer] = []
    for turn in range(1, n_turns + 1):
        messages.append(fresh())
        if not talk.is_warm and turn > 1:
            messages[0] = fresh()
        tell(turn)
        said = [
            prompt_of([m[stream] for m in messages], [a[stream] for a in answers], talk)
            for stream in range(len(messages[0]))
        ]
        found = ask(turn, said)
        _check_growth(talk, found, before)
        held.rounds.setdefault(turn, []).append(found)
        answers.append([answer.text for answer in found])
        before = found


def prompt_of(messages: Sequence[str], answers: Sequence[str], talk: Talk) -> Prompt:
    """All that was said: one message more than there are answers."""
    if talk.is_chat:
        turns = [("user", messages[0])]
        for answer, message in zip(answers, messages[1:], strict=True):
            turns += [("assistant", answer), ("user", message)]
        return tuple(turns)
    later = (f"{answer}\n{message}" for answer, message in zip(answers, messages[1:], strict=True))
    return messages[0] + "".join(later)


def _check_growth(talk: Talk, found: Sequence[Answer], before: Sequence[Answer]) -> None:
    """A prompt that grows by less than half a message was cut by the server. Raises RequestError."""
    for now, then in zip(found, before, strict=False):
        n_now, n_then = now.timing.n_prompt, then.timing.n_prompt
        if n_now is not None and n_then is not None and 2 * (n_now - n_then) < talk.n_message:
            raise RequestError(
                "prompt_truncated",
                f"the server counts {n_now} tokens in a conversation that had {n_then} before "
                f"{talk.n_message} more",
            )


def was_read_again(before: Sequence[Answer], now: Sequence[Answer]) -> bool:
    """Whether a stream's cache held less than what was sent a turn before; False where the server does not tell."""
    return any(
        one.timing.n_cached is not None
        and then.timing.n_prompt is not None
        and one.timing.n_cached < then.timing.n_prompt - _NEVER_CACHED_TOKENS
        for then, one in zip(before, now, strict=True)
    )


Key = tuple[Test, tuple[tuple[str, Scalar], ...]]


def key_of(cell: Cell) -> Key:
    """What the turns of one conversation have in common."""
    return cell.test, tuple((name, value) for name, value in cell.params if name != "turn")


def turns_of(cells: Sequence[Cell]) -> Mapping[Key, Mapping[int, int]]:
    """Turn -> index of its cell, for each conversation among the cells."""
    found: dict[Key, dict[int, int]] = {}
    for index, cell in enumerate(cells):
        turn = cell.get("turn")
        if turn is not None:
            found.setdefault(key_of(cell), {})[int(turn)] = index
    return found
