"""What is asked of a model on a rig: lengths, batches, cache types, placement, streams. Pure."""

from __future__ import annotations

from typing import NamedTuple

from llamasweep.ceilings.kv_cache import ContextSettings
from llamasweep.ceilings.placement import PlacementSettings
from llamasweep.ceilings.rig import Rig


class Question(NamedTuple):
    """A test, as llama-bench would run it, and a request.

    n_ctx: cells of all streams together, None = what the test needs. n_gpu_layers: -1 = all.
    n_request_prompt, n_request_gen: of the request whose times are wanted, None = those of the test.
    prefill_tps, decode_tps: measured rates that take the place of ceilings where times are computed.
    reserve_bytes: left to the system on the host, None = what `memory_fit` leaves.
    """

    n_depth: int = 0
    n_prompt: int = 512
    n_gen: int = 128
    n_batch: int = 2048
    n_ubatch: int = 512
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: bool = True
    n_gpu_layers: int = -1
    n_cpu_moe: int = 0
    n_streams: int = 1
    n_ctx: int | None = None
    n_request_prompt: int | None = None
    n_request_gen: int | None = None
    prefill_tps: float | None = None
    decode_tps: float | None = None
    reserve_bytes: int | None = None

    @property
    def n_tokens(self) -> int:
        """Of one stream: depth, and prompt and answer of the test or of the request, whichever is longer."""
        lengths = [self.n_prompt + self.n_gen]
        if self.n_request_prompt is not None and self.n_request_gen is not None:
            lengths.append(self.n_request_prompt + self.n_request_gen)
        return self.n_depth + max(lengths)

    @property
    def settings(self) -> ContextSettings:
        """The context; as in llama-bench it holds exactly depth, prompt and answer of each stream."""
        return ContextSettings(
            n_ctx=self.n_ctx or self.n_streams * self.n_tokens,
            n_ubatch=min(self.n_ubatch, self.n_batch),
            type_k=self.type_k,
            type_v=self.type_v,
            flash_attn=self.flash_attn,
            n_seq=self.n_streams,
        )

    def placement(self, rig: Rig) -> PlacementSettings:
        """Where the engine is asked to put layers on this rig."""
        return PlacementSettings(
            n_gpu_layers=self.n_gpu_layers if rig.accelerators else 0,
            n_cpu_moe=self.n_cpu_moe,
            tensor_split=rig.tensor_split,
        )
