"""Attempts as rows in llama-bench's own columns, for llama.cpp's compare-llama-bench.py and whatever else reads them.

Figures are ours, over the samples that were kept: `avg_ts` is their mean, and its deviation None below two samples.
Parameters are what the engine echoes: requested, else what llama-bench of build 11434 prints for an option left alone,
whatever the build (rows of two builds are paired by them), else applied. Unknown stays None. Only measured cells become rows.
What llama-bench has no column for, because it asks no server, stands after its own; its script passes over that.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Literal

from llamasweep.results.records import Attempt, Sample
from llamasweep.results.request_load import request_load

SqlType = Literal["TEXT", "INTEGER", "REAL"]
_HEX_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_SHORTEST_HASH = 8

_FLASH_ATTN = {"auto": -1, "off": 0, "on": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportField:
    """One column. default: what the engine prints for a parameter left alone, None where that depends on the machine or
    where it is no parameter. is_switch: a bool in JSON, 0 or 1 elsewhere."""

    name: str
    sql: SqlType
    default: int | str | bool | None = None

    @property
    def is_switch(self) -> bool:
        return isinstance(self.default, bool)


LLAMA_BENCH_FIELDS: tuple[ExportField, ...] = (
    ExportField(name="build_commit", sql="TEXT"),
    ExportField(name="build_number", sql="INTEGER"),
    ExportField(name="cpu_info", sql="TEXT"),
    ExportField(name="gpu_info", sql="TEXT"),
    ExportField(name="backends", sql="TEXT"),
    ExportField(name="model_filename", sql="TEXT"),
    ExportField(name="model_type", sql="TEXT"),
    ExportField(name="model_size", sql="INTEGER"),
    ExportField(name="model_n_params", sql="INTEGER"),
    ExportField(name="n_batch", sql="INTEGER", default=2048),
    ExportField(name="n_ubatch", sql="INTEGER", default=512),
    ExportField(name="n_threads", sql="INTEGER"),
    ExportField(name="cpu_mask", sql="TEXT", default="0x0"),
    ExportField(name="cpu_strict", sql="INTEGER", default=False),
    ExportField(name="poll", sql="INTEGER", default=50),
    ExportField(name="type_k", sql="TEXT", default="f16"),
    ExportField(name="type_v", sql="TEXT", default="f16"),
    ExportField(name="n_gpu_layers", sql="INTEGER", default=-1),
    ExportField(name="n_cpu_moe", sql="INTEGER", default=0),
    ExportField(name="split_mode", sql="TEXT", default="layer"),
    ExportField(name="main_gpu", sql="INTEGER", default=0),
    ExportField(name="no_kv_offload", sql="INTEGER", default=False),
    ExportField(name="flash_attn", sql="INTEGER", default="auto"),
    ExportField(name="devices", sql="TEXT", default="auto"),
    ExportField(name="tensor_split", sql="TEXT", default="0.00"),
    ExportField(name="tensor_buft_overrides", sql="TEXT", default="none"),
    ExportField(name="load_mode", sql="TEXT", default="auto"),
    ExportField(name="lazy_mode", sql="TEXT", default="auto"),
    ExportField(name="embeddings", sql="INTEGER", default=False),
    ExportField(name="no_op_offload", sql="INTEGER", default=0),
    ExportField(name="no_host", sql="INTEGER", default=False),
    ExportField(name="repack", sql="INTEGER", default=True),
    ExportField(name="fit_target", sql="INTEGER", default=0),
    ExportField(name="fit_min_ctx", sql="INTEGER", default=0),
    ExportField(name="n_prompt", sql="INTEGER"),
    ExportField(name="n_gen", sql="INTEGER"),
    ExportField(name="n_depth", sql="INTEGER"),
    ExportField(name="test_time", sql="TEXT"),
    ExportField(name="avg_ns", sql="INTEGER"),
    ExportField(name="stddev_ns", sql="INTEGER"),
    ExportField(name="avg_ts", sql="REAL"),
    ExportField(name="stddev_ts", sql="REAL"),
)
"""llama-bench's fields at build 11434, in its order."""

_REQUEST_SETTINGS: tuple[ExportField, ...] = (
    ExportField(name="engine", sql="TEXT"),
    ExportField(name="concurrency", sql="INTEGER"),
    ExportField(name="prompt_cache", sql="TEXT"),
    ExportField(name="turn", sql="INTEGER"),
    ExportField(name="num_ctx", sql="INTEGER"),
)
"""What tells rows of servers apart. Of an engine without streams: one new request, as `request_load` has it."""

_REQUEST_TIMES: tuple[ExportField, ...] = (
    ExportField(name="ttft_median_s", sql="REAL"),
    ExportField(name="tpot_median_s", sql="REAL"),
    ExportField(name="e2e_median_s", sql="REAL"),
)
"""Named and meant as in cells.parquet; None where no request was timed."""

EXPORT_FIELDS = LLAMA_BENCH_FIELDS + _REQUEST_SETTINGS + _REQUEST_TIMES
"""In the order of the columns: llama-bench's own come first, as they are."""

_NEVER_COMPARED = (
    *("devices", "lazy_mode", "no_op_offload", "no_host", "repack"),
    *(field.name for field in _REQUEST_SETTINGS),
)
"""Columns that compare-llama-bench.py does not tell rows apart by: it averages over them without a word."""

_FIGURES = (
    *("build_commit", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts"),
    *(field.name for field in _REQUEST_TIMES),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """rows: in the order of the attempts, each with every field of `EXPORT_FIELDS` and `samples_ns`, `samples_ts`.
    builds: (build_commit in the rows, label of that build). notes: what a reader of the rows should know."""

    rows: tuple[dict[str, Any], ...]
    builds: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def llama_bench_rows(attempts: Iterable[Attempt], samples: Iterable[Sample]) -> Export:
    """Every measured attempt as a row that llama-bench could have printed, and what it asked of a server."""
    measured = [a for a in attempts if a.status == "ok"]
    kept: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        if not sample.is_discarded:
            kept[sample.cell_id, sample.attempt_id].append(sample)
    commits = build_commits(measured)
    files = _file_names(measured)
    model_types = {a.model_hash: a.model_type for a in measured if a.model_type}
    rows = []
    for attempt in measured:
        row = _row(attempt, kept[attempt.cell_id, attempt.attempt_id])
        row["build_commit"] = commits[_build_key(attempt)]
        row["model_filename"] = files[_model_key(attempt)]
        # Builds word the same model differently, and rows are joined by these words.
        row["model_type"] = model_types.get(attempt.model_hash, attempt.model_label)
        rows.append({f.name: row[f.name] for f in EXPORT_FIELDS} | _sample_lists(row))
    labels = {commits[_build_key(a)]: a.build_label or "unknown build" for a in measured}
    return Export(rows=tuple(rows), builds=tuple(labels.items()), notes=tuple(_notes(rows)))


def build_commits(attempts: Sequence[Attempt]) -> dict[str, str]:
    """Build (its hash, else its label) -> a name as long as all the others, since the script cuts names to the shortest.

    Real commits where every build has one and they differ; else build numbers with leading zeros; else hashes.
    """
    builds = {_build_key(a): a for a in attempts}
    n_digits = max((len(str(a.build_number or 0)) for a in attempts), default=1)
    for names in (
        {key: _commit_name(a) for key, a in builds.items()},
        {key: _number_name(a, n_digits) for key, a in builds.items()},
    ):
        cut = _to_one_length(names)
        if cut is not None:
            return cut
    length = _SHORTEST_HASH
    keys = {key: key.encode().hex() if not _HEX_COMMIT.match(key) else key for key in builds}
    while len({text[:length] for text in keys.values()}) < len(keys) and length < 1000:
        length += 1
    return {key: text[:length].ljust(length, "0") for key, text in keys.items()}


def _commit_name(attempt: Attempt) -> str | None:
    commit = attempt.build_commit
    return commit if commit is not None and _HEX_COMMIT.fullmatch(commit) else None


def _number_name(attempt: Attempt, n_digits: int) -> str | None:
    return f"b{attempt.build_number:0{n_digits}d}" if attempt.build_number else None


def _to_one_length(names: Mapping[str, str | None]) -> dict[str, str] | None:
    """All names cut to the shortest; None where one is missing or two of them become one."""
    present = {key: name for key, name in names.items() if name is not None}
    length = min((len(name) for name in present.values()), default=0)
    cut = {key: name[:length] for key, name in present.items()}
    return cut if len(set(cut.values())) == len(names) else None


def _build_key(attempt: Attempt) -> str:
    return attempt.build_hash or attempt.build_label or "unknown"


def _model_key(attempt: Attempt) -> str:
    return attempt.model_hash or attempt.model_label


def _file_names(attempts: Sequence[Attempt]) -> dict[str, str]:
    """Model -> file name; with a part of its hash where two models have one name."""
    names = {_model_key(a): a.model_file or a.model_label for a in attempts}
    shared = {n for n in names.values() if list(names.values()).count(n) > 1}
    return {key: f"{n}#{key[:8]}" if n in shared else n for key, n in names.items()}


def _row(attempt: Attempt, kept: Sequence[Sample]) -> dict[str, Any]:
    durations = [s.duration_ns for s in kept]
    rates = [s.tps for s in kept]
    row: dict[str, Any] = {f.name: _parameter(attempt, f) for f in LLAMA_BENCH_FIELDS}
    row |= _asked_of_a_server(attempt)
    return row | {
        "build_number": attempt.build_number,
        "cpu_info": attempt.cpu_name or "",
        "gpu_info": attempt.gpu_name or "",
        "backends": attempt.build_backends or "",
        "model_size": attempt.model_size_bytes,
        "model_n_params": attempt.model_n_params,
        "n_prompt": attempt.n_prompt,
        "n_gen": attempt.n_gen,
        "n_depth": attempt.n_depth,
        "test_time": _test_time(attempt),
        "avg_ns": round(statistics.fmean(durations)) if durations else None,
        "stddev_ns": round(statistics.stdev(durations)) if len(durations) > 1 else None,
        "avg_ts": statistics.fmean(rates) if rates else attempt.mean_tps,
        "stddev_ts": statistics.stdev(rates) if len(rates) > 1 else attempt.sample_std_tps,
        "samples_ns": durations,
        "samples_ts": rates,
    }


def _asked_of_a_server(attempt: Attempt) -> dict[str, Any]:
    load = request_load(attempt.requested)
    times = {f.name: getattr(attempt.requests, f.name, None) for f in _REQUEST_TIMES}
    return times | {
        "engine": attempt.engine,
        "concurrency": load.n_streams,
        "prompt_cache": "warm" if load.is_warm else "cold",
        "turn": load.turn,
        "num_ctx": attempt.requested.get("num_ctx"),
    }


def _parameter(attempt: Attempt, field: ExportField) -> Any:
    left_alone = attempt.applied.get(field.name) if field.default is None else field.default
    value = attempt.requested.get(field.name, left_alone)
    if field.name == "flash_attn":
        return _FLASH_ATTN.get(str(value), value)
    if field.name == "tensor_split" and isinstance(value, str):
        return _tensor_split(value)
    if value is None or field.sql == "TEXT":
        return value
    return bool(value) if field.is_switch else int(value)


def _tensor_split(value: str) -> str:
    """As llama-bench prints it: `3/1` is `3.00/1.00`."""
    try:
        return "/".join(f"{float(part):.2f}" for part in re.split("[/;]", value))
    except ValueError:
        return value


def _test_time(attempt: Attempt) -> str | None:
    if attempt.started_at is None:
        return None
    return f"{attempt.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _sample_lists(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("samples_ns", "samples_ts")}


def _notes(rows: Sequence[dict[str, Any]]) -> list[str]:
    notes = []
    unpaired = sum(any(row[name] is None for name in ("n_threads", "test_time")) for row in rows)
    if unpaired:
        notes.append(
            f"{unpaired} rows lack the number of threads or the time: the script leaves them out"
        )
    averaged = _averaged_over(rows, _key_without(*_NEVER_COMPARED, *_FIGURES))
    if averaged:
        notes.append(
            f"compare-llama-bench.py averages over {', '.join(averaged)}: export one value at a time"
        )
    return notes


def _key_without(*names: str) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    columns = [f.name for f in EXPORT_FIELDS if f.name not in names]
    return lambda row: (row["build_commit"], *(row[name] for name in columns))


def _averaged_over(
    rows: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], tuple[Any, ...]]
) -> list[str]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return [
        name
        for name in _NEVER_COMPARED
        if any(len({row[name] for row in group}) > 1 for group in groups.values())
    ]
