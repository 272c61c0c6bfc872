"""A file on a web server as a stream that can seek, for the bounded reader of heads.

Asks for growing ranges and checks what comes against what was asked. Where the server knows no
ranges it reads on in the one answer, and stops as soon as nothing more is wanted.
"""

from __future__ import annotations

import http.client
import io

from llamasweep.errors import ModelFileError
from llamasweep.gguf.wire import Budget, Wire

_FIRST_BYTES = 512 * 1024
_MOST_AT_ONCE_BYTES = 4 * 2**20
_PIECE_BYTES = 64 * 1024


class RemoteFile(io.RawIOBase):
    """The stream. n_file_bytes: the length that the server tells, known from the start.

    Raises ModelFileError for a server that contradicts itself or sends less than it promised, and
    what `Wire.get` raises.
    """

    def __init__(self, url: str, budget: Budget) -> None:
        super().__init__()
        self._url = url
        self._budget = budget
        self._wire = Wire(budget)
        self._at = 0
        self._start, self._kept = 0, b""
        self._n_next_bytes = _FIRST_BYTES
        self._whole: _WholeAnswer | None = None
        self.n_file_bytes = 0
        self._fetch(0, _FIRST_BYTES)

    def seekable(self) -> bool:
        """Forward, and back as far as the last read began."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a byte, counted from the start of the file."""
        if whence != 0:
            raise io.UnsupportedOperation("only from the start")
        self._at = offset
        return offset

    def read(self, size: int = -1) -> bytes:
        """Up to size bytes; fewer only at the end of the file."""
        end = self.n_file_bytes if size < 0 else min(self._at + size, self.n_file_bytes)
        if self._at < self._start or end > self._start + len(self._kept):
            self._fetch(self._at, end - self._at)
        taken = self._kept[self._at - self._start : end - self._start]
        self._at += len(taken)
        return taken

    def close(self) -> None:
        """Let go of the connection; what was not asked for is not received."""
        if self._whole is not None:
            self._whole.close()
        super().close()

    def _fetch(self, start: int, n_bytes: int) -> None:
        """Make the kept bytes begin at start and hold n_bytes, and more where that saves a request."""
        offset = start - self._start
        kept = self._kept[offset:] if 0 <= offset < len(self._kept) else b""
        position, n_missing = start + len(kept), n_bytes - len(kept)
        with self._wire.in_time():
            if self._whole is not None:
                more = self._whole.read(position, n_missing)
            else:
                more = self._ask(position, max(n_missing, self._n_next_bytes))
        self._start, self._kept = start, kept + more
        self._n_next_bytes = min(2 * self._n_next_bytes, _MOST_AT_ONCE_BYTES)

    def _ask(self, start: int, n_bytes: int) -> bytes:
        answer = self._wire.get(self._url, start, start + n_bytes - 1)
        try:
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise ModelFileError("the server sends the file compressed")
            if answer.status == http.HTTPStatus.PARTIAL_CONTENT:
                self._url = answer.url
                with answer:
                    return self._piece(answer, start, n_bytes)
            self._note_length(_whole_length(answer))
        except BaseException:
            answer.close()
            raise
        self._whole = _WholeAnswer(answer, self._budget, self.n_file_bytes)
        return self._whole.read(start, n_bytes)

    def _piece(self, answer: http.client.HTTPResponse, start: int, n_bytes: int) -> bytes:
        """The body of a partial answer, checked against what was asked."""
        first, last, length = _content_range(answer.headers.get("Content-Range", ""))
        self._note_length(length)
        n_due = min(n_bytes, length - start)
        if first != start or last - first + 1 != n_due:
            raise ModelFileError("the server sends other bytes than were asked for")
        return _receive(answer, n_due, self._budget)

    def _note_length(self, length: int) -> None:
        if self.n_file_bytes not in (0, length):
            raise ModelFileError("the file changed while it was read")
        self.n_file_bytes = length


class _WholeAnswer:
    """The answer of a server that knows no ranges: the file from its start, read as far as wanted."""

    def __init__(self, answer: http.client.HTTPResponse, budget: Budget, n_file_bytes: int) -> None:
        self._answer, self._budget, self._n_file_bytes = answer, budget, n_file_bytes
        self._n_passed = 0

    def read(self, start: int, n_bytes: int) -> bytes:
        """The bytes from start on, what lies before them passed over."""
        if start < self._n_passed:
            raise ModelFileError("the server knows no ranges, and the head leads backwards")
        while self._n_passed < start:
            self._receive(min(_PIECE_BYTES, start - self._n_passed))
        return self._receive(min(n_bytes, self._n_file_bytes - start))

    def _receive(self, n_bytes: int) -> bytes:
        taken = _receive(self._answer, n_bytes, self._budget)
        self._n_passed += len(taken)
        return taken

    def close(self) -> None:
        self._answer.close()


def _receive(answer: http.client.HTTPResponse, n_bytes: int, budget: Budget) -> bytes:
    """Exactly n_bytes of a body. Raises ModelFileError where it ends before."""
    pieces = []
    while n_bytes > 0:
        piece = answer.read1(min(n_bytes, _PIECE_BYTES))
        if not piece:
            raise ModelFileError("the server sent less than it promised")
        budget.take(len(piece))
        pieces.append(piece)
        n_bytes -= len(piece)
    return b"".join(pieces)


def _whole_length(answer: http.client.HTTPResponse) -> int:
    length = answer.headers.get("Content-Length", "")
    if not _is_number(length):
        raise ModelFileError(
            "the server knows no ranges and tells no length",
            hint="Download the file and give its path.",
        )
    return int(length)


def _content_range(text: str) -> tuple[int, int, int]:
    """(first, last, length of the file) of "bytes 0-99/1000". Raises ModelFileError."""
    unit, _, rest = text.partition(" ")
    span, _, length = rest.partition("/")
    first, _, last = span.partition("-")
    if unit != "bytes" or not all(_is_number(n) for n in (first, last, length)):
        raise ModelFileError("the server does not say which bytes it sends")
    return int(first), int(last), int(length)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
