"""A model by whatever names it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.gguf import headers

from llamasweep.errors import ModelFileError, ModelSynthError, UsageError
from llamasweep.gguf.named import read_named_model


def test_a_path_is_read(tmp_path: Path) -> None:
    assert read_named_model(str(headers.write_tiny(tmp_path / "m.gguf"))).name == "Tiny"


def test_a_shape_is_planned_and_nothing_is_written(tmp_path: Path) -> None:
    facts = read_named_model("qwen3-4b", quant="q8_0")

    assert (facts.name, facts.quant_short, facts.is_synthetic) == ("Qwen3-4B", "Q8_0", True)
    assert read_named_model("Qwen3-4B").quant_short == "Q4_K_M"
    assert not list(tmp_path.iterdir())


def test_a_file_goes_before_a_shape_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers.write_tiny(tmp_path / "Qwen3-4B")
    monkeypatch.chdir(tmp_path)

    assert read_named_model("Qwen3-4B").name == "Tiny"


def test_what_is_neither_is_told_with_the_nearest_shape() -> None:
    with pytest.raises(ModelFileError, match="neither a file nor the name") as why:
        read_named_model("Qwen3-4")

    assert why.value.hint == "Did you mean Qwen3-4B?"


@pytest.mark.parametrize("name", ["\x00", "\x1b[2J" * 1000, "x" * 100_000, "", "~nobody-here/x"])
def test_a_hostile_name_is_a_plain_refusal(name: str) -> None:
    with pytest.raises(ModelFileError) as why:
        read_named_model(name)

    assert "\x1b" not in why.value.message
    assert len(why.value.message) < 500


def test_a_quantisation_of_a_file_is_refused(tmp_path: Path) -> None:
    path = headers.write_tiny(tmp_path / "m.gguf")

    with pytest.raises(UsageError, match="--quant belongs to the name of a shape"):
        read_named_model(str(path), quant="Q8_0")
    with pytest.raises(ModelSynthError, match="Q9"):
        read_named_model("Qwen3-4B", quant="Q9_Z")
