"""docs/sweep-file.md holds the tables that the code makes, and its examples are true."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from llamasweep.sweep.reference import axis_table, key_table
from llamasweep.sweep.schema import json_schema, parse

PAGE = Path(__file__).parents[2] / "docs" / "sweep-file.md"


def no_base(_name: str, _named_in: str) -> tuple[str, str]:
    raise FileNotFoundError(2, "no such file")


@pytest.mark.parametrize(
    ("name", "table"), [("axes", axis_table()), ("keys", key_table(json_schema()))]
)
def test_the_page_holds_the_table_that_the_code_makes(name: str, table: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(
        rf"(<!-- {name}: begin [^\n]*-->\n)(.*?)(<!-- {name}: end -->)", flags=re.DOTALL
    )
    if os.environ.get("LLAMASWEEP_UPDATE_GOLDEN"):
        text = pattern.sub(lambda match: f"{match[1]}\n{table}\n\n{match[3]}", text)
        PAGE.write_text(text, encoding="utf-8")

    found = pattern.search(text)

    assert found is not None
    assert found[2].strip() == table, "write it anew with: make golden"


def test_every_example_of_the_page_is_a_sweep() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(examples) >= 4
    for example in examples:
        head = "" if "models:" in example else "models: [{path: m.gguf}]\n"
        assert parse(head + example, "page.yaml", no_base).models
