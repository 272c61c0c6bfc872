"""What must hold for any readings: nothing depends on the date, the order or the source of a series."""

from __future__ import annotations

import dataclasses
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from llamasweep.results.rates import leading_discards, summarise_rates
from llamasweep.results.records import Reading, TelemetryFigures
from llamasweep.results.summary import fold
from llamasweep.results.timeline import make_timeline
from llamasweep.telemetry.rapl import UnwrappedCounter

MS = 1_000_000
METRICS = (
    ("proc", "process", "rss_bytes"),
    ("proc", "process", "major_faults_count"),
    ("proc", "process", "cpu_time_s"),
    ("proc", "system", "cpu_busy_s"),
    ("rapl", "package-0", "energy_j"),
    ("nvml", "gpu0", "use_fraction"),
    ("nvml", "gpu0", "energy_j"),
    ("nvml", "gpu0", "power_w"),
)


@st.composite
def readings(draw: st.DrawFn) -> list[Reading]:
    found = []
    for source, device, metric in METRICS:
        times = draw(st.lists(st.integers(0, 10_000), max_size=8, unique=True))
        for time_ms in times:
            found.append(
                Reading(
                    time_ns=time_ms * MS,
                    source=source,
                    device=device,
                    metric=metric,
                    value=float(draw(st.integers(0, 10**6))),
                )
            )
    return found


phases = st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)).map(
    lambda pair: (min(pair), max(pair))
)


def folded(
    some: list[Reading], phase: tuple[int, int], shift_ns: int = 0
) -> tuple[TelemetryFigures, dict[str, str]]:
    start_ms, end_ms = phase
    return fold(
        some,
        start_ns=start_ms * MS + shift_ns,
        end_ns=end_ms * MS + shift_ns,
        n_tokens=10,
        n_cores=4,
        interval_s=0.5,
    )


@given(readings(), phases, st.integers(-(10**12), 2 * 10**18))
@settings(deadline=None)
def test_a_shift_of_all_times_changes_nothing(
    some: list[Reading], phase: tuple[int, int], shift_ns: int
) -> None:
    moved = [dataclasses.replace(r, time_ns=r.time_ns + shift_ns) for r in some]
    assert folded(moved, phase, shift_ns) == folded(some, phase)


@given(readings(), phases, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_readings_changes_nothing(
    some: list[Reading], phase: tuple[int, int], random: Random
) -> None:
    mixed = list(some)
    random.shuffle(mixed)
    assert folded(mixed, phase) == folded(some, phase)


@given(readings(), phases)
@settings(deadline=None)
def test_every_none_has_a_reason_and_nothing_is_negative(
    some: list[Reading], phase: tuple[int, int]
) -> None:
    figures, reasons = folded(some, phase)
    for field in dataclasses.fields(figures):
        value = getattr(figures, field.name)
        if value is None:
            assert reasons[field.name]
        elif not isinstance(value, str):
            assert value >= 0


@given(
    st.lists(st.integers(0, 1000), min_size=3, max_size=20),
    st.integers(600, 8000),
    st.integers(600, 8000),
)
def test_a_rising_counter_adds_up_over_adjacent_phases(
    steps: list[int], first_ms: int, second_ms: int
) -> None:
    total, some = 0, []
    for index, step in enumerate(steps):
        total += step
        some.append(
            Reading(
                time_ns=index * 1000 * MS,
                source="rapl",
                device="package-0",
                metric="energy_j",
                value=float(total),
            )
        )
    timeline = make_timeline(some)

    def energy_j(start_ms: int, end_ms: int) -> float | None:
        return fold(
            timeline,
            start_ns=start_ms * MS,
            end_ns=end_ms * MS,
            n_tokens=1,
            n_cores=1,
            interval_s=0.5,
        )[0].cpu_energy_j

    parts = (energy_j(0, first_ms), energy_j(first_ms, first_ms + second_ms))
    whole = energy_j(0, first_ms + second_ms)
    if whole is None:
        assert parts[1] is None
    else:
        assert parts[0] is not None
        assert parts[1] is not None
        assert abs(parts[0] + parts[1] - whole) < 1e-6 * max(whole, 1)


@given(st.integers(1, 10**6), st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_an_unwrapped_counter_gives_back_the_steps_that_were_made(
    range_: int, steps: list[int]
) -> None:
    counter, raw, true_total = UnwrappedCounter(range_=range_), 0, 0
    counter.add(0)
    for step in steps:
        true_total += step % range_
        raw = (raw + step) % range_
        assert counter.add(raw) == true_total


rates = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30)


@given(rates)
def test_a_summary_stays_within_its_samples(values: list[float]) -> None:
    summary = summarise_rates(values)
    assert summary.min_tps is not None
    assert summary.max_tps is not None
    assert summary.median_tps is not None
    assert summary.min_tps <= summary.median_tps <= summary.max_tps
    assert (summary.sample_std_tps is None) is (len(values) < 2)


@given(rates)
def test_auto_never_drops_more_than_half_nor_leaves_fewer_than_three(values: list[float]) -> None:
    n_dropped = leading_discards(values, "auto")
    assert n_dropped <= len(values) // 2
    assert n_dropped == 0 or len(values) - n_dropped >= 3


@given(st.lists(st.integers(1, 1000), min_size=4, max_size=20), st.integers(1, 64))
def test_auto_does_not_depend_on_the_unit(values: list[int], scale: int) -> None:
    assert leading_discards([v * float(scale) for v in values], "auto") == leading_discards(
        [float(v) for v in values], "auto"
    )
