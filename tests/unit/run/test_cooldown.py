from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest

from llamasweep.results.records import Reading
from llamasweep.run import cooldown as room
from llamasweep.run.cooldown import Cooler
from llamasweep.run.progress import Silent
from llamasweep.run.stop import StopSignals
from llamasweep.sweep.spec import Cooldown
from llamasweep.telemetry.sensors import Source

GIB = 1 << 30


class Told(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.waits: list[tuple[str, float]] = []

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def waiting(self, reason: str, seconds: float) -> None:
        self.waits.append((reason, seconds))


class Clock(StopSignals):
    """Time that passes only while somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, deadline_s: float | None = None) -> None:
        super().__init__(deadline_s)
        self.now_s = 100.0
        self.slept_s: list[float] = []
        self.stop_after: int | None = None
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)

    def wait(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds
        if self.stop_after is not None and len(self.slept_s) >= self.stop_after:
            self.n_signals += 1


class Sensors:
    """A source whose readings are scripted, one list per look; the last one stays."""

    absent: Mapping[str, str] = {}

    def __init__(self, name: str, device: str, metric: str, *values: float | None) -> None:
        self.name, self.device, self.metric = name, device, metric
        self.values, self.n_looks = values, 0

    def read(self, pid: int | None) -> Iterable[Reading]:
        assert pid is None
        value = self.values[min(self.n_looks, len(self.values) - 1)]
        self.n_looks += 1
        if value is None:
            return []
        return [
            Reading(
                time_ns=0, source=self.name, device=self.device, metric=self.metric, value=value
            )
        ]


MakeClock = Callable[..., Clock]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def cooler(*sources: Source, **wish: float) -> Cooler:
    return Cooler(cooldown=Cooldown(**wish), sources=sources)


def after(of: Cooler, clock: Clock) -> tuple[tuple[str, ...], Told]:
    told = Told()
    return of.after_group(clock, told), told


def cpu(*values: float | None) -> Sensors:
    return Sensors(
        "thermal", "cpu", "temperature_c", 20.0, *values
    )  # the first look is for the memory


def gpu(*values: float | None) -> Sensors:
    return Sensors("nvml", "gpu0", "temperature_c", 20.0, *values)


def vram(*values: float | None) -> Sensors:
    return Sensors("nvml", "gpu0", "vram_used_bytes", *values)


# -- the pause


def test_without_a_wish_nothing_is_waited_for(clock: Clock) -> None:
    flags, told = after(cooler(), clock)
    assert (flags, clock.slept_s, told.waits) == ((), [], [])


def test_a_plain_pause_is_waited_for_and_told(clock: Clock) -> None:
    _, told = after(cooler(wait_s=30.0), clock)
    assert clock.slept_s == [30.0]
    assert told.waits == [("cooling down", 30.0)]


def test_below_the_limit_nothing_is_waited_for(clock: Clock) -> None:
    of = cooler(cpu(49.9), gpu(59.9), wait_s=60.0, until_cpu_below_c=50.0, until_gpu_below_c=60.0)
    _, told = after(of, clock)
    assert (clock.slept_s, told.waits, told.notes) == ([], [], [])


def test_above_the_limit_it_waits_until_it_is_below(clock: Clock) -> None:
    _, told = after(cooler(cpu(70.0, 60.0, 49.0), wait_s=60.0, until_cpu_below_c=50.0), clock)
    assert clock.slept_s == [2.0, 2.0]
    assert told.waits == [
        ("CPU at 70 °C, waiting for 50 °C", 60.0),
        ("CPU at 60 °C, waiting for 50 °C", 58.0),
    ]


def test_the_limit_itself_is_not_below_it(clock: Clock) -> None:
    after(cooler(gpu(60.0, 59.0), wait_s=60.0, until_gpu_below_c=60.0), clock)
    assert len(clock.slept_s) == 1


def test_the_hottest_of_several_counts(clock: Clock) -> None:
    other = Sensors("nvml", "gpu1", "temperature_c", 20.0, 80.0, 40.0)
    _, told = after(cooler(gpu(40.0), other, wait_s=60.0, until_gpu_below_c=60.0), clock)
    assert told.waits[0][0] == "GPU at 80 °C, waiting for 60 °C"


def test_a_processor_is_not_cooled_by_looking_at_a_gpu(clock: Clock) -> None:
    _, told = after(cooler(gpu(40.0), cpu(90.0, 40.0), wait_s=9.0, until_cpu_below_c=50.0), clock)
    assert told.waits[0][0].startswith("CPU at 90")


def test_the_cap_ends_the_wait(clock: Clock) -> None:
    after(cooler(cpu(90.0), wait_s=5.0, until_cpu_below_c=50.0), clock)
    assert clock.slept_s == [2.0, 2.0, 1.0]


def test_without_a_sensor_the_cap_is_waited_for_and_said_once(clock: Clock) -> None:
    of = cooler(wait_s=5.0, until_gpu_below_c=60.0)
    _, told = after(of, clock)
    assert sum(clock.slept_s) == 5.0
    assert told.notes == [
        "no GPU temperature can be read here; the whole cooldown is waited instead"
    ]
    _, again = after(of, clock)
    assert sum(clock.slept_s) == 10.0
    assert again.notes == []


def test_each_missing_sensor_is_said(clock: Clock) -> None:
    of = cooler(wait_s=5.0, until_gpu_below_c=60.0, until_cpu_below_c=50.0)
    told = Told()
    of.after_group(clock, told)
    assert [n.split()[1] for n in told.notes] == ["GPU", "CPU"]
    assert sum(clock.slept_s) == 5.0


def test_a_sensor_that_is_there_is_still_heeded_where_the_other_is_missing(clock: Clock) -> None:
    """Nothing to wait for but the cap: the missing one may be hot."""
    of = cooler(cpu(40.0), wait_s=5.0, until_gpu_below_c=60.0, until_cpu_below_c=50.0)
    after(of, clock)
    assert sum(clock.slept_s) == 5.0


def test_a_stop_ends_the_wait(clock: Clock) -> None:
    clock.stop_after = 2
    after(cooler(cpu(90.0), wait_s=500.0, until_cpu_below_c=50.0), clock)
    assert len(clock.slept_s) == 2


def test_the_end_of_the_runs_time_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, deadline_s=103.0)
    after(cooler(cpu(90.0), wait_s=500.0, until_cpu_below_c=50.0), clock)
    assert len(clock.slept_s) == 2


# -- device memory


def test_memory_that_is_back_at_its_baseline_is_clean(clock: Clock) -> None:
    flags, _ = after(cooler(vram(GIB, GIB)), clock)
    assert (flags, clock.slept_s) == ((), [])


def test_a_little_more_than_before_is_still_clean(clock: Clock) -> None:
    assert after(cooler(vram(GIB, GIB + (255 << 20))), clock)[0] == ()


def test_memory_that_comes_back_late_is_waited_for(clock: Clock) -> None:
    flags, _ = after(cooler(vram(GIB, 9 * GIB, 9 * GIB, GIB)), clock)
    assert flags == ()
    assert clock.slept_s == [0.5, 0.5]


def test_memory_that_does_not_come_back_flags_the_next_group(clock: Clock) -> None:
    flags, _ = after(cooler(vram(GIB, 9 * GIB)), clock)
    assert flags == ("contaminated_memory",)
    assert sum(clock.slept_s) == pytest.approx(room._MEMORY_WAIT_S)


def test_a_look_that_tells_nothing_is_no_proof_that_memory_is_back(clock: Clock) -> None:
    flags, _ = after(cooler(vram(GIB, None, 9 * GIB)), clock)
    assert flags == ("contaminated_memory",)
    flags, _ = after(cooler(vram(GIB, None, GIB)), clock)
    assert flags == ()


def test_a_device_that_tells_nothing_any_more_is_not_accused(clock: Clock) -> None:
    assert after(cooler(vram(GIB, None)), clock)[0] == ()


def test_a_stop_ends_the_wait_for_memory(clock: Clock) -> None:
    clock.stop_after = 3
    after(cooler(vram(GIB, 9 * GIB)), clock)
    assert len(clock.slept_s) == 3


@pytest.mark.parametrize("name", ["proc", "psutil"])
def test_the_sources_of_the_engines_processes_are_not_asked(clock: Clock, name: str) -> None:
    source = Sensors(name, "process", "rss_bytes", 1.0)
    sources: Sequence[Source] = (source,)
    Cooler(cooldown=Cooldown(wait_s=5.0, until_cpu_below_c=50.0), sources=sources).after_group(
        clock, Silent()
    )
    assert source.n_looks == 0
