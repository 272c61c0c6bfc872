"""Names as the page shows them: axes in words, and text from outside made harmless to look at.

Escaping for HTML is the template's work; here characters that could hide, reorder or break a line become visible
escapes, and lengths are bounded. Nothing is dropped silently.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Sequence

from llamasweep.report import figures
from llamasweep.results.request_load import RequestLoad
from llamasweep.sweep.parameters import PARAMETERS

AXIS_WORDS: dict[str, str] = {
    "n_depth": "depth",
    "n_threads": "threads",
    "n_batch": "batch",
    "n_ubatch": "ubatch",
    "type_k": "K cache",
    "type_v": "V cache",
    "flash_attn": "flash attention",
    "n_gpu_layers": "GPU layers",
    "n_cpu_moe": "CPU MoE layers",
    "split_mode": "split mode",
    "main_gpu": "main GPU",
    "load_mode": "load mode",
    "no_kv_offload": "KV cache in RAM",
    "prompt_cache": "prompt cache",
}
"""Canonical name -> what people call it; any other axis is shown by its canonical name."""

AXIS_TITLES: dict[str, str] = {
    "n_depth": "tokens already in the context",
    "n_threads": "threads",
    "n_batch": "logical batch, tokens",
    "n_ubatch": "physical batch, tokens",
    "n_gpu_layers": "layers on the GPU",
    "n_cpu_moe": "layers with experts on the CPU",
    "concurrency": "requests answered at once",
    "turn": "turn of the conversation",
}
AXIS_ORDER: dict[str, int] = {p.name: i for i, p in enumerate(PARAMETERS)}
AXIS_DOCS: dict[str, str] = {p.name: p.doc for p in PARAMETERS}

_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_HOME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*=)?~/")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def axis_word(name: str) -> str:
    """The word for an axis."""
    return AXIS_WORDS.get(name, name)


def axis_title(name: str) -> str:
    """The title of an axis in a chart, with its unit."""
    return AXIS_TITLES.get(name, axis_word(name))


def value_word(value: object) -> str:
    """A parameter's value as text: switches as on and off, integers grouped from five digits on."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return figures.count(value)
    return shown(str(value), limit=60)


def load_words(load: RequestLoad) -> str:
    """`8 requests at once, a prompt read before, turn 3`; '' for one new request."""
    streams = f"{figures.count(load.n_streams)} requests at once" if load.n_streams > 1 else ""
    turn = f"turn {figures.count(load.turn)} of a conversation" if load.turn > 1 else ""
    words = (streams, "a prompt read before" * load.is_warm, turn)
    return ", ".join(word for word in words if word)


def shown(text: str, limit: int = 120) -> str:
    """One line of text from outside: hidden and reordering characters as escapes, cut in the middle at `limit`."""
    line = "".join(_visible(character) for character in text[: limit * 4])
    if len(line) <= limit and len(text) <= limit * 4:
        return line
    keep = limit - 1
    tail = "".join(_visible(character) for character in text[-limit:])[-(keep // 3) :]
    return line[: keep - len(tail)] + "…" + tail


def shown_block(text: str, *, max_lines: int = 12, max_line: int = 400) -> str:
    """The last `max_lines` lines of text from outside; terminal colours removed, other hidden characters visible."""
    lines = _TERMINAL_SEQUENCE.sub("", text).replace("\r\n", "\n").rstrip().split("\n")
    kept = [shown(line.replace("\t", "    "), limit=max_line) for line in lines[-max_lines:]]
    if len(lines) > max_lines:
        kept.insert(0, f"… {len(lines) - max_lines} earlier lines are in the log")
    return "\n".join(kept)


def has_hidden(text: str) -> bool:
    """Whether a character other than newline would be invisible or reorder the text."""
    return any(character != "\n" and _visible(character) != character for character in text)


def shell_line(argv: Sequence[str]) -> str:
    """argv as one line for a POSIX shell; bash's $'…' where a word holds hidden characters, so that none is lost.

    A leading `~/`, as runs record the home folder, is left for the shell to fill in.
    """
    return " ".join(_shell_word(word) for word in argv)


def model_family(label: str, quant: str | None) -> str:
    """The label without the quantisation that it may repeat: `tiny-llama` of `tiny-llama-Q4_0` and `Q4_0`."""
    if not quant:
        return label
    pattern = r"[\s._:/(\-]*(?<![A-Za-z0-9])" + re.escape(quant) + r"(?![A-Za-z0-9_])\)?(?:\.gguf)?"
    family = re.sub(pattern, "", label, flags=re.IGNORECASE).strip(" -._:/")
    return family or label


def _visible(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape", "backslashreplace").decode("ascii")
    return character


def _shell_word(word: str) -> str:
    if match := _HOME.match(word):
        rest = word[match.end() :]
        # A shell fills in ~ only where a word begins with it.
        home = f'{match[1]}"$HOME"/' if match[1] else "~/"
        return home + (_quoted(rest) if rest else "")
    return _quoted(word)


def _quoted(word: str) -> str:
    if not word.isprintable() or has_hidden(word):
        inner = "".join(_shell_character(character) for character in word)
        return f"$'{inner}'"
    return shlex.quote(word)


def _shell_character(character: str) -> str:
    if 0xDC80 <= ord(character) <= 0xDCFF:  # a byte that is no UTF-8, as os.fsdecode keeps it
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character in "'\\":
        return "\\" + character
    visible = _visible(character)
    if visible.startswith("\\x"):  # bash would read \x85 as a byte, not as a character
        return f"\\u00{visible[2:]}" if ord(character) > 0x7F else visible
    return visible
