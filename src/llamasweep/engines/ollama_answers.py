"""What Ollama's answers mean: durations to rates, and each known way in which they lie as a flag or a failure. Pure.

Field by field from the API of v0.11.4 to v0.33; a field of value 0 is left out by Ollama and is None here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.prompts import CACHED_TOLERANCE_TOKENS
from llamasweep.results.latency import ServerTimings

_MOST = 2**63
RELOADED_FROM_NS = 200_000_000
"""A load duration above this in a repetition is a load, not the scheduler's few milliseconds."""
FASTER_THAN_FIRST = 3.0
"""A prompt rate this many times that of the first repetition comes from a cache."""
TEMPLATE_TOLERANCE_TOKENS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class OllamaDurations:
    """The final chunk's figures; None where it has none. prompt_eval_cached_count: from v0.33.3 on."""

    total_duration_ns: int | None = None
    load_duration_ns: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_cached_count: int | None = None
    prompt_eval_duration_ns: int | None = None
    eval_count: int | None = None
    eval_duration_ns: int | None = None

    @property
    def timings(self) -> ServerTimings:
        """The same in the words of `results.latency`: the prompt without what was cached."""
        count, cached = self.prompt_eval_count, self.prompt_eval_cached_count
        return ServerTimings(
            prompt_count=count if count is None or cached is None else max(0, count - cached),
            cached_count=cached,
            prompt_ns=self.prompt_eval_duration_ns,
            generated_count=self.eval_count,
            generated_ns=self.eval_duration_ns,
            total_ns=self.total_duration_ns,
            load_ns=self.load_duration_ns,
        )


_FIELDS = {
    "total_duration_ns": "total_duration",
    "load_duration_ns": "load_duration",
    "prompt_eval_count": "prompt_eval_count",
    "prompt_eval_cached_count": "prompt_eval_cached_count",
    "prompt_eval_duration_ns": "prompt_eval_duration",
    "eval_count": "eval_count",
    "eval_duration_ns": "eval_duration",
}


def read_durations(chunk: Mapping[str, Any]) -> OllamaDurations:
    """The figures of a final chunk; what is no count is None."""
    return OllamaDurations(**{name: _count(chunk.get(key)) for name, key in _FIELDS.items()})


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST
    return value if is_count else None  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a request wanted.

    n_prompt: tokens that the prompt has, None where nobody counted. n_gen: tokens to generate. n_ctx: the window asked for.
    is_fixed: fewer tokens than n_gen are no measurement. has_warm_cache: the sweep wants the cache of prompts.
    """

    n_prompt: int | None
    n_gen: int
    n_ctx: int | None
    is_fixed: bool = True
    has_warm_cache: bool = False


def check_room(asked: Asked) -> None:
    """Raise RequestError where prompt and answer do not fit the window: Ollama would cut the prompt and not say so."""
    if asked.n_ctx is None or asked.n_prompt is None:
        return
    if asked.n_prompt + asked.n_gen > asked.n_ctx:
        raise RequestError(
            "context_too_small",
            f"{asked.n_prompt} tokens of prompt and {asked.n_gen} of answer exceed num_ctx {asked.n_ctx}",
            hint="Ask for a larger context; Ollama cuts longer prompts without a word.",
        )


def check_answer(
    asked: Asked,
    found: OllamaDurations,
    done_reason: str | None,
    *,
    first_prompt_tps: float | None = None,
) -> tuple[str, ...]:
    """Flags for doubts; first_prompt_tps: of the first repetition, None for itself.

    Raises RequestError where the figures are those of another question: a prompt that was cut, an answer that ended early.
    """
    if asked.n_prompt is not None and found.prompt_eval_count is not None:
        n_missing = asked.n_prompt - found.prompt_eval_count
        if n_missing > TEMPLATE_TOLERANCE_TOKENS:
            raise RequestError(
                "prompt_truncated",
                f"Ollama read {found.prompt_eval_count} tokens of a prompt of {asked.n_prompt}",
            )
    if asked.is_fixed:
        _check_length(asked.n_gen, found.eval_count, done_reason)
    flags = _cache_flags(asked, found, first_prompt_tps)
    load_ns = found.load_duration_ns
    if load_ns is not None and load_ns > RELOADED_FROM_NS:
        flags.append("loaded_inside")
    if found.prompt_eval_count is None:
        flags.append("prompt_not_counted")
    return tuple(flags)


def _check_length(n_asked: int, n_found: int | None, done_reason: str | None) -> None:
    """n_found: None where the answer has no such figure, as Ollama leaves it out for 0."""
    if n_found is not None and n_found >= n_asked:
        return
    found = "no token that Ollama counts," if n_found is None else str(n_found)
    reason = f", reason {done_reason}" if done_reason else ""
    raise RequestError("early_stop", f"the answer ended after {found} of {n_asked} tokens{reason}")


def _cache_flags(asked: Asked, found: OllamaDurations, first_tps: float | None) -> list[str]:
    if asked.has_warm_cache:
        return []
    n_cached = found.prompt_eval_cached_count
    if n_cached is not None and n_cached > CACHED_TOLERANCE_TOKENS:
        return ["prompt_cached"]
    tps = found.timings.prompt_tps
    if first_tps is not None and tps is not None and tps > FASTER_THAN_FIRST * first_tps:
        return ["prompt_cached"]
    return []


_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")


def parse_version(text: str) -> tuple[int, int, int] | None:
    """(0, 32, 15) of "0.32.15" or "0.32.15-rc1"; None for others, and for 0.0.0, which a plain Go build calls itself."""
    match = _VERSION.match(text.removeprefix("v"))
    found = None if match is None else (int(match[1]), int(match[2]), int(match[3]))
    return found if found and any(found) else None


def version_doubts(text: str) -> tuple[str, ...]:
    """Sentences on what this version's figures are known to get wrong."""
    version = parse_version(text)
    if version is None:
        return (f"version {text[:40]!r} does not tell what its figures mean",)
    doubts = []
    if version < (0, 6, 2):
        doubts.append("durations of prompt and generation are cut to whole milliseconds")
    if version < (0, 2, 0):
        doubts.append("a cached prompt loses its count but not its duration")
    if (0, 5, 0) <= version <= (0, 12, 4):
        doubts.append("the prompt's duration holds the wait for a slot")
    if version in {(0, 12, 5), (0, 12, 6)}:
        doubts.append(
            "the prompt's duration is that of its last batch only: rates are far too high"
        )
    if version == (0, 30, 0):
        doubts.append("prompt_eval_count leaves out cached tokens")
    if (0, 30, 1) <= version < (0, 33, 3):
        doubts.append(
            "prompt_eval_count holds cached tokens and the duration does not: a warm cache inflates the prompt rate"
        )
    return tuple(doubts)


def has_engine_inside(text: str) -> bool | None:
    """Whether this version computes itself (up to v0.24) instead of starting llama-server; None where it does not tell."""
    version = parse_version(text)
    return None if version is None else version < (0, 30, 0)


def run_adds_space(text: str) -> bool | None:
    """Whether `ollama run` puts a space before the prompt (up to v0.12.9, from an empty stdin): a token more, mostly.

    None where the version does not tell.
    """
    version = parse_version(text)
    return None if version is None else version < (0, 12, 10)


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """A loaded model of /api/ps. vram_bytes: of size_bytes; n_ctx: the window per slot that was allocated; None: not told."""

    name: str
    digest: str | None
    size_bytes: int | None
    vram_bytes: int | None
    n_ctx: int | None

    @property
    def gpu_fraction(self) -> float | None:
        """Share of the bytes on GPUs, as the server has it; None without a size.

        llama.cpp's own buffer types for the CPU (AMX, repacked weights) count as GPU memory here: a server that knows no GPU
        may show a split (seen with v0.32.15).
        """
        if not self.size_bytes or self.vram_bytes is None or self.vram_bytes > self.size_bytes:
            return None
        return self.vram_bytes / self.size_bytes


def read_placements(answer: object) -> tuple[Placement, ...]:
    """The models of an answer of /api/ps."""
    rows = answer.get("models") if isinstance(answer, Mapping) else None
    found = []
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and isinstance(row.get("name"), str):
            digest = row.get("digest")
            found.append(
                Placement(
                    name=row["name"],
                    digest=digest if isinstance(digest, str) else None,
                    size_bytes=_count(row.get("size")),
                    vram_bytes=_count(row.get("size_vram")),
                    n_ctx=_count(row.get("context_length")),
                )
            )
    return tuple(found)


def check_placement(
    placements: tuple[Placement, ...], model: str, *, n_ctx: int | None, knows_gpu: bool | None
) -> tuple[str, ...]:
    """Flags: unloaded, other_models_loaded, context_differs, cpu_gpu_split. knows_gpu: as the server's log says, None unknown."""
    full = model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"
    own = next((p for p in placements if p.name == full), None)
    flags = ["other_models_loaded"] if any(p.name != full for p in placements) else []
    if own is None:
        return ("unloaded", *flags)
    if n_ctx is not None and own.n_ctx is not None and own.n_ctx != n_ctx:
        flags.append("context_differs")
    fraction = own.gpu_fraction
    if knows_gpu is not False and fraction is not None and 0 < fraction < 1:
        flags.append("cpu_gpu_split")
    return tuple(flags)


_FROM = re.compile(r"^FROM (.+)$", re.MULTILINE)


def blob_path(show: Mapping[str, Any]) -> str | None:
    """Where the server keeps the model's GGUF, as an answer of /api/show has it; None where it names none."""
    text = show.get("modelfile")
    lines = _FROM.findall(text) if isinstance(text, str) else []
    paths = [
        line.strip() for line in lines if re.search(r"[/\\]sha256-[0-9a-f]{64}$", line.strip())
    ]
    return paths[0] if paths else None
