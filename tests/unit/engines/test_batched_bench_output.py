"""What llama-batched-bench printed, read: totals over streams, rates of nothing, and lines that are no results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamasweep.engines.batched_bench_output import BatchedRow, parse_batched_row

RECORDED = Path(__file__).parents[2] / "golden" / "batched_bench"


def rows(name: str) -> list[BatchedRow]:
    lines = (RECORDED / f"{name}.stdout").read_bytes().splitlines()
    return [row for row in map(parse_batched_row, lines) if row is not None]


def printed(name: str) -> list[dict[str, float]]:
    """As the program says its own rates."""
    lines = (RECORDED / f"{name}.stdout").read_text().replace("-nan", "null").splitlines()
    return [json.loads(line) for line in lines if line]


def test_a_prompt_alone_has_a_rate_and_no_answer() -> None:
    found = rows("prompts")
    assert [(r.n_prompt, r.n_gen, r.n_streams) for r in found] == [(128, 0, 4)] * 3
    assert [r.n_tokens("pp") for r in found] == [512] * 3
    assert [r.duration_ns("pp") for r in found] == [148_824_000, 144_160_000, 141_824_000]
    assert found[1].duration_ns("tg") == 0
    assert found[0].n_threads == 1


def test_answers_alone_are_counted_over_all_streams() -> None:
    found = rows("answers")
    assert [r.n_tokens("tg") for r in found] == [64, 64]
    assert found[0].n_tokens("tg") * 1e9 / found[0].duration_ns("tg") == pytest.approx(634.85, 1e-4)


@pytest.mark.parametrize("name", ["both", "shared"])
def test_our_rates_are_those_that_the_program_prints(name: str) -> None:
    """Its own are of 32-bit floats."""
    said = printed(name)
    assert len(said) == len(rows(name)) > 0
    for row, told in zip(rows(name), said, strict=True):
        for kind, rate in (("pp", "speed_pp"), ("tg", "speed_tg"), ("pg", "speed")):
            ours = row.n_tokens(kind) * 1e9 / row.duration_ns(kind)  # type: ignore[arg-type]
            assert ours == pytest.approx(told[rate], rel=1e-4)


def test_a_shared_prompt_is_counted_once() -> None:
    (row,) = rows("shared")
    assert row.is_prompt_shared
    assert (row.n_tokens("pp"), row.n_tokens("tg"), row.n_tokens("pg")) == (64, 32, 96)


def test_a_cell_that_does_not_fit_leaves_nothing() -> None:
    assert rows("skipped") == []
    assert (RECORDED / "skipped.stdout").read_bytes() == b"\n"


GOOD = (RECORDED / "both.stdout").read_bytes().splitlines()[1]


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        (b'"pl": 4', b'"pl": 0'),
        (b'"pl": 4', b'"pl": true'),
        (b'"pp": 64', b'"pp": -1'),
        (b'"tg": 8', b'"tg": 99999999999'),
        (b'"is_pp_shared": 0', b'"is_pp_shared": 7'),
        (b'"t_pp": 0', b'"t_pp": nan, "x": 0'),
        (b'"t_tg": 0', b'"t_tg": -0'),
        (b'"t_tg": 0', b'"t_tg": "a", "x": 0'),
        (b'"t_pp": 0', b'"t_pp": 1e300, "x": 0'),
    ],
)
def test_a_line_with_an_impossible_figure_is_no_result(word: bytes, instead: bytes) -> None:
    assert parse_batched_row(GOOD) is not None
    assert word in GOOD
    assert parse_batched_row(GOOD.replace(word, instead)) is None


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(junk: bytes) -> None:
    assert parse_batched_row(b"{" + junk) is None
    assert parse_batched_row(junk + GOOD[: len(junk)]) is None


@given(st.integers(0, len(GOOD)), st.binary(max_size=4))
def test_a_damaged_line_is_a_result_or_none(at: int, junk: bytes) -> None:
    found = parse_batched_row(GOOD[:at] + junk + GOOD[at:])
    assert found is None or found.n_streams >= 1
