"""The sampler over sources that a test holds in its hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from llamasweep.results.records import Reading
from llamasweep.telemetry import sampler as sampler_module
from llamasweep.telemetry.sampler import Sampler

PATIENCE_S = 10.0


@dataclass
class CountingSource:
    """Tells the test of each reading; may raise or wait as told."""

    name: str = "counting"
    absent: dict[str, str] = field(default_factory=dict)
    act: Callable[[int], object] = lambda _n: None
    n_reads: int = 0
    pids: list[int | None] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def read(self, pid: int | None) -> list[Reading]:
        self.act(self.n_reads)
        with self.changed:
            self.n_reads += 1
            self.pids.append(pid)
            self.changed.notify_all()
        return [
            Reading(
                time_ns=time.time_ns(),
                source=self.name,
                device="system",
                metric="n",
                value=float(self.n_reads),
            )
        ]

    def wait_for(self, n_reads: int) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: self.n_reads >= n_reads, PATIENCE_S)


def test_it_reads_at_once_at_the_interval_and_once_more_at_the_end() -> None:
    source = CountingSource()
    sampler = Sampler([source], interval_s=0.02)
    sampler.start(123)
    assert source.wait_for(5)
    cost = sampler.stop()
    assert cost.n_ticks == source.n_reads >= 6
    assert set(source.pids) == {123}
    assert cost.wall_s >= 4 * 0.02
    assert cost.lateness_max_s is not None
    assert cost.cpu_fraction is not None


def test_a_long_interval_still_gives_a_first_and_a_last_reading() -> None:
    source = CountingSource()
    sampler = Sampler([source], interval_s=3600)
    sampler.start(None)
    assert source.wait_for(1)
    began_s = time.monotonic()
    assert sampler.stop().n_ticks == 2
    assert time.monotonic() - began_s < PATIENCE_S
    assert [r.value for r in sampler.drain()] == [1.0, 2.0]


def test_read_soon_takes_an_extra_reading_that_does_not_count_as_late() -> None:
    source = CountingSource()
    sampler = Sampler([source], interval_s=3600)
    sampler.start(None)
    assert source.wait_for(1)
    sampler.read_soon()
    assert source.wait_for(2)
    cost = sampler.stop()
    assert cost.n_ticks == 3
    assert cost.lateness_max_s is not None
    assert cost.lateness_max_s < 3600


def test_drain_gives_every_reading_once_while_it_runs() -> None:
    source = CountingSource()
    sampler = Sampler([source], interval_s=0.001)
    sampler.start(None)
    drained: list[Reading] = []
    for n_reads in (3, 10, 50):
        assert source.wait_for(n_reads)
        drained += sampler.drain()
    sampler.stop()
    drained += sampler.drain()
    assert [r.value for r in drained] == [float(n + 1) for n in range(source.n_reads)]
    assert sampler.drain() == []


def test_a_source_that_raises_is_dropped_with_its_reason_and_the_others_go_on() -> None:
    def fail_at_second(n_reads: int) -> None:
        if n_reads == 1:
            raise RuntimeError("driver fell over")

    bad, good = CountingSource(name="bad", act=fail_at_second), CountingSource(name="good")
    sampler = Sampler([bad, good], interval_s=0.005)
    sampler.start(None)
    assert good.wait_for(5)
    cost = sampler.stop()
    assert bad.n_reads == 1
    assert cost.dropped == {"bad": "dropped after RuntimeError: driver fell over"}
    assert sampler.absent["bad"] == cost.dropped["bad"]


def test_sensors_that_a_source_gave_up_are_told() -> None:
    source = CountingSource(absent={"counting/gpu0/power_w": "Not Supported"})
    assert Sampler([source], interval_s=1).absent == {"counting/gpu0/power_w": "Not Supported"}


def test_it_can_be_started_again_for_the_next_group() -> None:
    source = CountingSource()
    sampler = Sampler([source], interval_s=3600)
    for pid in (1, 2):
        sampler.start(pid)
        assert sampler.is_running
        assert sampler.stop().n_ticks >= 1
        assert not sampler.is_running
    assert set(source.pids) == {1, 2}


def test_starting_twice_is_an_error_and_stopping_twice_is_not() -> None:
    sampler = Sampler([CountingSource()], interval_s=3600)
    sampler.start(None)
    with pytest.raises(RuntimeError):
        sampler.start(None)
    sampler.stop()
    idle = sampler.stop()
    assert (idle.n_ticks, idle.cpu_fraction, idle.lateness_median_s) == (0, None, None)


def test_a_reading_that_lasts_longer_than_the_interval_skips_planned_ones() -> None:
    gate = threading.Event()
    source = CountingSource(act=lambda n: n == 1 and gate.wait(0.1))
    sampler = Sampler([source], interval_s=0.01)
    sampler.start(None)
    assert source.wait_for(4)
    cost = sampler.stop()
    assert cost.n_skipped >= 5


def test_a_source_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "STOP_TIMEOUT_S", 0.05)
    gate = threading.Event()
    source = CountingSource(act=lambda _n: gate.wait(PATIENCE_S))
    sampler = Sampler([source], interval_s=0.01)
    sampler.start(None)
    cost = sampler.stop()
    assert "did not answer" in cost.dropped["counting"]
    sampler.start(None)
    assert sampler.stop().n_ticks >= 1
    gate.set()


def test_an_interval_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="interval"):
        Sampler([], interval_s=0)
