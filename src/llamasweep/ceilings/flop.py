"""How much a token calculates: matrices and attention, for one token and for a prompt. Pure.

Counts the least that the maths needs: state updates of recurrent layers, norms, softmax and masked
pairs are left out, so that a ceiling from these counts is never too low.
"""

from __future__ import annotations

from llamasweep.ceilings.architecture import Layer, read_architecture
from llamasweep.ceilings.assumptions import Assumption
from llamasweep.ceilings.kv_cache import visible_pairs
from llamasweep.ceilings.traffic import weight_traffic
from llamasweep.gguf.facts import ModelFacts

FLOP_PER_WEIGHT = 2
"""One multiplication and one addition."""

ATTENTION_COUNTED = Assumption(
    topic="attention",
    text="attention counts the pairs that the mask lets through; recurrent state, norms and softmax count nothing",
)
LAST_FF_PRUNED = Assumption(
    topic="weights",
    text=(
        "of a prompt only tokens with an output pass the last block's feed-forward and the head; "
        "up to 3.3 % low for architectures that llama.cpp does not prune"
    ),
)


def matrix_flop(facts: ModelFacts, n_tokens: int, n_outputs: int) -> int:
    """Of the weights, for n_tokens of which n_outputs need logits.

    Formula: 2 x (tokens x (matrix parameters - head - last feed-forward) + outputs x (head + last
    feed-forward)). Raises as `weight_traffic`.
    """
    traffic = weight_traffic(facts)
    late = traffic.head_params + traffic.last_ff_params
    return FLOP_PER_WEIGHT * (n_tokens * (traffic.matrix_params - late) + n_outputs * late)


def attention_flop(facts: ModelFacts, n_depth: int, n_tokens: int) -> int:
    """Of attention, for n_tokens behind n_depth others.

    Formula: sum over attending layers of 2 x heads x (key size + value size) x pairs, where pairs
    sums what each token sees (window, chunk or the indexer's top_k at most); an indexer adds 2 x its
    heads x its key size per pair. Latent attention: in the absorbed form, 576 + 512 per head and
    pair for DeepSeek.
    """
    architecture = read_architecture(facts)
    pairs: dict[int | None, int] = {}

    def pairs_within(window: int | None) -> int:
        if window not in pairs:
            pairs[window] = visible_pairs(
                n_depth, n_tokens, window, is_chunked=architecture.is_chunked
            )
        return pairs[window]

    total = 0
    for layer in architecture.layers:
        if layer.reads_kv_of is None:
            continue
        limit = architecture.index_top_k or layer.window_tokens
        total += flop_per_pair(layer) * pairs_within(limit)
        if layer.stores_index:
            index = architecture.index_heads * architecture.index_size
            total += FLOP_PER_WEIGHT * index * pairs_within(layer.window_tokens)
    return total


def flop_per_pair(layer: Layer) -> int:
    """2 x heads x (key size + value size): the score and the weighted sum."""
    return FLOP_PER_WEIGHT * layer.n_heads * (layer.head_size_k + layer.head_size_v)


def decode_flop(facts: ModelFacts, n_depth: int, n_gen: int) -> float:
    """Per generated token, averaged over n_gen of them from a depth: all matrices and attention."""
    return matrix_flop(facts, 1, 1) + attention_flop(facts, n_depth, n_gen) / max(1, n_gen)
