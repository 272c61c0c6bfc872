"""The log of one group: what the engine said, when it said it, and what was asked, on disk as it happens.

A finished row is safe here before anything else is done with it. After a kill the rows are completed from these files, and
after a normal end too, so there is one way from engine to Parquet. Files of one group share a stem:

    .group.json       what was asked: cells, argv, environment, identity columns (before the engine starts)
    .jsonl            the engine's stdout, unaltered
    .stderr(.gz)      the engine's stderr, compressed when the group is over
    .times.jsonl      progress, row arrivals and the ending, with Unix times
    .telemetry.jsonl  readings, until they are in Parquet
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import json
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from llamasweep.engines.base import EngineEvent
from llamasweep.results.records import Reading
from llamasweep.run.process import Ending, Line

MAX_STREAM_BYTES = 256 << 20
"""No llama-bench process says so much; what comes after is not kept."""


class GroupLog:
    """Writes the files of one group. Use as a context manager."""

    def __init__(self, logs_dir: Path, log_id: str, description: dict[str, Any]) -> None:
        self.logs_dir, self.log_id = logs_dir, log_id
        logs_dir.mkdir(parents=True, exist_ok=True)
        _write_synced(self._path("group.json"), json.dumps(description, indent=1).encode())
        self._open_lines: set[str] = set()
        self._stdout = self._path("jsonl").open("ab")
        self._stderr = self._path("stderr").open("ab")
        self._times = self._path("times.jsonl").open("ab")
        self._telemetry = self._path("telemetry.jsonl").open("ab")

    def _path(self, suffix: str) -> Path:
        return self.logs_dir / f"{self.log_id}.{suffix}"

    def __enter__(self) -> GroupLog:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._stdout, self._stderr, self._times, self._telemetry):
            file.close()

    def keep(self, line: Line) -> None:
        """One line of a stream, as it is."""
        file = self._stdout if line.stream == "stdout" else self._stderr
        if file.tell() >= MAX_STREAM_BYTES:
            return
        if line.stream in self._open_lines:  # a cut line must not swallow the one after it
            self._open_lines.discard(line.stream)
            file.write(b"\n")
        file.write(line.data)
        if line.is_cut:
            self._open_lines.add(line.stream)
        else:
            file.write(b"\n")

    def event(self, event: EngineEvent, time_ns: int) -> None:
        """A progress line or a row, with the time at which it was read."""
        fields = {
            k: v
            for k, v in dataclasses.asdict(event).items()
            if v is not None and v is not False and k != "row"
        }
        self._times.write(json.dumps({"time_ns": time_ns, **fields}).encode() + b"\n")
        self._times.flush()

    def row_is_safe(self, readings: Iterable[Reading]) -> None:
        """Force the row that just came, its times and the readings so far to the disk."""
        self.readings(readings)
        for file in (self._telemetry, self._times, self._stdout):
            file.flush()
            os.fsync(file.fileno())

    def readings(self, readings: Iterable[Reading]) -> None:
        for r in readings:
            fields = [r.time_ns, r.source, r.device, r.metric, r.value]
            self._telemetry.write(json.dumps(fields).encode() + b"\n")

    def end(self, ending: dict[str, Any]) -> None:
        """How the process ended, as the last line of the times."""
        self._times.write(json.dumps({"kind": "end", **ending}).encode() + b"\n")
        self._stderr.flush()
        self.row_is_safe(())


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def tidy(logs_dir: Path, log_id: str) -> None:
    """Once the group is in Parquet: compress stderr, drop the readings."""
    plain = logs_dir / f"{log_id}.stderr"
    if plain.exists():
        packed = plain.with_suffix(".stderr.gz.tmp")
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target)
        packed.replace(logs_dir / f"{log_id}.stderr.gz")
        plain.unlink()
    with contextlib.suppress(FileNotFoundError):
        (logs_dir / f"{log_id}.telemetry.jsonl").unlink()


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedEvent:
    """An event with its Unix time."""

    time_ns: int
    event: EngineEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRecord:
    """A group's log as read back.

    stdout_rest: what stands behind the last newline, which no row is made from. ending: None where the runner died
    before it could write it. end: what else the ending line says (reason, message …).
    """

    log_id: str
    description: dict[str, Any]
    stdout_lines: tuple[bytes, ...]
    stdout_rest: bytes
    stderr_lines: tuple[str, ...]
    events: tuple[TimedEvent, ...]
    readings: tuple[Reading, ...]
    ending: Ending | None
    end: dict[str, Any]


def log_ids(logs_dir: Path) -> list[str]:
    """All groups that have a log, in the order in which they were started."""
    suffix = ".group.json"
    return sorted(p.name.removesuffix(suffix) for p in logs_dir.glob(f"*{suffix}"))


def read_group_log(logs_dir: Path, log_id: str) -> GroupRecord | None:
    """Read one group back; None where its description was not written whole."""
    try:
        description = json.loads((logs_dir / f"{log_id}.group.json").read_bytes())
    except ValueError:
        return None
    if not isinstance(description, dict):
        return None
    events, end = _read_times(logs_dir / f"{log_id}.times.jsonl")
    ending = None
    if end:
        ending = Ending(exit_code=end.get("exit_code"), exit_signal=end.get("exit_signal"))
    return GroupRecord(
        log_id=log_id,
        description=description,
        stdout_lines=tuple(_whole_lines(logs_dir / f"{log_id}.jsonl")),
        stdout_rest=_rest(logs_dir / f"{log_id}.jsonl"),
        stderr_lines=tuple(_stderr_lines(logs_dir, log_id)),
        events=tuple(events),
        readings=tuple(_read_readings(logs_dir / f"{log_id}.telemetry.jsonl")),
        ending=ending,
        end=end,
    )


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Complete lines only: what a kill cut in two was not finished."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def _rest(path: Path) -> bytes:
    """What stands behind the last newline."""
    content = path.read_bytes() if path.exists() else b""
    return content[content.rfind(b"\n") + 1 :]


def _stderr_lines(logs_dir: Path, log_id: str) -> Iterator[str]:
    packed, plain = logs_dir / f"{log_id}.stderr.gz", logs_dir / f"{log_id}.stderr"
    opener: Any = gzip.open if packed.exists() else open
    path = packed if packed.exists() else plain
    if not path.exists():
        return
    file: IO[bytes]
    # suppressed: the end of a packed file lost in a power failure, or tidied up between the look and the opening
    with contextlib.suppress(EOFError, OSError, zlib.error), opener(path, "rb") as file:
        for line in file:
            yield line.decode("utf-8", "replace").rstrip("\r\n")


def _json_lines(path: Path) -> Iterator[Any]:
    for line in _whole_lines(path):
        try:
            yield json.loads(line)
        except ValueError:
            return  # a torn write; nothing after it can be trusted


def _read_times(path: Path) -> tuple[list[TimedEvent], dict[str, Any]]:
    events: list[TimedEvent] = []
    for item in _json_lines(path):
        if isinstance(item, dict) and item.get("kind") == "end":
            return events, item
        try:
            time_ns = item.pop("time_ns")
            events.append(TimedEvent(time_ns=time_ns, event=EngineEvent(**item)))
        except (AttributeError, KeyError, TypeError):
            break  # valid JSON by accident, and still a torn write
    return events, {}


def _read_readings(path: Path) -> Iterator[Reading]:
    for fields in _json_lines(path):
        match fields:
            case [int(time_ns), str(source), str(device), str(metric), int(value) | float(value)]:
                yield Reading(
                    time_ns=time_ns, source=source, device=device, metric=metric, value=value
                )
            case _:
                return
