"""The rows as data in the page, for filters and downloads: columns named as in Parquet, and what can be filtered by.

A row is one cell on one build, its rounds pooled, as in the table; absent stays null. Values are as recorded, not shortened.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llamasweep.report.names import axis_word, shown, value_word
from llamasweep.report.rows import Row, axis_value
from llamasweep.report.stream_words import stream_ratios
from llamasweep.report.strips import setting_word
from llamasweep.results.against_one import NAMES
from llamasweep.sweep.parameters import Scalar

MAX_CHOICES = 200
"""A dimension with more values is not worth a list to choose from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """One dimension to choose by. key: in the URL. values: in words, each once. of_row: index into values, one per row."""

    key: str
    title: str
    values: tuple[str, ...]
    of_row: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RowData:
    """columns: name -> one value per row. name: of a downloaded file, without its ending."""

    name: str
    n_rows: int
    columns: dict[str, list[Scalar]]
    filters: tuple[Filter, ...]

    def to_json(self) -> str:
        """For a script element: ASCII, nothing in it can end the element. What returns often is written once."""
        plain = {
            "name": self.name,
            "n_rows": self.n_rows,
            "columns": {name: _packed(values) for name, values in self.columns.items()},
            "filters": [
                {"key": f.key, "title": f.title, "values": f.values, "of_row": f.of_row}
                for f in self.filters
            ],
        }
        text = json.dumps(plain, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def row_data(rows: Sequence[Row]) -> RowData:
    """Data of all rows, in the order of the table. A column that no row has is left out."""
    settings = dict.fromkeys(name for row in rows for name in row.settings if name != "n_depth")
    columns: dict[str, list[Scalar]] = {
        name: [_plain(get(row)) for row in rows] for name, get in _COLUMNS.items()
    }
    columns |= {name: [_plain(row.settings.get(name)) for row in rows] for name in settings}
    ratios = stream_ratios(rows)
    columns |= {name: [_plain(getattr(one, name)) for one in ratios] for name in NAMES}
    return RowData(
        name=rows[0].run_id if rows else "rows",
        n_rows=len(rows),
        columns={
            name: values
            for name, values in columns.items()
            if any(value is not None for value in values)
        },
        filters=tuple(f for f in _filters(rows) if 1 < len(f.values) <= MAX_CHOICES),
    )


def _of_attempt(name: str) -> Callable[[Row], object]:
    return lambda row: getattr(row.attempt, name)


def _of_rates(name: str) -> Callable[[Row], object]:
    return lambda row: None if row.rates is None else getattr(row.rates, name)


_COLUMNS: dict[str, Callable[[Row], object]] = {
    **{
        name: _of_attempt(name)
        for name in ("run_id", "engine", "model_label", "model_quant", "model_arch", "model_type")
    },
    **{name: _of_attempt(name) for name in ("model_size_bytes", "model_n_params", "build_label")},
    **{name: _of_attempt(name) for name in ("build_number", "build_commit", "build_backends")},
    **{name: _of_attempt(name) for name in ("cpu_name", "gpu_name", "test_kind", "test_label")},
    **{name: _of_attempt(name) for name in ("n_prompt", "n_gen", "n_depth", "status")},
    "median_tps": _of_rates("median"),
    "sample_std_tps": _of_rates("std"),
    "min_tps": _of_rates("low"),
    "max_tps": _of_rates("high"),
    "n_samples": _of_rates("n_kept"),
    "n_discarded": _of_rates("n_discarded"),
    "ceiling_tps": lambda row: row.ceiling.value,
    "ceiling_fraction": lambda row: row.fraction.value,
    "ceiling_bound": _of_attempt("ceiling_bound"),
    "estimate_tps": _of_attempt("estimate_tps"),
    "stream_tps": _of_attempt("stream_tps"),
    "pencil_ceiling_tps": lambda row: row.pencil_ceiling.value,
    "pencil_fraction": lambda row: row.pencil_fraction.value,
    "ram_peak_process_bytes": lambda row: row.ram_bytes.value,
    "vram_peak_device_bytes": lambda row: row.vram_bytes.value,
    "predicted_ram_bytes": _of_attempt("predicted_ram_bytes"),
    "predicted_vram_bytes": _of_attempt("predicted_vram_bytes"),
    "energy_per_token_j": lambda row: row.energy_j.value,
    "flags": lambda row: " ".join(row.flags) or None,
    "error_message": _of_attempt("error_message"),
}


def _filters(rows: Sequence[Row]) -> list[Filter]:
    return [
        _filter("model", "Model", [row.family for row in rows]),
        _filter("quant", "Quantisation", [row.quant or "unknown" for row in rows]),
        _filter("build", "Build", [row.build for row in rows]),
        *(_axis_filter(axis, rows) for axis in ("n_depth", "n_threads")),
        _filter("engine", "Engine", [shown(row.attempt.engine, 40) for row in rows]),
        _filter("test", "Test", [row.test for row in rows]),
    ]


def _axis_filter(axis: str, rows: Sequence[Row]) -> Filter:
    word = axis_word(axis)
    values = [axis_value(row, axis) for row in rows]
    texts = [setting_word(axis, None) if value is None else value_word(value) for value in values]
    return _filter(word, word[0].upper() + word[1:], texts)


def _filter(key: str, title: str, words: Sequence[str]) -> Filter:
    values = {word: index for index, word in enumerate(dict.fromkeys(words))}
    return Filter(
        key=key, title=title, values=tuple(values), of_row=tuple(values[word] for word in words)
    )


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return str(value)


def _packed(values: list[Scalar]) -> object:
    """One value for all rows, or each text once and its place for every row, or the values."""
    each = {_typed(value): None for value in values}
    if len(each) == 1:
        return {"same": values[0]}
    if len(each) > len(values) // 4 or not any(isinstance(value, str) for value in values):
        return values
    places = {typed: place for place, typed in enumerate(each)}
    return {
        "each": [value for _, value in each],
        "of_row": [places[_typed(value)] for value in values],
    }


def _typed(value: Scalar) -> tuple[type, Scalar]:
    """True and 1 are not the same value."""
    return type(value), value
