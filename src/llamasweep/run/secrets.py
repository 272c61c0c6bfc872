"""What must not reach a result, a log or a report: tokens, and the name of the home folder. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

HIDDEN = "(hidden)"
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|AUTH|BEARER", re.IGNORECASE
)
_SECRET_FLAGS = frozenset({"-hft", "--hf-token", "--api-key", "--token"})


def hide_in_environment(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The variables that were set, values of secret-looking names hidden."""
    return {name: HIDDEN if _SECRET_NAME.search(name) else value for name, value in pairs}


def hide_in_argv(argv: Sequence[str], home: str | None) -> list[str]:
    """The command as it may be shown: the word after a token flag hidden, the home folder written as ~."""
    shown, is_secret = [], False
    for word in argv:
        shown.append(HIDDEN if is_secret else _without_home(word, home))
        is_secret = word in _SECRET_FLAGS
    return shown


def _without_home(word: str, home: str | None) -> str:
    if home and len(home) > 1 and (word == home or word.startswith(home + "/")):
        return "~" + word[len(home) :]
    return word
