"""What a few requests felt like, in figures and in words for one person: waiting, reading along, and what the hardware allows.

Pure; requests are measured and ceilings computed elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llamasweep.results.contenders import BROKEN_ABOVE
from llamasweep.results.latency import LatencyFigures, RequestTiming, Spread, latency_figures
from llamasweep.units import format_tps

READING_TPS = 5.2
"""238 words a minute (Brysbaert 2019, silent reading of English) at 1.3 tokens a word."""
UNDISTURBED_MS = 1_000
ATTENTION_MS = 10_000
"""Up to one second a train of thought goes on, up to ten attention stays (Miller 1968; Nielsen 1993)."""
NEAR_CEILING = 0.7
FAR_FROM_CEILING = 0.4
INSTANT_MS = 100
"""What is taken for instantaneous, by the same two."""
UNEVEN = 1.5
"""p95 of the gaps between tokens this many times their median is felt as stutter, unless it is instantaneous."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ceiling:
    """Most tokens per second that the memory allows for this request.

    reason: why there is no figure, None if there is one. notes: what the figure rests on.
    """

    decode_tps: float | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Feeling:
    """The answer of `feel`. n_prompt: tokens as the server counts them, None where it does not tell.

    flags: short words of doubt about the answers; notes: sentences on the machine and on what the ceiling rests on.
    """

    model: str
    server: str
    kind: str
    n_prompt: int | None
    n_gen: int
    figures: LatencyFigures
    ceiling: Ceiling
    flags: tuple[str, ...]
    notes: tuple[str, ...]
    runs: tuple[RequestTiming, ...]

    @property
    def ceiling_fraction(self) -> float | None:
        """Median rate / ceiling; None without one of them."""
        median_tps, ceiling_tps = self.decode_tps.median, self.ceiling.decode_tps
        return None if median_tps is None or not ceiling_tps else median_tps / ceiling_tps

    @property
    def decode_tps(self) -> Spread:
        """Tokens per second: of the median TPOT, and as p95 the rate that 95 of 100 requests reach, which is the slow end."""
        tpot = self.figures.tpot_ms
        return Spread(n=tpot.n, median=_inverse(tpot.median), p95=_inverse(tpot.p95))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what was not observed is null."""
        return {
            "model": self.model,
            "server": self.server,
            "kind": self.kind,
            "n_prompt": self.n_prompt,
            "n_gen": self.n_gen,
            "n_runs": self.figures.n_requests,
            "ttft_ms": _spread(self.figures.ttft_ms),
            "tpot_ms": _spread(self.figures.tpot_ms),
            "decode_tps": _spread(self.decode_tps),
            "e2e_ms": _spread(self.figures.e2e_ms),
            "itl_ms": _spread(self.figures.itl_ms) if self.figures.are_events_tokens else None,
            "ceiling_tps": self.ceiling.decode_tps,
            "ceiling_fraction": self.ceiling_fraction,
            "ceiling_reason": self.ceiling.reason,
            "flags": list(self.flags),
            "notes": list(self.notes),
            "verdict": verdict(self),
            "runs": [
                {
                    "ttft_ms": one.ttft_ms,
                    "tpot_ms": one.tpot_ms,
                    "e2e_ms": one.e2e_ms,
                    "n_prompt": one.n_prompt,
                    "n_gen": one.n_gen,
                }
                for one in self.runs
            ],
        }


def _inverse(tpot_ms: float | None) -> float | None:
    return 1000 / tpot_ms if tpot_ms else None


def _spread(value: Spread) -> dict[str, float | int | None]:
    return {"n": value.n, "median": value.median, "p95": value.p95}


def feeling(
    timings: Sequence[RequestTiming],
    *,
    model: str,
    server: str,
    kind: str,
    ceiling: Ceiling,
    flags: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Feeling:
    """Fold measured requests; n_prompt and n_gen are those of the last one. Raises ValueError of none."""
    if not timings:
        raise ValueError("no request was measured")
    return Feeling(
        model=model,
        server=server,
        kind=kind,
        n_prompt=timings[-1].n_prompt,
        n_gen=timings[-1].n_gen,
        figures=latency_figures(timings),
        ceiling=ceiling,
        flags=tuple(dict.fromkeys(flags)),
        notes=(*notes, *ceiling.notes),
        runs=tuple(timings),
    )


def verdict(found: Feeling) -> list[str]:
    """Sentences: the wait, the flow, how even it is, and the distance to the ceiling."""
    lines = [_wait(found.figures.ttft_ms.median), _flow(found.decode_tps.median)]
    lines.append(_evenness(found.figures))
    lines.append(_distance(found.ceiling_fraction))
    return [line for line in lines if line]


def _wait(ttft_ms: float | None) -> str:
    if ttft_ms is None:
        return ""
    if ttft_ms <= UNDISTURBED_MS:
        return "The answer begins before one's thoughts stray."
    if ttft_ms <= ATTENTION_MS:
        return f"One notices the wait of {ttft_ms / 1000:.1f} s, and stays."
    return f"A wait of {ttft_ms / 1000:.0f} s makes one turn to something else."


def _flow(tps: float | None) -> str:
    if tps is None:
        return ""
    times = tps / READING_TPS
    pace = f"{format_tps(tps)} is {times:.1f} times the speed at which people read"
    if times >= 1:
        return f"{pace}: the text is there before it is read."
    return f"{pace}: one reads along and waits."


def _evenness(figures: LatencyFigures) -> str:
    median, p95 = figures.itl_ms.median, figures.itl_ms.p95
    if not figures.are_events_tokens or not median or p95 is None:
        return ""
    if p95 <= max(UNEVEN * median, INSTANT_MS):
        return ""
    return (
        f"It stutters: one gap in twenty is {p95:.0f} ms or longer, where {median:.0f} ms is usual."
    )


def _distance(fraction: float | None) -> str:
    if fraction is None:
        return ""
    share = f"{fraction:.0%} of what the memory allows"
    if fraction > BROKEN_ABOVE:
        return f"This is {share}: the bandwidth that the ceiling rests on is wrong."
    if fraction >= NEAR_CEILING:
        return f"This is {share}: no setting makes it much faster."
    if fraction >= FAR_FROM_CEILING:
        return f"This is {share}: settings may help; `llamasweep run` tries them."
    return f"Only {share}: threads, GPU layers or another program may slow it; `llamasweep run` finds out."
