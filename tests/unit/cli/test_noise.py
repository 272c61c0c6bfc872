"""What `llamasweep noise` says of the floors that it found."""

from __future__ import annotations

from llamasweep.cli.noise import _lines
from llamasweep.machine.noise_record import NoiseCell, NoiseRecord

ROUNDS = 12


def said(scatter: float) -> list[str]:
    """Of a build whose second turn is alternately faster and slower by this share."""
    cell = NoiseCell(
        cell_id="c",
        model_label="tiny",
        test_label="tg128",
        test_kind="tg",
        model_size_bytes=2 << 30,
        build_label="b1",
        measured_at="2026-11-29T14:00:00+00:00",
        a_tps=(100.0,) * ROUNDS,
        b_tps=tuple(100.0 * (1 + scatter * (-1) ** n) for n in range(ROUNDS)),
    )
    return _lines(NoiseRecord(fingerprint="f", cells=(cell,)), [cell])


def test_a_floor_that_hides_what_a_build_may_lose_is_called_wide() -> None:
    last = said(0.2)[-1]
    assert last.startswith("A floor of ")
    assert "hides most of what a build can lose" in last
    assert last.endswith("measure again with --fresh.")


def test_an_ordinary_floor_is_not() -> None:
    assert said(0.01)[-1] == (
        "A change of a build counts on this machine when it is beyond the floor."
    )
