"""Rows of cells that no engine was asked for, with the reason."""

from __future__ import annotations

from typing import Any

from llamasweep.results.records import Attempt, Status
from llamasweep.sweep.cell import Test

_MISSING = ("no such file", "no file", "Ollama has no model")


def problem_kind(problem: str) -> str:
    """Short name of what is wrong with a model's file, or with a model that a server lacks."""
    return "model_missing" if problem.startswith(_MISSING) else "model_damaged"


def row_without_engine(
    common: dict[str, Any],
    described: dict[str, Any],
    test: Test,
    attempt_id: str,
    status: Status,
    kind: str,
    reason: str,
) -> Attempt:
    """A row of a cell that is not measured. common, described: columns of its group and of the cell."""
    return Attempt(
        **common,
        attempt_id=attempt_id,
        cell_id=described["cell_id"],
        attempt_index=described["attempt_index"],
        status=status,
        error_kind=kind,
        error_message=reason,
        test_kind=test.kind,
        test_label=test.label,
        n_prompt=test.n_prompt,
        n_gen=test.n_gen,
        n_depth=int(described["requested"].get("n_depth", 0)),
        requested=described["requested"],
    )
