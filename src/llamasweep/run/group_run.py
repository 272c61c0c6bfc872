"""One engine process from start to end: its lines to the log, its rows to the disk, its hangs cut short.

Blocks on one queue; wakes for lines, stream ends, signals and the next deadline, and never polls.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from llamasweep.engines.base import Engine, EngineEvent, LogReading, RowReading
from llamasweep.results.records import Reading
from llamasweep.run.group_log import GroupLog
from llamasweep.run.memory_kills import oom_kill_count
from llamasweep.run.process import Ending, EngineProcess, Item, Line, StreamEnd
from llamasweep.run.secrets import hide_values
from llamasweep.run.timeouts import Expected, Watch

MAX_GARBAGE_LINES = 10_000
_CLOSING_S = 5.0


OnEvent = Callable[[EngineEvent, Sequence[Reading]], None]
"""Told of every event, with the readings since the last one."""


class Stop(Protocol):
    """Tells whether the run shall end, and wakes the loop when it shall."""

    def attach(self, inbox: queue.SimpleQueue[Item]) -> None:
        """From now on wake this loop."""

    @property
    def is_asked(self) -> bool: ...

    @property
    def is_urgent(self) -> bool: ...

    @property
    def deadline_s(self) -> float | None: ...


class Sampling(Protocol):
    """What the loop needs of the sampler."""

    @property
    def absent(self) -> dict[str, str]: ...

    def start(self, pid: int) -> None: ...

    def drain(self) -> list[Reading]: ...

    def read_soon(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """What to start, and the engine that reads its streams.

    address_space_bytes: RLIMIT_AS, None = no limit. secrets: hidden where the engine says them.
    """

    engine: Engine
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    address_space_bytes: int | None = None
    secrets: tuple[bytes, ...] = ()

    def start(self) -> EngineProcess:
        """A new process of it."""
        return EngineProcess(
            self.argv, env=self.env, cwd=self.cwd, address_space_bytes=self.address_space_bytes
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a process went.

    n_rows: rows that came. reason: "ended", "timeout", "stopped" (the user or the clock), "garbage" (a flood of lines
    that are no results). message: for a timeout, why. leftovers: processes that it left behind and that were ended.
    """

    ending: Ending
    n_rows: int
    reason: str
    message: str | None
    leftovers: int
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class _State:
    watch: Watch
    rows: RowReading
    log_reader: LogReading
    open_streams: set[str] = field(default_factory=lambda: {"stdout", "stderr"})
    n_garbage: int = 0
    secrets: tuple[bytes, ...] = ()

    def shown(self, line: Line) -> Line:
        """The line as it may be kept."""
        data = hide_values(line.data, self.secrets)
        return line if data is line.data else replace(line, data=data)


def run_group(
    command: Command,
    log: GroupLog,
    *,
    expected: Callable[[int], Expected],
    timeout_s: float | None,
    stop: Stop,
    sampling: Sampling | None,
    on_start: Callable[[EngineProcess], None],
    on_event: OnEvent,
) -> Outcome:
    """Start, follow and end one engine process; whatever happens, none of its processes is left."""
    kills_before = oom_kill_count()
    process = command.start()
    stop.attach(process.inbox)
    on_start(process)
    state = _State(
        watch=Watch(expected=expected, asked_s=timeout_s, now_s=time.monotonic()),
        rows=command.engine.row_reader(),
        log_reader=command.engine.log_reader(),
        secrets=command.secrets,
    )
    reason, message, clean = "ended", None, False
    try:
        if sampling is not None:
            sampling.start(process.pid)
        reason, message = _follow(process, log, state, stop, sampling, on_event)
        clean = True
    finally:
        ending, leftovers = _finish(
            process, reason if clean else "stopped", urgent=stop.is_urgent or not clean
        )
        _drain_rest(process.inbox, log, state)
    end_ns = time.time_ns()
    if sampling is not None:
        log.readings(sampling.drain())
    log.end(
        {
            "absent": sampling.absent if sampling is not None else None,
            "exit_code": ending.exit_code,
            "exit_signal": ending.exit_signal,
            "was_oom_killed": _rose(kills_before, oom_kill_count()),
            "reason": reason,
            "message": message,
            "start_ns": process.start_ns,
            "end_ns": end_ns,
        }
    )
    return Outcome(
        ending=ending,
        n_rows=state.rows.n_rows,
        reason=reason,
        message=message,
        leftovers=leftovers,
        start_ns=process.start_ns,
        end_ns=end_ns,
    )


def _rose(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before


def _follow(
    process: EngineProcess,
    log: GroupLog,
    state: _State,
    stop: Stop,
    sampling: Sampling | None,
    on_event: OnEvent,
) -> tuple[str, str | None]:
    """Until both streams end, a deadline passes, or somebody asks to stop."""
    while state.open_streams:
        item = _next(process.inbox, state, stop)
        now_s = time.monotonic()
        if stop.is_asked or (stop.deadline_s is not None and now_s >= stop.deadline_s):
            return "stopped", None
        if isinstance(item, Line):
            event = _take(state.shown(item), log, state)
            if event is not None:
                on_event(event, _with_readings(event, log, sampling))
        elif isinstance(item, StreamEnd):
            state.open_streams.discard(item.stream)
        if state.n_garbage > MAX_GARBAGE_LINES:
            return "garbage", f"over {MAX_GARBAGE_LINES} lines on stdout that are no results"
        if item is None and _has_ended(process):
            return "ended", None
        if now_s >= state.watch.deadline_s():
            return "timeout", state.watch.why(now_s)
    return "ended", None


def _with_readings(event: EngineEvent, log: GroupLog, sampling: Sampling | None) -> list[Reading]:
    """Readings so far go to the log; at the borders of a test an extra one is asked for."""
    readings = sampling.drain() if sampling is not None else []
    if event.kind == "row":
        log.row_is_safe(readings)
    else:
        log.readings(readings)
    if sampling is not None and (event.kind == "row" or event.repetition_index == 0):
        sampling.read_soon()
    return readings


def _next(inbox: queue.SimpleQueue[Item], state: _State, stop: Stop) -> Item | None:
    now_s = time.monotonic()
    wait_s = state.watch.deadline_s() - now_s
    if stop.deadline_s is not None:
        wait_s = min(wait_s, stop.deadline_s - now_s)
    try:
        return inbox.get(timeout=min(max(wait_s, 0.0), _CLOSING_S))
    except queue.Empty:
        return None


def _has_ended(process: EngineProcess) -> bool:
    """True where the engine is gone and only a child of it still holds its streams."""
    try:
        process.wait(0)
    except subprocess.TimeoutExpired:
        return False
    return True


def _take(line: Line, log: GroupLog, state: _State) -> EngineEvent | None:
    log.keep(line)
    now_s = time.monotonic()
    if line.stream == "stdout":
        event = None if line.is_cut else state.rows.feed(line.data)
        if event is None or event.kind == "garbage":
            state.n_garbage += event is not None or line.is_cut
            return event
        state.watch.sign(now_s)
        state.watch.next_cell(state.rows.n_rows, now_s)
    else:
        event = state.log_reader.feed(line.data.decode("utf-8", "replace").rstrip("\r"))
        if event is None:
            return None
        state.watch.sign(now_s)
    log.event(event, line.time_ns)
    return event


def _finish(process: EngineProcess, reason: str, *, urgent: bool) -> tuple[Ending, int]:
    """Make sure that it and its children are gone, and tell how it ended."""
    if reason == "ended":
        with contextlib.suppress(subprocess.TimeoutExpired):
            ending = process.wait(_CLOSING_S)
            leftovers = process.end_leftovers()
            process.close()
            return ending, leftovers
    return process.stop(at_once=urgent), 0


def _drain_rest(inbox: queue.SimpleQueue[Item], log: GroupLog, state: _State) -> None:
    """Lines that came between the decision to end and the end belong to the log too."""
    with contextlib.suppress(queue.Empty):
        while True:
            item = inbox.get_nowait()
            if isinstance(item, Line):
                log.keep(state.shown(item))
