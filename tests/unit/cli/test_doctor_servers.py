"""What doctor tells of Ollama, llama-server and llama-batched-bench, there or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fakes.ollama_server import fake_ollama

from llamasweep.cli.doctor_servers import find_servers, server_lines
from llamasweep.engines import ollama_api


@pytest.fixture
def no_ollama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with neither program nor server; the folder is searched for programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("LLAMASWEEP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    monkeypatch.setattr(ollama_api, "DEFAULT_BASE_URL", "http://127.0.0.1:9")
    return tmp_path


def build(folder: Path, label: str = "b1", number: int | None = 1) -> dict[str, Any]:
    return {
        "label": label,
        "path": str(folder / "llama-bench"),
        "number": number,
        "is_default": label == "b2",
    }


def told(found: dict[str, Any]) -> str:
    return "\n".join(f"{mark} {line}" for mark, line in server_lines(found))


@pytest.mark.usefixtures("no_ollama")
def test_what_is_not_there_is_said_with_its_reason() -> None:
    text = told(find_servers([]))
    assert "- no Ollama is on PATH" in text
    assert "- no server of Ollama answers at http://127.0.0.1:9: cannot be reached" in text
    for program in ("llama-server", "llama-batched-bench"):
        assert (
            f"- no build has a {program} beside its llama-bench; "
            f"`llamasweep builds install VERSION --with {program}` adds it"
        ) in text


@pytest.mark.usefixtures("no_ollama")
def test_the_address_of_the_environment_is_looked_at_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with fake_ollama() as fake:
        port = fake.url.rpartition(":")[2]
        monkeypatch.setenv("OLLAMA_HOST", f"0.0.0.0:{port}")
        text = told(find_servers([]))
        assert f"+ Ollama 0.32.15 answers at {fake.url} (OLLAMA_HOST), models: 1" in text
    monkeypatch.setenv("OLLAMA_HOST", "tcp://somewhere")
    assert "- no server of Ollama answers: OLLAMA_HOST: 'tcp://somewhere:11434/' is not" in told(
        find_servers([])
    )


def test_program_server_environment_and_llama_server_are_found(
    no_ollama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = no_ollama / "ollama"
    program.write_text("#!/bin/sh\necho 'ollama version is 0.32.15'\n")
    program.chmod(0o755)
    (no_ollama / "llama-server").write_text("")
    monkeypatch.setenv("OLLAMA_MODELS", "/models")
    monkeypatch.setenv("OLLAMA_API_KEY", "a secret")
    with fake_ollama() as fake:
        monkeypatch.setattr(ollama_api, "DEFAULT_BASE_URL", fake.url)
        found = find_servers([build(no_ollama)])
    assert found["ollama"]["server"]["models"] == ["m:latest"]
    text = told(found)
    assert f"+ Ollama 0.32.15: {program}" in text
    assert f"+ Ollama 0.32.15 answers at {fake.url}, models: 1" in text
    assert "+ OLLAMA_MODELS=/models" in text
    assert "a secret" not in text
    assert f"+ llama-server of b1: {no_ollama / 'llama-server'}" in text
    assert found["llama_batched_bench"] == {}
    assert (
        "- no build has a llama-batched-bench beside its llama-bench; "
        "`llamasweep builds install 1 --with llama-batched-bench` adds it"
    ) in text
    assert "no build has a llama-server" not in text


@pytest.mark.usefixtures("no_ollama")
def test_llama_batched_bench_of_each_build_that_has_one_is_listed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "llama-batched-bench").write_text("")
    found = find_servers([build(tmp_path), build(other, "b2", 2)])
    assert found["llama_batched_bench"] == {"b2": str(other / "llama-batched-bench")}
    assert found["programs_absent"] == {
        "llama-server": "`llamasweep builds install 2 --with llama-server` adds it"
    }
    assert f"+ llama-batched-bench of b2: {other / 'llama-batched-bench'}" in told(found)
