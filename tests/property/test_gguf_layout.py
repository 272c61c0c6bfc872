"""The GGUF reader under mutated bytes: a refusal with a reason or an answer, never anything else."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.gguf import headers

from llamasweep.errors import ModelFileError
from llamasweep.gguf.facts import TensorInfo, facts_from
from llamasweep.gguf.layout import Layout, read_layout

HEAD, N_DATA_BYTES = headers.gguf_head(
    {
        **headers.TINY_METADATA,
        "llama.attention.head_count_kv": [1, 2],
        "x.flags": [True, False],
        "x.scale": 1.5,
    },
    headers.TINY_TENSORS,
)
WHOLE = HEAD + bytes(N_DATA_BYTES)


def read(data: bytes) -> Layout | ModelFileError:
    try:
        layout = read_layout(io.BytesIO(data), len(data))
        tensors = [
            TensorInfo(name=t.name, ne=t.ne, ggml_type=t.ggml_type, n_bytes=t.n_bytes)
            for t in layout.tensors
        ]
        facts_from(layout.metadata, tensors, array_lengths=layout.array_lengths)
    except ModelFileError as refusal:
        return refusal
    return layout


def test_the_unchanged_file_is_read() -> None:
    assert isinstance(read(WHOLE), Layout)


@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(HEAD) - 1), st.integers(0, 255)), min_size=1, max_size=8
    )
)
@settings(deadline=None)
def test_changed_bytes_never_crash_the_reader(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for at, value in changes:
        data[at] = value

    result = read(bytes(data))

    if isinstance(result, Layout):
        assert all(t.start + t.n_bytes <= len(data) for t in result.tensors)


@given(at=st.integers(0, len(HEAD) - 8), number=st.integers(0, 2**64 - 1))
@settings(deadline=None)
def test_hostile_numbers_never_crash_the_reader(at: int, number: int) -> None:
    data = WHOLE[:at] + number.to_bytes(8, "little") + WHOLE[at + 8 :]

    read(data)


@given(length=st.integers(0, len(WHOLE) - 1))
@settings(deadline=None)
def test_every_truncation_is_refused(length: int) -> None:
    assert isinstance(read(WHOLE[:length]), ModelFileError)


@given(tail=st.binary(max_size=400))
@settings(deadline=None)
def test_any_bytes_after_the_magic_never_crash_the_reader(tail: bytes) -> None:
    read(b"GGUF\x03\0\0\0" + tail)
