"""Finding models where other programs put them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamasweep.gguf import found
from llamasweep.gguf.found import find_models

DIGEST = "ab" * 32


@pytest.fixture(autouse=True)
def _no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "_SERVICE_FOLDERS", ())


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF")
    return path


def write_manifest(models: Path, name: str, document: object) -> None:
    manifest = models / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps(document), encoding="utf-8")


def model_layer(digest: str = f"sha256:{DIGEST}") -> dict[str, object]:
    return {
        "layers": [
            {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "00" * 32},
            {"mediaType": "application/vnd.ollama.image.model", "digest": digest},
        ]
    }


def test_every_usual_place_is_searched(tmp_path: Path) -> None:
    hub = tmp_path / ".cache/huggingface/hub/models--org--repo"
    blob = touch(hub / "blobs/1234")
    link = hub / "snapshots/5678/sub/model-Q4_K_M.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    touch(tmp_path / ".cache/llama.cpp/cached.gguf")
    touch(tmp_path / ".lmstudio/models/maker/model/file.gguf")
    ollama = tmp_path / ".ollama/models"
    touch(ollama / f"blobs/sha256-{DIGEST}")
    write_manifest(ollama, "registry.ollama.ai/library/llama3/8b", model_layer())

    models = find_models(tmp_path, {})

    assert [(m.place, m.name) for m in models] == [
        ("Hugging Face", "org/repo/sub/model-Q4_K_M.gguf"),
        ("LM Studio", "maker/model/file.gguf"),
        ("Ollama", "llama3:8b"),
        ("llama.cpp", "cached.gguf"),
    ]
    assert models[2].path == ollama / f"blobs/sha256-{DIGEST}"


def test_two_names_of_one_blob_are_two_models_of_ollama(tmp_path: Path) -> None:
    store = tmp_path / ".ollama/models"
    touch(store / f"blobs/sha256-{DIGEST}")
    for tag in ("8b", "8b-long"):
        write_manifest(store, f"registry.ollama.ai/library/llama3/{tag}", model_layer())

    models = find_models(tmp_path, {"OLLAMA_MODELS": str(store)})

    assert [m.name for m in models] == ["llama3:8b", "llama3:8b-long"]
    assert len({m.path for m in models}) == 1


def test_the_environment_names_other_places(tmp_path: Path) -> None:
    touch(tmp_path / "hf/hub/models--a--b/snapshots/1/m.gguf")
    touch(tmp_path / "llama/x.gguf")
    environment = {"HF_HOME": str(tmp_path / "hf"), "LLAMA_CACHE": str(tmp_path / "llama")}

    models = find_models(tmp_path / "home", environment)

    assert [m.name for m in models] == ["a/b/m.gguf", "x.gguf"]


def test_a_split_model_is_listed_by_its_first_shard(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        touch(tmp_path / f".cache/llama.cpp/m-{number:05d}-of-00003.gguf")

    assert [m.name for m in find_models(tmp_path, {})] == ["m-00001-of-00003.gguf"]


def test_a_file_reached_twice_is_listed_once(tmp_path: Path) -> None:
    target = touch(tmp_path / ".cache/llama.cpp/m.gguf")
    (tmp_path / ".cache/llama.cpp/z.gguf").symlink_to(target)

    assert len(find_models(tmp_path, {})) == 1


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"layers": 5},
        {"layers": [7]},
        model_layer("sha256:../../../../etc/passwd"),
        model_layer("md5:" + "ab" * 32),
    ],
)
def test_hostile_manifests_name_nothing(document: object, tmp_path: Path) -> None:
    write_manifest(tmp_path / ".ollama/models", "registry.ollama.ai/library/evil/1b", document)

    assert find_models(tmp_path, {}) == []


def test_a_manifest_whose_blob_is_gone_names_nothing(tmp_path: Path) -> None:
    write_manifest(tmp_path / ".ollama/models", "host/space/name/tag", model_layer())

    assert find_models(tmp_path, {}) == []


def test_linked_folders_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    cache = tmp_path / ".cache/llama.cpp"
    touch(cache / "m.gguf")
    (cache / "loop").symlink_to(cache)

    assert len(find_models(tmp_path, {})) == 1


def test_models_that_llamasweep_made_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMASWEEP_CACHE", str(tmp_path / "ours"))
    touch(tmp_path / "ours/models/tiny.gguf")

    assert [(m.place, m.name) for m in find_models(tmp_path, {})] == [("llamasweep", "tiny.gguf")]
