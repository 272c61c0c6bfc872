"""Keys of servers in a sweep file: what they mean, and where they do not belong."""

from __future__ import annotations

import pytest

from llamasweep.errors import SweepFileError
from llamasweep.sweep.schema import parse
from llamasweep.sweep.sources import labelled, source_templates
from llamasweep.sweep.spec import ServerWish, SweepSpec

MODEL = "models: [{synth: tiny-llama}]\n"


def read(text: str) -> SweepSpec:
    return parse(text, "s.yaml", lambda _name, _file: ("", ""))


def told(text: str) -> str:
    with pytest.raises(SweepFileError) as caught:
        read(text)
    return str(caught.value)


def test_left_out_keys_have_their_defaults() -> None:
    assert read(f"engine: ollama\n{MODEL}").server == ServerWish()
    assert ServerWish().mode == "verbose"
    assert not ServerWish().pull


def test_all_keys_are_carried() -> None:
    text = "mode: api\nbase_url: http://h:1\ntemplate: own\npull: on\n"
    found = read(f"engine: ollama\n{text}{MODEL}").server
    assert found == ServerWish(mode="api", base_url="http://h:1", template="own", pull=True)


def test_models_of_servers_have_their_names() -> None:
    spec = read("engine: ollama\nmodels: [{ollama: 'qwen3:4b'}, {ollama: a, label: b}]\n")
    sources = labelled([s for entry in spec.models for s in source_templates(entry)])
    assert [(s.label, s.served) for s in sources] == [("qwen3:4b", "qwen3:4b"), ("b", "a")]
    with_file = read("engine: openai\nmodels: [{served: m, path: /m.gguf}]\n")
    (source,) = source_templates(with_file.models[0])
    assert (source.served, source.path) == ("m", "/m.gguf")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (f"mode: api\n{MODEL}", "goes with engine ollama only"),
        (f"engine: llama-server\nbase_url: http://h\n{MODEL}", "ollama or openai only"),
        (f"engine: openai\npull: on\n{MODEL}", "goes with engine ollama only"),
        (f"engine: ollama\nkey_variable: K\n{MODEL}", "goes with engine openai only"),
        (f"engine: openai\n{MODEL}", "needs `served`"),
        ("models: [{ollama: a}]\n", "needs `engine: ollama`"),
        ("engine: ollama\nmodels: [{served: a}]\n", "needs `engine: openai`"),
        ("engine: ollama\nmodels: [{ollama: a, path: b}]\n", "exactly one of"),
        ("engine: ollama\nmodels: [{ollama: a, quants: [Q4_0]}]\n", "not with ollama"),
        ("engine: openai\nkey_variable: sk-123 4\nmodels: [{served: a}]\n", "never stands here"),
        (f"engine: ollama\nmode: cli\n{MODEL}", "mode"),
    ],
)
def test_what_does_not_belong_together_is_told(text: str, word: str) -> None:
    assert word in told(text)
