"""What must not reach a result, a log or a report: tokens, and the name of the home folder. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

HIDDEN = "(hidden)"
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|AUTH|BEARER", re.IGNORECASE
)
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://)[^/\s@]{1,200}@", re.IGNORECASE)
_SECRET_FLAGS = frozenset({"-hft", "--hf-token", "--api-key", "--token"})


def hide_in_environment(
    pairs: Sequence[tuple[str, str]], home: str | None = None
) -> dict[str, str]:
    """The variables that were set, values of secret-looking names hidden, the home folder written as ~."""
    return {
        name: HIDDEN if _SECRET_NAME.search(name) else hide_home(_without_password(value), home)
        for name, value in pairs
    }


def hide_in_argv(argv: Sequence[str], home: str | None) -> list[str]:
    """The command as it may be shown: the word after a token flag hidden, the home folder written as ~."""
    shown, is_secret = [], False
    for word in argv:
        flag, separator, _ = word.partition("=")
        if is_secret:
            shown.append(HIDDEN)
        elif separator and _is_secret_word(flag):
            shown.append(f"{flag}={HIDDEN}")
        else:
            shown.append(hide_home(_without_password(word), home))
        is_secret = not is_secret and word in _SECRET_FLAGS
    return shown


def _is_secret_word(name: str) -> bool:
    """A token flag, or NAME=VALUE with a name as variables of the environment have it."""
    return name in _SECRET_FLAGS or (
        _VARIABLE_NAME.fullmatch(name) is not None and _SECRET_NAME.search(name) is not None
    )


def _without_password(text: str) -> str:
    """`https://user:password@host` without the middle."""
    return _LOGIN.sub(rf"\1{HIDDEN}@", text)


def hide_home(text: str, home: str | None) -> str:
    """Every path below the home folder written as ~/…; the text unaltered where there is no home."""
    folder = (home or "").rstrip("/\\")
    if not folder:
        return text
    return re.sub(rf"(?<![\w.~-]){re.escape(folder)}(?=[/\\\s'\":;,)]|$)", "~", text)
