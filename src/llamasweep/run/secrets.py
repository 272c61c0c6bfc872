"""What must not reach a result, a log or a report: tokens, and the name of the home folder. Pure.

A secret is known by its name (variable, flag), by its own form, or by standing in an address. What was found so is hidden
again where an engine repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

HIDDEN = "(hidden)"
LEAST_SECRET_LENGTH = 6
"""Shorter ones are not searched for in what the engine says: they would hit numbers and words."""
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS|PWD|CREDENTIAL|KEY(?![A-Z0-9])|AUTH|BEARER", re.IGNORECASE
)
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://)[^/\s@]{1,200}@", re.IGNORECASE)
_IN_ADDRESS = re.compile(
    r"([?&](?:[a-z_-]*(?:token|key|secret|password|auth)|sig|signature)=)[^&#\s]+", re.IGNORECASE
)
_AFTER_SCHEME = re.compile(r"(\b(?:bearer|basic)\s+)[^\s\"']+", re.IGNORECASE)
_KNOWN_FORM = re.compile(
    r"()\b(?:hf_|sk-|gh[opsu]_|github_pat_|glpat-|xox[abprs]-)[A-Za-z0-9_-]{16,}"
)
_SECRET_FLAGS = frozenset({"-hft", "--hf-token", "--api-key", "--token"})


def names_secret(name: str) -> bool:
    """Whether a variable of this name holds a token, a key or a password."""
    return _SECRET_NAME.search(name) is not None


def hide_in_environment(
    pairs: Sequence[tuple[str, str]], home: str | None = None
) -> dict[str, str]:
    """The variables that were set, secrets hidden, the home folder written as ~."""
    return {
        name: HIDDEN if _SECRET_NAME.search(name) else hide_home(_without_secrets(value), home)
        for name, value in pairs
    }


def hide_in_argv(argv: Sequence[str], home: str | None) -> list[str]:
    """The command as it may be shown: secrets hidden, among them the word after a token flag; the home folder as ~."""
    shown, is_secret = [], False
    for word in argv:
        flag, separator, _ = word.partition("=")
        if is_secret:
            shown.append(HIDDEN)
        elif separator and _is_secret_word(flag):
            shown.append(f"{flag}={HIDDEN}")
        else:
            shown.append(hide_home(_without_secrets(word), home))
        is_secret = not is_secret and word in _SECRET_FLAGS
    return shown


def hide_arguments(argv: Sequence[str], home: str | None) -> list[str]:
    """A command of the user's own: its program only, since any argument of it may be a token or a private address."""
    return [*hide_in_argv(argv[:1], home), *[HIDDEN] * len(argv[1:])]


def secrets_in(argv: Sequence[str], pairs: Sequence[tuple[str, str]]) -> tuple[bytes, ...]:
    """What `hide_in_argv` and `hide_in_environment` hide, the longest first; short ones left out."""
    found: set[str] = {value for name, value in pairs if _SECRET_NAME.search(name)}
    is_secret = False
    for word in argv:
        flag, separator, value = word.partition("=")
        if is_secret:
            found.add(word)
        elif separator and _is_secret_word(flag):
            found.add(value)
        is_secret = not is_secret and word in _SECRET_FLAGS
    for text in (*argv, *(value for _, value in pairs)):
        found.update(_secret_parts(text))
    raw = {value.encode("utf-8", "surrogateescape") for value in found}
    return tuple(sorted((v for v in raw if len(v) >= LEAST_SECRET_LENGTH), key=len, reverse=True))


def hide_values(data: bytes, values: Sequence[bytes]) -> bytes:
    """What an engine said, without the secrets that it was given."""
    for value in values:
        if value in data:
            data = data.replace(value, HIDDEN.encode())
    return data


def _is_secret_word(name: str) -> bool:
    """A token flag, or NAME=VALUE with a name as variables of the environment have it."""
    return name in _SECRET_FLAGS or (
        _VARIABLE_NAME.fullmatch(name) is not None and _SECRET_NAME.search(name) is not None
    )


def _without_secrets(text: str) -> str:
    """`https://user:password@host` without the middle, `?token=…` and `Bearer …` without the token."""
    text = _LOGIN.sub(rf"\1{HIDDEN}@", text)
    for form in (_IN_ADDRESS, _AFTER_SCHEME, _KNOWN_FORM):
        text = form.sub(rf"\1{HIDDEN}", text)
    return text


def _secret_parts(text: str) -> set[str]:
    """What `_without_secrets` takes out of a text."""
    logins = [m[0][len(m[1]) : -1] for m in _LOGIN.finditer(text)]
    parts = {*logins, *(login.partition(":")[2] for login in logins)}
    for form in (_IN_ADDRESS, _AFTER_SCHEME, _KNOWN_FORM):
        parts |= {m[0][len(m[1]) :] for m in form.finditer(text)}
    return parts


def hide_home(text: str, home: str | None) -> str:
    """Every path below the home folder written as ~/…; the text unaltered where there is no home."""
    folder = (home or "").rstrip("/\\")
    if not folder:
        return text
    return re.sub(rf"(?<![\w.~-]){re.escape(folder)}(?=[/\\\s'\":;,)]|$)", "~", text)
