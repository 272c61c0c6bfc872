"""Whatever a run holds, the checks give findings or none: no exception, and each with evidence, words and attempts of the run."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.results.made import attempt, repeated, run_of

from llamasweep.results.checks import KINDS, check_run
from llamasweep.results.records import Attempt, TelemetryFigures

NUMBERS = st.sampled_from(
    [None, 0, -1, 1e-9, 0.2, 1, 7, 12.5, 2**31, 1e12, float("nan"), float("inf")]
)
WORDS = st.sampled_from(
    [None, "", "CPU", "CUDA", "IQ3_S", "powersave", "battery", "memory", "é\udcff\n"]
)
OPTIONAL = [
    field.name
    for field in dataclasses.fields(Attempt)
    if field.default is None and field.name not in ("telemetry", "started_at", "finished_at")
]
FIGURES = [field.name for field in dataclasses.fields(TelemetryFigures)]
TEXTS = {"build_backends", "model_quant", "gpu_name", "ceiling_bound", "ceiling_bandwidth_source"}


@st.composite
def rows(draw: st.DrawFn, number: int) -> Attempt:
    names = draw(st.lists(st.sampled_from(OPTIONAL), max_size=8, unique=True))
    changes: dict[str, Any] = {n: draw(WORDS if n in TEXTS else NUMBERS) for n in names}
    asked = st.dictionaries(
        st.sampled_from(["n_threads", "n_ubatch", "type_k", "n_gpu_layers"]), NUMBERS | WORDS
    )
    figures: dict[str, Any] = draw(st.dictionaries(st.sampled_from(FIGURES), NUMBERS))
    n_prompt = draw(st.sampled_from([0, 2048]))
    return attempt(
        number,
        **changes,
        test_kind="pp" if n_prompt else "tg",
        n_prompt=n_prompt,
        n_depth=draw(st.sampled_from([0, 4096])),
        requested=draw(asked),
        applied=draw(asked),
        telemetry=TelemetryFigures(**figures),
    )


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_run_gives_findings_with_evidence(data: st.DataObject) -> None:
    attempts = [data.draw(rows(number)) for number in range(data.draw(st.integers(0, 4)))]
    rates = data.draw(st.lists(st.floats(0.1, 1e6), max_size=6))
    keys = (
        "n_cores_physical",
        "n_cores_logical",
        "ram_bytes",
        "cpu_quota",
        "governor",
        "power_source",
        "ram_channels",
    )
    machine = data.draw(st.dictionaries(st.sampled_from(keys), NUMBERS | WORDS))
    samples = [sample for row in attempts for sample in repeated(row, rates)]
    ids = {row.attempt_id for row in attempts}
    for finding in check_run(run_of(attempts, machine=machine, samples=samples)):
        assert finding.kind in KINDS
        assert finding.evidence
        assert finding.attempt_ids
        assert set(finding.attempt_ids) <= ids
        assert finding.text
