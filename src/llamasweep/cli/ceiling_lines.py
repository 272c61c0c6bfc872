"""The answer of `ceiling` as lines for people: each figure with its formula, and the numbers in it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from llamasweep.cli.terminal import printable
from llamasweep.units import (
    format_bytes,
    format_decimal_bytes,
    format_flop,
    format_flop_per_s,
    format_gb_per_s,
    format_seconds,
    format_tps,
)

if TYPE_CHECKING:
    from llamasweep.ceilings.answer import Answer
    from llamasweep.ceilings.answer_parts import PlacementPart

WIDTH = 98
_SHOWN_TOPICS = ("context", "bandwidth", "peak", "routing", "placement")
_USUAL = (0.70, 0.85)
"""Share of a ceiling that real programs reach with one memory and a dense model."""


_ROWS_BYTES = 100_000
"""A device that reads less per token holds rows of an embedding table and no layer."""


def tps(value: float) -> str:
    """Tokens per second with three digits that mean something, in thousands with a comma; two below 0.1."""
    if 0 < value < 0.1:
        return f"{value:.{1 - math.floor(math.log10(value))}f} t/s"
    if value < 1000:
        return format_tps(value)
    step = 10 ** (len(str(int(value))) - 3)
    return f"{round(value / step) * step:,} t/s"


def answer_lines(answer: Answer, model_name: str) -> Iterator[str]:
    """One screen."""
    yield from _head(answer, model_name)
    shown = ("model.", "decode.ceiling", "decode.pencil") if answer.kind == "exact" else ()
    for why in dict.fromkeys(why for key, why in answer.reasons.items() if key.startswith(shown)):
        yield from _wrapped(f"! {why}", "  ")
    yield ""
    yield from _decode(answer)
    yield ""
    yield from _prefill(answer)
    yield ""
    yield from _memory(answer)
    if answer.workload.decode_s is not None or answer.workload.ttft_s is not None:
        yield ""
        yield from _workload(answer)
    if answer.concurrency.streams > 1:
        yield ""
        yield from _streams(answer)
    yield ""
    yield from _assumed(answer)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(printable(text), WIDTH, subsequent_indent=indent)


def _head(answer: Answer, model_name: str) -> Iterator[str]:
    model = answer.model
    quant = f"  {model.quant}" if model.quant else ""
    active = model.n_active_params
    mixture = (
        f", {_count(active)} of them active"
        if active is not None and active < 0.8 * model.n_params
        else ""
    )
    kind = "  (pencil: from three numbers)" if answer.kind == "pencil" else ""
    yield printable(f"{model_name}{quant}{kind}")
    yield (
        f"{_count(model.n_params)} parameters{mixture}, {model.bits_per_weight:.2f} bits each: "
        f"{format_bytes(round(model.size_bytes))}"
    )
    yield printable(f"on {answer.rig}")


def _count(n: float) -> str:
    return f"{n / 1e9:.3g} billion" if n >= 1e9 else f"{n / 1e6:.3g} million"


def _line(answer: Answer, part: str, text: Callable[..., str], *figures: float | None) -> str:
    """A formula with all of its figures, or that one of them is not known; the only way from figures to a formula."""
    known = [figure for figure in figures if figure is not None]
    return text(*known) if len(known) == len(figures) else _not_known(answer, part)


def _not_known(answer: Answer, part: str) -> str:
    """part: of the answer, such as `decode`; the first reason for it or for one of its fields."""
    told = (why for path, why in answer.reasons.items() if path.partition(".")[0] == part)
    why = next(told, None)
    return printable("not known" if why is None else f"not known: {why}")


def _decode(answer: Answer) -> Iterator[str]:
    decode = answer.decode
    behind = f" behind {decode.n_depth} tokens" if decode.n_depth else ""
    if decode.ceiling_tps is None:
        pencil = decode.pencil_ceiling_tps
        if pencil is None:
            why = answer.reasons.get("decode.pencil_ceiling_tps")
            yield from _wrapped("Generating: no figure" + (f"; {why}" if why else ""), "  ")
        else:
            yield f"Generating, one user: about {tps(pencil)} at most, by pencil"
            yield f"  {_pencil_formula(answer)}"
        return
    yield f"Generating, one user{behind}: at most {tps(decode.ceiling_tps)}"
    busy = [part for part in answer.placement if part.read_bytes_per_token > _ROWS_BYTES]
    if len(busy) > 1:
        yield from _times_add(answer, busy, decode.ceiling_tps)
    else:
        yield f"  {_decode_formula(answer)}"
    weights, whole = decode.weight_bytes_per_token, decode.bytes_per_token
    yield f"  each token reads {_line(answer, 'decode', _reads, weights, whole)}"
    if len(busy) <= 1:
        yield f"  by pencil: {_pencil_formula(answer)}"
    yield from _usual(answer, decode.ceiling_tps, is_spread=len(busy) > 1)


def _reads(weights_bytes: float, whole_bytes: float) -> str:
    return (
        f"{format_decimal_bytes(weights_bytes)} of weights"
        f" and {format_decimal_bytes(whole_bytes - weights_bytes)} of context"
    )


def _decode_formula(answer: Answer) -> str:
    decode = answer.decode
    if decode.bound == "memory":
        figures = (decode.bandwidth_bytes_per_s, decode.bytes_per_token, decode.ceiling_tps)
        return _line(answer, "decode", partial(_by_memory, of="per token"), *figures)
    figures = (answer.prefill.peak_flop_per_s, decode.flop_per_token, decode.ceiling_tps)
    return _line(answer, "decode", _by_compute, *figures)


def _by_memory(bytes_per_s: float, n_bytes: float, ceiling_tps: float, *, of: str) -> str:
    return (
        f"{format_gb_per_s(bytes_per_s)} ÷ {format_decimal_bytes(n_bytes)} {of}"
        f" = {tps(ceiling_tps)}"
    )


def _by_compute(flop_per_s: float, flop: float, ceiling_tps: float) -> str:
    return f"{_rate_over_work(flop_per_s, flop)} = {tps(ceiling_tps)}, bound by compute"


def _rate_over_work(flop_per_s: float, flop: float) -> str:
    return f"{format_flop_per_s(flop_per_s)} ÷ {format_flop(flop)} per token"


def _times_add(answer: Answer, busy: list[PlacementPart], ceiling_tps: float) -> Iterator[str]:
    for part in busy:
        figures = (part.read_bytes_per_token, part.bandwidth_bytes_per_s)
        yield printable(f"  {part.device}: {_line(answer, 'decode', _time, *figures)}")
    yield f"  one after another: {1000 / ceiling_tps:.2f} ms per token = {tps(ceiling_tps)}"


def _time(n_bytes: float, bytes_per_s: float) -> str:
    return (
        f"{format_decimal_bytes(n_bytes)} ÷ {format_gb_per_s(bytes_per_s)}"
        f" = {1000 * n_bytes / bytes_per_s:.2f} ms"
    )


def _pencil_formula(answer: Answer) -> str:
    decode, model = answer.decode, answer.model
    size: float | None = model.size_bytes
    of = "of the whole model"
    if answer.kind == "pencil":
        size, of = model.active_bytes_per_token, "of active weights"
    figures = (decode.bandwidth_bytes_per_s, size, decode.pencil_ceiling_tps)
    return _line(answer, "decode", partial(_by_memory, of=of), *figures)


def _usual(answer: Answer, ceiling_tps: float, *, is_spread: bool) -> Iterator[str]:
    n_expert = answer.model.n_expert
    if n_expert is not None and n_expert > 0:
        yield "  real programs reach less: a mixture of experts on wide memory often half of it"
        return
    if is_spread:
        yield "  real programs reach less, and handing over from one device to the next takes time too"
        return
    low, high = (tps(share * ceiling_tps) for share in _USUAL)
    yield f"  real programs reach 70 to 85 % of it: {low.removesuffix(' t/s')} to {high}"


def _prefill(answer: Answer) -> Iterator[str]:
    prefill = answer.prefill
    what = f"Reading a prompt of {prefill.n_prompt} tokens"
    rate = prefill.ceiling_tps
    if rate is None:
        if prefill.pencil_ceiling_tps is not None and answer.kind == "pencil":
            figures = (prefill.peak_flop_per_s, prefill.flop_per_token)
            formula = _line(answer, "prefill", _rate_over_work, *figures)
            yield f"{what}: about {tps(prefill.pencil_ceiling_tps)}, by pencil: {formula}"
            return
        yield from _wrapped(f"{what}: no figure; {prefill.reason or 'not known'}", "  ")
        if prefill.flop_per_token is not None:
            yield f"  each token takes {format_flop(prefill.flop_per_token)}"
        return
    if prefill.is_reference:
        yield f"{what}: about {tps(rate)}, a reference and no bound: faster units may exist"
    else:
        yield f"{what}: at most {tps(rate)}, bound by {prefill.bound}"
    yield f"  {_prefill_formula(answer, rate)}"
    if prefill.expected_tps is not None and prefill.expected_tps < 0.98 * rate:
        yield f"  {tps(prefill.expected_tps)} if every token chooses other experts evenly"


def _prefill_formula(answer: Answer, rate: float) -> str:
    prefill = answer.prefill
    flop, peak = prefill.flop_per_token, prefill.peak_flop_per_s
    if flop is not None and peak is not None and abs(peak / flop / rate - 1) < 0.02:
        return f"{_rate_over_work(peak, flop)} = {tps(rate)}"
    bandwidth, n_bytes = answer.decode.bandwidth_bytes_per_s, prefill.bytes_per_token
    if n_bytes and bandwidth is not None and abs(bandwidth / n_bytes / rate - 1) < 0.02:
        return _by_memory(bandwidth, n_bytes, rate, of="per token")
    figures = (flop, prefill.bytes_per_token, prefill.n_passes, peak)
    return _line(answer, "prefill", _work_and_bytes, *figures)


def _work_and_bytes(flop: float, n_bytes: float, n_passes: float, flop_per_s: float) -> str:
    batches = "batch" if n_passes == 1 else "batches"
    return (
        f"{format_flop(flop)} and {format_decimal_bytes(n_bytes)} per token, {n_passes:.0f} {batches},"
        f" at {format_flop_per_s(flop_per_s)}"
    )


def _memory(answer: Answer) -> Iterator[str]:
    memory = answer.memory
    verdict = {True: "it fits", False: "it does NOT fit", None: "not known whether it fits"}
    yield f"Memory: {verdict[memory.fits]}"
    several = [
        part
        for part in answer.placement
        if part.available_bytes is not None or part.read_bytes_per_token > _ROWS_BYTES
    ]
    if len(several) > 1:
        yield "  each with room to compute and something kept free for the system"
        for part in several:
            size = part.available_bytes
            of = "" if size is None else f" of {format_bytes(size)}"
            short = "" if part.fits is not False else "  TOO MUCH"
            yield printable(
                f"  {part.device}: {format_bytes(part.total_bytes)}{of}{short} "
                f"({_layers(part.n_layers)}, {format_bytes(part.weights_bytes)} of weights)"
            )
        yield from _hint(answer)
        return
    parts = [f"{format_bytes(round(memory.weights_bytes))} of weights"]
    if memory.context_bytes is not None:
        cells = answer.kv_cache.n_ctx
        parts.append(f"{format_bytes(memory.context_bytes)} of context ({cells} tokens)")
    if memory.compute_bytes_upper is not None:
        parts.append(f"at most {format_bytes(memory.compute_bytes_upper)} to compute")
    if memory.reserve_bytes is not None:
        parts.append(f"{format_bytes(memory.reserve_bytes)} kept free")
    total = "" if memory.total_bytes is None else f" = {format_bytes(round(memory.total_bytes))}"
    of = "" if memory.available_bytes is None else f" of {format_bytes(memory.available_bytes)}"
    yield from (f"  {line}" for line in _wrapped(" + ".join(parts) + total + of, "  "))
    yield from _hint(answer)
    if memory.disk is not None:
        yield (
            f"  weights would come from disk again and again: {tps(memory.disk.slowest_tps)}"
            f" to {tps(memory.disk.fastest_tps)}"
        )


def _layers(n_layers: int) -> str:
    return f"{n_layers} layer{'' if n_layers == 1 else 's'}"


def _hint(answer: Answer) -> Iterator[str]:
    if answer.memory.fits is not False:
        return
    yield "  rates and times here are those of a memory large enough"
    if answer.kind == "exact":
        yield "  `llamasweep fit` looks for settings that fit"


def _workload(answer: Answer) -> Iterator[str]:
    work = answer.workload
    yield f"A request of {work.n_prompt} tokens in, {work.n_gen} out, alone"
    by_reference = answer.prefill.is_reference and work.ttft_s is not None
    best = "" if work.is_measured else ", by that reference" if by_reference else ", at best"
    if work.ttft_s is None and work.decode_s is not None:
        yield f"  {format_seconds(work.decode_s)} from the first token to the last{best}"
    elif work.ttft_s is not None and work.decode_s is None:
        yield f"  {format_seconds(work.ttft_s)} until the first token{best}"
    else:
        figures = (work.ttft_s, work.decode_s, work.e2e_s, work.prefill_fraction)
        text = partial(_request, best=best)
        yield f"  {_line(answer, 'workload', text, *figures)}"


def _request(ttft_s: float, decode_s: float, e2e_s: float, fraction: float, *, best: str) -> str:
    return (
        f"{format_seconds(ttft_s)} until the first token + {format_seconds(decode_s)}"
        f" for the rest = {format_seconds(e2e_s)}{best}; {fraction:.0%} of it is the prompt"
    )


def _streams(answer: Answer) -> Iterator[str]:
    streams = answer.concurrency
    if streams.ceiling_tps is None:
        yield from _wrapped(f"{streams.streams} users at once: no figure; {streams.reason}", "  ")
        return
    each = streams.ceiling_tps / streams.streams
    is_bound = streams.bound == "memory" or not streams.is_reference
    behind = f", each behind {streams.n_depth} tokens" if streams.n_depth else ""
    bound = f"bound by {streams.bound}" if is_bound else "by the reference for compute"
    yield (
        f"{streams.streams} users at once{behind}: {'at most' if is_bound else 'about'} "
        f"{tps(streams.ceiling_tps)} together, {tps(each)} each, {bound}"
    )
    if streams.estimate_tps is not None:
        yield f"  to expect: {tps(streams.estimate_tps)}, memory and compute time added"
    elif streams.reason is not None:
        yield f"  {streams.reason}"


def _assumed(answer: Answer) -> Iterator[str]:
    is_spread = len([p for p in answer.placement if p.read_bytes_per_token > _ROWS_BYTES]) > 1
    shown = [
        a.text
        for a in answer.assumptions
        if a.topic in _SHOWN_TOPICS
        and (is_spread or a.topic != "placement")
        and not a.text.startswith("memory is read at")
    ]
    texts = list(dict.fromkeys(shown))
    yield "Assumed"
    for text in texts:
        yield from (f"  {line}" for line in _wrapped(text, "  "))
    n_more = len(answer.assumptions) - len(texts)
    if n_more > 0:
        yield f"  and {n_more} more, with everything else in numbers: --json"
