"""What a bisection remembers besides its rows: the builds in their order, those that gave no row, and what it decides on.

A small JSON file in the run's folder, replaced in one step. What rows tell is not repeated here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from llamasweep.errors import StoreError, plain_reason
from llamasweep.stats.bisection import Outcome
from llamasweep.store.files import FileOps, put

JOURNAL_NAME = "bisect.json"
_FORMAT = 1
_MOST_BYTES = 16 << 20


@dataclass(slots=True)
class Journal:
    """names: builds in order, the good end first; of `bisect-step`, the ends and then what was asked. told: name -> outcome
    and reason of builds that need no rows. cell_id, practical_floor: what is decided on, None until the ends are
    measured. facts: of builds, as in run.json.
    """

    path: Path
    names: list[str]
    told: dict[str, tuple[Outcome, str]] = field(default_factory=dict)
    cell_id: str | None = None
    practical_floor: float | None = None
    facts: list[dict[str, Any]] = field(default_factory=list)

    def tell(self, name: str, outcome: Outcome, reason: str) -> None:
        """Remember what became of a build."""
        self.told[name] = (outcome, reason)
        self.save()

    def choose(self, cell_id: str, practical_floor: float) -> None:
        """Remember what is decided on."""
        self.cell_id, self.practical_floor = cell_id, practical_floor
        self.save()

    def add_facts(self, facts: dict[str, Any]) -> bool:
        """Remember what a build is; False where it is known already."""
        if any(known.get("label") == facts["label"] for known in self.facts):
            return False
        self.facts.append(facts)
        self.save()
        return True

    def save(self) -> None:
        """Write it down. Raises StoreError where the disk refuses."""
        document = {
            "format": _FORMAT,
            "names": self.names,
            "told": {name: list(told) for name, told in self.told.items()},
            "cell_id": self.cell_id,
            "practical_floor": self.practical_floor,
            "facts": self.facts,
        }
        put(self.path, json.dumps(document, indent=1).encode(), FileOps())


def open_journal(run_dir: Path, names: list[str]) -> Journal:
    """The journal of a run, or a new one with these names. Raises StoreError where it cannot be understood."""
    path = run_dir / JOURNAL_NAME
    if not path.exists():
        journal = Journal(path=path, names=names)
        journal.save()
        return journal
    try:
        with path.open("rb") as file:
            return _from_document(path, json.loads(file.read(_MOST_BYTES)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise StoreError(
            f"{path} cannot be understood: {plain_reason(problem)}",
            hint="Begin anew with --fresh; what was measured stays in its own run.",
        ) from problem


def _from_document(path: Path, document: dict[str, Any]) -> Journal:
    if document["format"] != _FORMAT:
        raise ValueError("it is of another version of llamasweep")
    told = {
        str(name): (outcome, str(reason)) for name, (outcome, reason) in document["told"].items()
    }
    floor, cell_id = document["practical_floor"], document["cell_id"]
    if any(outcome not in get_args(Outcome) for outcome, _ in told.values()):
        raise ValueError("it holds an outcome that is none")
    return Journal(
        path=path,
        names=[str(name) for name in document["names"]],
        told=told,
        cell_id=None if cell_id is None else str(cell_id),
        practical_floor=None if floor is None else float(floor),
        facts=[dict(facts) for facts in document["facts"]],
    )
