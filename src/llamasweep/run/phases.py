"""When the engine did what: progress lines and row arrivals cut into phases. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from llamasweep.results.records import Phase
from llamasweep.run.group_log import TimedEvent

_REPETITION_STEPS = {"prompt", "generation"}


def cut(
    events: Sequence[TimedEvent],
    start_ns: int,
    samples_ns: Mapping[int, Sequence[int]],
    starts_ns: Mapping[int, Sequence[int]] | None = None,
) -> list[Phase]:
    """Phases in order of their start.

    start_ns: start of the process. samples_ns: cell index -> timed repetitions, for cells whose row came; a repetition
    ends at its start plus its sample, since no line tells its end. starts_ns: where an engine tells its starts itself, on
    top of the progress lines. The load lasts until the first step after `starting`.
    """
    steps = [t for t in events if t.event.kind == "step"]
    phases: list[Phase] = []
    first = next((t for t in steps if t.event.step != "starting"), None)
    phases.append(Phase(kind="load", start_ns=start_ns, end_ns=first.time_ns if first else None))
    for here, after in zip_longest(steps, steps[1:]):
        name = here.event.step or ""
        end_ns = after.time_ns if after is not None else None
        if name.startswith("warmup") or name == "depth":
            phases.append(
                Phase(
                    kind="depth" if name == "depth" else "warmup",
                    cell_index=here.event.cell_index,
                    repetition_index=here.event.repetition_index,
                    start_ns=here.time_ns,
                    end_ns=end_ns,
                )
            )
    phases += _repetitions(steps, samples_ns, starts_ns or {})
    return sorted(phases, key=lambda p: p.start_ns)


def _repetitions(
    steps: Sequence[TimedEvent],
    samples_ns: Mapping[int, Sequence[int]],
    starts_ns: Mapping[int, Sequence[int]],
) -> list[Phase]:
    starts: dict[tuple[int, int], int] = {}
    for timed in steps:
        event = timed.event
        if (
            event.step in _REPETITION_STEPS
            and event.cell_index is not None
            and event.repetition_index is not None
        ):
            # of a pg test the prompt line comes first; generation goes on in the same span
            starts.setdefault((event.cell_index, event.repetition_index), timed.time_ns)
    for cell, told in starts_ns.items():
        starts |= {(cell, rep): time_ns for rep, time_ns in enumerate(told)}
    phases = []
    for (cell, rep), start_ns in starts.items():
        samples = samples_ns.get(cell, ())
        end_ns = start_ns + samples[rep] if rep < len(samples) else None
        phases.append(
            Phase(
                kind="repetition",
                cell_index=cell,
                repetition_index=rep,
                start_ns=start_ns,
                end_ns=end_ns,
            )
        )
    return phases


def measured_span(
    phases: Sequence[Phase], cell_index: int, first_repetition: int = 0
) -> tuple[int, int] | None:
    """From the first kept repetition to the end of the last one; None where no progress lines told."""
    spans = [
        p
        for p in phases
        if p.kind == "repetition"
        and p.cell_index == cell_index
        and (p.repetition_index or 0) >= first_repetition
    ]
    ends = [p.end_ns for p in spans if p.end_ns is not None]
    if not spans or len(ends) != len(spans):
        return None
    return min(p.start_ns for p in spans), max(ends)


def depth_s(phases: Sequence[Phase], cell_index: int) -> float | None:
    """Seconds spent filling the depth of one cell, restores included; None where there was none."""
    spans = [
        p
        for p in phases
        if p.kind == "depth" and p.cell_index == cell_index and p.end_ns is not None
    ]
    if not spans:
        return None
    return sum((p.end_ns or p.start_ns) - p.start_ns for p in spans) / 1e9


def untimed_fraction(phases: Sequence[Phase], cell_index: int, start_ns: int, end_ns: int) -> float:
    """Share of a span that no repetition of the cell covers: depth filled or restored, prompts read before a generation."""
    timed_ns = sum(
        max(0, min(p.end_ns, end_ns) - max(p.start_ns, start_ns))
        for p in phases
        if p.kind == "repetition" and p.cell_index == cell_index and p.end_ns is not None
    )
    return 1 - timed_ns / (end_ns - start_ns)
