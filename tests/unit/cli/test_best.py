from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.report.factory import hostile_run, lost, measured, run_of

from llamasweep.cli.best import command
from llamasweep.errors import StoreError
from llamasweep.results.records import RunData
from llamasweep.store.parquet import RunStore


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LLAMASWEEP_RESULTS", raising=False)
    return tmp_path


def _store(run: RunData) -> None:
    store = RunStore.create(Path("results"), run.info)
    store.write_group("00001-g0", run.attempts, run.samples, run.readings)


def _best(*words: str) -> Result:
    return CliRunner().invoke(command, list(words), catch_exceptions=False)


def _two_settings() -> RunData:
    return run_of(
        [
            measured(1, [10.0, 10.1, 10.2], requested={"n_threads": 2}),
            measured(2, [12.0, 12.1, 12.2], requested={"n_threads": 4}),
        ],
        models=[{"content_hash": "a" * 32, "path": "/m/a b.gguf"}],
    )


def test_the_command_and_its_evidence_are_printed() -> None:
    _store(_two_settings())
    text = _best("quick").output
    assert "Fastest generation: threads 4" in text
    assert "20 % faster than the next, threads 2 (10.1 ± 0.1 t/s)." in text
    line = next(line for line in text.splitlines() if line.startswith("llama-server"))
    assert shlex.split(line) == ["llama-server", "-m", "/m/a b.gguf", "-c", "4096", "-np", "1", "-t", "4"]  # fmt: skip
    assert "\u202f" not in text


def test_the_server_of_ollama_has_a_terminal_of_its_own() -> None:
    _store(_two_settings())
    lines = _best("quick").output.splitlines()
    served = next(n for n, line in enumerate(lines) if line.endswith("ollama serve"))
    written = next(n for n, line in enumerate(lines) if line.startswith("cat > Modelfile"))
    assert "In one terminal" in lines[served - 2]
    assert "In another" in lines[written - 2]
    assert served < written - 2


def test_json_tells_rows_commands_and_doubts() -> None:
    _store(_two_settings())
    told = json.loads(_best("--json", "--for", "tg").output)
    (model,) = told["models"]
    fastest = model["fastest"]["tg"]
    assert fastest["settings"] == {"n_threads": 4}
    assert (fastest["median_tps"], fastest["n_samples"], fastest["doubts"]) == (12.1, 3, [])
    assert fastest["second"]["settings"] == {"n_threads": 2}
    assert (fastest["tied"], fastest["passed_over"]) == ([], [])
    assert model["ways"][0]["llama_server"].endswith("-t 4")
    assert "\u202f" not in json.dumps(told, ensure_ascii=False)


def test_asking_for_what_was_not_measured_is_refused_with_the_reason() -> None:
    _store(_two_settings())
    with pytest.raises(StoreError, match="measured prompts: there is no best setting") as problem:
        _best("--for", "pp")
    assert problem.value.hint is not None


def test_a_run_without_a_rate_is_refused() -> None:
    _store(run_of([lost(1, status="failed")]))
    with pytest.raises(StoreError, match=r"no cell of .* measured generation or prompts"):
        _best()


def test_an_unknown_run_is_refused() -> None:
    _store(_two_settings())
    with pytest.raises(StoreError, match="no run 'gone'"):
        _best("gone")


def test_hostile_names_cannot_move_the_cursor() -> None:
    _store(hostile_run())
    text = _best().output
    assert "\u202e" not in text
    assert "\x1b" not in text
