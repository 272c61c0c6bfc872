"""docs/ceilings.md shows what the program prints: each example is run, and `make golden` writes them anew."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from llamasweep.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "ceilings.md"
EXAMPLE = re.compile(
    r"(<!-- example: begin -->\n```sh\nllamasweep )([^\n]+)(\n```\n```text\n)(.*?)(```\n<!-- example: end -->)",
    flags=re.DOTALL,
)
MAX_LINES = 40
"""One screen."""


def printed(words: str) -> str:
    done = CliRunner().invoke(app, shlex.split(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_examples_print_what_the_page_shows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("LLAMASWEEP_UPDATE_GOLDEN"):
        text = EXAMPLE.sub(lambda m: f"{m[1]}{m[2]}{m[3]}{printed(m[2])}{m[5]}", text)
        PAGE.write_text(text, encoding="utf-8")

    found = EXAMPLE.findall(text)

    assert len(found) == 3
    for _, words, _, shown, _ in found:
        assert shown == printed(words), "write it anew with: make golden"
        assert len(shown.splitlines()) <= MAX_LINES
