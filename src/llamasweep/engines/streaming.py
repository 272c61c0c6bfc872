"""Streams of events cut into their payloads as bytes come: server-sent events, and one JSON object per line. Pure.

A network may cut anywhere, also inside a character; comments and unknown fields are passed over. What grows without end is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

MAX_EVENT_BYTES = 1 << 20


class EventTooLargeError(ValueError):
    """One event is larger than any answer needs."""


class EventReader(Protocol):
    """What cuts a stream."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payloads that are complete with these bytes. Raises EventTooLargeError."""

    @property
    def n_waiting_bytes(self) -> int:
        """Bytes of an event whose end has not come."""


class LineReader:
    """Newline-delimited JSON: each line that is not blank is a payload."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def n_waiting_bytes(self) -> int:
        return len(self._rest.strip())

    def feed(self, data: bytes) -> Iterator[bytes]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        _check(len(self._rest))
        for line in lines:
            _check(len(line))
            if line := line.strip():
                yield line


class SseReader:
    """Server-sent events: the data of each event, its lines joined by a newline. Event names and ids are not kept.

    An event that a stream leaves without its blank line is not given, as the standard has it (WHATWG HTML, 9.2.6).
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._n_data_bytes = 0

    @property
    def n_waiting_bytes(self) -> int:
        return len(self._rest) + self._n_data_bytes

    def feed(self, data: bytes) -> Iterator[bytes]:
        text = self._rest + data
        if b"\r" in text:
            held = text.endswith(b"\r")  # a line feed may follow in the next piece
            text = text.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            text += b"\r" if held else b""
        *lines, self._rest = text.split(b"\n")
        _check(len(self._rest))
        for line in lines:
            if not line:
                if self._data:
                    payload, self._data, self._n_data_bytes = b"\n".join(self._data), [], 0
                    yield payload
            elif line.startswith(b"data:"):
                value = line[5:]
                value = value.removeprefix(b" ")
                self._n_data_bytes += len(value)
                _check(self._n_data_bytes)
                self._data.append(value)


def _check(n_bytes: int) -> None:
    if n_bytes > MAX_EVENT_BYTES:
        raise EventTooLargeError(f"an event of more than {MAX_EVENT_BYTES} bytes")
