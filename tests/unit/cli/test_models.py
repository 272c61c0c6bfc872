"""The verb `models`: listing, inspecting, generating."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.gguf import headers

from llamasweep.cli.models import command
from llamasweep.cli.terminal import printable, table_lines
from llamasweep.errors import ModelFileError
from llamasweep.gguf import found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OLLAMA_MODELS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(found, "_SERVICE_FOLDERS", ())
    return tmp_path


def run(*words: str) -> str:
    result = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_inspect_tells_the_quantisation_of_the_file_not_of_its_name(tmp_path: Path) -> None:
    path = headers.write_tiny(tmp_path / "model-Q8_0.gguf")

    text = run("inspect", str(path))

    assert "Q4_K_M (Q4_K - Medium)" in text
    assert "Q8_0" not in text


def test_inspect_as_json_holds_every_fact_and_tensor(tmp_path: Path) -> None:
    metadata = {"x.scale": float("nan"), "x.list": [1, 2]}
    path = headers.write_tiny(tmp_path / "m.gguf", metadata=metadata)

    about = json.loads(run("inspect", str(path), "--json"))

    assert about["quant"] == "Q4_K_M"
    assert about["n_params"] == 256 * 4 + 256 * 256 + 256
    assert about["n_file_bytes"] == path.stat().st_size
    assert about["metadata"]["x.scale"] == "nan"
    assert about["metadata"]["x.list"] == [1, 2]
    assert [t["name"] for t in about["tensors"]] == [name for name, _, _ in headers.TINY_TENSORS]
    assert len(about["content_hash"]) == 32


def test_inspect_escapes_hostile_names(tmp_path: Path) -> None:
    metadata = {"general.name": "evil\x1b]0;title\x07\n\u202egpj"}
    path = headers.write_tiny(tmp_path / "m.gguf", metadata=metadata)

    text = run("inspect", str(path))

    assert "evil\\x1b]0;title\\x07\\n\\u202egpj" in text
    assert "\x1b" not in text


def test_inspect_of_a_wrong_file_raises_its_reason(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no such file"):
        CliRunner().invoke(command, ["inspect", str(tmp_path / "no")], catch_exceptions=False)


def test_list_shows_models_and_says_what_cannot_be_used(home: Path) -> None:
    folder = home / ".lmstudio" / "models"
    folder.mkdir(parents=True)
    good = headers.write_tiny(folder / "good\x1b[2J.gguf")
    (folder / "broken.gguf").write_bytes(b"hello world, no model at all")

    text = run("list")
    rows = json.loads(run("list", "--json"))

    assert "good\\x1b[2J.gguf" in text
    assert "\x1b" not in text
    assert "begins with b'hell'" in text
    by_quant = {row["quant"]: row for row in rows}
    assert by_quant["Q4_K_M"]["path"] == str(good)
    assert by_quant[None]["n_file_bytes"] is None


def test_list_without_models_says_how_to_make_one(home: Path) -> None:
    assert home.is_dir()
    assert "models synth" in run("list")


def test_synth_writes_a_model_that_inspect_reads(tmp_path: Path) -> None:
    path = tmp_path / "made here.gguf"

    told = run("synth", "tiny-granitehybrid", "--quant", "Q4_0", "--out", str(path))

    assert told == f"{path}\n"
    about = json.loads(run("inspect", str(path), "--json"))
    assert about["is_synthetic"] is True
    assert about["quant"] == "Q4_0"


def test_synth_without_out_writes_into_the_cache_and_list_finds_it(home: Path) -> None:
    assert home.is_dir()
    path = run("synth", "tiny-granitehybrid", "--quant", "Q4_0").strip()

    assert [(r["place"], r["path"]) for r in json.loads(run("list", "--json"))] == [
        ("llamasweep", path)
    ]


def test_shapes_are_listed_with_their_sizes() -> None:
    rows = {row["shape"]: row for row in json.loads(run("shapes", "--json"))}

    assert rows["Llama-2-7B"]["q4_k_m_bytes"] == 4080263168  # what llama.cpp itself reports
    assert "tiny-llama" in run("shapes")


def test_printable_keeps_letters_and_escapes_the_rest() -> None:
    assert printable("größer 模型 <b>") == "größer 模型 <b>"
    assert printable("a\tb\0\udcff\u2028") == "a\\tb\\x00\\udcff\\u2028"


def test_tables_are_as_wide_as_their_widest_cell() -> None:
    lines = list(table_lines(("A", "LONG"), [("xyz", 1), ("x", "22\n")]))

    assert lines == ["A    LONG", "xyz  1", "x    22\\n"]
