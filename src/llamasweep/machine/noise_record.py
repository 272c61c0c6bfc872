"""What measuring a build against itself gave on this machine (A/A): the record and where it is kept.

One file per machine fingerprint in the user's cache; a cell that is measured again replaces its pairs. What floor
follows from the pairs is for `stats` to say.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llamasweep.cache import cache_root
from llamasweep.machine.plain_records import read_record
from llamasweep.stats.floor import SameBuildPairs

FORMAT = 1
FOLDER = "noise"
MAX_FILE_BYTES = 8 << 20
OLD_AFTER_S = 90 * 86400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseCell:
    """A/A rounds of one cell: rates of both turns by round, each above 0. measured_at: UTC, ISO 8601."""

    cell_id: str
    model_label: str
    test_label: str
    test_kind: str
    model_size_bytes: int
    build_label: str
    measured_at: str
    a_tps: tuple[float, ...]
    b_tps: tuple[float, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NoiseRecord:
    """The A/A rounds of a machine."""

    format: int = FORMAT
    fingerprint: str
    cells: tuple[NoiseCell, ...]

    @property
    def pairs(self) -> list[SameBuildPairs]:
        """As the statistics want them."""
        return [
            SameBuildPairs(
                test_kind=cell.test_kind,
                model_size_bytes=cell.model_size_bytes,
                a_tps=cell.a_tps,
                b_tps=cell.b_tps,
            )
            for cell in self.cells
        ]

    @property
    def measured_at(self) -> str:
        """When the newest cell was measured."""
        return max(cell.measured_at for cell in self.cells)

    def age_s(self, now: datetime | None = None) -> float:
        """Seconds since the newest cell was measured; 0 where the clock was set back meanwhile."""
        passed = (now or datetime.now(tz=UTC)) - datetime.fromisoformat(self.measured_at)
        return max(0.0, passed.total_seconds())

    def with_cells(self, newer: Iterable[NoiseCell]) -> NoiseRecord:
        """The record with these cells, in place of older pairs of the same cell."""
        cells = {cell.cell_id: cell for cell in (*self.cells, *newer)}
        return NoiseRecord(fingerprint=self.fingerprint, cells=tuple(cells.values()))


def noise_path(fingerprint: str) -> Path:
    """Where the record of a machine is kept. Raises ValueError for what is no fingerprint."""
    if not re.fullmatch(r"[0-9a-f]{8,64}", fingerprint):
        raise ValueError(f"{fingerprint!r:.60} is no fingerprint")
    return cache_root() / FOLDER / f"{fingerprint}.json"


def load_noise(fingerprint: str) -> NoiseRecord | None:
    """The record of that machine; None where there is none that this version can read, or it is empty."""
    try:
        with noise_path(fingerprint).open("rb") as file:
            plain: Any = json.loads(file.read(MAX_FILE_BYTES))
        found = read_record(NoiseRecord, plain)
        for cell in found.cells:
            datetime.fromisoformat(cell.measured_at).astimezone(UTC)
            if cell.model_size_bytes <= 0 or len(cell.a_tps) != len(cell.b_tps):
                return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_ours = found.format == FORMAT and found.fingerprint == fingerprint
    return found if is_ours and found.cells else None


def store_noise(record: NoiseRecord) -> Path:
    """Keep it in place of the one before, in one step. Raises OSError."""
    path = noise_path(record.fingerprint)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=".", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record), indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise
    return path
