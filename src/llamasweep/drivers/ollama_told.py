"""What an Ollama tells of a cell beside its times: placement, what it really applied, and doubts; as columns, echo and flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llamasweep.drivers.ollama_plan import Plan, Reply
from llamasweep.drivers.ollama_server import Serving
from llamasweep.drivers.requests import latency_columns, middle
from llamasweep.engines.driven import Job
from llamasweep.engines.ollama import full_name
from llamasweep.engines.ollama_answers import check_placement, parse_version
from llamasweep.engines.prompts import CACHED_TOLERANCE_TOKENS
from llamasweep.sweep.parameters import Scalar

_COARSE_CLOCK_BEFORE = (0, 6, 2)
_FROM_LOG = ("n_batch", "n_ubatch", "n_threads", "n_gpu_layers", "type_k", "type_v", "load_mode")
_FLASH_NUMBERS = {"on": 1, "true": 1, "off": 0, "false": 0}


def placed(serving: Serving, job: Job, model: str) -> tuple[dict[str, Any], set[str]]:
    """Where the model lies after a cell, as columns and as doubts."""
    running = serving.server.running()
    by_name = {placement.name: placement for placement in running}
    # A model made of another's weights is listed under the name that was loaded first.
    shown = model if full_name(model) in by_name else serving.model
    n_ctx = int(job.options["settings"]["n_ctx"])
    flags = check_placement(running, shown, n_ctx=n_ctx, knows_gpu=serving.log.knows_gpu)
    mode = f"{job.options['mode']}, {job.options['template']}"
    columns: dict[str, Any] = {"server_version": serving.version, "request_mode": mode}
    if serving.log.build is not None:
        columns["server_build"] = f"b{serving.log.build}"
    own = by_name.get(full_name(shown))
    if own is not None:
        columns |= {
            "server_model_digest": own.digest,
            "server_context_tokens": own.n_ctx,
            "server_size_bytes": own.size_bytes,
            "server_vram_bytes": own.vram_bytes,
        }
    return {name: value for name, value in columns.items() if value is not None}, set(flags)


def applied_by(serving: Serving, placement: Mapping[str, Any]) -> dict[str, Scalar]:
    """What the server says that it used: the window by /api/ps, the rest by the log of one that we started.

    By canonical name; flash_attn as rows have it: 1 on, 0 off.
    """
    said = serving.log.applied
    found: dict[str, Scalar] = {name: said[name] for name in _FROM_LOG if name in said}
    if "server_context_tokens" in placement:
        found["num_ctx"] = placement["server_context_tokens"]
    if "n_parallel" in said:
        found["concurrency"] = said["n_parallel"]
    if said.get("type_kv"):
        found |= {"type_k": str(said["type_kv"]), "type_v": str(said["type_kv"])}
    flash_attn = _FLASH_NUMBERS.get(str(said.get("flash_attn")))
    return found if flash_attn is None else {**found, "flash_attn": flash_attn}


def doubts_of(
    plan: Plan, replies: Sequence[Reply], version: str, cached_counts: Sequence[int]
) -> set[str]:
    """Flags of a cell. cached_counts: tokens from the cache by the server's log, since its first timed request.

    Where the log counts every request, it rules over the guess from a rate that jumped: a busy machine makes rates jump as well.
    """
    flags = {flag for reply in replies for flag in reply.flags}
    has_cached = max(cached_counts, default=0) > CACHED_TOLERANCE_TOKENS
    if has_cached and not plan.is_warm:
        flags.add("prompt_cached")
    elif len(cached_counts) >= len(replies):
        flags.discard("prompt_cached")
    if any(r.durations.prompt_eval_count not in (None, plan.n_prompt) for r in replies):
        flags.add("prompt_length_differs")
    known = parse_version(version)
    if known is None:
        flags.add("version_unknown")
    elif known < _COARSE_CLOCK_BEFORE:
        flags.add("coarse_clock")
    return flags


def time_columns(replies: Sequence[Reply], n_streams: int) -> dict[str, Any]:
    """By the client's clock where there was one, and by the server's."""
    timings = [reply.timing for reply in replies if reply.timing is not None]
    known = latency_columns(timings, n_streams) if timings else {"n_requests": len(replies)}
    own = [reply.durations.timings for reply in replies]
    cached = [t.cached_count for t in own if t.cached_count is not None]
    more = {
        "n_prompt_counted": middle([reply.durations.prompt_eval_count for reply in replies]),
        "server_pp_tps": middle([t.prompt_tps for t in own]),
        "server_tg_tps": middle([t.decode_tps for t in own]),
        "n_cached_tokens": max(cached, default=None),
    }
    return {**known, **{name: value for name, value in more.items() if value is not None}}
