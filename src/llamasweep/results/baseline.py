"""A baseline: the speeds of one build on one machine as a small JSON that a team can review and commit.

Rows to plain values and back; a baseline that was read gives rows again, so that it is compared as any other side.
Knows no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llamasweep.errors import quoted
from llamasweep.results.records import FAILED_STATUSES, Attempt
from llamasweep.results.request_times import RequestTimes
from llamasweep.sweep.parameters import BY_NAME, Scalar

BASELINE_KIND = "llamasweep baseline"
BASELINE_FORMAT = 1
MOST_CELLS = 10_000
MOST_RATES = 1_000
_MOST_CHARACTERS = 500
_MOST_SETTING = 2**62
_LEAST_TPS, _MOST_TPS = 1e-9, 1e12  # a ratio of two rates is always a number
_KINDS = ("pp", "tg", "pg")
_TEXTS = ("cell_id", "engine", "model", "test", "kind")


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineCell:
    """One cell: what it asks, and the median rate of each round. rates_tps: () where it failed each time.

    error: the short name of the error then, because messages may hold names of folders. request_mode: how a server was asked
    that can be asked in several ways, else None.
    """

    cell_id: str
    engine: str
    model: str
    model_hash: str | None
    model_size_bytes: int | None
    test: str
    kind: str
    n_prompt: int
    n_gen: int
    n_depth: int
    settings: dict[str, Scalar]
    applied: dict[str, Scalar]
    rates_tps: tuple[float, ...]
    error: str | None
    request_mode: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """The speeds of a build. facts: of build and machine, by name; None where not known."""

    build_label: str | None
    build_number: int | None
    build_commit: str | None
    machine_fingerprint: str | None
    measured_at: str | None
    facts: dict[str, str | None]
    cells: tuple[BaselineCell, ...]


def baseline_of(rows: Sequence[Attempt], facts: Mapping[str, str | None]) -> Baseline:
    """The baseline of the attempts of one build. Raises ValueError where no cell was tried."""
    by_cell: dict[str, list[Attempt]] = {}
    for row in sorted(rows, key=lambda r: (r.round_index, r.attempt_index)):
        if row.status == "ok" or row.status in FAILED_STATUSES:
            by_cell.setdefault(row.cell_id, []).append(row)
    if not by_cell:
        raise ValueError("no cell was measured")
    newest = max(rows, key=lambda r: r.finished_at.isoformat() if r.finished_at else "")
    return Baseline(
        build_label=newest.build_label,
        build_number=newest.build_number,
        build_commit=newest.build_commit,
        machine_fingerprint=newest.machine_fingerprint,
        measured_at=newest.finished_at.isoformat() if newest.finished_at else None,
        facts=dict(facts),
        cells=tuple(_cell(of_cell) for of_cell in by_cell.values()),
    )


def _cell(rows: Sequence[Attempt]) -> BaselineCell:
    timed = {r.round_index: r for r in rows if r.status == "ok" and r.median_tps is not None}
    row = next(iter(timed.values()), rows[-1])
    return BaselineCell(
        cell_id=row.cell_id,
        engine=row.engine,
        model=row.model_label,
        model_hash=row.model_hash,
        model_size_bytes=row.model_size_bytes,
        test=row.test_label,
        kind=row.test_kind,
        n_prompt=row.n_prompt,
        n_gen=row.n_gen,
        n_depth=row.n_depth,
        settings={n: v for n, v in sorted(row.requested.items()) if v is not None},
        applied={n: v for n, v in sorted(row.applied.items()) if v is not None},
        rates_tps=tuple(r.median_tps for r in timed.values() if r.median_tps is not None),
        error=None if timed else row.error_kind,
        request_mode=None if row.requests is None else row.requests.request_mode,
    )


def plain_baseline(baseline: Baseline) -> dict[str, Any]:
    """Plain JSON values in an order that reads well in a diff; rates with four significant digits."""
    return {
        "kind": BASELINE_KIND,
        "format": BASELINE_FORMAT,
        "build": {
            "label": baseline.build_label,
            "number": baseline.build_number,
            "commit": baseline.build_commit,
        },
        "machine_fingerprint": baseline.machine_fingerprint,
        "measured_at": baseline.measured_at,
        "facts": dict(sorted(baseline.facts.items())),
        "cells": [
            {
                "cell_id": cell.cell_id,
                "engine": cell.engine,
                "model": cell.model,
                "model_hash": cell.model_hash,
                "model_size_bytes": cell.model_size_bytes,
                "test": cell.test,
                "kind": cell.kind,
                "n_prompt": cell.n_prompt,
                "n_gen": cell.n_gen,
                "n_depth": cell.n_depth,
                "settings": cell.settings,
                "applied": cell.applied,
                "rates_tps": [float(f"{rate:.4g}") for rate in cell.rates_tps],
                "error": cell.error,
                **({"request_mode": cell.request_mode} if cell.request_mode else {}),
            }
            for cell in baseline.cells
        ],
    }


def read_baseline(plain: object) -> Baseline:
    """A baseline from plain JSON values. Raises ValueError with a sentence for anything else."""
    document = _mapping(plain, "the file")
    if document.get("kind") != BASELINE_KIND:
        raise ValueError(f"its kind is {quoted(document.get('kind'))}")
    if document.get("format") != BASELINE_FORMAT:
        raise ValueError(f"its format {quoted(document.get('format'))} is not known here")
    build = _mapping(document.get("build"), "build")
    cells = document.get("cells")
    if not isinstance(cells, list) or not 0 < len(cells) <= MOST_CELLS:
        raise ValueError(f"cells is no list of 1 to {MOST_CELLS}")
    facts = _mapping(document.get("facts", {}), "facts")
    read = tuple(_read_cell(cell, f"cells[{i}]") for i, cell in enumerate(cells))
    _refuse_twice(read)
    return Baseline(
        build_label=_text_or_none(build.get("label"), "build.label"),
        build_number=_whole_or_none(build.get("number"), "build.number"),
        build_commit=_text_or_none(build.get("commit"), "build.commit"),
        machine_fingerprint=_text_or_none(
            document.get("machine_fingerprint"), "machine_fingerprint"
        ),
        measured_at=_text_or_none(document.get("measured_at"), "measured_at"),
        facts={str(n)[:_MOST_CHARACTERS]: _text_or_none(v, f"facts.{n}") for n, v in facts.items()},
        cells=read,
    )


def _refuse_twice(cells: Sequence[BaselineCell]) -> None:
    """A cell that stands twice, as after a careless merge, would count its rounds twice."""
    places: dict[str, int] = {}
    for index, cell in enumerate(cells):
        before = places.setdefault(cell.cell_id, index)
        if before != index:
            raise ValueError(f"cells[{index}] is the same cell as cells[{before}]")


def _read_cell(plain: object, where: str) -> BaselineCell:
    cell = _mapping(plain, where)
    texts = {name: _text(cell.get(name), f"{where}.{name}") for name in _TEXTS}
    if texts["kind"] not in _KINDS:
        raise ValueError(f"{where}.kind is {quoted(texts['kind'])}")
    rates = cell.get("rates_tps")
    if not isinstance(rates, list) or len(rates) > MOST_RATES:
        raise ValueError(f"{where}.rates_tps is no list of at most {MOST_RATES}")
    return BaselineCell(
        **texts,
        model_hash=_text_or_none(cell.get("model_hash"), f"{where}.model_hash"),
        model_size_bytes=_whole_or_none(cell.get("model_size_bytes"), f"{where}.model_size_bytes"),
        n_prompt=_whole(cell.get("n_prompt"), f"{where}.n_prompt"),
        n_gen=_whole(cell.get("n_gen"), f"{where}.n_gen"),
        n_depth=_whole(cell.get("n_depth"), f"{where}.n_depth"),
        settings=_settings(cell.get("settings"), f"{where}.settings"),
        applied=_settings(cell.get("applied"), f"{where}.applied"),
        rates_tps=tuple(_rate(rate, f"{where}.rates_tps") for rate in rates),
        error=_text_or_none(cell.get("error"), f"{where}.error"),
        request_mode=_text_or_none(cell.get("request_mode"), f"{where}.request_mode"),
    )


def baseline_rows(baseline: Baseline) -> tuple[Attempt, ...]:
    """Rows as a run of that build would have, one per rate; a cell that failed each time has one failed row."""
    return tuple(
        _row(baseline, cell, index, rate)
        for cell in baseline.cells
        for index, rate in enumerate(cell.rates_tps or (None,))
    )


def _row(baseline: Baseline, cell: BaselineCell, index: int, rate: float | None) -> Attempt:
    return Attempt(
        run_id="baseline",
        attempt_id=f"baseline-{cell.cell_id}-{index}",
        cell_id=cell.cell_id,
        group_id="baseline",
        round_index=index,
        attempt_index=0,
        sweep_name="baseline",
        engine=cell.engine,
        status="failed" if rate is None else "ok",
        error_kind=cell.error if rate is None else None,
        error_message=cell.error if rate is None else None,
        build_label=baseline.build_label,
        build_number=baseline.build_number,
        build_commit=baseline.build_commit,
        machine_fingerprint=baseline.machine_fingerprint,
        model_label=cell.model,
        model_hash=cell.model_hash,
        model_size_bytes=cell.model_size_bytes,
        test_kind=cell.kind,
        test_label=cell.test,
        n_prompt=cell.n_prompt,
        n_gen=cell.n_gen,
        n_depth=cell.n_depth,
        requested=dict(cell.settings),
        applied=dict(cell.applied),
        median_tps=rate,
        requests=RequestTimes(request_mode=cell.request_mode) if cell.request_mode else None,
    )


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} is no object")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or len(value) > _MOST_CHARACTERS:
        raise ValueError(f"{where} is no text of at most {_MOST_CHARACTERS} characters")
    return value


def _text_or_none(value: object, where: str) -> str | None:
    return None if value is None else _text(value, where)


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ValueError(f"{where} is no whole number from 0")
    return value


def _whole_or_none(value: object, where: str) -> int | None:
    return None if value is None else _whole(value, where)


def _rate(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where} holds {quoted(value)}, which is no number")
    if not _LEAST_TPS <= value <= _MOST_TPS:
        raise ValueError(f"{where} holds {quoted(value)}, which is no speed")
    return float(value)


def _settings(value: object, where: str) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for name, setting in _mapping(value, where).items():
        if name not in BY_NAME:
            raise ValueError(f"{where} has {quoted(name)}, which is no parameter")
        if not isinstance(setting, bool | int | float | str):
            raise ValueError(f"{where}.{name} is neither text nor number")
        if not isinstance(setting, str) and not abs(setting) < _MOST_SETTING:
            raise ValueError(f"{where}.{name} is {quoted(setting)}, which is no setting")
        found[name] = _text(setting, f"{where}.{name}") if isinstance(setting, str) else setting
    return found
