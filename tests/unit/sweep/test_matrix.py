"""Include and exclude by hand-written examples; what the property tests cannot say in words."""

from __future__ import annotations

from typing import Any

import pytest

from llamasweep.errors import SweepFileError, UsageError
from llamasweep.sweep import matrix
from llamasweep.sweep.blocks import cut
from llamasweep.sweep.matrix import build_exclusions, expand
from llamasweep.sweep.schema import parse
from llamasweep.sweep.spec import SweepSpec
from llamasweep.sweep.subjects import ModelSource

MODELS = [
    ModelSource(label="a Q4_0", synth="a", quant_asked="Q4_0"),
    ModelSource(label="a Q8_0", synth="a", quant_asked="Q8_0"),
    ModelSource(label="b", path="b.gguf"),
]


def sweep(text: str) -> SweepSpec:
    return parse("models: [{path: m}]\ntests: [pp8, tg4]\n" + text, "s.yaml", lambda *_: ("", ""))


def cells(
    text: str, words: dict[str, int] | None = None, models: list[ModelSource] = MODELS[:1]
) -> list[tuple[str, str, dict[str, Any]]]:
    blocks = expand(sweep(text), models, words or {})
    return [
        (c.model.label, c.test.label, dict(c.params)) for block in blocks for c in block.cells()
    ]


def test_kv_type_sets_both_types_and_is_no_product() -> None:
    found = [params for _, test, params in cells("matrix: {kv_type: [f16, q8_0]}") if test == "pp8"]

    assert found == [{"type_k": "f16", "type_v": "f16"}, {"type_k": "q8_0", "type_v": "q8_0"}]


def test_the_examples_of_the_page_on_include() -> None:
    found = cells(
        "matrix: {depth: [0, 8192], threads: [4, 8]}\n"
        "include:\n"
        "  - {depth: 8192, n_ubatch: 1024}\n"
        "  - {depth: 65536, threads: 8}\n"
    )

    assert len(found) == 4 * 2 + 2
    for _, _, params in found:
        assert ("n_ubatch" in params) == (params["n_depth"] == 8192)
    assert [p for _, _, p in found if p["n_depth"] == 65536] == [
        {"n_threads": 8, "n_depth": 65536}
    ] * 2


def test_a_list_on_an_added_key_makes_one_cell_for_each_value() -> None:
    found = cells("matrix: {threads: 4}\ninclude: [{threads: 4, ub: [64, 128], test: pp8}]\n")

    assert [(t, p.get("n_ubatch")) for _, t, p in found] == [
        ("pp8", 64),
        ("pp8", 128),
        ("tg4", None),
    ]


def test_an_extra_cell_without_depth_is_depth_0_once() -> None:
    found = cells("matrix: {depth: [0, 8]}\ninclude: [{test: pp99}, {depth: 0, test: pp99}]\n")

    assert [p for _, test, p in found if test == "pp99"] == [{"n_depth": 0}]


def test_models_are_named_by_label_shape_or_pattern_and_quantisation() -> None:
    text = "exclude:\n  - {model: a, quant: q8_0}\n  - {model: 'b*', test: pp8}\n"

    found = cells(text, models=MODELS)

    assert [(m, t) for m, t, _ in found] == [("a Q4_0", "pp8"), ("a Q4_0", "tg4"), ("b", "tg4")]
    others = cells("exclude: [{model: '!=b'}]", models=MODELS)
    assert {m for m, _, _ in others} == {"b"}


def test_the_quantisation_of_the_file_counts_before_the_one_asked_for() -> None:
    blocks = expand(
        sweep("exclude: [{quant: Q6_K}]"),
        MODELS,
        {},
        quant_of={MODELS[0]: "Q6_K", MODELS[2]: "F16"},
    )

    assert [block.model.label for block in blocks] == ["a Q8_0", "b"]


def test_an_include_may_name_models() -> None:
    found = cells(
        "matrix: {threads: 4}\ninclude: [{model: a, quant: Q8_0, depth: 8, test: pp8}]\n",
        models=MODELS,
    )

    assert [(m, t) for m, t, p in found if "n_depth" in p] == [("a Q8_0", "pp8")]


def test_an_include_of_a_model_that_is_not_there_is_refused() -> None:
    with pytest.raises(SweepFileError, match=r"include\[0\]: names no model"):
        cells("include: [{model: zz, depth: 8}]")


def test_words_are_numbers_in_axes_and_excludes() -> None:
    text = "matrix: {threads: [1, physical, 16, logical]}\nexclude: [{threads: '>logical'}]\n"

    found = cells(text, {"physical": 4, "logical": 8})

    assert [p["n_threads"] for _, t, p in found if t == "pp8"] == [1, 4, 8]


def test_a_word_that_the_machine_does_not_know_is_refused_with_its_place() -> None:
    with pytest.raises(SweepFileError, match=r"matrix.n_threads: .*'performance'"):
        cells("matrix: {threads: performance}", {"physical": 2})


def test_conditions_on_tests_meet_in_one_rectangle() -> None:
    spec = parse(
        "models: [{path: m}]\ntests: [pp8, pp16, pg8+4]\nexclude: [{n_prompt: 8, n_gen: 0}]\n",
        "s.yaml",
        lambda *_: ("", ""),
    )

    assert [t.label for block in expand(spec, MODELS[:1], {}) for t in block.tests] == [
        "pp16",
        "pp8+tg4",
    ]


def test_excludes_that_name_a_build_wait_for_the_plan() -> None:
    spec = sweep(
        "matrix: {threads: [1, 2]}\nexclude: [{build: old*, threads: 2}, {build: x, depth: 1}]\n"
    )
    (block,) = expand(spec, MODELS[:1], {})

    assert build_exclusions(spec, "new", block, {}) == []
    assert build_exclusions(spec, "x", block, {}) == []
    spec = sweep("matrix: {threads: [1, 2]}\nexclude: [{build: old, threads: 2}]\n")
    (where,) = build_exclusions(spec, "old", block, {})
    inside, _ = cut(block, where)
    assert inside is not None
    assert dict(inside.axes) == {"n_threads": (2,)}


def test_excludes_that_cut_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "MAX_BLOCKS", 2)

    with pytest.raises(UsageError, match="more than 2 pieces"):
        cells(
            "matrix: {threads: 1-4, depth: 1-4}\nexclude: [{threads: 1, depth: 1}, {threads: 2, depth: 3}]"
        )


def test_a_sweep_that_nobody_lives_to_see_the_end_of_is_refused() -> None:
    text = "matrix: {depth: 0-9999, threads: 1-9999, n_batch: 1-9999, poll: 0-99}\n"
    with pytest.raises(UsageError, match="has 199,960,002,000,000 cells"):
        expand(sweep(text), MODELS[:1], {})
    with pytest.raises(UsageError, match="cells; 1,000,000 are the most"):
        expand(sweep("include: [{depth: 0-999, threads: 1-999}]\n"), MODELS[:1], {})
