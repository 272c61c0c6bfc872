"""The builds of this machine: those installed here, those that were added, and the one on PATH.

Each is a folder with a record below `builds` in the user's cache. It probes binaries again when their files changed.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from llamasweep.builds.backends import chosen_definitions
from llamasweep.builds.cpu_features import cpu_features
from llamasweep.builds.invocation import absolute
from llamasweep.builds.probe import locate_binary, probe, stamps
from llamasweep.builds.records import (
    RECORD_NAME,
    Record,
    check_label,
    folder_name,
    read_record,
    write_record,
)
from llamasweep.cache import cache_root
from llamasweep.errors import BuildError, EngineNotFoundError, UsageError
from llamasweep.sweep.subjects import Build

INSTALL_HINT = (
    "Install one with `llamasweep builds install VERSION` (`llamasweep builds available` lists them), "
    "add yours with `llamasweep builds add PATH`, or put llama-bench on PATH."
)
_SHORTEST_HASH_PREFIX = 6
UNNUMBERED = -1
"""Rank of a build whose binary tells no number: older than every one that does."""
_Builds = list[Build]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A build as `builds list` shows it.

    label: unique among the entries. build: None where it cannot be used, and `problem` says why. folder: of its
    record. record: None where it is damaged.
    """

    label: str
    kind: Literal["added", "installed"]
    build: Build | None
    folder: Path
    record: Record | None = None
    problem: str | None = None


_Entries = list[Entry]


class Registry:
    """The builds known on this machine. cache_dir: the folder of llamasweep's cache, None for the user's own."""

    def __init__(
        self, cache_dir: Path | None = None, *, which: Callable[[str], str | None] = shutil.which
    ) -> None:
        self._folder = (cache_dir if cache_dir is not None else cache_root()) / "builds"
        self._which = which

    @property
    def folder(self) -> Path:
        """Where records and installed builds lie."""
        return self._folder

    def entries(self) -> _Entries:
        """Every build that is remembered, oldest first; broken ones are there with their problem."""
        found = [self._entry(path.parent) for path in self._folder.glob(f"*/{RECORD_NAME}")]
        found.sort(key=lambda entry: (entry.record.created_at if entry.record else "", entry.label))
        n_of_label = Counter(entry.label for entry in found)
        return [_told_apart(entry) if n_of_label[entry.label] > 1 else entry for entry in found]

    def list(self) -> _Builds:
        """The builds that can be used, oldest first. Two that share a label get their hash added to it."""
        return [entry.build for entry in self.entries() if entry.build is not None]

    def entry(self, name: str) -> Entry:
        """The entry of a name as `get` takes it. Raises EngineNotFoundError or, where several fit, UsageError."""
        entries = self.entries()
        for fits in (_is_label, _is_plain_label, _is_number, _is_hash):
            matching = [entry for entry in entries if fits(entry, name)]
            if len({entry.label for entry in matching}) > 1:
                labels = ", ".join(repr(entry.label) for entry in matching)
                raise UsageError(
                    f"{name!r} fits several builds: {labels}", hint="Use one of these names."
                )
            if matching:
                return matching[0]
        raise EngineNotFoundError(
            f"no build is called {name!r}; known are "
            + (", ".join(repr(entry.label) for entry in entries) or "none"),
            hint=INSTALL_HINT,
        )

    def get(self, name_or_path: str) -> Build:
        """The build of that name, number, content hash (six digits or more) or path.

        Raises EngineNotFoundError where there is none, UsageError where several fit, BuildError where it cannot be used.
        """
        if name_or_path.startswith("~") or "/" in name_or_path or "\\" in name_or_path:
            return self._at_path(Path(name_or_path))
        try:
            entry = self.entry(name_or_path)
        except EngineNotFoundError:
            if absolute(Path(name_or_path)).is_file():
                return self._at_path(Path(name_or_path))
            raise
        if entry.build is None:
            raise BuildError(
                f"the build {entry.label!r} cannot be used: {entry.problem}", hint=INSTALL_HINT
            )
        return entry.build

    def default(self) -> Build:
        """The llama-bench on PATH (or a `llama` that knows `bench`), else the newest installed, else the one added last.

        Newest is by build number, so that an older build installed for a comparison changes nothing; of several
        with the same number, the one installed last, variants (`--define`) behind those without.

        Raises EngineNotFoundError, with what to do, where there is none.
        """
        on_path = self.on_path()
        if on_path is not None:
            return on_path
        newest: tuple[tuple[bool, int, bool], Build] | None = None
        for entry in self.entries():
            if entry.build is None:
                continue
            is_installed = entry.kind == "installed"
            number = entry.build.number if is_installed else None  # of added ones the last counts
            rank = (is_installed, UNNUMBERED if number is None else number, not _is_variant(entry))
            if newest is None or rank >= newest[0]:
                newest = (rank, entry.build)
        if newest is None:
            raise EngineNotFoundError("there is no llama-bench on this machine", hint=INSTALL_HINT)
        return newest[1]

    def on_path(self) -> Build | None:
        """The build on PATH, None where there is none that works."""
        for name in ("llama-bench", "llama"):
            place = self._which(name)
            if place is None:
                continue
            try:
                return self._at_path(Path(place))
            except (BuildError, EngineNotFoundError):
                continue
        return None

    def add(self, path: Path | str, label: str | None = None) -> Build:
        """Remember a binary of the user's. Adding a path again replaces what was remembered of it.

        Raises EngineNotFoundError or BuildError where it is no llama-bench, UsageError for a label that cannot be.
        """
        wanted = check_label(label) if label is not None else None
        build = probe(Path(path), label=wanted)
        for entry in self.entries():
            is_same_path = entry.record is not None and entry.record.build.path == build.path
            if entry.kind == "added" and is_same_path:
                shutil.rmtree(entry.folder)
        record = Record(
            kind="added", build=build, stamps=stamps(Path(build.path)), created_at=now_text()
        )
        folder = self._folder / folder_name(build.label, build.path)
        write_record(folder, record)
        return next((known for known in self.list() if known.path == build.path), build)

    def remove(self, name: str) -> Entry:
        """Forget a build; of an installed one everything is deleted, of an added one nothing but the record.

        Raises EngineNotFoundError or UsageError as `entry` does.
        """
        entry = self.entry(name)
        (entry.folder / RECORD_NAME).unlink(missing_ok=True)
        shutil.rmtree(entry.folder)
        return entry

    def program(self, label: str, program: str) -> Path | None:
        """The path of another program of a build, such as `llama-quantize`; None where that build has none."""
        return beside(self.get(label), program)

    def _at_path(self, path: Path) -> Build:
        binary = locate_binary(path)
        for build in self.list():
            if build.path == str(binary):
                return build
        return probe(binary)

    def _entry(self, folder: Path) -> Entry:
        try:
            record = read_record(folder)
        except BuildError as problem:
            return Entry(
                label=folder.name,
                kind="added",
                build=None,
                folder=folder,
                problem=problem.message,
            )
        build: Build | None = record.build
        trouble: str | None = None
        try:
            if stamps(Path(record.build.path)) != record.stamps:
                record = self._probed_again(record)
            elif not record.is_asked_for_features:
                record = self._with_features(record)
            build = record.build
        except (OSError, BuildError, EngineNotFoundError) as problem:
            build, trouble = None, str(problem)
        return Entry(
            label=record.build.label,
            kind=record.kind,
            build=build,
            folder=folder,
            record=record,
            problem=trouble,
        )

    def _probed_again(self, record: Record) -> Record:
        path = Path(record.build.path)
        build = probe(path, label=record.build.label)
        fresh = replace(record, build=build, stamps=stamps(path))
        if record.folder is not None:
            write_record(record.folder, fresh)
        return fresh

    def _with_features(self, record: Record) -> Record:
        """What a record of an earlier llamasweep lacks; kept where the cache can be written."""
        features = cpu_features(Path(record.build.path))
        fuller = replace(
            record,
            build=replace(record.build, cpu_features=features),
            is_asked_for_features=True,
        )
        if record.folder is not None:
            with contextlib.suppress(OSError):
                write_record(record.folder, fuller)
        return fuller


def beside(build: Build, program: str) -> Path | None:
    """The path of a program beside a build's own, such as `llama-server`; None where it is not there.

    program: a bare name; with a separator in it nothing is found.
    """
    if Path(program).name != program:
        return None
    folder = Path(build.path).parent
    for name in (program, f"{program}.exe"):
        if (folder / name).is_file():
            return folder / name
    return None


def now_text() -> str:
    """The time now, UTC, as ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _told_apart(entry: Entry) -> Entry:
    digest = entry.record.build.content_hash[:8] if entry.record else "damaged"
    label = f"{entry.label}@{digest}"
    build = replace(entry.build, label=label) if entry.build else None
    return replace(entry, label=label, build=build)


def _is_variant(entry: Entry) -> bool:
    """Whether it was made with definitions of the user's own."""
    made = entry.record.install if entry.record is not None else None
    return made is not None and bool(chosen_definitions(made.definitions))


def _is_label(entry: Entry, name: str) -> bool:
    return entry.label == name


def _is_plain_label(entry: Entry, name: str) -> bool:
    plain = entry.record.build.label if entry.record else entry.label
    return plain in (name, f"b{name}")


def _is_number(entry: Entry, name: str) -> bool:
    return entry.record is not None and str(entry.record.build.number) == name.removeprefix("b")


def _is_hash(entry: Entry, name: str) -> bool:
    is_long_enough = len(name) >= _SHORTEST_HASH_PREFIX
    return (
        is_long_enough
        and entry.record is not None
        and entry.record.build.content_hash.startswith(name)
    )
