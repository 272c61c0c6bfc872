"""Which server or program a sweep means, and what is known of the models that servers have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.models import write_model
from tests.fakes.ollama_server import fake_ollama

from llamasweep.builds.registry import Registry
from llamasweep.errors import BuildError, EngineNotFoundError, LlamasweepError, UsageError
from llamasweep.run.resolve import Subjects, resolve
from llamasweep.sweep.cell import Test
from llamasweep.sweep.spec import ModelEntry, SweepSpec

BLOB = "sha256-" + "a" * 64


def spec(*models: ModelEntry, engine: str = "ollama", **changes: Any) -> SweepSpec:
    tests = (Test(n_prompt=8, n_gen=0),)
    return SweepSpec(name="s", engine=engine, models=models, tests=tests, **changes)


def looked_at(of: SweepSpec, **options: Any) -> Subjects:
    return resolve(of, registry=Registry(), generate=False, **options)


@pytest.fixture
def program(tmp_path: Path) -> str:
    """Says its version as Ollama does when its server is down, and does nothing else."""
    path = tmp_path / "ollama"
    path.write_text("#!/bin/sh\necho 'Warning: client version is 0.32.15'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models with one of them, named as the only one."""
    folder = tmp_path / "store"
    (folder / "blobs").mkdir(parents=True)
    write_model(folder / "blobs" / BLOB)
    manifest = folder / "manifests" / "registry.ollama.ai" / "library" / "tiny" / "4b"
    manifest.parent.mkdir(parents=True)
    layer = {
        "mediaType": "application/vnd.ollama.image.model",
        "digest": BLOB.replace("-", ":"),
    }
    manifest.write_text(json.dumps({"layers": [layer]}))
    monkeypatch.setenv("OLLAMA_MODELS", str(folder))
    return folder


def test_a_program_that_builds_names_is_started_and_tells_its_version(program: str) -> None:
    (build,) = looked_at(spec(ModelEntry(ollama="x"), builds=(program,))).builds
    assert (build.label, build.version, build.path) == ("ollama-0.32.15", "0.32.15", program)
    assert build.argv_prefix == (program,)


def test_a_model_of_a_store_is_read_from_its_blob(program: str, store: Path) -> None:
    of = spec(ModelEntry(ollama="tiny:4b"), builds=(program,))
    (model,) = looked_at(of).models.values()
    assert model.facts is not None
    assert (model.source.path, model.source.served) == (str(store / "blobs" / BLOB), "tiny:4b")
    assert model.reason_against is None


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(("pull", "problem"), [(False, "has no model"), (True, None)])
def test_a_model_that_is_not_there_is_only_measured_where_it_may_be_fetched(
    program: str, pull: bool, problem: str | None
) -> None:
    of = spec(ModelEntry(ollama="tiny"), builds=(program,), pull=pull)
    (model,) = looked_at(of).models.values()
    assert model.facts is None
    assert (model.reason_against is None) == pull
    assert problem is None or problem in (model.reason_against or "")


def test_a_server_that_is_there_is_a_build_of_its_address() -> None:
    with fake_ollama() as fake:
        of = spec(ModelEntry(ollama="m"), base_url=fake.url, mode="api")
        found = looked_at(of, has_gpu=False)
        with_gpu = looked_at(of, has_gpu=True)
    (build,) = found.builds
    assert (build.path, build.version, build.is_cpu_only) == (fake.url, "0.32.15", True)
    assert not with_gpu.builds[0].is_cpu_only
    (model,) = found.models.values()
    assert (model.facts, model.reason_against, model.identity) == (None, None, "served:m")


def test_a_model_with_a_file_beside_its_name_has_facts(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.gguf")
    entry = ModelEntry(served="m", path=str(path))
    found = looked_at(spec(entry, engine="openai", base_url="https://h/x"), has_gpu=False)
    (model,) = found.models.values()
    assert model.facts is not None
    assert found.builds[0].devices is None  # of another machine nothing is known
    gone = ModelEntry(served="m", path=str(tmp_path / "gone.gguf"))
    (model,) = looked_at(spec(gone, engine="openai")).models.values()
    assert model.reason_against == "no such file"


@pytest.mark.parametrize(
    ("of", "error", "word"),
    [
        (
            spec(ModelEntry(ollama="m"), builds=("x",), base_url="http://h"),
            UsageError,
            "programs to start",
        ),
        (spec(ModelEntry(ollama="m"), builds=("/no/ollama",)), EngineNotFoundError, "neither"),
        (spec(ModelEntry(ollama="m"), builds=("/bin/true",)), BuildError, "is no Ollama"),
        (
            spec(ModelEntry(ollama="m"), base_url="http://127.0.0.1:9"),
            EngineNotFoundError,
            "no Ollama answers",
        ),
        (
            spec(ModelEntry(served="m"), engine="openai", builds=("b1",)),
            UsageError,
            "has no builds",
        ),
        (
            spec(ModelEntry(served="m"), engine="openai", base_url="http://u:p@h"),
            UsageError,
            "sign-in",
        ),
    ],
)
def test_what_names_no_server_is_told(
    of: SweepSpec, error: type[LlamasweepError], word: str
) -> None:
    with pytest.raises(error, match=word):
        looked_at(of)


def test_another_way_of_asking_is_another_build(program: str) -> None:
    def hash_of(**changes: Any) -> str:
        of = spec(ModelEntry(ollama="x"), builds=(program,), **changes)
        return looked_at(of).builds[0].content_hash

    assert hash_of() == hash_of(mode="verbose", template="raw")
    assert len({hash_of(), hash_of(mode="api"), hash_of(template="own")}) == 3
