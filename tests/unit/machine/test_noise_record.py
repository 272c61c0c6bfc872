"""A/A rounds of a machine: kept, found again, renewed cell by cell, and damaged files passed over."""

from __future__ import annotations

import json

import pytest
from tests.unit.machine.noise_made import FINGERPRINT, noise_cell, noise_record

from llamasweep.machine.noise_record import load_noise, noise_path, store_noise
from llamasweep.stats.floor import practical_floors


def test_what_was_stored_is_found_again_and_gives_a_floor() -> None:
    store_noise(noise_record())
    found = load_noise(FINGERPRINT)
    assert found == noise_record()
    assert found is not None
    ((key, floor),) = practical_floors(found.pairs).items()
    assert key == ("tg", 0)
    assert (floor.floor_fraction, floor.n_rounds) == (0.01, 14)


def test_a_cell_measured_again_takes_the_place_of_its_older_pairs() -> None:
    newer = noise_cell(a_tps=(1.0,), b_tps=(1.0,), measured_at="2026-11-30T14:00:00+00:00")
    other = noise_cell(cell_id="other")
    record = noise_record().with_cells([newer, other])
    assert [(c.cell_id, len(c.a_tps)) for c in record.cells] == [("cell", 1), ("other", 14)]
    assert record.measured_at == "2026-11-30T14:00:00+00:00"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 2, "fingerprint": "0123456789abcdef", "cells": []}',
        '{"cells": 5}',
    ],
)
def test_a_file_that_is_no_record_is_none(text: str) -> None:
    path = noise_path(FINGERPRINT)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    assert load_noise(FINGERPRINT) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("model_size_bytes", 0), ("measured_at", "yesterday"), ("b_tps", [1.0]), ("a_tps", ["x"])],
)
def test_a_record_with_a_field_that_cannot_be_is_none(name: str, value: object) -> None:
    path = store_noise(noise_record())
    plain = json.loads(path.read_text(encoding="utf-8"))
    plain["cells"][0][name] = value
    path.write_text(json.dumps(plain), encoding="utf-8")
    assert load_noise(FINGERPRINT) is None


def test_a_fingerprint_cannot_lead_out_of_the_folder() -> None:
    with pytest.raises(ValueError, match="is no fingerprint"):
        noise_path("../../etc/passwd")
    assert load_noise("../../etc/passwd") is None
