"""Which memory a ceiling rests on, and what a run tells of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.models import write_model
from tests.unit.machine.calibrations import calibration
from tests.unit.run.builds_made import CPU_BUILD, GPU_BUILD

from llamasweep.ceilings.assumptions import Peak
from llamasweep.ceilings.rig import Processor
from llamasweep.gguf.facts import ModelFacts
from llamasweep.gguf.header import read_model
from llamasweep.machine.calibration import RunBandwidth
from llamasweep.machine.facts import MachineFacts
from llamasweep.machine.gpus import Gpu
from llamasweep.machine.own_rig import own_peaks
from llamasweep.run import bandwidths
from llamasweep.run.bandwidths import Bandwidths, known_bandwidth, look_at_bandwidths
from llamasweep.sweep.cell import Block, Group, Test
from llamasweep.sweep.parameters import Scalar
from llamasweep.sweep.spec import ModelEntry, SweepSpec
from llamasweep.sweep.subjects import Build, Model, ModelSource

FACTS = MachineFacts(os="Linux")
KNOWN = Bandwidths(ram=40e9, ram_source="measured", gpu=1000e9, gpu_source="specification")
TESTS = (Test(n_prompt=0, n_gen=8),)


def _spec(given: float | None) -> SweepSpec:
    return SweepSpec(
        name="s", models=(ModelEntry(path="m.gguf"),), tests=TESTS, bandwidth_bytes_per_s=given
    )


def _group(build: Build, **axes: Scalar) -> Group:
    source = ModelSource(label="m")
    block = Block(model=source, axes=tuple((k, (v,)) for k, v in axes.items()), tests=TESTS)
    return Group(
        build=build, model=Model(source=source, content_hash=None, facts=None), block=block
    )


def test_a_bandwidth_in_the_sweep_is_taken_without_measuring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bandwidths, "bandwidth_for_run", lambda _: pytest.fail("measured"))
    known, notes = look_at_bandwidths(_spec(5e10), FACTS)
    assert notes == []
    assert known.of(_group(GPU_BUILD, n_gpu_layers=7)) == (5e10, "given in the sweep")


def test_the_bandwidth_its_source_and_its_doubts_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = RunBandwidth(40e9, "calibrated 3 days ago, 4 threads", ("a neighbour",))
    monkeypatch.setattr(bandwidths, "bandwidth_for_run", lambda _: found)
    known, notes = look_at_bandwidths(_spec(None), FACTS)
    assert known.of(_group(CPU_BUILD)) == (40e9, "calibrated 3 days ago, 4 threads")
    assert notes == ["memory bandwidth 40.0 GB/s, calibrated 3 days ago, 4 threads", "a neighbour"]


def test_no_bandwidth_is_none_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = RunBandwidth(None, None, ("memory bandwidth is not measured: no RAM is free",))
    monkeypatch.setattr(bandwidths, "bandwidth_for_run", lambda _: found)
    known, notes = look_at_bandwidths(_spec(None), FACTS)
    assert known.of(_group(CPU_BUILD)) == (None, None)
    assert notes == ["memory bandwidth is not measured: no RAM is free"]


def test_a_plan_knows_the_bandwidth_without_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidths, "load_calibration", lambda _: calibration())
    assert known_bandwidth(_spec(None), FACTS) == 40e9
    assert known_bandwidth(_spec(5e10), FACTS) == 5e10
    monkeypatch.setattr(bandwidths, "load_calibration", lambda _: calibration(ram=None))
    assert known_bandwidth(_spec(None), FACTS) is None


def test_the_only_gpu_has_the_bandwidth_of_its_specification(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bandwidths, "bandwidth_for_run", lambda _: RunBandwidth(None, None, ()))
    gpu = Gpu(index=0, vendor="nvidia", name="NVIDIA GeForce RTX 4090", memory_bytes=24 * 2**30)
    known, _ = look_at_bandwidths(_spec(None), replace(FACTS, gpus=(gpu,)))
    assert known.gpu == pytest.approx(1008e9, rel=0.01)
    two, _ = look_at_bandwidths(_spec(None), replace(FACTS, gpus=(gpu, gpu)))
    assert two.gpu is None


@pytest.mark.parametrize(
    ("build", "axes", "expected"),
    [
        (CPU_BUILD, {}, 40e9),
        (CPU_BUILD, {"rpc": "10.0.0.1:50052"}, None),
        (GPU_BUILD, {}, 1000e9),
        (GPU_BUILD, {"n_gpu_layers": 99}, 1000e9),
        (GPU_BUILD, {"n_gpu_layers": 0}, 40e9),
        (GPU_BUILD, {"n_gpu_layers": 10}, None),
        (GPU_BUILD, {"n_cpu_moe": 4}, None),
        (GPU_BUILD, {"tensor_buft_overrides": "exps=CPU"}, None),
        (replace(GPU_BUILD, devices=("CUDA0", "CUDA1")), {}, None),
    ],
)
def test_weights_in_several_memories_have_no_single_bandwidth(
    build: Build, axes: dict[str, Scalar], expected: float | None
) -> None:
    assert KNOWN.of(_group(build, **axes))[0] == expected


def _of(facts: ModelFacts, group: Group) -> Group:
    return replace(group, model=replace(group.model, facts=facts))


@pytest.fixture
def facts(tmp_path: Path) -> ModelFacts:
    return read_model(write_model(tmp_path / "m.gguf"))


@pytest.mark.parametrize(
    ("build", "axes", "expected"),
    [
        (CPU_BUILD, {}, (3e11, "calibrated")),
        (CPU_BUILD, {"rpc": "10.0.0.1:50052"}, None),
        (GPU_BUILD, {}, (6e14, "specification")),
        (GPU_BUILD, {"n_gpu_layers": 0}, (3e11, "calibrated")),
        (GPU_BUILD, {"n_gpu_layers": 10}, None),
    ],
)
def test_prompts_are_held_against_what_calculates_them(
    facts: ModelFacts, build: Build, axes: dict[str, Scalar], expected: tuple[float, str] | None
) -> None:
    slow = Peak(flop_per_s=3e11, basis="measured", is_reference=True)
    fast = Peak(flop_per_s=6e14, basis="spec")
    known = Bandwidths(
        host=Processor(name="cpu", peak_quantised=slow, peak_float=slow, peak_source="calibrated"),
        card=Processor(
            name="gpu", peak_quantised=fast, peak_float=fast, peak_source="specification"
        ),
    )

    peak, source = known.peak_of(_of(facts, _group(build, **axes)))

    assert (None if peak is None else (peak.flop_per_s, source)) == expected
    given, told = replace(known, given_peak=1e12).peak_of(_of(facts, _group(build, **axes)))
    assert (given, told) == (Peak(flop_per_s=1e12), "given in the sweep")


def test_a_calibrated_matrix_product_is_a_reference_and_says_so(
    facts: ModelFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = calibration()
    monkeypatch.setattr(
        bandwidths, "own_peaks", lambda machine: own_peaks(machine, load=lambda _: stored)
    )
    known, _ = look_at_bandwidths(_spec(5e10), FACTS)

    peak, source = known.peak_of(_of(facts, _group(CPU_BUILD)))

    assert peak == Peak(flop_per_s=4e11, basis="measured", is_reference=True)
    assert source is not None
    assert source.startswith("calibrated ")
    assert "float32 matrix product" in source


def test_a_machine_that_was_never_calibrated_has_no_peak(
    facts: ModelFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        bandwidths, "own_peaks", lambda machine: own_peaks(machine, load=lambda _: None)
    )
    known, _ = look_at_bandwidths(_spec(5e10), FACTS)

    assert known.peak_of(_of(facts, _group(CPU_BUILD))) == (None, None)
