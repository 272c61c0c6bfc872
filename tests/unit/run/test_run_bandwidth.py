"""Which memory bandwidth a run takes, and what it tells of it."""

from __future__ import annotations

from typing import cast

import pytest

from llamasweep.machine.calibration import RunBandwidth
from llamasweep.machine.facts import MachineFacts
from llamasweep.run import campaign
from llamasweep.run.progress import Progress
from llamasweep.sweep.cell import Test
from llamasweep.sweep.spec import ModelEntry, SweepSpec

FACTS = MachineFacts(os="Linux")


class Notes:
    """Keeps what a run tells."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, sentence: str) -> None:
        self.told.append(sentence)


def bandwidth(given: float | None) -> tuple[float | None, str | None, list[str]]:
    notes = Notes()
    spec = SweepSpec(
        name="s",
        models=(ModelEntry(path="m.gguf"),),
        tests=(Test(n_prompt=8, n_gen=0),),
        bandwidth_bytes_per_s=given,
    )
    value, source = campaign._bandwidth(spec, FACTS, cast(Progress, notes))
    return value, source, notes.told


def test_a_bandwidth_in_the_sweep_is_taken_without_measuring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(campaign, "bandwidth_for_run", lambda _: pytest.fail("measured"))

    assert bandwidth(5e10) == (5e10, "given in the sweep", [])


def test_the_bandwidth_its_source_and_its_doubts_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = RunBandwidth(40e9, "calibrated 3 days ago, 4 threads", ("a neighbour",))
    monkeypatch.setattr(campaign, "bandwidth_for_run", lambda _: found)

    value, source, told = bandwidth(None)

    assert (value, source) == (40e9, "calibrated 3 days ago, 4 threads")
    assert told == ["memory bandwidth 40.0 GB/s, calibrated 3 days ago, 4 threads", "a neighbour"]


def test_no_bandwidth_is_none_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = RunBandwidth(None, None, ("memory bandwidth is not measured: no RAM is free",))
    monkeypatch.setattr(campaign, "bandwidth_for_run", lambda _: found)

    assert bandwidth(None) == (None, None, ["memory bandwidth is not measured: no RAM is free"])
