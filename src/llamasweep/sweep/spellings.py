"""How single settings of a sweep file may be written: each takes the plain value, gives the strict one.

They raise ValueError with a sentence; what has no problem but the wrong type is left to the schema.
"""

from __future__ import annotations

import re

from llamasweep.errors import quoted
from llamasweep.sweep.axes import MAX_TEXT


def text(value: object) -> object:
    if isinstance(value, bool | int | float):
        raise ValueError(f"{value!r} is a number here; put quotes around it")
    if isinstance(value, str) and not 0 < len(value) <= MAX_TEXT:
        raise ValueError(f"the text must have 1 to {MAX_TEXT:,} characters")
    return value


def word(value: object) -> object:
    """Text that may look like a number, such as a build number."""
    return text(str(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


def whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{quoted(value)} is not a whole number in plain decimal digits")
    return value


def switch(value: object) -> object:
    word = str(value).lower()
    if word in {"on", "yes", "true"}:
        return True
    if word in {"off", "no", "false"}:
        return False
    raise ValueError(f"{quoted(value)} is not a switch; write on or off")


def rounds(value: object) -> object:
    return value if value == "auto" else whole(value)


def discard(value: object) -> object:
    if value == "auto":
        return value
    if str(value).lower() in {"none", "off", "false"}:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000:
        raise ValueError(f"{quoted(value)} is neither auto, off nor a number from 0 to 1000")
    return value


def switch_or_name(value: object) -> object:
    """A switch, or the name of a build."""
    try:
        return switch(value)
    except ValueError:
        return word(value)


ENGINES = ("llama-bench", "llama-server", "llama-batched-bench", "ollama", "openai")


def engine(value: object) -> object:
    if value not in ENGINES:
        raise ValueError(
            f"{quoted(value)} is not supported; this version drives {', '.join(ENGINES[:-1])} and {ENGINES[-1]}"
        )
    return value


def clock(value: object) -> object:
    if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", str(value)):
        raise ValueError(f"{quoted(value)} is not a time of day; write it like 07:00")
    return str(value).zfill(5)


def interval(value: object) -> object:
    if str(value).lower() in {"off", "no", "false", "none"}:
        return {"interval": None}
    return value if isinstance(value, dict) else {"interval": value}


def cooldown(value: object) -> object:
    return value if isinstance(value, dict) else {"wait": value}
