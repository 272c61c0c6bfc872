"""Addresses of model files: which are taken, what of them may be shown, and where redirects may lead."""

from __future__ import annotations

import urllib.parse
from typing import NamedTuple

from llamasweep.errors import ModelFileError

MAX_URL_LENGTH = 4_096
_SCHEMES = ("http", "https")


class Address(NamedTuple):
    """Where a file is. public: without query and fragment, which may hold a key to it."""

    url: str

    @property
    def public(self) -> str:
        """The address as it may be shown."""
        return urllib.parse.urlsplit(self.url)._replace(query="", fragment="").geturl()

    @property
    def file_name(self) -> str:
        """Last part of the path, with its escapes undone."""
        return urllib.parse.unquote(urllib.parse.urlsplit(self.url).path.rsplit("/", 1)[-1])

    @property
    def hint(self) -> str | None:
        """What the address itself suggests when it leads to something else than a model."""
        if "/blob/" in self.url:
            return "This looks like the address of a page about the file; try /resolve/ for /blob/."
        return None

    def sibling(self, name: str) -> Address:
        """The file of that name in the same folder, the query kept."""
        parts = urllib.parse.urlsplit(self.url)
        folder = parts.path.rsplit("/", 1)[0]
        return Address(url=parts._replace(path=f"{folder}/{urllib.parse.quote(name)}").geturl())


def is_address(text: str) -> bool:
    """Whether a name is meant as a web address."""
    return text[:8].lower().startswith(("http://", "https://"))


def parse_address(text: str) -> Address:
    """An http or https address of a file. Raises ModelFileError for others and for ones with a sign-in."""
    if len(text) > MAX_URL_LENGTH or not text.isprintable() or " " in text:
        raise ModelFileError("the address is too long or holds what no address holds")
    parts = _split(text)
    if parts.username is not None or parts.password is not None:
        raise ModelFileError(
            "the address holds a sign-in; llamasweep sends no credentials",
            hint="Download the file and give its path.",
        )
    if not parts.path.strip("/"):
        raise ModelFileError("the address names a server, not a file")
    path = urllib.parse.quote(parts.path, safe="/%:@!$&'()*+,;=~-._")
    query = urllib.parse.quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    host = (
        parts.netloc.encode("idna").decode("ascii") if not parts.netloc.isascii() else parts.netloc
    )
    return Address(url=parts._replace(netloc=host, path=path, query=query, fragment="").geturl())


def check_redirect(old: str, new: str) -> None:
    """Raise ModelFileError for a redirect to another kind of address, with a sign-in, or out of https."""
    before, after = _split(old), _split(new)
    if after.username is not None or after.password is not None:
        raise ModelFileError("the server redirects to an address with a sign-in")
    if before.scheme == "https" and after.scheme == "http":
        raise ModelFileError("the server redirects from https to http")


def _split(text: str) -> urllib.parse.SplitResult:
    try:
        parts = urllib.parse.urlsplit(text)
        is_good = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise ModelFileError(
            "the address, or one that it redirects to, is not an http or https one"
        )
    return parts
