"""Builds in a line between two ends: which belong to it, in which order, and what a version from PyPI leaves behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llamasweep.builds import install as installation
from llamasweep.builds.backends import BackendChoice
from llamasweep.builds.build_line import PypiLine, pypi_line, registered_line, single_line
from llamasweep.builds.install import InstallPlan
from llamasweep.builds.install_lock import install_lock
from llamasweep.builds.records import InstallFacts, Record, read_record, write_record
from llamasweep.builds.registry import Registry
from llamasweep.errors import BrokenBuildError, BuildError, EngineNotFoundError, UsageError
from llamasweep.sweep.subjects import Build

FakeBuild = Callable[..., Path]


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "cache", which=lambda _: None)


def _add(registry: Registry, fake_build: FakeBuild, label: str, number: int | None) -> Build:
    more: dict[str, Any] = {} if number is None else {"number": number}
    return registry.add(fake_build(label, behaviour={"seed": sum(map(ord, label))}, **more), label)


def _as_installed(registry: Registry, label: str) -> None:
    """Makes an added build one that was installed here, as far as its record says."""
    entry = registry.entry(label)
    record = read_record(entry.folder)
    facts = InstallFacts(
        source="s", sdist_sha256="0", backend="cpu", definitions=(), programs=("llama-bench",)
    )
    write_record(
        entry.folder,
        Record(
            kind="installed",
            build=record.build,
            stamps=record.stamps,
            created_at=record.created_at,
            install=facts,
        ),
    )


def test_builds_stand_in_the_order_of_their_numbers(
    registry: Registry, fake_build: FakeBuild
) -> None:
    for label, number in (("c", 30), ("a", 10), ("d", 40), ("b", 20), ("e", 50)):
        _add(registry, fake_build, label, number)

    line = registered_line("a", "40", registry=registry)

    assert line.names == ("a", "b", "c", "d")
    assert line.what == "4 builds that are registered here"
    assert line.build("c").number == 30
    assert line.is_ready("b")
    assert line.title("b") is None


def test_builds_of_one_number_stand_in_the_order_of_adding(
    registry: Registry, fake_build: FakeBuild
) -> None:
    for label in ("z", "m", "a"):
        _add(registry, fake_build, label, 7)
    _add(registry, fake_build, "other", 8)

    assert registered_line("z", "a", registry=registry).names == ("z", "m", "a")
    with pytest.raises(UsageError, match="is newer than the bad one"):
        registered_line("a", "z", registry=registry)


def test_a_pattern_chooses_what_stands_between_and_never_drops_an_end(
    registry: Registry, fake_build: FakeBuild
) -> None:
    for number, label in enumerate(("old", "mine-1", "yours", "mine-2", "new"), start=1):
        _add(registry, fake_build, label, number)

    line = registered_line("old", "new", among="mine-*", registry=registry)

    assert line.names == ("old", "mine-1", "mine-2", "new")
    with pytest.raises(UsageError, match="none of the 3 builds between old and new matches 'my-"):
        registered_line("old", "new", among="my-*", registry=registry)


def test_between_two_installed_builds_stand_installed_ones_of_the_same_variant(
    registry: Registry, fake_build: FakeBuild
) -> None:
    labels = {"b1": 1, "b2": 2, "b3-cuda": 3, "added": 4, "b5": 5}
    for label, number in labels.items():
        _add(registry, fake_build, label, number)
    for label in ("b1", "b2", "b3-cuda", "b5"):
        _as_installed(registry, label)

    assert registered_line("b1", "b5", registry=registry).names == ("b1", "b2", "b5")


def test_a_build_that_cannot_be_used_stays_in_the_line_with_its_reason(
    registry: Registry, fake_build: FakeBuild
) -> None:
    for number, label in enumerate(("a", "b", "c"), start=1):
        _add(registry, fake_build, label, number)
    Path(registry.get("b").path).unlink()

    line = registered_line("a", "c", registry=registry)

    assert line.names == ("a", "b", "c")
    with pytest.raises(BrokenBuildError, match="the build 'b' cannot be used"):
        line.build("b")
    with pytest.raises(BuildError, match="cannot be used"):
        registered_line("a", "b", registry=registry)


def test_ends_that_are_one_build_or_none_are_refused(
    registry: Registry, fake_build: FakeBuild
) -> None:
    _add(registry, fake_build, "a", 1)
    with pytest.raises(UsageError, match="are the same build"):
        registered_line("a", "1", registry=registry)
    with pytest.raises(EngineNotFoundError):
        registered_line("a", "zz", registry=registry)


def test_one_build_between_two_ends_carries_its_content_in_its_name(
    registry: Registry, fake_build: FakeBuild
) -> None:
    a, b, m = (fake_build(name, number=7, behaviour={"seed": i}) for i, name in enumerate("abm"))

    line = single_line(str(a), str(m), str(b), registry=registry)

    builds = [line.build(name) for name in line.names]
    assert [build.path for build in builds] == [str(a), str(m), str(b)]
    assert all(build.label == f"b7@{build.content_hash[:8]}" for build in builds)


@pytest.fixture
def pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for PyPI with versions 9100, 9200, 9300 and 9400; 9300 does not compile. Returns the cache."""
    monkeypatch.setattr(installation, "available", lambda _: [9400, 9300, 9200, 9100])

    def plan(number: int, **_: Any) -> InstallPlan:
        folder = tmp_path / "builds" / f"b{number}"
        is_there = (folder / "bin").exists()
        return InstallPlan(
            number=number,
            label=f"b{number}-cuda",
            choice=BackendChoice(backend="cuda", reason="for the test"),
            definitions=(),
            folder=folder,
            source=tmp_path / "sources" / f"b{number}",
            programs=("llama-bench",),
            missing=() if is_there else ("llama-bench",),
            record=None,
        )

    def install(plan: InstallPlan, **_: Any) -> Build:
        plan.tree.mkdir(parents=True, exist_ok=True)
        plan.source.mkdir(parents=True, exist_ok=True)
        if plan.number == 9300:
            raise BrokenBuildError("compiling failed")
        (plan.folder / "bin").mkdir()
        return Build(
            label="x", path="/x", content_hash="0" * 32, argv_prefix=("/x",), options=frozenset()
        )

    monkeypatch.setattr(installation, "make_plan", plan)
    monkeypatch.setattr(installation, "install", install)
    return tmp_path


def _line(good: str, bad: str) -> PypiLine:
    return pypi_line(good, bad, on_progress=lambda _: None)


def test_versions_on_pypi_between_two_numbers_are_the_line(pypi: Path) -> None:
    line = _line("9100", "b9300")

    assert line.names == ("b9100-cuda", "b9200-cuda", "b9300-cuda")
    assert line.what == "3 versions on PyPI"
    assert not line.is_ready("b9200-cuda")
    assert not (pypi / "builds").exists()


def test_a_version_that_is_compiled_keeps_its_programs_and_nothing_else(pypi: Path) -> None:
    line = _line("9100", "9400")

    build = line.build("b9200-cuda")

    assert build.label == "b9200-cuda"
    assert line.is_ready("b9200-cuda")
    assert [path.name for path in (pypi / "builds" / "b9200").iterdir()] == ["bin"]
    assert not (pypi / "sources" / "b9200").exists()


def test_a_version_that_does_not_compile_leaves_no_object_files_and_a_source_that_was_there(
    pypi: Path,
) -> None:
    (pypi / "sources" / "b9300").mkdir(parents=True)

    with pytest.raises(BrokenBuildError):
        _line("9100", "9400").build("b9300-cuda")

    assert not (pypi / "builds" / "b9300" / "tree").exists()
    assert (pypi / "sources" / "b9300").exists()


def test_an_installation_that_has_begun_meanwhile_keeps_what_it_works_on(
    pypi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install = installation.install
    with contextlib.ExitStack() as other:

        def install_and_begin(plan: InstallPlan, **more: Any) -> Build:
            build = install(plan, **more)
            other.enter_context(install_lock(plan.folder.parent))
            return build

        monkeypatch.setattr(installation, "install", install_and_begin)
        _line("9100", "9400").build("b9200-cuda")

    assert (pypi / "builds" / "b9200" / "tree").exists()
    assert (pypi / "sources" / "b9200").exists()


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("9200", "9100", "is not older than"),
        ("9150", "9400", "build 9150 is not on PyPI"),
        ("mine", "9400", "'mine' is no build number"),
        ("9100", "٩٤٠٠", "is no build number"),
    ],
)
@pytest.mark.usefixtures("pypi")
def test_ends_that_are_no_versions_in_order_are_refused(good: str, bad: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        _line(good, bad)
