"""The made-up vocabulary of a generated model: byte-level BPE of printable ASCII. Pure.

Any sequence of its tokens is valid UTF-8, a prompt of ASCII text has one token per character, and the
first N_SILENT tokens must have zero rows in the output head, so that no sampled run ends early.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from itertools import chain, count, islice, product

BOS, IM_START, EOS = 0, 1, 2
_CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_NEWLINE, _SPACE = "Ċ", "Ġ"  # how byte-level BPE writes the bytes 0x0A and 0x20
_MERGED = "~~"  # loaders want at least one merge; this one hardly ever applies

N_SILENT = len(_CONTROL_TOKENS) + 1
"""Control tokens and the line break: never to be sampled."""

_CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_TYPE_NORMAL, _TYPE_CONTROL = 1, 3


def vocabulary_metadata(n_vocab: int) -> dict[str, object]:
    """The `tokenizer.*` keys for a vocabulary of n_vocab tokens (at least some hundred)."""
    tokens = list(islice(_tokens(), n_vocab))
    n_control = len(_CONTROL_TOKENS)
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [_TYPE_CONTROL] * n_control
        + [_TYPE_NORMAL] * (len(tokens) - n_control),
        "tokenizer.ggml.merges": [" ".join(_MERGED)],
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOS,
        "tokenizer.ggml.padding_token_id": BOS,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.chat_template": _CHAT_TEMPLATE,
    }


def _tokens() -> Iterator[str]:
    printable = (chr(code) for code in range(0x21, 0x7F))
    alphabet = string.ascii_lowercase + string.digits
    words = ("".join(letters) for size in count(2) for letters in product(alphabet, repeat=size))
    return chain(_CONTROL_TOKENS, (_NEWLINE,), printable, (_SPACE, _MERGED), words)
