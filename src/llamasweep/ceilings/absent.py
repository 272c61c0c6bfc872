"""Why a figure of an answer is absent, for the figures whose reason follows from another's. Pure.

Each figure that an answer promises is there, or has a reason under its name or its part's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llamasweep.ceilings.answer import Answer

NO_WINDOW = "no layer has a sliding window"
NOT_ON_HOST = "the model lies on accelerators, and the host's memory was not named"


def with_all_reasons(found: Answer) -> Answer:
    """The answer, with reasons for what follows from what else is absent."""
    prefill = found.prefill.reason or _told(found, "prefill")
    decode = _told(found, "decode")
    memory = _told(found, "memory") or NOT_ON_HOST
    follows = {
        "kv_cache.swa_cells": (found.kv_cache.swa_cells, NO_WINDOW),
        "decode.ridge_flop_per_byte": (found.decode.ridge_flop_per_byte, prefill),
        "prefill.ceiling_tps": (found.prefill.ceiling_tps, prefill),
        "concurrency.ceiling_tps": (found.concurrency.ceiling_tps, found.concurrency.reason),
        "memory.resident_bytes": (found.memory.resident_bytes, memory),
        "memory.mapped_bytes": (found.memory.mapped_bytes, memory),
        "workload.ttft_s": (found.workload.ttft_s, prefill),
        "workload.decode_s": (found.workload.decode_s, decode),
        "workload.e2e_s": (found.workload.e2e_s, prefill or decode),
        "workload.prefill_fraction": (found.workload.prefill_fraction, prefill or decode),
    }
    more = {
        name: why
        for name, (figure, why) in follows.items()
        if figure is None and why is not None and name.partition(".")[0] not in found.reasons
    }
    return found._replace(reasons={**more, **found.reasons})


def _told(found: Answer, part: str) -> str | None:
    """The reason of a part or of its first field that has one."""
    told = (why for name, why in found.reasons.items() if name.partition(".")[0] == part)
    return next(told, None)
