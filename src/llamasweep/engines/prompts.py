"""Prompts of an asked number of tokens, by the server's own count, each with a random tag at its very start.

The tag makes every prompt new from its first tokens on, so that no cache of prefixes flatters a time to first token. Pure but
for the count, which the caller asks of a server.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from llamasweep.engines.http_exchange import RequestError, ServerAddress, call_json

Count = Callable[[str], int]
"""Tokens of a text, as the server counts them, template and special tokens included."""

WORDS = (
    *(
        "time",
        "year",
        "work",
        "life",
        "hand",
        "part",
        "head",
        "side",
        "line",
        "name",
        "home",
        "book",
        "door",
        "road",
    ),
    *(
        "tree",
        "bird",
        "fish",
        "rain",
        "snow",
        "wind",
        "lake",
        "hill",
        "farm",
        "ship",
        "boat",
        "king",
        "song",
        "game",
    ),
    *(
        "ball",
        "cake",
        "milk",
        "salt",
        "gold",
        "iron",
        "wood",
        "wall",
        "roof",
        "room",
        "desk",
        "lamp",
    ),
)
"""Of four letters, and one token with their space in common vocabularies."""
_FILLERS = ("", " a", ".", " a.", " a a", "..", " a a.", " a a a", ".a.a", " a.a.a")
"""Short endings that change the count by a token or few."""
_TAG_DIGITS = 8
_MAX_COUNTS = 24
CACHED_TOLERANCE_TOKENS = 16
"""More tokens than this from a cache are a prompt that was not new: a tag cannot differ before its first token, and a template
may stand before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptShape:
    """What makes a prompt of n_tokens, whatever its tag. n_tokens: as counted; n_asked: as wanted."""

    n_words: int
    filler: str
    n_tokens: int
    n_asked: int

    @property
    def is_exact(self) -> bool:
        return self.n_tokens == self.n_asked

    def text(self, seed: int) -> str:
        """The prompt with the tag and words of this seed."""
        return _text(self.n_words, self.filler, seed)


def _text(n_words: int, filler: str, seed: int) -> str:
    """Digits first: nearly every vocabulary cuts eight of them into the same number of tokens, whichever they are."""
    rng = random.Random(seed)  # noqa: S311  (no secret: the same run again has the same prompts)
    tag = "".join(rng.choice("0123456789") for _ in range(_TAG_DIGITS))
    return " ".join((tag, *rng.choices(WORDS, k=n_words))) + filler


def calibrate(n_tokens: int, count: Count, *, seed: int = 0) -> PromptShape:
    """The shape of n_tokens tokens, or the nearest below that was found. Raises RequestError where even a tag is longer.

    The count is taken to grow by a constant number of tokens a word; where it does not, the search goes on by what is
    missing, 24 counts at most. Repetitions have other tags: their true count stands in each answer.
    """
    counts: dict[tuple[int, str], int] = {}

    def measure(n_words: int, filler: str = "") -> int:
        if (n_words, filler) not in counts:
            counts[n_words, filler] = count(_text(n_words, filler, seed))
        return counts[n_words, filler]

    base = measure(0)
    if base > n_tokens:
        raise _too_short(base, n_tokens)
    per_word = max(1.0, (measure(64) - base) / 64)
    n_words = int((n_tokens - base) / per_word)
    while len(counts) < _MAX_COUNTS // 2:
        n_missing = n_tokens - measure(n_words)
        step = int(n_missing / per_word) if n_missing >= 0 else min(-1, round(n_missing / per_word))
        if step == 0 or (n_words + step, "") in counts or n_words + step < 0:
            break
        n_words += step
    for words in (n_words, n_words - 1):
        for filler in _FILLERS:
            if n_tokens in counts.values() or len(counts) >= _MAX_COUNTS or words < 0:
                break
            measure(words, filler)
    fitting = {at: n for at, n in counts.items() if n <= n_tokens}
    (words, filler), found = max(fitting.items(), key=lambda item: item[1])
    return PromptShape(n_words=words, filler=filler, n_tokens=found, n_asked=n_tokens)


def estimate(n_tokens: int, count: Count, *, seed: int = 0) -> PromptShape:
    """The shape of about n_tokens tokens, from the counts of two short prompts; n_tokens of the shape is what they promise.

    For a server that must read a prompt to count it. Raises RequestError where even a tag is longer.
    """
    n_probe = 48
    base = count(_text(0, "", seed))
    if base > n_tokens:
        raise _too_short(base, n_tokens)
    per_word = max(1.0, (count(_text(n_probe, "", seed)) - base) / n_probe)
    n_words = int((n_tokens - base) / per_word)
    promised = base + round(n_words * per_word)
    return PromptShape(n_words=n_words, filler="", n_tokens=promised, n_asked=n_tokens)


def _too_short(base: int, n_tokens: int) -> RequestError:
    return RequestError(
        "context_too_small",
        f"the shortest prompt with a tag has {base} tokens here, more than the {n_tokens} asked for",
    )


def llama_server_count(address: ServerAddress) -> Count:
    """The count of llama-server's /tokenize: of a raw prompt, with the special token before it where the model wants one."""

    def count(text: str) -> int:
        body = {"content": text, "add_special": True}
        found = call_json(address, "POST", "/tokenize", body)
        tokens = found.get("tokens") if isinstance(found, Mapping) else None
        if not isinstance(tokens, list):
            raise RequestError("garbage_output", "/tokenize answered without tokens")
        return len(tokens)

    return count


def answered_count(ask: Callable[[str], int | None]) -> Count:
    """The count that an answer to the prompt tells (usage, prompt_eval_count); one token is generated each time."""

    def count(text: str) -> int:
        n_tokens = ask(text)
        if n_tokens is None:
            raise RequestError(
                "garbage_output", "the server does not tell how many tokens a prompt has"
            )
        return n_tokens

    return count
