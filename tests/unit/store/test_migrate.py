"""Older tables are led through one step per version; newer ones are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from llamasweep.errors import StoreError
from llamasweep.results.records import SCHEMA_VERSION
from llamasweep.store.migrate import check_version, upgrade


def test_each_version_takes_its_own_step() -> None:
    steps = {
        1: lambda _name, table: table.rename_columns(["second_tps"]),
        2: lambda name, table: table.rename_columns([f"{name}_third_tps"]),
    }
    table = pa.table({"first_tps": [1.0]})

    assert upgrade("cells", table, 1, steps=steps, target=3).column_names == ["cells_third_tps"]
    assert upgrade("cells", table, 1, steps=steps, target=2).column_names == ["second_tps"]
    assert upgrade("cells", table, 3, steps=steps, target=3).column_names == ["first_tps"]
    assert upgrade("cells", table, 3, steps=steps, target=5).column_names == ["first_tps"]


def test_a_newer_version_and_none_are_refused() -> None:
    assert check_version(SCHEMA_VERSION, "x") == SCHEMA_VERSION
    with pytest.raises(StoreError, match="reads up to"):
        check_version(SCHEMA_VERSION + 1, "x")
    with pytest.raises(StoreError, match="no schema version"):
        check_version(None, "x")
