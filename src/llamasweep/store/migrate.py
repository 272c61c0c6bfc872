"""Older results in today's form: one step per schema version, applied on reading.

Files on disk are never rewritten for it. Results of a newer version are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from llamasweep.errors import StoreError
from llamasweep.results.records import SCHEMA_VERSION

Step = Callable[[str, pa.Table], pa.Table]
"""(table name, table of version n) -> table of version n + 1."""

STEPS: dict[int, Step] = {}
"""Version -> the step that leads out of it. Version 1 is the first; a column that is only added needs no step."""


def check_version(found: int | None, where: str) -> int:
    """The version if it can be read here; raises StoreError for a newer one and for none."""
    if found is None:
        raise StoreError(f"{where} was not written by llamasweep: it names no schema version")
    if found > SCHEMA_VERSION:
        raise StoreError(
            f"{where} has schema version {found}, and this llamasweep reads up to {SCHEMA_VERSION}",
            hint="upgrade llamasweep to read it",
        )
    return found


def upgrade(
    name: str,
    table: pa.Table,
    version: int,
    *,
    steps: Mapping[int, Step] = STEPS,
    target: int = SCHEMA_VERSION,
) -> pa.Table:
    """The table as `target` has it."""
    for number in range(version, target):
        if number in steps:
            table = steps[number](name, table)
    return table
