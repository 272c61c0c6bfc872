"""Which server, store and settings a group of Ollama gets, and what it cannot be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.engines.made import PG, PP, TG, block, group, model
from tests.unit.sweep.subjects_made import build

from llamasweep.engines.base import CallOptions
from llamasweep.engines.driven import Job, read_job
from llamasweep.engines.ollama import Ollama, n_needed
from llamasweep.sweep.cell import Block, Test
from llamasweep.sweep.spec import ServerWish
from llamasweep.sweep.subjects import Build, Model

ENGINE = Ollama()
BLOB = "/store/blobs/sha256-" + "a" * 64


def program(**changes: Any) -> Build:
    said = {
        "path": "/b/ollama",
        "argv_prefix": ("/b/ollama",),
        "version": "0.32.15",
        "number": None,
    }
    return replace(build("ollama"), **{**said, **changes})


THERE = program(path="http://127.0.0.1:11434")


def job_of(of: Block, on: Build | None = None, source: Model | None = None, **wish: Any) -> Job:
    options = CallOptions(
        model_path="/m.gguf", n_reps=3, server=ServerWish(**wish), import_folder="/cache/models"
    )
    one = replace(group(of, on or program()), model=source or model())
    return read_job(ENGINE.describe(one, options).argv[4:])


def reasons(of: Block, on: Build | None = None, of_model: Model | None = None) -> dict[str, Any]:
    found = ENGINE.restrictions(of, of_model or model(), on or program())
    return {one.reason: dict(one.where) for one in found}


def served(path: str | None) -> Model:
    made = model()
    return replace(made, source=replace(made.source, path=path, served="qwen:4b"))


def test_a_file_is_imported_into_a_store_of_our_own() -> None:
    options = job_of(block(PP, TG)).options
    assert (options["file"], options["store"]) == ("/m.gguf", "/cache/models")
    assert options["content_hash"] == model().content_hash
    assert (options["mode"], options["template"], options["pull"]) == ("verbose", "raw", False)


def test_a_model_of_ollama_is_served_from_the_store_that_has_it() -> None:
    job = job_of(block(TG), source=served(BLOB), mode="api")
    assert (job.model, job.options["file"], job.options["store"]) == ("qwen:4b", None, "/store")


def test_a_server_that_is_there_gets_no_settings_of_a_server() -> None:
    job = job_of(block(TG, flash_attn="auto"), THERE)
    assert job.base_url == THERE.path
    assert job.options["server"] == {}


def test_server_wide_settings_belong_to_the_server_that_we_start() -> None:
    found = job_of(block(TG, type_k="q8_0", type_v="q8_0", flash_attn="on")).options["server"]
    assert found == {"type_kv": "q8_0", "flash_attn": True}


def test_several_streams_get_a_server_with_as_many_slots() -> None:
    by_api = replace(program(), options=frozenset({"api"}))
    assert reasons(block(TG, concurrency=(1, 4)), by_api) == {}
    assert job_of(block(TG, concurrency=4), by_api, mode="api").options["server"] == {
        "n_parallel": 4
    }
    (where,) = reasons(block(TG, concurrency=(1, 4)), THERE).values()
    assert where == {"concurrency": frozenset({4})}
    (reason,) = reasons(block(TG, concurrency=9999), by_api)
    assert "more than 512 requests" in reason


def test_window_and_batch_are_always_said() -> None:
    assert job_of(block(PP, TG)).options["settings"] == {"n_ctx": 4096, "n_batch": 512}
    asked = block(PP, num_ctx=256, n_batch=1024, n_threads=2, n_gpu_layers=-1, load_mode="none")
    assert job_of(asked).options["settings"] == {
        "n_ctx": 256, "n_batch": 256, "n_threads": 2, "use_mmap": False,
    }  # fmt: skip


def test_the_window_is_not_larger_than_the_model_allows() -> None:
    made = model()
    assert made.facts is not None
    short = replace(made, facts=replace(made.facts, n_ctx_train=64))
    assert job_of(block(PP), source=short).options["settings"]["n_ctx"] == 64
    long = Test(n_prompt=65, n_gen=0)
    ((reason, where),) = reasons(block(PP, long), of_model=short).items()
    assert where == {"test": frozenset({long})}
    assert "64 that the model was trained for" in reason


def test_a_question_that_does_not_fit_the_window_is_refused() -> None:
    found = reasons(block(PP, TG, PG, num_ctx=(24, 25, 64, 9000)))
    (cut,) = (where for reason, where in found.items() if "num_ctx 24;" in reason)
    assert cut == {"num_ctx": frozenset({24}), "test": frozenset({TG})}
    assert not [reason for reason in found if "num_ctx 25;" in reason]
    (trained,) = (where for reason, where in found.items() if "trained" in reason)
    assert trained == {"num_ctx": frozenset({9000})}


def test_the_depth_of_a_generation_counts() -> None:
    assert n_needed(TG, 0) == 16 + 8 + 1
    assert n_needed(TG, 100) == 109
    found = reasons(block(TG, num_ctx=64, n_depth=(0, 100)))
    (where,) = found.values()
    assert where == {
        "num_ctx": frozenset({64}),
        "n_depth": frozenset({100}),
        "test": frozenset({TG}),
    }


@pytest.mark.parametrize(
    ("axes", "word"),
    [
        ({"poll": 0}, "no setting for poll"),
        ({"n_ubatch": 128}, "no setting for n_ubatch"),
        ({"concurrency": 2}, "`mode: api` measures several"),
        ({"turn": (1, 2)}, "on Ollama's /v1"),
        ({"load_mode": "mlock"}, "auto, mmap and none"),
        ({"type_k": "q5_1", "type_v": "q5_1"}, "of type f16, q8_0, q4_0"),
        ({"type_k": "q8_0", "type_v": "f16"}, "one type for K and V"),
        ({"type_k": "q8_0"}, "one type for K and V"),
    ],
)
def test_what_ollama_cannot_be_told_is_refused(axes: dict[str, Any], word: str) -> None:
    assert any(word in reason for reason in reasons(block(TG, **axes)))


def test_equal_types_are_allowed_among_pairs_that_are_not() -> None:
    found = ENGINE.restrictions(
        block(TG, type_k=("f16", "q8_0"), type_v=("f16", "q8_0")), model(), program()
    )
    pairs = {
        (k, v) for one in found for k in one.where["type_k"] for v in one.where.get("type_v", ())
    }
    assert pairs == {("f16", "q8_0"), ("q8_0", "f16")}


def test_a_server_of_somebody_else_keeps_its_own_settings() -> None:
    found = reasons(block(TG, flash_attn=("auto", "on")), THERE)
    (where,) = found.values()
    assert where == {"flash_attn": frozenset({"on"})}
    assert reasons(block(TG, flash_attn=("auto", "on"))) == {}


@pytest.mark.parametrize("version", ["0.12.5", "0.12.6"])
def test_versions_that_time_only_the_last_batch_measure_no_prompts(version: str) -> None:
    ((reason, where),) = reasons(block(PP, TG, PG), program(version=version)).items()
    assert where == {"test": frozenset({PP, PG})}
    assert version in reason
    assert reasons(block(PP, TG), program(version="0.12.7")) == {}
