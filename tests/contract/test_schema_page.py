"""docs/schema.md is what the code makes."""

from __future__ import annotations

import os
from pathlib import Path

from llamasweep.results.against_one import NAMES as MADE_ON_READING
from llamasweep.results.columns import TABLES
from llamasweep.results.schema_page import schema_page

PAGE = Path(__file__).parents[2] / "docs" / "schema.md"


def test_the_page_of_columns_is_the_one_that_the_code_makes() -> None:
    if os.environ.get("LLAMASWEEP_UPDATE_GOLDEN"):
        PAGE.write_text(schema_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == schema_page(), "write it anew with: make golden"


def test_the_page_names_every_column_of_every_table() -> None:
    lines = schema_page().splitlines()
    named = [line.split("`")[1] for line in lines if line.startswith("| `")]
    held = [c.name for columns in TABLES.values() for c in columns]
    assert named == [*held, *MADE_ON_READING]
