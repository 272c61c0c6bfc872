from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamasweep import sweep_file
from llamasweep.sweep import schema
from llamasweep.sweep.resolved import sweep_document
from llamasweep.sweep.spec import SweepSpec

SHIPPED = sorted((Path(__file__).parents[3] / "sweeps").glob("*.yaml"))
EVERYTHING = """
version: 1
name: all of it
models:
  - path: ~/models/a-{quant}.gguf
    quants: [Q4_0, Q8_0]
    label: "12"
    quality: {metric: perplexity, value: 6.25, source: "a table"}
  - glob: "models/*.gguf"
  - synth: tiny
builds: [11434, /opt/a b/llama-bench]
tests: [pp512, tg128, pg512+128]
matrix:
  threads: [2, physical]
  kv_type: [f16, q8_0]
  depth: [0, 4096]
  fa: [on, auto]
  ngl: all
  cpu_mask: "0x3"
  nkvo: [on, off]
  ts: 3/1
include:
  - {model: "12", quant: Q4_0, threads: 2, ubatch: 128}
  - {test: [pg64+32, tg8], model: [tiny], quant: [Q4_0, Q8_0], poll: 0}
exclude:
  - {threads: "> 1", depth: [0, 4096], model: ["> odd"]}
  - {type_k: "!= f16", quant: [Q4_0]}
  - {test: pg512+128, n_gen: ">= 64", build: "11434"}
repetitions: 7
rounds: 2
order: interleaved
isolation: cell
seed: 9
warmup: off
discard: 1
timeout: 90s
max_time: 1h30m
stop_at: "07:00"
address_space_limit: 8 GiB
cooldown: {wait: 30s, gpu_below: 60.5, cpu_below: 70}
env: {GGML_X: "on", N: 07}
extra_args: [--no-warmup, "1e3", "a b"]
telemetry: 500ms
on_finish: [notify, done]
bandwidth: 51.2 GB/s
compute: 1.5 TFLOPS
"""


OLLAMA = """
engine: ollama
models: [{ollama: "qwen3:4b"}, {synth: tiny}]
mode: api
template: own
base_url: http://127.0.0.1:11434
pull: on
same_weights: 10488
matrix: {num_ctx: 4096}
"""
OPENAI = """
engine: openai
models: [{served: m, path: m.gguf}]
key_variable: MY_KEY
"""


def parsed(text: str) -> SweepSpec:
    def no_base(name: str, named_in: str) -> tuple[str, str]:
        raise AssertionError(f"{named_in} extends {name}")

    return schema.parse(text, "again.yaml", no_base)


def written_again(spec: SweepSpec) -> SweepSpec:
    """Through run.json's plain values, a sweep file and back."""
    recorded = json.loads(json.dumps(spec.to_resolved_dict()))
    return parsed(yaml.safe_dump(sweep_document(recorded), sort_keys=False, allow_unicode=True))


def comparable(spec: SweepSpec) -> dict[str, Any]:
    told = spec.to_resolved_dict()
    return {key: value for key, value in told.items() if key not in ("file", "on_finish")}


def test_everything_that_a_sweep_can_say_is_said_again() -> None:
    spec = parsed(EVERYTHING.replace("  kv_type: [f16, q8_0]\n", "  ctk: [f16, q8_0]\n"))
    assert comparable(written_again(spec)) == comparable(spec)
    for text in (EVERYTHING, OLLAMA, OPENAI):
        coupled = parsed(text)
        assert comparable(written_again(coupled)) == comparable(coupled)


def test_the_examples_set_every_field() -> None:
    """A field that is added to sweeps must be written again too: set it above."""
    plain = parsed("models: [{synth: x}]")
    examples = [parsed(text) for text in (EVERYTHING, OLLAMA, OPENAI)]
    names = {field.name for field in dataclasses.fields(plain)}
    same = {
        name
        for name in names
        if all(getattr(one, name) == getattr(plain, name) for one in examples)
    }
    assert same <= {"version", "file"}


def test_defaults_are_said_outright() -> None:
    document = sweep_document(parsed("models: [{synth: x}]").to_resolved_dict())
    assert document["repetitions"] == 5
    assert document["tests"] == ["pp512", "tg128"]
    assert document["telemetry"] == {"interval": 0.25}
    assert "timeout" not in document


def test_no_telemetry_stays_off() -> None:
    spec = parsed("models: [{synth: x}]\ntelemetry: off")
    assert written_again(spec).telemetry_interval_s is None


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_sweeps_ask_the_same_when_written_again(path: Path) -> None:
    spec = sweep_file.load(path)
    assert comparable(written_again(spec)) == comparable(spec)


def test_a_record_of_another_shape_is_passed_on_as_it_is() -> None:
    odd = {"matrix": {"threads": [1]}, "models": "?", "include": 3, "exclude": [None], "x": (1, 2)}
    assert sweep_document(odd) == odd | {"x": [1, 2], "exclude": [None]}
    assert sweep_document({"cooldown": None, "kv_types": ["f16"]}) == {
        "matrix": {"kv_type": ["f16"]}
    }
