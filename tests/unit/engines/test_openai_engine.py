"""A server at an address: the job that asks it, and that its settings are its own."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.engines.made import PP, TG, block, group, model
from tests.unit.sweep.subjects_made import build

from llamasweep.engines.base import CallOptions
from llamasweep.engines.driven import read_job
from llamasweep.engines.known import engine_named
from llamasweep.engines.openai import OpenAi
from llamasweep.sweep.spec import ServerWish

THERE = replace(build("server"), path="https://host/v1", argv_prefix=())


def test_the_job_names_the_variable_and_never_a_key() -> None:
    one = group(block(TG), THERE)
    one = replace(one, model=replace(one.model, source=replace(one.model.source, served="m-1")))
    wish = ServerWish(template="own", key_variable="MY_KEY")
    call = OpenAi().describe(one, CallOptions(model_path="", n_reps=2, server=wish))
    job = read_job(call.argv[4:])
    assert (job.base_url, job.model, job.key_variable) == ("https://host/v1", "m-1", "MY_KEY")
    assert job.options == {"is_chat": True}
    assert job.server_argv == ()


def test_only_what_a_request_can_say_is_an_axis() -> None:
    asked = block(PP, TG, concurrency=(1, 8), prompt_cache=("cold", "warm"), n_threads=2)
    (one,) = OpenAi().restrictions(asked, model(), THERE)
    assert one.where == {"n_threads": frozenset({2})}
    assert "somebody else" in one.reason


def test_every_engine_is_known_by_its_name() -> None:
    for name in ("llama-bench", "llama-server", "ollama", "openai"):
        assert engine_named(name).name == name
