"""20,000 damaged heads: each is read or refused with a typed error, in bounded time and memory, whatever the file says."""

from __future__ import annotations

import io
import random
import resource
import struct
import time

import pytest
from tests.fakes.models import gguf_bytes

from llamasweep.errors import ModelFileError
from llamasweep.gguf.layout import read_layout

N_HEADS = 20_000
_LONGEST_S = 1.0
_MOST_BYTES = 200 << 20
_NASTY = (0, 1, 0x7F, 0x80, 0xFF)
_COUNTS = (0, 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)


def _damaged(good: bytes, dice: random.Random) -> bytes:
    """A few bytes, a count or a length made absurd, or the file cut, repeated or shifted."""
    data = bytearray(good)
    kind = dice.randrange(5)
    if kind == 0:
        for _ in range(dice.randint(1, 8)):
            data[dice.randrange(len(data))] = dice.choice(_NASTY)
    elif kind == 1:
        struct.pack_into("<Q", data, dice.randrange(len(data) - 8), dice.choice(_COUNTS))
    elif kind == 2:
        struct.pack_into("<Q", data, dice.choice((8, 16)), dice.choice(_COUNTS))
    elif kind == 3:
        del data[dice.randrange(len(data)) :]
    else:
        at = dice.randrange(len(data))
        data[at:at] = data[: dice.randrange(1, 200)]
    return bytes(data)


def _refusal(data: bytes) -> str | None:
    """Why the head is refused, None if it is read."""
    try:
        read_layout(io.BytesIO(data), len(data))
    except ModelFileError as refusal:
        return refusal.message
    return None


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("seed", range(4))
def test_damaged_heads_are_read_or_refused_in_words(seed: int) -> None:
    good = gguf_bytes({"note": "x" * 100})
    dice = random.Random(seed)
    refusals: set[str] = set()
    n_read = 0
    before_bytes = _peak_bytes()
    for _ in range(N_HEADS // 4):
        data = _damaged(good, dice)
        began_s = time.process_time()
        refusal = _refusal(data)
        assert time.process_time() - began_s < _LONGEST_S
        if refusal is None:
            n_read += 1
        else:
            assert refusal.strip()
            refusals.add(refusal.split("'")[0][:40])
    assert _peak_bytes() - before_bytes < _MOST_BYTES
    assert len(refusals) >= 8, "the damage reaches many different checks"
    assert 0 < n_read < N_HEADS // 4
