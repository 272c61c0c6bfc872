"""Text from outside as GitHub's markdown shows it: no element, no link, no mention, no line of its own."""

from __future__ import annotations

import re

from llamasweep.report.names import shown

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~>$])")


def markdown_text(text: str) -> str:
    """Text that markdown shows as it is."""
    text = shown(text, 1000).replace("&", "&amp;").replace("<", "&lt;")
    text = _SPECIAL.sub(r"\\\1", text)
    text = re.sub(r"@(?=\w)", "@<!-- -->", text)  # no mention
    text = re.sub(r"(?<=\w)://", ":<!-- -->//", text)  # no link
    return re.sub(r"(?i)\bwww\.", "www<!-- -->.", text)
