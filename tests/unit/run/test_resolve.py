from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.models import write_model, write_truncated
from tests.unit.sweep.subjects_made import build

from llamasweep.builds.registry import Registry
from llamasweep.errors import EngineNotFoundError
from llamasweep.gguf import header, synth
from llamasweep.gguf.named import DEFAULT_QUANT
from llamasweep.run import resolve as room
from llamasweep.run.resolve import Subjects, model_sources, resolve
from llamasweep.sweep.cell import Test
from llamasweep.sweep.spec import ModelEntry, SweepSpec
from llamasweep.sweep.subjects import Build, Model


class Shelf(Registry):
    """A registry that knows what a test puts into it."""

    def __init__(self, *builds: Build) -> None:
        self.builds = builds

    def get(self, name_or_path: str) -> Build:
        for one in self.builds:
            if one.label == name_or_path:
                return one
        raise EngineNotFoundError(f"no build {name_or_path}")

    def default(self) -> Build:
        return self.builds[0]


def spec(*models: ModelEntry, **changes: Any) -> SweepSpec:
    return SweepSpec(name="s", models=models, tests=(Test(n_prompt=8, n_gen=0),), **changes)


def looked_at(of: SweepSpec, *builds: Build, **options: Any) -> Subjects:
    shelf = Shelf(*(builds or (build(),)))
    return resolve(of, registry=shelf, **({"generate": False} | options))


def only_model(of: SweepSpec) -> Model:
    (model,) = looked_at(of).models.values()
    return model


def paths(of: SweepSpec) -> list[str]:
    return [Path(s.path or "").name for s in model_sources(of)]


# -- models


def test_a_model_file_is_read(tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.gguf")
    model = only_model(spec(ModelEntry(path=str(path))))
    assert model.problem is None
    assert model.facts is not None
    assert model.facts.arch == "llama"
    assert model.content_hash is not None
    assert model.n_file_bytes == path.stat().st_size
    assert model.source.label == "tiny"


def test_a_missing_file_is_a_model_with_a_problem(tmp_path: Path) -> None:
    model = only_model(spec(ModelEntry(path=str(tmp_path / "none.gguf"))))
    assert (model.problem, model.facts, model.content_hash) == ("no such file", None, None)


def test_a_truncated_file_is_a_model_with_a_problem(tmp_path: Path) -> None:
    path = write_truncated(tmp_path / "cut.gguf")
    model = only_model(spec(ModelEntry(path=str(path))))
    assert model.problem
    assert model.facts is None


def test_a_folder_is_a_model_with_a_problem(tmp_path: Path) -> None:
    assert only_model(spec(ModelEntry(path=str(tmp_path)))).problem


def test_a_refusal_of_the_system_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_model(tmp_path / "tiny.gguf")

    def refuse(_path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(header, "content_hash", refuse)
    assert only_model(spec(ModelEntry(path=str(path)))).problem == "Permission denied"


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    model = only_model(spec(ModelEntry(path=f"{tmp_path}/$NO_SUCH_VARIABLE/m.gguf", label="m")))
    assert model.problem == "the variable $NO_SUCH_VARIABLE in the path of 'm' is not set"


def test_home_and_variables_are_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(tmp_path / "tiny.gguf")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MODELS", str(tmp_path))
    for written in ("~/tiny.gguf", "$MODELS/tiny.gguf", "${MODELS}/tiny.gguf"):
        assert only_model(spec(ModelEntry(path=written))).problem is None


def test_a_name_that_only_looks_like_a_variable_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    for name in ("$HOME.gguf", "$(touch x).gguf", "a b<script>.gguf"):
        write_model(tmp_path / name)
        assert only_model(spec(ModelEntry(path=str(tmp_path / name)))).problem is None


def test_a_relative_path_starts_at_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "tiny.gguf")
    monkeypatch.chdir(tmp_path)
    (source,) = model_sources(spec(ModelEntry(path="tiny.gguf")))
    assert source.path == str(tmp_path / "tiny.gguf")


def test_quantisations_fill_the_path(tmp_path: Path) -> None:
    of = spec(ModelEntry(path=f"{tmp_path}/m-{{quant}}.gguf", quants=("Q4_0", "Q8_0")))
    assert paths(of) == ["m-Q4_0.gguf", "m-Q8_0.gguf"]


def test_the_same_file_twice_is_one_model(tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.gguf")
    assert len(model_sources(spec(*[ModelEntry(path=str(path))] * 2))) == 1


def test_two_files_of_one_name_get_two_labels(tmp_path: Path) -> None:
    entries = [ModelEntry(path=str(write_model(tmp_path / d / "m.gguf"))) for d in ("a", "b")]
    labels = [s.label for s in model_sources(spec(*entries))]
    assert len(set(labels)) == 2


# -- patterns


def test_a_pattern_finds_models_and_leaves_out_what_is_none(tmp_path: Path) -> None:
    for name in (
        "b.gguf", "a.gguf", "mmproj-a.gguf", "mtp-a.gguf", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf",
    ):  # fmt: skip
        (tmp_path / name).touch()
    (tmp_path / "c.gguf").mkdir()
    assert paths(spec(ModelEntry(glob=f"{tmp_path}/*.gguf"))) == [
        "a.gguf",
        "b.gguf",
        "s-00001-of-00002.gguf",
    ]


def test_a_pattern_may_go_into_folders(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "y" / "deep.gguf").touch()
    assert paths(spec(ModelEntry(glob=f"{tmp_path}/**/*.gguf"))) == ["deep.gguf"]


def test_a_pattern_that_finds_nothing_is_a_problem_under_its_own_words(tmp_path: Path) -> None:
    written = f"{tmp_path}/*.gguf"
    model = only_model(spec(ModelEntry(glob=written)))
    assert model.problem == "no file matches the pattern"
    assert model.source.label == written


def test_a_pattern_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_GLOB_FILES", 2)
    for name in ("a.gguf", "b.gguf", "c.gguf"):
        (tmp_path / name).touch()
    assert paths(spec(ModelEntry(glob=f"{tmp_path}/*.gguf"))) == ["a.gguf", "b.gguf"]


# -- generated models


def test_a_synthetic_model_that_is_only_planned_has_facts_and_no_file() -> None:
    model = only_model(spec(ModelEntry(synth="tiny-llama", quants=("Q8_0",))))
    assert model.facts is not None
    assert (model.problem, model.content_hash, model.source.path) == (None, None, None)
    assert model.n_file_bytes == model.facts.size_bytes
    assert model.source.label == "tiny-llama Q8_0"


def test_a_synthetic_model_without_a_quantisation_gets_the_default() -> None:
    model = only_model(spec(ModelEntry(synth="tiny-llama")))
    assert model.source.quant_asked == DEFAULT_QUANT
    assert model.source.label == f"tiny-llama {DEFAULT_QUANT}"


def test_a_synthetic_model_is_written_when_it_is_to_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache" / "made.gguf"
    told: list[tuple[str, int, int]] = []

    def make(_shape: str, _quant: str, *, on_progress: Any) -> Path:
        on_progress(1, 2)
        return write_model(path)

    monkeypatch.setattr(synth, "cached_path", lambda _shape, _quant: path)
    monkeypatch.setattr(synth, "cached_model", make)
    of = spec(ModelEntry(synth="tiny-llama", quants=("F16",)))
    (model,) = looked_at(
        of, generate=True, on_synth=lambda label, done, whole: told.append((label, done, whole))
    ).models.values()
    assert model.content_hash is not None
    assert model.source.path == str(path)
    assert told == [("tiny-llama F16", 1, 2)]
    again = only_model(of)  # it is there now, so a plan knows it whole
    assert again.content_hash == model.content_hash


def test_a_shape_that_nobody_knows_is_a_problem() -> None:
    model = only_model(spec(ModelEntry(synth="no-such-shape")))
    assert model.problem is not None
    assert "no-such-shape" in model.problem


# -- builds


def test_without_a_name_the_default_build_is_taken() -> None:
    assert [b.label for b in looked_at(spec(), build("one"), build("two")).builds] == ["one"]


def test_the_sweeps_builds_are_taken_in_its_order_and_the_command_line_rules() -> None:
    of = spec(builds=("two", "one"))
    assert [b.label for b in looked_at(of, build("one"), build("two")).builds] == ["two", "one"]
    chosen = looked_at(of, build("one"), build("two"), build_names=("one",))
    assert [b.label for b in chosen.builds] == ["one"]


def test_one_binary_under_two_names_is_measured_once_under_the_first() -> None:
    twin = replace(build("two"), content_hash=build("one").content_hash)
    found = looked_at(spec(builds=("one", "two")), build("one"), twin)
    assert [b.label for b in found.builds] == ["one"]


def test_a_build_that_is_not_there_is_an_error() -> None:
    with pytest.raises(EngineNotFoundError, match="no build x"):
        looked_at(spec(builds=("x",)))
