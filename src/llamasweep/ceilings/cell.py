"""The ceiling of one cell of a sweep, in one call: for the runner, the plan and the report. Pure.

Puts `decode`, `prefill` and `placement` together as llama-bench measures: its context holds exactly
prompt, generated tokens and depth, and its batches are those of one sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from llamasweep.ceilings.assumptions import Assumption, Bandwidth, Peak
from llamasweep.ceilings.decode import Bound, DecodeCeiling, decode_ceiling, pencil_tps
from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.ceilings.placement import Machine, PlacementSettings, place, placed_decode
from llamasweep.ceilings.prefill import NO_PEAK, PrefillCeiling, prefill_ceiling
from llamasweep.errors import ModelFileError, NotModelledError
from llamasweep.gguf.facts import ModelFacts

CellKind = Literal["pp", "tg", "pg"]

FLASH_ATTENTION_AUTO = Assumption(
    topic="attention", text="flash attention was left to the engine and is taken to be on"
)
SPREAD_PREFILL = "a prompt over several devices is not modelled"


@dataclass(frozen=True, kw_only=True, slots=True)
class CellCeiling:
    """What a cell can reach.

    ceiling_tps: None with a `reason`. is_reference: it rests on a peak that faster units may beat.
    pencil_ceiling_tps: as people compute it: bandwidth / model size for tokens, peak / (2 x all
    parameters) for prompts; None without a peak where prompts are in it. bound: what takes most of
    the time. bytes_per_token, flop_per_token: moved and calculated; arithmetic_intensity: their
    ratio in FLOP per byte. bandwidth_bytes_per_s: the one that was used. estimate_tps: what several
    streams are likely to reach, None with estimate_reason; of one stream both are None. All None where not modelled.
    """

    kind: CellKind
    ceiling_tps: float | None = None
    pencil_ceiling_tps: float | None = None
    is_reference: bool = False
    bound: Bound | None = None
    bytes_per_token: float | None = None
    flop_per_token: float | None = None
    arithmetic_intensity: float | None = None
    bandwidth_bytes_per_s: float
    peak_flop_per_s: float | None = None
    estimate_tps: float | None = None
    estimate_reason: str | None = None
    reason: str | None = None
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """What the cell runs on.

    bandwidth: of the device that holds the weights. peak: None = unknown. machine, placement: given
    together where several devices hold the model.
    """

    bandwidth: Bandwidth
    peak: Peak | None = None
    machine: Machine | None = None
    placement: PlacementSettings | None = None


def cell_ceiling(  # noqa: PLR0913  (a cell's axes, each by its name)
    facts: ModelFacts,
    *,
    n_prompt: int,
    n_gen: int,
    n_depth: int = 0,
    n_batch: int = 2048,
    n_ubatch: int = 512,
    type_k: str = "f16",
    type_v: str = "f16",
    flash_attn: bool | str = True,
    bandwidth_bytes_per_s: float | Bandwidth,
    peak_flop_per_s: float | Peak | None = None,
    machine: Machine | None = None,
    placement: PlacementSettings | None = None,
) -> CellCeiling:
    """The ceiling of one test: pp where n_gen is 0, tg where n_prompt is 0, else both in one span.

    flash_attn: True, False, or the cell's "on", "off", "auto". A plain number for a bandwidth or a
    peak counts as given. machine and placement: together, where several devices hold the model. pg:
    all tokens / (prompt time + generation time), the tokens behind the prompt. Never raises for a
    model: what is not modelled has a reason instead.
    """
    settings = ContextSettings(
        n_ctx=max(1, n_prompt + n_gen + n_depth),
        n_ubatch=max(1, min(n_ubatch, n_batch)),
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash_attn not in (False, "off"),
    )
    hardware = Hardware(
        bandwidth=_bandwidth(bandwidth_bytes_per_s),
        peak=Peak(flop_per_s=peak_flop_per_s)
        if isinstance(peak_flop_per_s, int | float)
        else peak_flop_per_s,
        machine=machine,
        placement=placement,
    )
    asked = _Asked(facts, settings, hardware, n_depth, n_batch)
    try:
        ceiling = asked.ceiling(n_prompt, n_gen)
    except (NotModelledError, ModelFileError, ValueError) as error:
        ceiling = asked.nothing(n_prompt, n_gen, str(error))
    if flash_attn == "auto":
        return replace(ceiling, assumptions=(*ceiling.assumptions, FLASH_ATTENTION_AUTO))
    return ceiling


def _bandwidth(value: float | Bandwidth) -> Bandwidth:
    return value if isinstance(value, Bandwidth) else Bandwidth(bytes_per_s=value)


class _Asked:
    """One question, and the answers to its parts."""

    def __init__(
        self,
        facts: ModelFacts,
        settings: ContextSettings,
        hardware: Hardware,
        n_depth: int,
        n_batch: int,
    ) -> None:
        self._facts, self._settings, self._hardware = facts, settings, hardware
        self._n_depth, self._n_batch = n_depth, n_batch

    def ceiling(self, n_prompt: int, n_gen: int) -> CellCeiling:
        """By the kind of test. Raises ValueError for a test of no tokens."""
        if n_prompt < 0 or n_gen < 0 or n_prompt + n_gen < 1:
            raise ValueError("a test has tokens")
        if n_gen == 0:
            return self._prompt(n_prompt)
        if n_prompt == 0:
            return self._generation(n_gen, self._n_depth)
        return self._both(n_prompt, n_gen)

    def nothing(self, n_prompt: int, n_gen: int, reason: str) -> CellCeiling:
        """No ceiling, for a reason; the pencil one needs no knowledge of the architecture."""
        return CellCeiling(
            kind="pp" if n_gen == 0 else "tg" if n_prompt == 0 else "pg",
            pencil_ceiling_tps=self._pencil(n_prompt, n_gen),
            bandwidth_bytes_per_s=self._hardware.bandwidth.bytes_per_s,
            peak_flop_per_s=self._peak_flop_per_s,
            reason=reason,
        )

    @property
    def _peak_flop_per_s(self) -> float | None:
        return None if self._hardware.peak is None else self._hardware.peak.flop_per_s

    def _pencil(self, n_prompt: int, n_gen: int) -> float | None:
        """All tokens / (prompt x 2 x parameters / peak + generated x size / bandwidth)."""
        seconds = 0.0
        if n_gen > 0:
            seconds += n_gen / pencil_tps(self._facts.size_bytes, self._hardware.bandwidth)
        if n_prompt > 0:
            if self._peak_flop_per_s is None:
                return None
            seconds += n_prompt * 2.0 * self._facts.n_params / self._peak_flop_per_s
        return (n_prompt + n_gen) / seconds if seconds else None

    def _decode(self, n_gen: int, n_depth: int) -> DecodeCeiling:
        return decode_ceiling(
            self._facts,
            self._settings,
            n_depth=n_depth,
            n_gen=n_gen,
            bandwidth=self._hardware.bandwidth,
            peak=self._hardware.peak,
        )

    def _prefill(self, n_prompt: int) -> PrefillCeiling:
        return prefill_ceiling(
            self._facts,
            self._settings,
            n_prompt=n_prompt,
            n_depth=self._n_depth,
            n_batch=self._n_batch,
            bandwidth=self._hardware.bandwidth,
            peak=self._hardware.peak,
        )

    def _generation(self, n_gen: int, n_depth: int) -> CellCeiling:
        decode = self._decode(n_gen, n_depth)
        spread = self._hardware
        ceiling_tps, assumptions = decode.ceiling_tps, decode.assumptions
        if spread.machine is not None and spread.placement is not None:
            placed = place(self._facts, self._settings, spread.placement)
            over = placed_decode(
                self._facts,
                self._settings,
                placed,
                spread.machine,
                n_depth=n_depth,
                n_gen=n_gen,
            )
            ceiling_tps, assumptions = over.ceiling_tps, over.assumptions
        return CellCeiling(
            kind="tg",
            ceiling_tps=ceiling_tps,
            pencil_ceiling_tps=decode.pencil_ceiling_tps,
            bound=decode.bound,
            bytes_per_token=decode.bytes_per_token,
            flop_per_token=decode.flop_per_token,
            arithmetic_intensity=decode.flop_per_byte,
            bandwidth_bytes_per_s=decode.bandwidth_bytes_per_s,
            peak_flop_per_s=self._peak_flop_per_s,
            assumptions=assumptions,
        )

    def _prompt(self, n_prompt: int) -> CellCeiling:
        prefill = self._prefill(n_prompt)
        is_spread = self._hardware.placement is not None
        return CellCeiling(
            kind="pp",
            ceiling_tps=None if is_spread else prefill.ceiling_tps,
            pencil_ceiling_tps=self._pencil(n_prompt, 0),
            is_reference=prefill.is_reference,
            bound=prefill.bound,
            bytes_per_token=prefill.bytes_per_token,
            flop_per_token=prefill.flop_per_token,
            arithmetic_intensity=prefill.flop_per_byte,
            bandwidth_bytes_per_s=self._hardware.bandwidth.bytes_per_s,
            peak_flop_per_s=self._peak_flop_per_s,
            reason=SPREAD_PREFILL if is_spread else prefill.reason,
            assumptions=prefill.assumptions,
        )

    def _both(self, n_prompt: int, n_gen: int) -> CellCeiling:
        prompt = self._prompt(n_prompt)
        answer = self._generation(n_gen, self._n_depth + n_prompt)
        if prompt.ceiling_tps is None or answer.ceiling_tps is None:
            return self.nothing(n_prompt, n_gen, prompt.reason or NO_PEAK)
        n_tokens = n_prompt + n_gen
        prompt_s, answer_s = n_prompt / prompt.ceiling_tps, n_gen / answer.ceiling_tps

        def mean(of_prompt: float | None, of_answer: float | None) -> float | None:
            if of_prompt is None or of_answer is None:
                return None
            return (of_prompt * n_prompt + of_answer * n_gen) / n_tokens

        n_bytes = mean(prompt.bytes_per_token, answer.bytes_per_token)
        flop = mean(prompt.flop_per_token, answer.flop_per_token)
        return CellCeiling(
            kind="pg",
            ceiling_tps=n_tokens / (prompt_s + answer_s),
            pencil_ceiling_tps=self._pencil(n_prompt, n_gen),
            is_reference=prompt.is_reference,
            bound=prompt.bound if prompt_s > answer_s else answer.bound,
            bytes_per_token=n_bytes,
            flop_per_token=flop,
            arithmetic_intensity=None if flop is None or not n_bytes else flop / n_bytes,
            bandwidth_bytes_per_s=self._hardware.bandwidth.bytes_per_s,
            peak_flop_per_s=self._peak_flop_per_s,
            assumptions=tuple(dict.fromkeys(prompt.assumptions + answer.assumptions)),
        )
