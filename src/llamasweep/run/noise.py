"""A run of one build against itself -> what this machine's own scatter is, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

from llamasweep.machine.noise_record import NoiseCell
from llamasweep.results.records import Attempt
from llamasweep.run.prepare import AGAIN

SPOILED = frozenset({"throttled", "contaminated_memory"})
"""Flags of rows that tell of something else than the usual scatter."""


def noise_cells(attempts: Sequence[Attempt]) -> list[NoiseCell]:
    """The rounds of each cell in which both turns have a rate and nothing spoiled them; cells without one are left out."""
    by_cell: dict[str, list[Attempt]] = {}
    for row in attempts:
        is_sound = row.status == "ok" and row.median_tps is not None and row.median_tps > 0
        if is_sound and not SPOILED & set(row.flags):
            by_cell.setdefault(row.cell_id, []).append(row)
    cells = [_cell(rows) for rows in by_cell.values()]
    return [cell for cell in cells if cell is not None]


def _cell(rows: Sequence[Attempt]) -> NoiseCell | None:
    first = [row for row in rows if not (row.build_label or "").endswith(AGAIN)]
    again = [row for row in rows if (row.build_label or "").endswith(AGAIN)]
    mine, theirs = _by_round(first), _by_round(again)
    rounds = sorted(mine.keys() & theirs.keys())
    times = [row.finished_at.isoformat() for row in rows if row.finished_at is not None]
    row = rows[0]
    if not rounds or not times or not row.model_size_bytes:
        return None
    return NoiseCell(
        cell_id=row.cell_id,
        model_label=row.model_label,
        test_label=row.test_label,
        test_kind=row.test_kind,
        model_size_bytes=row.model_size_bytes,
        build_label=(row.build_label or "").removesuffix(AGAIN),
        measured_at=max(times),
        a_tps=tuple(mine[r] for r in rounds),
        b_tps=tuple(theirs[r] for r in rounds),
    )


def _by_round(rows: Sequence[Attempt]) -> dict[int, float]:
    return {row.round_index: row.median_tps for row in rows if row.median_tps is not None}
