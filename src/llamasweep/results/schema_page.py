"""docs/schema.md, made from the columns themselves."""

from __future__ import annotations

from dataclasses import Field, fields

from llamasweep.results.against_one import AgainstOne
from llamasweep.results.columns import TABLES, Column
from llamasweep.results.records import SCHEMA_VERSION, STATUSES

_TITLES = {
    "cells": "one row per attempt: a cell tried once",
    "samples": "one row per timed repetition",
    "telemetry": "one row per reading, in long form",
}
_TYPES = {
    "int64": "int64",
    "float64": "double",
    "string": "dictionary (text)",
    "bool": "bool",
    "timestamp": "timestamp (µs, UTC)",
    "strings": "list of text",
    "json": "text (JSON object)",
}
_HEAD = f"""# Columns of the results

Made from the code by `make docs`; do not edit. Schema version {SCHEMA_VERSION}.

A run is a folder `results/<run_id>/` with `run.json`, `logs/`, and three tables. While the run goes on each table is a
folder of parts, afterwards one file; both are read the same way:

```python
import llamasweep
import pandas as pd

frame = llamasweep.load_results("results")  # the attempts of all runs, whatever version wrote them
samples = pd.read_parquet("results/RUN_ID/samples.parquet")
```

An absent value is null, never 0; where a reason is known it stands in `reasons`, under the column's name. Statuses: {
    ", ".join(f"`{status}`" for status in STATUSES)
}. Each parameter has two columns: as requested, and `…_applied` as the engine applied it. Units are in the names, in the table
below, and in each file's metadata (`llamasweep.units`; the version is `llamasweep.schema_version`).
"""

_MADE_ON_READING = """## made on reading

No file holds these: the row of one stream may be measured after those of several. `llamasweep.load_results`, `llamasweep
results show --json` and the report's download have them. Null for rows of one stream; for several the reason stands in
`against_one_reason`.

| column | type | what |
|---|---|---|"""


def schema_page() -> str:
    """The page in Markdown."""
    parts = [_HEAD]
    for name, columns in TABLES.items():
        rows = [
            "| column | type | unit | may be null | what |",
            "|---|---|---|---|---|",
            *map(_line, columns),
        ]
        parts.append(f"## {name}.parquet: {_TITLES[name]}\n\n" + "\n".join(rows) + "\n")
    parts.append("\n".join([_MADE_ON_READING, *map(_made_line, fields(AgainstOne))]) + "\n")
    return "\n".join(parts)


def _made_line(field: Field[object]) -> str:
    kind = "text" if field.name.endswith("_reason") else "double"
    return f"| `{field.name}` | {kind} | {field.metadata['doc']} |"


def _line(column: Column) -> str:
    doc = column.doc.replace("|", "\\|")
    absent = "yes" if column.nullable else "no"
    return f"| `{column.name}` | {_TYPES[column.type]} | {column.unit or ''} | {absent} | {doc} |"
