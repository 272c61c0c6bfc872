"""What a text must not tell before it is shown to strangers: who and where, in which folders, with which serial numbers. Pure.

File names stay, folders go. Names are known because they were given, stand in a home folder, or are the value of a field
that is called so. Public places (model hubs, this computer's own address, the kernel's files) stay.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

HIDDEN = "(hidden)"
LEAST_LENGTH = 2
_GENERIC = """
root user users admin administrator home localhost ubuntu debian fedora arch runner public shared default models model
sweeps results reports logs log builds build bin tmp var opt usr mnt data srv media local cache share lib etc src work
llamasweep llama gguf volumes library workspace none unknown true false server bench quick engine tokens thread threads
depth batch quant hidden
"""
GENERIC = frozenset(_GENERIC.split())
"""Names of folders and people that tell nothing, or that would take words of ours out of the text."""
SURE_LENGTH = 5
"""A name of at least this length is hidden inside of longer words too."""

_PUBLIC_HOSTS = frozenset(
    {"huggingface.co", "hf.co", "github.com", "ollama.com", "localhost", "127.0.0.1", "[::1]"}
)
_FILE = re.compile(
    r"\.(?:gguf|ya?ml|jsonl?|gz|parquet|log|txt|html?|csv|md|py|sh|exe|dll|so|dylib|bin|jinja)$",
    re.I,
)
_PROGRAM = re.compile(
    r"(?:llama-(?:bench|batched-bench|server|cli|quantize|perplexity)|ollama|rpc-server)(?:\.exe)?"
)
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:[\\/]Users[\\/])([^/\\\s'\":;,)]+)")
_LOGIN = re.compile(
    r"(?<![\w.+-])([A-Za-z0-9_.-]{2,32})@([A-Za-z0-9-]{2,64}(?:\.[A-Za-z0-9-]{2,64}){1,5}|[A-Za-z0-9-]{2,64}(?=:[~/]))"
)
_PEER = re.compile(r"\[?([A-Za-z0-9_.:-]{2,255}?)\]?:\d{1,5}")
_IP = re.compile(
    r"(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?![\w-]|\.\d)"
    r"|(?<![\w.:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:]|\.\d)"
)
_ADDRESS = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s'\"<>]+")
_PATH = re.compile(
    r"(?<![\w./\\~…)-])"
    r"(?:~[\w.-]*[/\\]|\.{1,2}[/\\]|[A-Za-z]:[\\/]|\\\\|/(?=[^/\s'\"]+/))"
    r"[^\s'\"<>|*?,;:)(]+"
)
_RELATIVE = re.compile(
    r"(?<![\w./\\~-])(?!logs/)[\w.+-]+(?:[/\\][^\s'\"<>|*?,;:)(/\\]+)+\.(?:gguf|ya?ml)\b", re.I
)
_FOLDER_FIRST = re.compile(r"[^\s/\\]*[/\\]")
_ROOTED = re.compile(r"(?:~[\w.-]*|\.{1,2})?[/\\]|[A-Za-z]:[/\\]")
_KERNEL = re.compile(r"/(?:proc|sys)/")
_SERIALS = (
    re.compile(
        r"\b(?:GPU-|MIG-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I
    ),
    re.compile(r"\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\b", re.I),
    re.compile(
        r"(?i)(?<=serial)(?:\s*(?:number|no\.?|nr\.?|#))?\s*[:=#]?\s*[A-Z0-9-]*\d[A-Z0-9-]{3,}"
    ),
)
"""UUIDs of devices and machines, hardware addresses, and what follows the word serial."""
_SHARED = ipaddress.ip_network("100.64.0.0/10")
"""Addresses behind a provider's router, which private networks of machines use too."""


class Hider:
    """Takes out of any text what may not be in it. The same text always becomes the same."""

    def __init__(self, words: Iterable[str], folders: Iterable[str]) -> None:
        names = sorted({word for word in words if _tells(word)}, key=lambda w: (-len(w), w))
        self._names = _any_of([n for n in names if len(n) >= SURE_LENGTH], "{}")
        self._short_names = _any_of(names, r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])")
        places = sorted({f.rstrip("/\\") for f in folders} - {""}, key=lambda f: (-len(f), f))
        self._inside = _any_of(places, r"(?<![\w./\\~-]){}[/\\]+")
        whole = [place for place in places if _tells(place)]
        self._places = _any_of(whole, r"(?<![\w./\\~-]){}(?![\w-])")
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        if text not in self._known:
            self._known[text] = self._hidden(text)
        return self._known[text]

    def _hidden(self, text: str) -> str:
        if is_path(text):
            text = file_name(text)
        text = _ADDRESS.sub(lambda found: _address(found[0]), text)
        if self._inside is not None:
            text = self._inside.sub("", text)
        text = _PATH.sub(lambda found: _place(found[0]), text)
        text = _RELATIVE.sub(lambda found: file_name(found[0]), text)
        if self._places is not None:
            text = self._places.sub(HIDDEN, text)
        text = _LOGIN.sub(HIDDEN, text)
        text = _IP.sub(lambda found: HIDDEN if _tells_place(found[0]) else found[0], text)
        for pattern in _SERIALS:
            text = pattern.sub(HIDDEN if pattern is not _SERIALS[-1] else f" {HIDDEN}", text)
        for names in (self._names, self._short_names):
            text = text if names is None else names.sub(HIDDEN, text)
        return text


def names_in(texts: Collection[str]) -> set[str]:
    """People and machines that home folders and logins in the texts name."""
    found: set[str] = set()
    for text in texts:
        found |= set(_HOME.findall(text))
        if "@" in text:
            found |= {part for pair in _LOGIN.findall(_ADDRESS.sub("", text)) for part in pair}
    return found


def hosts_in(texts: Iterable[str]) -> set[str]:
    """Machines that addresses with a scheme name, but for public places."""
    found = {_host(url) for text in texts if "://" in text for url in _ADDRESS.findall(text)}
    return {host for host in found if host and host not in _PUBLIC_HOSTS}


def peers_in(text: str) -> set[str]:
    """Machines of a list of `host:port`, as a flag for other machines takes it, separated by commas or slashes."""
    found = {match[1] for part in re.split(r"[,/;\s]+", text) if (match := _PEER.fullmatch(part))}
    return found - {host.strip("[]") for host in _PUBLIC_HOSTS} - {"0.0.0.0"}  # noqa: S104  (names no machine)


def _tells_place(text: str) -> bool:
    """Whether it is an address of a private network, or any of IPv6 but this computer's own."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_loopback or text.startswith("0.") or address.is_unspecified:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return any(map(str.isdigit, text))
    return address.is_private or address.is_link_local or address in _SHARED


def is_path(text: str) -> bool:
    """Whether the whole text is a path: no sentence that names one, no log of the run itself, no file of the kernel."""
    if "\n" in text or "://" in text or text.startswith("logs/") or _KERNEL.match(text):
        return False
    has_folder = _FOLDER_FIRST.match(text) is not None
    return has_folder and (_FILE.search(text) is not None or _ROOTED.match(text) is not None)


def file_name(path: str) -> str:
    """The last part of a path where it is a file's or a program's name, else `(hidden)`."""
    name = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return name if _FILE.search(name) or _PROGRAM.fullmatch(name) else HIDDEN


def folder_of(path: str) -> str:
    """A path without its last part."""
    return path[: max(path.rfind("/"), path.rfind("\\"), 0)]


def _tells(word: str) -> bool:
    return len(word) >= LEAST_LENGTH and word.casefold() not in GENERIC and not word.isdigit()


def _any_of(words: Collection[str], pattern: str) -> re.Pattern[str] | None:
    if not words:
        return None
    return re.compile(pattern.replace("{}", f"(?:{'|'.join(map(re.escape, words))})"), re.I)


def _place(path: str) -> str:
    return path if _KERNEL.match(path) else file_name(path)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").casefold()
    except ValueError:
        return ""


def _address(url: str) -> str:
    """A public address without login and query; of any other only its kind."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").casefold()
    except ValueError:
        return HIDDEN
    if host in _PUBLIC_HOSTS and "@" not in parts.netloc:
        return f"{parts.scheme}://{parts.netloc}{parts.path}"
    return f"{parts.scheme}://{HIDDEN}"
