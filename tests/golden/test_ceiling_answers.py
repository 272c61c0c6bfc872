"""The JSON of `ceiling` for three models, whole: a dense one, a mixture over two memories, one with windows.

`make golden` writes the expected files anew; review them as a diff.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from llamasweep.cli import app

FOLDER = Path(__file__).parent / "ceilings"
CASES = {
    "mistral-nemo-m4-pro": (
        "Mistral-Nemo-12B --device M4~Pro --depth 512 --streams 32 --prefill-tps 286 "
        "--workload 1000,150"
    ),
    "qwen3-30b-a3b-split": (
        "Qwen3-30B-A3B --quant Q4_K_M --device RTX~3060~12GB --memory DDR5-5600x2 --ram 64~GiB "
        "--n-cpu-moe 24 --n-ctx 16384 --depth 8192"
    ),
    "gemma-3-4b-windows": (
        "Gemma-3-4B --quant Q8_0 --bandwidth-gbps 100 --tflops 5 --ram 16~GiB --depth 20000 "
        "--n-ubatch 1024 --type-k q8_0 --type-v q8_0"
    ),
}


def answered(words: str) -> dict[str, Any]:
    argv = ["ceiling", *(word.replace("~", " ") for word in words.split())]
    done = CliRunner().invoke(app, [*argv, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def rounded(value: Any) -> Any:
    """Ten digits: the last bits of a float are the platform's."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_answer_is_the_expected_one(name: str) -> None:
    found = rounded(answered(CASES[name]))
    path = FOLDER / f"{name}.json"
    if os.environ.get("LLAMASWEEP_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    assert found == json.loads(path.read_text(encoding="utf-8"))
