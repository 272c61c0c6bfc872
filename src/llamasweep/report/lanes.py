"""Readings of one engine process -> lanes, one per quantity, each with its lines. Pure plain data.

Only what moved is a lane; what stood still is told with its value. Counters become rates here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llamasweep.report import figures
from llamasweep.report.decimation import decimated, finite, pieces, rates
from llamasweep.report.names import shown
from llamasweep.results.timeline import SensorKey, Series, Timeline

MAX_LANES = 9
MAX_LINES = 4
N_BUCKETS = 120
"""Spans of a line of which the lowest and the highest reading are drawn: three and a half pixels each."""
RATE_SPAN_NS = 500_000_000
"""Counters of CPU time tick every 10 ms: over half a second a tick is 2 % of a core."""
LEVEL_WITHIN = 0.01
"""Readings within this share of their highest count as level."""

ENGINE, MACHINE = "engine", "whole machine"
_OWN_NAMES = {"process": ENGINE, "system": MACHINE}


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One sensor. low, high: of all its readings or rates; high_text: with its unit. n_values: how many there were before
    `pieces` were thinned."""

    name: str
    low: float
    high: float
    high_text: str
    n_values: int
    pieces: tuple[Series, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """Lines that share a scale from `low` to `high`; low_text, high_text: its ends with their unit. key: of its kind."""

    key: str
    title: str
    low: float
    high: float
    low_text: str
    high_text: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lanes:
    """level: quantities that stood still, as `swap 0 B`. more: titles of lanes and lines beyond the bounds."""

    lanes: tuple[Lane, ...]
    level: tuple[str, ...]
    more: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    key: str
    title: str
    metrics: tuple[str, ...]
    show: Callable[[float], str]
    is_rate: bool = False
    is_from_zero: bool = True


def _with_unit(unit: str) -> Callable[[float], str]:
    return lambda value: f"{figures.number(value)}{figures.THIN}{unit}"


_KINDS = (
    _Kind(key="power", title="Power", metrics=("power_w",), show=_with_unit("W")),
    _Kind(
        key="cpu",
        title="CPU in use",
        metrics=("cpu_time_s", "cpu_busy_s"),
        show=lambda cores: f"{cores:.1f}{figures.THIN}cores",
        is_rate=True,
    ),
    _Kind(key="gpu", title="GPU in use", metrics=("use_fraction",), show=figures.percent),
    _Kind(
        key="temperature",
        title="Temperature",
        metrics=("temperature_c",),
        show=_with_unit("°C"),
        is_from_zero=False,
    ),
    _Kind(key="clock", title="CPU clock", metrics=("clock_mhz",), show=_with_unit("MHz")),
    _Kind(key="gpu_clock", title="GPU clock", metrics=("sm_clock_mhz",), show=_with_unit("MHz")),
    _Kind(
        key="memory_clock",
        title="GPU memory clock",
        metrics=("memory_clock_mhz",),
        show=_with_unit("MHz"),
    ),
    _Kind(key="vram", title="VRAM", metrics=("vram_used_bytes",), show=figures.size),
    _Kind(key="ram", title="RAM", metrics=("rss_bytes", "ram_used_bytes"), show=figures.size),
    _Kind(
        key="disk",
        title="Disk reads",
        metrics=("disk_read_bytes",),
        show=figures.bandwidth,
        is_rate=True,
    ),
    _Kind(key="swap", title="Swap", metrics=("swap_used_bytes",), show=figures.size),
    _Kind(
        key="memory_controller",
        title="GPU memory controller in use",
        metrics=("memory_controller_use_fraction",),
        show=figures.percent,
    ),
    _Kind(
        key="faults",
        title="Major page faults",
        metrics=("major_faults_count",),
        show=_with_unit("a second"),
        is_rate=True,
    ),
)


def lanes(timeline: Timeline) -> Lanes:
    """The lanes of a timeline in the order of what people look for first."""
    found: list[Lane] = []
    level: list[str] = []
    more: list[str] = []
    for kind in _KINDS:
        lines = [_line(key, series, kind) for key, series in _sensors(timeline, kind)]
        told = [line for line in lines if line is not None]
        moving = [line for line in told if not _is_level(line)]
        level += [_level_words(line, kind, len(told)) for line in told if _is_level(line)]
        more += [f"{kind.title}: {line.name}" for line in moving[MAX_LINES:]]
        if moving:
            found.append(_lane(kind, moving[:MAX_LINES]))
    more += [lane.title for lane in found[MAX_LANES:]]
    return Lanes(lanes=tuple(found[:MAX_LANES]), level=tuple(level), more=tuple(more))


def _sensors(timeline: Timeline, kind: _Kind) -> list[tuple[SensorKey, Series]]:
    """Sensors of a kind by name. An energy counter stands in where its device has no reading of power."""
    series = timeline.series
    found = [(key, s) for key, s in sorted(series.items()) if key[2] in kind.metrics]
    if kind.key == "power":
        with_power = {key[:2] for key, _ in found}
        found += [
            (key, rates(finite(s), RATE_SPAN_NS))
            for key, s in sorted(series.items())
            if key[2] == "energy_j" and key[:2] not in with_power
        ]
    return found


def _line(key: SensorKey, series: Series, kind: _Kind) -> Line | None:
    whole = finite(series)
    if kind.is_rate:
        whole = rates(whole, RATE_SPAN_NS)
    if not whole.values:
        return None
    device = shown(key[1], 24)
    return Line(
        name=_OWN_NAMES.get(device, device),
        low=min(whole.values),
        high=max(whole.values),
        high_text=kind.show(max(whole.values)),
        n_values=len(whole.values),
        pieces=pieces_of(whole),
    )


def pieces_of(whole: Series) -> tuple[Series, ...]:
    """What is drawn of a series: thinned within each stretch without a pause, by its share of the buckets."""
    found = pieces(whole)
    if len(found) > N_BUCKETS:
        found = (whole,)  # read so seldom that every reading would stand alone
    length_ns = max(1, whole.times_ns[-1] - whole.times_ns[0])
    return tuple(
        decimated(piece, max(1, N_BUCKETS * (piece.times_ns[-1] - piece.times_ns[0]) // length_ns))
        for piece in found
    )


def _is_level(line: Line) -> bool:
    return line.high - line.low <= LEVEL_WITHIN * max(abs(line.high), abs(line.low))


def _level_words(line: Line, kind: _Kind, n_lines: int) -> str:
    name = f" ({line.name})" if n_lines > 1 else ""
    return f"{kind.title}{name} {kind.show(line.high)}"


def _lane(kind: _Kind, lines: list[Line]) -> Lane:
    low = min(line.low for line in lines)
    high = max(line.high for line in lines)
    if kind.is_from_zero:
        low, high = min(0.0, low), max(0.0, high)
    return Lane(
        key=kind.key,
        title=kind.title,
        low=low,
        high=high,
        low_text="0" if low == 0 else kind.show(low),
        high_text=kind.show(high),
        lines=tuple(lines),
    )
