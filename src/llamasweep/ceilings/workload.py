"""What a request feels like: time to the first token, to the last, and what each takes. Pure.

From any pair of rates, ceilings or measured ones; knows no model.
"""

from __future__ import annotations

from typing import NamedTuple

from llamasweep.ceilings.assumptions import Assumption

ALONE = Assumption(
    topic="workload",
    text="the request is alone; queue, network, tokenising, sampling and a cached prompt are not in it",
)
STEADY = Assumption(
    topic="workload", text="both rates hold for the whole prompt and the whole answer"
)


class Workload(NamedTuple):
    """One request, alone.

    ttft_s: until the first token, which the prompt's last pass yields. decode_s: from the first to
    the last. prefill_fraction: share of ttft_s in e2e_s. pp_over_tg: how many prompt tokens pass in
    the time of one generated.
    """

    n_prompt: int
    n_gen: int
    prefill_tps: float
    decode_tps: float
    ttft_s: float
    tpot_s: float
    decode_s: float
    e2e_s: float
    prefill_fraction: float
    pp_over_tg: float
    assumptions: tuple[Assumption, ...]


def workload(n_prompt: int, n_gen: int, *, prefill_tps: float, decode_tps: float) -> Workload:
    """Times of a request of n_prompt tokens in and n_gen out.

    Formulas: TTFT = n_prompt / prefill rate; E2E = TTFT + (n_gen - 1) / decode rate. Queue, network,
    tokenising and sampling are not in it. Raises ValueError for counts below 1 and rates that are
    not above 0.
    """
    if n_prompt < 1 or n_gen < 1 or not prefill_tps > 0 or not decode_tps > 0:
        raise ValueError("a request has tokens in, tokens out and rates above 0")
    ttft_s = time_of(n_prompt, prefill_tps)
    decode_s = time_of(n_gen - 1, decode_tps)
    return Workload(
        n_prompt=n_prompt,
        n_gen=n_gen,
        prefill_tps=prefill_tps,
        decode_tps=decode_tps,
        ttft_s=ttft_s,
        tpot_s=1 / decode_tps,
        decode_s=decode_s,
        e2e_s=ttft_s + decode_s,
        prefill_fraction=ttft_s / (ttft_s + decode_s),
        pp_over_tg=prefill_tps / decode_tps,
        assumptions=(ALONE, STEADY),
    )


def time_of(n_tokens: float, tps: float) -> float:
    """Seconds that tokens take at a rate: tokens / rate."""
    return n_tokens / tps


def tokens_of_words(n_words: float, tokens_per_word: float) -> float:
    """Tokens of a text by its words: words x tokens per word (about 1.3 to 1.5 in English)."""
    return n_words * tokens_per_word


def tps_of_tpot(tpot_ms: float) -> float:
    """Tokens per second at so many milliseconds per token: 1000 / ms."""
    return 1000.0 / tpot_ms


def achieved_flop_per_s(tps: float, flop_per_token: float) -> float:
    """Compute rate that a measured rate used: t/s x FLOP per token."""
    return tps * flop_per_token
