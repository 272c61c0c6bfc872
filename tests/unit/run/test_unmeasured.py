"""Short names of what is wrong with a model that no engine was asked for."""

from __future__ import annotations

import pytest

from llamasweep.run.unmeasured import problem_kind


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        ("no such file: m.gguf", "model_missing"),
        ("no file fits 'm-*.gguf'", "model_missing"),
        ("Ollama has no model 'm' here", "model_missing"),
        ("m.gguf: not a GGUF file", "model_damaged"),
    ],
)
def test_a_model_that_is_not_there_is_missing_and_not_damaged(problem: str, kind: str) -> None:
    assert problem_kind(problem) == kind
