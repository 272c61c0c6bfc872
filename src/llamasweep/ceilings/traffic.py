"""Which weights a token reads: bytes and parameters, for one token and for a batch. Pure.

The rule is by tensor name, verified against the graphs of llama.cpp b11434. KV cache and
activations are elsewhere; nothing here knows a bandwidth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from llamasweep.ceilings.architecture import Architecture, read_architecture
from llamasweep.ceilings.assumptions import Assumption
from llamasweep.ceilings.metadata import once_per_model
from llamasweep.errors import ModelFileError
from llamasweep.gguf.facts import ModelFacts, TensorInfo

Use = Literal["all", "row", "head_and_row", "experts", "none"]
"""all: read whole. row: one row per token. head_and_row: a tied embedding, whole as the head and one
row as the input. experts: the chosen ones of each layer. none: never read in a plain decode."""

_LAYER = re.compile(r"blk\.(\d{1,4})\.(.+)")
_ROW_TABLES = frozenset(
    {"per_layer_token_embd.weight", "position_embd.weight", "token_types.weight"}
)
_EXPERTS = ("_exps.", "_chexps.")
_OWN_KV = frozenset({"attn_k", "attn_v", "attn_k_norm"})
_HEADS = ("output.weight", "cls.")
_NO_MATRICES = ("norm", "conv1d", "shortconv.conv", "ssm_a", "ssm_d", "rope_")


class TensorUse(NamedTuple):
    """One tensor and what a decoded token reads of it.

    layer: of the block, None outside blocks. is_loaded: False for drafting blocks, which llama.cpp
    leaves in the file. n_expert, n_expert_used: of a routed tensor, else 0.
    """

    tensor: TensorInfo
    layer: int | None
    use: Use
    is_loaded: bool = True
    n_expert: int = 0
    n_expert_used: int = 0

    @property
    def n_params(self) -> int:
        """Elements of the tensor."""
        return math.prod(self.tensor.ne)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row: the tensor's bytes / its number of rows."""
        return self.tensor.n_bytes // max(1, math.prod(self.tensor.ne[1:]))

    @property
    def read_bytes(self) -> int:
        """Bytes that one token reads."""
        return self._read(self.tensor.n_bytes, self.row_bytes)

    @property
    def read_params(self) -> int:
        """Parameters that one token reads."""
        return self._read(self.n_params, self.tensor.ne[0] if self.tensor.ne else 1)

    @property
    def matrix_params(self) -> int:
        """Parameters that one token multiplies with; lookups, norms, biases and convolutions are none."""
        if len(self.tensor.ne) < 2 or not self.tensor.name.endswith(".weight"):
            return 0
        if any(word in self.tensor.name for word in _NO_MATRICES):
            return 0
        return self._read(self.n_params, 0)

    def _read(self, whole: int, row: int) -> int:
        if self.use == "none":
            return 0
        if self.use == "row":
            return row
        if self.use == "head_and_row":
            return whole + row
        if self.use == "experts":
            return whole * self.n_expert_used // self.n_expert
        return whole


class RoutedWeights(NamedTuple):
    """Expert tensors of layers that choose alike. n_bytes: of all their experts together."""

    n_bytes: int
    n_expert: int
    n_expert_used: int


class WeightTraffic(NamedTuple):
    """What a model's weights cost per token.

    uses: every tensor. loaded_bytes: of those that are loaded. active_bytes, active_params: read by
    one decoded token. embedding_params: of an input table of which only a row is read, counted by
    some publishers. dense_bytes: read once per pass whatever the batch. row_bytes: read for each
    token. routed: experts. head_bytes, head_params, last_ff_bytes, last_ff_params: of the output head
    and of the last block's feed-forward, which only the tokens with an output need. matrix_params:
    that one token multiplies with, all included.
    """

    uses: tuple[TensorUse, ...]
    loaded_bytes: int
    active_bytes: int
    active_params: int
    embedding_params: int
    dense_bytes: int
    row_bytes: int
    routed: tuple[RoutedWeights, ...]
    matrix_params: int
    head_bytes: int
    head_params: int
    last_ff_bytes: int
    last_ff_params: int
    assumptions: tuple[Assumption, ...]


class BatchTraffic(NamedTuple):
    """Weights that one pass over a batch reads.

    least_bytes: all tokens choose the same experts, a bound. expected_bytes: each chooses uniformly
    and alone; an estimate that skewed routing beats. most_bytes: all choose different ones.
    """

    n_tokens: int
    least_bytes: int
    expected_bytes: float
    most_bytes: int
    assumptions: tuple[Assumption, ...]


ROUTING = Assumption(
    topic="routing",
    text="a batch reads no more experts than one token does: the least that is possible",
)
UNIFORM_ROUTING = Assumption(
    topic="routing",
    text="expected experts assume uniform, independent routing; real routing is skewed and reads fewer",
)


@once_per_model
def weight_traffic(facts: ModelFacts) -> WeightTraffic:
    """What one token reads of each tensor, and the sums.

    Formula: sum over tensors of bytes x share, with the share by name: embedding one row (whole and
    a row where tied), routed experts used / all, drafting blocks and reused K and V none, the rest
    all. Verified op by op with llama.cpp's decode graph. Raises NotModelledError, ModelFileError (also
    where nothing is left that a token multiplies with).
    """
    architecture = read_architecture(facts)
    uses = tuple(_use(tensor, facts, architecture) for tensor in facts.tensors)
    last = architecture.n_run - 1
    heads = [u for u in uses if u.use == "head_and_row" or u.tensor.name.startswith(_HEADS)]
    last_ff = [u for u in uses if u.layer == last and ".ffn_" in u.tensor.name]
    matrix_params = sum(u.matrix_params for u in uses)
    if matrix_params == 0:
        raise ModelFileError("the file holds no matrix that a token is multiplied with")
    return WeightTraffic(
        uses=uses,
        loaded_bytes=sum(u.tensor.n_bytes for u in uses if u.is_loaded),
        active_bytes=sum(u.read_bytes for u in uses),
        active_params=sum(u.read_params for u in uses),
        embedding_params=sum(
            u.n_params for u in uses if u.tensor.name == "token_embd.weight" and u.use == "row"
        ),
        dense_bytes=sum(u.tensor.n_bytes for u in uses if u.use in ("all", "head_and_row")),
        row_bytes=sum(u.row_bytes for u in uses if u.use in ("row", "head_and_row")),
        routed=routed_weights(uses),
        matrix_params=matrix_params,
        head_bytes=sum(u.tensor.n_bytes for u in heads),
        head_params=sum(u.matrix_params for u in heads),
        last_ff_bytes=sum(u.read_bytes for u in last_ff),
        last_ff_params=sum(u.matrix_params for u in last_ff),
        assumptions=(_WEIGHTS,),
    )


_WEIGHTS = Assumption(
    topic="weights",
    text="of every tensor a token reads what llama.cpp's decode graph reads; no weight stays in a cache",
)


def batch_traffic(facts: ModelFacts, n_tokens: int) -> BatchTraffic:
    """Weights that a pass over n_tokens reads: two bounds and the expectation.

    Formula: dense + n_tokens x rows + per layer expert bytes x count, with count = used (least),
    E x (1 - (1 - used / E)^n) (expected), min(E, used x n) (most).
    """
    traffic = weight_traffic(facts)
    shared = traffic.dense_bytes + n_tokens * traffic.row_bytes
    return BatchTraffic(
        n_tokens=n_tokens,
        least_bytes=shared + sum(r.n_bytes * r.n_expert_used // r.n_expert for r in traffic.routed),
        expected_bytes=shared
        + sum(
            r.n_bytes * expected_experts(r.n_expert, r.n_expert_used, n_tokens) / r.n_expert
            for r in traffic.routed
        ),
        most_bytes=shared
        + sum(
            r.n_bytes * min(r.n_expert, r.n_expert_used * n_tokens) // r.n_expert
            for r in traffic.routed
        ),
        assumptions=(*traffic.assumptions, ROUTING, UNIFORM_ROUTING),
    )


def expected_experts(n_expert: int, n_expert_used: int, n_tokens: int) -> float:
    """Distinct experts that n_tokens touch if each chooses uniformly and alone.

    Formula: E x (1 - (1 - used / E)^n).
    """
    return n_expert * (1.0 - (1.0 - n_expert_used / n_expert) ** n_tokens)


def _use(tensor: TensorInfo, facts: ModelFacts, architecture: Architecture) -> TensorUse:
    match = _LAYER.match(tensor.name)
    if match is None:
        if tensor.name == "token_embd.weight":
            use: Use = "head_and_row" if facts.tied_embeddings else "row"
        else:
            use = "row" if tensor.name in _ROW_TABLES else "all"
        return TensorUse(tensor=tensor, layer=None, use=use)
    index, rest = int(match[1]), match[2]
    if index >= architecture.n_run or rest.startswith("nextn."):
        return TensorUse(tensor=tensor, layer=index, use="none", is_loaded=False)
    if rest.split(".")[0] in _OWN_KV and architecture.layers[index].reads_kv_of not in (
        None,
        index,
    ):
        return TensorUse(tensor=tensor, layer=index, use="none")
    if rest == "ffn_gate_tid2eid.weight":
        return TensorUse(tensor=tensor, layer=index, use="row")
    if any(word in rest for word in _EXPERTS):
        layer = architecture.layers[index]
        if layer.n_expert_used:
            return TensorUse(
                tensor=tensor,
                layer=index,
                use="experts",
                n_expert=layer.n_expert,
                n_expert_used=layer.n_expert_used,
            )
    return TensorUse(tensor=tensor, layer=index, use="all")


def routed_weights(uses: Iterable[TensorUse]) -> tuple[RoutedWeights, ...]:
    """The expert tensors among them, gathered by how their layers choose."""
    sums: dict[tuple[int, int], int] = {}
    for use in uses:
        if use.use == "experts":
            key = (use.n_expert, use.n_expert_used)
            sums[key] = sums.get(key, 0) + use.tensor.n_bytes
    return tuple(
        RoutedWeights(n_bytes=n_bytes, n_expert=key[0], n_expert_used=key[1])
        for key, n_bytes in sums.items()
    )
