"""The verbs `ceiling`, `fit` and `whatif` from the command line, with files, shapes, addresses and this machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fakes.model_server import model_server
from tests.unit.gguf import headers
from tests.unit.gguf.headers import golden_models
from tests.unit.machine.calibrations import bandwidth, calibration

from llamasweep.cli import app
from llamasweep.errors import LlamasweepError
from llamasweep.machine import own_rig
from llamasweep.machine.calibration import store_calibration
from llamasweep.machine.facts import read_facts

VERBS = ("ceiling", "fit", "whatif")
CARD = ("--device", "RTX 4090")


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def answered(*words: str | Path) -> dict[str, Any]:
    done = call(*words, "--json")
    assert done.exit_code == 0, done.output or done.exception
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def refused(*words: str | Path) -> LlamasweepError:
    problem = call(*words).exception
    assert isinstance(problem, LlamasweepError)
    return problem


def written(path: Path, name: str = "Qwen3-0.6B") -> Path:
    """A reference model with a hole for weights."""
    return headers.write_sparse(path, *headers.gguf_head(*golden_models()[name]))


def test_a_file_and_its_shape_have_the_same_answer(tmp_path: Path) -> None:
    of_file = answered("ceiling", written(tmp_path / "m.gguf"), *CARD)
    of_shape = answered("ceiling", "Qwen3-0.6B", "--quant", "Q4_K_M", *CARD)

    for part in ("decode", "prefill", "memory", "kv_cache"):
        assert of_file[part] == of_shape[part]
    assert not list(tmp_path.glob("*.json"))


def test_an_address_has_the_answer_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with model_server() as server:
        server.add("m.gguf", *headers.gguf_head(*golden_models()["Qwen3-0.6B"]))
        of_address = answered("ceiling", f"{server.url}/ranges/m.gguf?key=secret", *CARD)
        shown = call("fit", f"{server.url}/ranges/m.gguf?key=secret", *CARD).stdout

    assert of_address == answered("ceiling", written(tmp_path / "m.gguf"), *CARD)
    assert "secret" not in shown


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "name",
    [
        "\x1b[2J\x07.gguf",
        "\u202efugg.gguf",
        "a\nb.gguf",
        "--json.gguf",
        "$(reboot).gguf",
        "x" * 240,
    ],
)
def test_hostile_names_of_files_do_no_harm(verb: str, name: str, tmp_path: Path) -> None:
    metadata, tensors = golden_models()["Qwen3-0.6B"]
    hostile = {**metadata, "general.name": f"{name}\x1b]0;title\x07"}
    path = headers.write_sparse(tmp_path / name, *headers.gguf_head(hostile, tensors))

    done = call(verb, path, *CARD)
    document = call(verb, path, *CARD, "--json")

    assert done.exit_code == 0, done.output
    assert all(c.isprintable() or c == "\n" for c in done.stdout)
    assert json.loads(document.stdout)
    assert max(map(len, done.stdout.splitlines())) < 220


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_model_is_told(verb: str, tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<!DOCTYPE html>" + " " * 99)

    assert "web page" in refused(verb, tmp_path / "page.gguf", *CARD).message
    assert "neither a file nor" in refused(verb, tmp_path / "none.gguf", *CARD).message
    assert "a directory" in refused(verb, tmp_path, *CARD).message
    assert "no model was named" in refused(verb, *CARD).message


def test_an_architecture_that_is_not_modelled_gets_the_pencil_only(tmp_path: Path) -> None:
    metadata = {"general.architecture": "rwkv7", "rwkv7.block_count": 1}
    head = headers.gguf_head(metadata, [("token_embd.weight", (256, 4), "q4_K")])
    path = headers.write_sparse(tmp_path / "m.gguf", *head)

    found = answered("ceiling", path, *CARD)

    assert found["decode"]["ceiling_tps"] is None
    assert found["decode"]["pencil_ceiling_tps"] > 0
    assert "rwkv7" in found["reasons"]["decode.ceiling_tps"]
    assert "rwkv7" in call("ceiling", path, *CARD).stdout
    assert refused("fit", path, *CARD).exit_code == 2


def test_every_option_reaches_the_answer() -> None:
    found = answered(
        *("ceiling", "Qwen3-30B-A3B", "--quant", "Q8_0", *CARD, "--memory", "DDR5-5600x2"),
        *("--ram", "96 GiB", "--vram", "20 GiB", "--reserve", "4 GB", "--tflops", "50"),
        *("--prefill-tps", "900", "--decode-tps", "30", "--depth", "1000", "--n-prompt", "700"),
        *("--n-gen", "90", "--n-batch", "1024", "--n-ubatch", "256", "--type-k", "q8_0"),
        *("--type-v", "q4_0", "--flash-attn", "on", "--n-gpu-layers", "40", "--n-cpu-moe", "10"),
        *("--streams", "3", "--n-ctx", "30000", "--workload", "2000,100"),
    )

    assert found["model"]["quant"] == "Q8_0"
    assert (found["decode"]["n_depth"], found["decode"]["n_gen"]) == (1000, 90)
    assert found["prefill"]["n_prompt"] == 700
    assert found["prefill"]["n_passes"] == 3
    assert (found["kv_cache"]["type_k"], found["kv_cache"]["type_v"]) == ("q8_0", "q4_0")
    assert found["kv_cache"]["n_ctx"] == 3 * 10240
    assert found["concurrency"]["streams"] == 3
    host, card = found["placement"]
    assert (host["available_bytes"], host["reserve_bytes"]) == (96 * 2**30, 4_000_000_000)
    assert (card["available_bytes"], card["n_layers"]) == (20 * 2**30, 39)
    work = found["workload"]
    assert (work["n_prompt"], work["n_gen"], work["is_measured"]) == (2000, 100, True)
    assert work["ttft_s"] == pytest.approx(2000 / 900)


def test_three_numbers_do_without_a_model() -> None:
    words = ("--params", "177e9", "--active-params", "6e9", "--bpw", "4.27")
    found = answered("ceiling", *words, "--bandwidth-gbps", "50")

    assert found["kind"] == "pencil"
    assert found["decode"]["pencil_ceiling_tps"] == pytest.approx(15.6, rel=0.01)
    shown = call("ceiling", *words, "--bandwidth-gbps", "50").stdout
    assert "50 GB/s ÷ 3.20 GB of active weights = 15.6 t/s" in shown
    assert "pencil" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--params", "7e9"), "--params and --bpw go together"),
        (("Qwen3-4B", "--params", "7e9", "--bpw", "4"), "without MODEL"),
        (("--params", "7e9", "--active-params", "8e9", "--bpw", "4"), "at most as many active"),
        (("Qwen3-4B", "--memory", "DDR5-5600"), "how many channels"),
        (("Qwen3-4B", "--bandwidth-gbps", "50", "--memory", "DDR5-5600x2"), "two memories"),
        (("Qwen3-4B", "--device", "RTX 9999"), "no 'RTX 9999'"),
        (("Qwen3-4B", *CARD, "--type-v", "q8_0", "--flash-attn", "off"), "without flash attention"),
        (("Qwen3-4B", *CARD, "--n-prompt", "2000000000", "--n-ubatch", "1"), "passes"),
        (("Qwen3-4B", *CARD, "--n-ctx", "2147483647", "--streams", "65536"), ""),
        (("Qwen3-4B", *CARD, "--n-ctx", "256", "--depth", "5000"), "cannot hold 5000 tokens"),
        (("Qwen3-4B", *CARD, "--n-ctx", "8192", "--depth", "5000", "--streams", "2"), "of 2 users"),
        (("Qwen3-4B", *CARD, "--n-ctx", "5001", "--depth", "5000"), ""),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(words: tuple[str, ...], message: str) -> None:
    done = call("ceiling", *words)

    if not message:
        assert done.exit_code == 0
        return
    assert isinstance(done.exception, LlamasweepError)
    assert done.exception.exit_code == 2
    assert message in done.exception.message


@pytest.mark.parametrize(
    "words",
    [
        ("--bandwidth-gbps", "nan"),
        ("--bandwidth-gbps", "-1"),
        ("--bandwidth-gbps", "inf"),
        ("--depth", "-1"),
        ("--streams", "0"),
        ("--ram", "8G"),
        ("--workload", "1000"),
        ("--workload", "0,5"),
        ("--type-k", "q9"),
        ("--tflops", "nan"),
        ("--prefill-tps", "nan"),
        ("--bpw", "nan"),
    ],
)
def test_numbers_out_of_range_are_refused(words: tuple[str, ...]) -> None:
    done = call("ceiling", "Qwen3-4B", *words)

    assert done.exit_code in (1, 2)
    assert done.exception is None or isinstance(done.exception, (SystemExit, LlamasweepError))
    assert "Traceback" not in done.output


# -- this machine


def test_a_calibrated_machine_is_asked_by_default() -> None:
    facts = read_facts()
    store_calibration(replace(calibration(), fingerprint=facts.fingerprint))

    done = call("ceiling", "Qwen3-4B", "--json")
    found = json.loads(done.stdout)

    assert found["decode"]["bandwidth_bytes_per_s"] == 40e9
    assert found["rig"].startswith("this machine")
    assert any("calibrated" in a["text"] for a in found["assumptions"])
    assert found["prefill"]["is_reference"] is True
    assert "note:" not in done.stderr


def test_an_uncalibrated_machine_is_measured_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = own_rig.own_rig

    def without_measuring(facts: Any) -> Any:
        return quick(facts, measure=lambda *_, **__: bandwidth(20))

    monkeypatch.setattr(own_rig, "own_rig", without_measuring)

    done = call("fit", "Qwen3-0.6B", "--json")

    assert done.exit_code == 0
    assert json.loads(done.stdout)["fits"] is not None
    assert "not calibrated" in done.stderr


# -- fit and whatif


def test_fit_names_flags_that_ceiling_understands() -> None:
    rig = ("--device", "RTX 3060 12GB + DDR5-5600x2", "--ram", "64 GiB")
    best = answered("fit", "Qwen3-30B-A3B", *rig, "--n-ctx", "16384")["best"]
    found = answered(
        *("ceiling", "Qwen3-30B-A3B", *rig, "--n-ctx", "16384"),
        *("--n-gpu-layers", str(best["n_gpu_layers"]), "--n-cpu-moe", str(best["n_cpu_moe"])),
    )

    assert found["memory"]["fits"] is True
    assert found["decode"]["ceiling_tps"] == pytest.approx(best["decode_ceiling_tps"])
    shown = call("fit", "Qwen3-30B-A3B", *rig, "--n-ctx", "16384").stdout
    assert f"-ncmoe {best['n_cpu_moe']} -c 16384" in shown


def test_fit_tries_only_the_cache_types_that_are_asked_for() -> None:
    found = answered("fit", "Qwen3-4B", *CARD, "--type-kv", "q5_1")

    assert {row["type_kv"] for row in found["by_context"]} == {"q5_1"}


def test_what_does_not_fit_is_said_plainly() -> None:
    shown = call("fit", "DeepSeek-V3", *CARD).stdout
    assert "It does not fit" in shown
    assert "--memory" in shown
    assert "it does NOT fit" in call("ceiling", "DeepSeek-V3", *CARD).stdout


def test_a_context_that_does_not_fit_leaves_the_shorter_ones() -> None:
    shown = call("fit", "Qwen3-8B", *CARD, "--ram", "16 GiB", "--n-ctx", "999999").stdout

    assert "It does not fit with 999,999 tokens" in shown
    assert "trained with 40,960 tokens; beyond them" in shown
    assert "from disk" not in shown
    shorter = shown.partition("A shorter context fits:")[2]
    assert "\n8,192 " in shorter
    assert "Largest context" in shorter


def test_a_context_beyond_the_model_s_own_is_told_where_it_fits() -> None:
    def shown(n_ctx: int) -> str:
        return call("fit", "Qwen3-0.6B", *CARD, "--n-ctx", str(n_ctx)).stdout

    assert "beyond them it may write nonsense" in shown(50_000)
    assert "beyond them" not in shown(40_960)
    asked = ("ceiling", "Qwen3-0.6B", *CARD, "--depth", "50000")
    assert "is longer than the 40,960 that the model was trained with" in call(*asked).stdout


def test_whatif_has_a_row_for_each_device_in_order() -> None:
    names = ("RTX 3060 12GB", "M4 Pro", "DDR4-3200x2")
    words = [word for name in names for word in ("--device", name)]
    found = answered("whatif", "Qwen3-8B", *words, "--streams", "4", "--n-prompt", "2048")

    assert [row["rig"] for row in found["rows"]] == [
        "GeForce RTX 3060 12GB",
        "Apple M4 Pro (20-core GPU)",
        "DDR4-3200 x2",
    ]
    assert (found["streams"], found["n_prompt"]) == (4, 2048)
    shown = call("whatif", "Qwen3-8B", *words).stdout
    assert "8 users" in shown
    assert "DDR4-3200 x2: no peak compute rate is known" in shown


def test_the_verbs_import_nothing_heavy() -> None:
    code = (
        "import sys; from llamasweep.cli import app\n"
        "app.main(['ceiling', 'Qwen3-4B', '--device', 'RTX 4090', '--json'], standalone_mode=False)\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"numpy", "pandas", "pyarrow", "psutil", "pydantic", "rich", "yaml", "ssl", "http"}
    assert not heavy & set(done.stderr.split())


@pytest.mark.parametrize("option", ["--ram", "--vram", "--reserve"])
def test_a_size_without_its_unit_is_refused(option: str) -> None:
    done = call("fit", "Qwen3-4B", *CARD, option, "8")

    assert done.exit_code == 2
    assert "'8' has no unit; write it like '8 GiB'" in done.output


def test_nothing_may_be_kept_free() -> None:
    assert call("fit", "Qwen3-4B", *CARD, "--reserve", "0").exit_code == 0


def test_fit_names_the_unit_of_each_pair_of_rates() -> None:
    shown = call("fit", "Qwen3-4B", *CARD).stdout
    assert re.search(r"\d/[\d.]+ t/s", shown)


@pytest.mark.parametrize(
    ("verb", "n_prompt", "n_gen"), [("ceiling", 512, 128), ("whatif", 8192, 512)]
)
def test_the_help_names_the_lengths_that_are_taken(verb: str, n_prompt: int, n_gen: int) -> None:
    shown = call(verb, "--help").stdout
    assert f"Tokens of the prompt ({n_prompt})." in shown
    assert f"Tokens generated ({n_gen})." in shown
    silent = answered(verb, "Qwen3-4B", *CARD)
    told = answered(verb, "Qwen3-4B", *CARD, "--n-prompt", str(n_prompt), "--n-gen", str(n_gen))
    assert silent == told
