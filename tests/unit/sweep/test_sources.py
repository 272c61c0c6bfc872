"""Labels of models: given, made from names, unique, and what a pattern means."""

from __future__ import annotations

import pytest

from llamasweep.sweep.sources import labelled, model_matches, source_templates
from llamasweep.sweep.spec import ModelEntry
from llamasweep.sweep.subjects import ModelSource


def test_quants_fill_the_path_and_stand_in_the_label() -> None:
    entry = ModelEntry(path="~/x-{quant}.gguf", quants=("Q4_0", "Q8_0"), label="X")

    sources = source_templates(entry)

    assert [(s.label, s.path, s.quant_asked) for s in sources] == [
        ("X Q4_0", "~/x-Q4_0.gguf", "Q4_0"),
        ("X Q8_0", "~/x-Q8_0.gguf", "Q8_0"),
    ]


def test_a_generated_model_is_named_after_its_shape() -> None:
    (source,) = source_templates(ModelEntry(synth="tiny-llama", quants=("Q4_0",)))

    assert (source.label, source.synth, source.path) == ("tiny-llama Q4_0", "tiny-llama", None)


def test_labels_come_from_file_names_and_stay_unique() -> None:
    sources = [ModelSource(label="", path=p) for p in ("a/m.gguf", "b/m.gguf", "c/m.gguf")]
    taken = ModelSource(label="m #2", path="d.gguf")

    assert [s.label for s in labelled([*sources, taken])] == ["m", "m #3", "m #4", "m #2"]


@pytest.mark.parametrize(
    ("pattern", "is_met"),
    [("X Q4_0", True), ("X", True), ("x", False), ("X*", True), ("? Q4_0", True), ("Y", False)],
)
def test_a_pattern_means_the_label_with_or_without_its_quantisation(
    pattern: str, is_met: bool
) -> None:
    assert model_matches(ModelSource(label="X Q4_0", quant_asked="Q4_0"), pattern) is is_met


def test_a_label_that_looks_like_a_pattern_means_itself() -> None:
    assert model_matches(ModelSource(label="a[b]*"), "a[b]*")
