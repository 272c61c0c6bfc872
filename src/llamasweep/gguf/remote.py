"""Models on a web server: the facts of all their files, from a few megabytes of their heads.

Bounded in bytes, time and redirects whatever the server does; sends no credentials. What the bytes
mean is told by `layout`, how they are fetched by `remote_file`.
"""

from __future__ import annotations

import contextlib
import http.client
import urllib.error
from collections.abc import Iterator
from typing import BinaryIO, cast

from llamasweep.errors import ModelFileError, quoted
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.layout import Layout, read_layout
from llamasweep.gguf.remote_address import Address, parse_address
from llamasweep.gguf.remote_file import RemoteFile
from llamasweep.gguf.shards import check_shard, check_union, facts_of, n_shards, shard_names
from llamasweep.gguf.wire import Budget, Limits


def read_remote_model(url: str, limits: Limits | None = None) -> ModelFacts:
    """The facts of a model behind an http or https address, all shards of a split one.

    Raises ModelFileError: no such file, no answer in time, a server that contradicts itself, and
    whatever is wrong with the file.
    """
    budget = Budget(limits or Limits())
    first = parse_address(url)
    layouts = [_layout(first, budget)]
    if n_shards(layouts[0]) > 1:
        with _named(first):
            names = shard_names(first.file_name, layouts[0])
        for index, name in enumerate(names[1:], start=1):
            layouts.append(_layout(first.sibling(name), budget))
            with _named(first.sibling(name)):
                check_shard(layouts[-1], index)
    with _named(first):
        if len(layouts) > 1:
            check_union(layouts)
        return facts_of(layouts)


def _layout(address: Address, budget: Budget) -> Layout:
    with (
        _named(address),
        _told_as_model_problems(budget.limits),
        RemoteFile(address.url, budget) as file,
    ):
        return read_layout(cast(BinaryIO, file), file.n_file_bytes)


@contextlib.contextmanager
def _named(address: Address) -> Iterator[None]:
    """Put the address, without what may be secret in it, before the message of a ModelFileError."""
    try:
        yield
    except ModelFileError as problem:
        raise ModelFileError(
            f"{quoted(address.public, max_characters=400)}: {problem.message}",
            hint=problem.hint or address.hint,
        ) from None


@contextlib.contextmanager
def _told_as_model_problems(limits: Limits) -> Iterator[None]:
    """Everything that can go wrong on the way becomes a ModelFileError with a sentence."""
    try:
        yield
    except urllib.error.HTTPError as problem:
        problem.close()
        raise _refused(problem.code) from None
    except TimeoutError:
        raise _silent(limits) from None
    except urllib.error.URLError as problem:
        if isinstance(problem.reason, TimeoutError):
            raise _silent(limits) from None
        raise ModelFileError(f"cannot be reached: {_words(problem.reason)}") from None
    except (OSError, http.client.HTTPException, ValueError) as problem:
        raise ModelFileError(f"the connection broke: {_words(problem)}") from None


def _silent(limits: Limits) -> ModelFileError:
    return ModelFileError(
        f"the server was silent for {limits.silent_s:g} s",
        hint="Try again, or download the file and give its path.",
    )


def _words(problem: object) -> str:
    """What a library says of a problem; a server's own words may be among it."""
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    return quoted(str(text), max_characters=120)[1:-1]


def _refused(status: int) -> ModelFileError:
    if status in (401, 403):
        return ModelFileError(
            f"the server wants a sign-in (HTTP {status}); llamasweep sends no credentials",
            hint="Download the file and give its path.",
        )
    if status in range(300, 400):
        return ModelFileError("the server redirects to what is not an http or https address")
    if status in (404, 410):
        return ModelFileError(f"there is no such file (HTTP {status})")
    if status == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        return ModelFileError("the file is empty or shorter than its head says (HTTP 416)")
    return ModelFileError(f"the server refused (HTTP {status})")
