"""The verb `devices`: the table, one row with its sources, memory by its words."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from llamasweep.cli import app


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["devices", *words])


def test_the_table_lists_every_device_with_its_bandwidth() -> None:
    lines = call().output.splitlines()

    assert lines[0].split()[:2] == ["device", "memory"]
    (row,) = [line for line in lines if line.startswith("GeForce RTX 4090 ") and " D " not in line]
    assert row.split()[-5:] == ["GDDR6X", "1008", "24", "165.2", "660.6"]


def test_one_device_shows_every_figure_beside_its_source() -> None:
    output = call("RTX", "4090").output

    assert output.startswith("GeForce RTX 4090\n")
    assert "1008 GB/s" in output
    assert "Ada whitepaper" in output
    assert "techpowerup.com" in output


def test_json_has_units_in_its_keys_and_null_for_no_figure() -> None:
    found = json.loads(call("tesla p40", "--json").output)

    assert found["bandwidth_bytes_per_s"] == 347.1e9
    assert found["fp16_tensor_fp16_accumulate_flop_per_s"] is None
    assert found["source"]
    assert len(json.loads(call("--json").output)) == 194


def test_a_name_of_several_devices_lists_them() -> None:
    found = json.loads(call("H100", "--json").output)

    assert [row["name"] for row in found] == ["H100 PCIe 80GB", "H100 SXM 80GB"]


def test_memory_words_show_the_formula() -> None:
    assert call("DDR5-5600x2").output.strip().endswith("2 x 8 bytes x 5600 MT/s = 89.6 GB/s")
    assert json.loads(call("LPDDR5X-8533x128bit", "--json").output)["bus_bits"] == 128


def test_unknown_devices_and_wrong_memory_words_are_usage_errors() -> None:
    unknown = call("RTX", "4900")
    assert unknown.exception is not None
    assert "no 'RTX 4900'" in str(unknown.exception)
    wrong = call("LPDDR5-6400x2")
    assert "width of the whole bus" in str(wrong.exception)
