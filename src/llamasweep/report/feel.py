"""What it feels like: seconds until the first token and until the last, from measured rates. Rows in, plain data out.

The formula is `ceilings.workload`'s. Queue, network, tokenising and sampling are not in it, and rates hold for the depth
at which they were measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llamasweep.ceilings.workload import Workload, workload
from llamasweep.report import figures
from llamasweep.report.comparison import load, median
from llamasweep.report.rows import Row, axis_value, varying
from llamasweep.report.strips import representative, setting_word

PROMPTS = (1_000, 12_000)
N_ANSWER = 200
MAX_MODELS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """One request as a bar. prefill, end: positions from 0 to 1 of the first and the last token on the common axis."""

    n_prompt: int
    first_token: str
    whole: str
    prefill: float
    end: float
    words: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelWaits:
    """A model in its best setting. setting: in words, '' if nothing varies. anchors: the tg and the pp row."""

    subject: str
    setting: str
    anchors: tuple[str, str]
    waits: tuple[Wait, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Feel:
    """All models. axis_end: the right end of the common time axis in words. caption: where the rates come from."""

    models: tuple[ModelWaits, ...]
    axis_end: str
    caption: str


Pair = tuple[Row, Row]
"""tg and pp of one setting."""


def feel(rows: Sequence[Row]) -> Feel | None:
    """The section; None where no model has both a pp and a tg rate of one new request in one setting.

    Rates of several requests at once are sums over all of them, and a warm prompt is mostly not read.
    """
    timed = [row for row in rows if row.rates is not None and load(row).is_one_new_request]
    pairs = _best_pairs(timed)
    if not pairs:
        return None
    chosen = pairs[:MAX_MODELS]
    requests = [[_request(pair, n_prompt) for n_prompt in PROMPTS] for pair in chosen]
    longest_s = max(one.e2e_s for of_model in requests for one in of_model)
    axes = varying(timed)
    return Feel(
        models=tuple(
            ModelWaits(
                subject=tg.subject,
                setting=", ".join(
                    setting_word(axis, value)
                    for axis in axes
                    if (value := axis_value(tg, axis)) is not None
                ),
                anchors=(tg.anchor, pp.anchor),
                waits=tuple(_wait(tg.subject, one, longest_s) for one in of_model),
            )
            for (tg, pp), of_model in zip(chosen, requests, strict=True)
        ),
        axis_end=figures.duration(longest_s),
        caption=_caption(chosen, len(pairs) - len(chosen)),
    )


def _best_pairs(timed: Sequence[Row]) -> list[Pair]:
    """Per model, build and run the setting that answers the shorter prompt soonest, at the least depth; fastest first."""
    axes = varying(timed)
    identity = tuple(axis for axis in axes if axis in ("run_id", "build"))
    settings: dict[tuple[object, ...], dict[str, Row]] = {}
    for kind in ("tg", "pp"):
        for row in representative(timed, kind):
            if not 0 < median(row) < math.inf:
                continue
            key = (row.family, row.quant, *(axis_value(row, axis) for axis in axes))
            settings.setdefault(key, {})[kind] = row
    best: dict[tuple[object, ...], Pair] = {}
    for of_kind in settings.values():
        if len(of_kind) < 2:
            continue
        pair = (of_kind["tg"], of_kind["pp"])
        tg = pair[0]
        key = (tg.family, tg.quant, *(axis_value(tg, axis) for axis in identity))
        if key not in best or _rank(pair) < _rank(best[key]):
            best[key] = pair
    return sorted(best.values(), key=_rank)


def _rank(pair: Pair) -> tuple[int, float]:
    return pair[0].attempt.n_depth, _request(pair, PROMPTS[0]).e2e_s


def _request(pair: Pair, n_prompt: int) -> Workload:
    tg, pp = pair
    assert tg.rates is not None and pp.rates is not None  # noqa: S101, PT018  (made of measured rows)
    return workload(n_prompt, N_ANSWER, prefill_tps=pp.rates.median, decode_tps=tg.rates.median)


def _wait(subject: str, one: Workload, longest_s: float) -> Wait:
    first, whole = figures.duration(one.ttft_s), figures.duration(one.e2e_s)
    return Wait(
        n_prompt=one.n_prompt,
        first_token=first,
        whole=whole,
        prefill=one.ttft_s / longest_s,
        end=one.e2e_s / longest_s,
        words=(
            f"{subject}, {figures.count(one.n_prompt)} tokens of prompt: first token after {first}, answer of "
            f"{N_ANSWER} tokens complete after {whole}, {figures.percent(one.prefill_fraction)} of it the prompt"
        ),
    )


def _caption(pairs: Sequence[Pair], n_left_out: int) -> str:
    tests = sorted({f"{pp.test} and {tg.test}" for tg, pp in pairs})
    depths = sorted({tg.attempt.n_depth for tg, _ in pairs})
    where = " and ".join(figures.count(depth) for depth in depths)
    text = (
        f"From the medians of {', '.join(tests)} at depth {where}, in the setting that answers the shorter prompt "
        "soonest: prompt ÷ pp rate, then 199 more tokens ÷ tg rate. Speed falls as the context fills, so the longer "
        "prompt takes more than this. Queue, network, tokenising and sampling are not in it."
    )
    return text + (f" {figures.counted(n_left_out, 'more model')} not shown." if n_left_out else "")
