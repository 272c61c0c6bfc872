"""Streams cut anywhere give the same payloads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamasweep.engines.streaming import MAX_EVENT_BYTES, EventTooLargeError, LineReader, SseReader

SSE = (
    b': hello\n\ndata: {"a": 1}\n\ndata:two\ndata: lines\r\n\r\nevent: x\nid: 7\ndata: [DONE]\n\n'
    b": keep-alive\n\ndata: \xc2\xb5\r\rdata\n\ndata: left without its end"
)
SSE_PAYLOADS = [b'{"a": 1}', b"two\nlines", b"[DONE]", b"\xc2\xb5"]


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


@given(st.lists(st.integers(0, 9), max_size=60))
def test_events_are_the_same_however_the_network_cuts_them(sizes: list[int]) -> None:
    reader = SseReader()
    found = [payload for piece in cut(SSE, sizes) for payload in reader.feed(piece)]
    assert found == SSE_PAYLOADS
    assert reader.n_waiting_bytes == len(b"data: left without its end")


@given(st.lists(st.integers(0, 9), max_size=60))
def test_lines_are_the_same_however_the_network_cuts_them(sizes: list[int]) -> None:
    reader = LineReader()
    data = b'{"a": 1}\n\r\n  {"b": "\xc2\xb5"} \r\n{"c"'
    found = [payload for piece in cut(data, sizes) for payload in reader.feed(piece)]
    assert found == [b'{"a": 1}', b'{"b": "\xc2\xb5"}']
    assert reader.n_waiting_bytes == len(b'{"c"')


def flood(reader: SseReader | LineReader, piece: bytes) -> None:
    """More of it than any event may have."""
    for _ in range(2 * MAX_EVENT_BYTES // len(piece)):
        assert not list(reader.feed(piece))


@pytest.mark.parametrize(
    ("kind", "piece"),
    [
        (SseReader, b"x" * 1000),
        (LineReader, b"x" * 1000),
        (SseReader, b"data: " + b"x" * 1000 + b"\n"),
    ],
)
def test_an_event_without_end_is_refused(kind: type[SseReader | LineReader], piece: bytes) -> None:
    with pytest.raises(EventTooLargeError):
        flood(kind(), piece)


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_no_bytes_make_a_reader_fall_over(pieces: list[bytes]) -> None:
    for reader in (SseReader(), LineReader()):
        for piece in pieces:
            assert all(isinstance(payload, bytes) for payload in reader.feed(piece))
