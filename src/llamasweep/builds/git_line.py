"""Commits of a checkout as builds in a line: each compiled with CMake in the cache when it is asked for, and kept there.

Every commit gets a tree of its own, so that nothing of another one is left in it; only the program stays.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from llamasweep.builds import install as installation
from llamasweep.builds import toolchain
from llamasweep.builds.backends import base_definitions, choose_backend, definitions
from llamasweep.builds.build_line import Teller
from llamasweep.builds.compilation import Steps
from llamasweep.builds.git_checkout import Checkout, open_checkout
from llamasweep.builds.install_lock import install_lock
from llamasweep.builds.probe import probe
from llamasweep.builds.processor import instruction_definitions
from llamasweep.builds.toolchain import BuildTools
from llamasweep.cache import cache_root
from llamasweep.errors import BrokenBuildError, BuildError
from llamasweep.sweep.subjects import Build

NAME_CHARS = 12
_OF_RELEASES = ("LLAMA_BUILD_NUMBER", "LLAMA_BUILD_COMMIT")
"""What a source archive must be told, and a checkout knows by itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GitLine:
    """Commits. commits: name -> full hash. definitions: of CMake, complete. compiler: what else decides which program a commit
    becomes. folder: where the builds lie.
    """

    names: tuple[str, ...]
    commits: Mapping[str, str]
    checkout: Checkout
    definitions: tuple[tuple[str, str], ...]
    compiler: tuple[tuple[str, str], ...]
    on_progress: Teller
    what: str
    source: str = "git"

    @property
    def folder(self) -> Path:
        """Where the builds of these definitions and this compiler lie, a folder for each commit."""
        key = json.dumps([self.definitions, self.compiler])
        digest = hashlib.sha256(key.encode()).hexdigest()[:8]
        return self.checkout.copy.parent / f"builds-{digest}"

    def name_of(self, rev: str) -> str:
        """The name of a commit in this line. Raises UsageError where it is none."""
        return self.checkout.commit(rev)[:NAME_CHARS]

    def is_ready(self, name: str) -> bool:
        return self._program(name).is_file()

    def build(self, name: str) -> Build:
        """Raises BrokenBuildError where this commit does not compile or its program does not run, BuildError otherwise."""
        program = self._program(name)
        if not program.is_file():
            self._make(name, program)
        try:
            build = probe(program, label=name)
        except BuildError as problem:
            raise BrokenBuildError(problem.message, hint=problem.hint) from problem
        return replace(build, commit=self.commits[name])

    def title(self, name: str) -> str | None:
        return self.checkout.title(self.commits[name])

    def _program(self, name: str) -> Path:
        return self.folder / self.commits[name] / "bin" / installation.file_name(installation.BENCH)

    def _make(self, name: str, program: Path) -> None:
        home = program.parents[1]
        home.mkdir(parents=True, exist_ok=True)
        installation.check_room(home)
        with install_lock(self.checkout.copy.parent) as held_fd:
            steps = Steps(
                log=home / installation.LOG_NAME, on_progress=self.on_progress, held_fd=held_fd
            )
            tools = toolchain.find_build_tools(installation.tools_folder(cache_root()), steps.run)
            self.checkout.take(self.commits[name], steps)
            tree = home / installation.TREE_NAME
            try:
                self._compile(name, tools, steps, tree)
                installation.place(tree / "bin" / program.name, program)
            except BrokenBuildError:
                shutil.rmtree(tree, ignore_errors=True)
                raise
            shutil.rmtree(tree, ignore_errors=True)  # an interrupted one stays and is gone on with

    def _compile(self, name: str, tools: BuildTools, steps: Steps, tree: Path) -> None:
        argv = [tools.cmake, "-S", str(self.checkout.copy), "-B", str(tree), "-G", "Ninja"]
        argv += [f"-DCMAKE_MAKE_PROGRAM={tools.ninja}"]
        argv += installation.workaround_words(tree.parent)
        argv += [f"-D{key}={value}" for key, value in self.definitions]
        steps.run(argv, f"configuring {name}", phase="configure")
        argv = [tools.ninja, "-C", str(tree), installation.BENCH]
        steps.run(argv, f"compiling {name}", phase="compile")


def git_line(
    folder: Path,
    good: str,
    bad: str,
    *,
    inner: Sequence[str] | None = None,
    backend: str = "auto",
    extra: Mapping[str, str] | None = None,
    on_progress: Teller,
) -> GitLine:
    """The commits of a checkout from good to bad, along first parents.

    inner: instead of all commits between, these. backend, extra: how each is compiled. Raises UsageError for what is no
    checkout or no commit, or a good one that is not before the bad one; BuildError without git or for a backend that cannot be.
    """
    checkout = open_checkout(folder, cache_root())
    first, last = checkout.commit(good), checkout.commit(bad)
    hashes = checkout.between(first, last)
    if inner is not None:
        hashes = [first, *(checkout.commit(rev) for rev in inner), last]
    machine = installation.read_machine()
    chosen = choose_backend(machine, backend).backend
    merged = {
        **base_definitions(0),
        **definitions(chosen, machine),
        **(extra or {}),
        **instruction_definitions(is_trapping=machine.traps_on_amx, extra=extra or {}),
    }
    commits = {commit[:NAME_CHARS]: commit for commit in hashes}
    return GitLine(
        names=tuple(commits),
        commits=commits,
        checkout=checkout,
        definitions=tuple((k, v) for k, v in merged.items() if k not in _OF_RELEASES),
        compiler=toolchain.compiler_identity(merged),
        on_progress=on_progress,
        what=f"{len(commits)} commits of {checkout.folder}",
    )
