"""A llama.cpp checkout of the user's, asked and never changed: which commits lie between two, and a copy to compile from.

The copy is a clone in the cache that borrows the checkout's objects; nothing is written into the checkout. Git is asked without
the `GIT_*` settings of our own environment, which name another repository inside `git bisect run`.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from llamasweep.builds.compilation import Steps
from llamasweep.builds.invocation import Answer, ask
from llamasweep.errors import BuildError, UsageError, quoted

_ASK_TIMEOUT_S = 60.0
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT = 12
_MOST_BYTES = 1 << 20
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    """folder: of the user's checkout or bare repository. copy: of ours, made when a commit is asked for."""

    folder: Path
    copy: Path

    def commit(self, rev: str) -> str:
        """The full hash that a word such as a tag or `HEAD~3` means here. Raises UsageError."""
        if rev.startswith("-") or not rev.isprintable():
            raise UsageError(f"{quoted(rev)} is no commit", hint="Name a hash, a tag or a branch.")
        answer = self._ask("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}")
        found = answer.stdout.strip()
        if answer.exit_code != 0 or not _HASH.fullmatch(found):
            raise UsageError(
                f"{quoted(rev)} names no commit in {self.folder}{self._cut_words()}",
                hint=self._whole_hint()
                or "Name a hash, a tag or a branch; `git fetch --tags` brings those of others.",
            )
        return found

    def between(self, good: str, bad: str) -> list[str]:
        """Full hashes from good to bad, both included, oldest first, along first parents.

        Raises UsageError where good is not before bad, BuildError where there are more commits than can be.
        """
        if good == bad:
            raise UsageError(
                f"the good commit {good[:_SHORT]} is not before the bad one, it is the same",
                hint="--good is the older commit.",
            )
        if self._ask("merge-base", "--is-ancestor", good, bad).exit_code != 0:
            raise UsageError(
                f"the good commit {good[:_SHORT]} is not before the bad one {bad[:_SHORT]} in {self.folder}{self._cut_words()}",
                hint=self._whole_hint()
                or "--good is the older commit, and --bad has it in its history.",
            )
        answer = self._ask("rev-list", "--first-parent", "--reverse", f"{good}..{bad}")
        if answer.exit_code != 0 or answer.is_flood:
            raise BuildError(
                f"git cannot list the commits from {good[:_SHORT]} to {bad[:_SHORT]}",
                hint="Choose ends that lie closer together.",
            )
        found = answer.stdout.split()
        if self._cut_at() & set(found):
            raise UsageError(
                f"commits between {good[:_SHORT]} and {bad[:_SHORT]} are missing in {self.folder}{self._cut_words()}",
                hint=self._whole_hint(),
            )
        return [good, *found]

    def _cut_at(self) -> frozenset[str]:
        """Commits of a shallow checkout whose parents are not here; none in others."""
        if self._ask("rev-parse", "--is-shallow-repository").stdout.strip() != "true":
            return frozenset()
        told = self._ask("rev-parse", "--git-path", "shallow").stdout.rstrip("\n")
        try:
            with (self.folder / told).open(encoding="ascii", errors="replace") as file:
                return frozenset(file.read(_MOST_BYTES).split())
        except OSError:
            return frozenset()

    def _cut_words(self) -> str:
        is_cut = bool(self._cut_at())
        return "; it is shallow, and commits before a certain one are not there" if is_cut else ""

    def _whole_hint(self) -> str | None:
        """How a shallow checkout gets all of its history, None where it is not one."""
        if not self._cut_at():
            return None
        return f"Get the whole history: `git -C {shlex.quote(str(self.folder))} fetch --unshallow --tags`."

    def title(self, commit: str) -> str | None:
        """The first line of a commit's message, None where git does not tell."""
        answer = self._ask("log", "-1", "--format=%s", commit)
        return answer.stdout.strip()[:120] or None if answer.exit_code == 0 else None

    def take(self, commit: str, steps: Steps) -> None:
        """Make the copy hold this commit and nothing else. Raises BuildError."""
        git = ["git", *_QUIET]
        if not self._has_copy_of(commit):
            shutil.rmtree(self.copy, ignore_errors=True)
            self.copy.parent.mkdir(parents=True, exist_ok=True)
            draft = self.copy.with_name(f"{self.copy.name}.new")
            shutil.rmtree(draft, ignore_errors=True)
            clone = ["clone", "--quiet", "--shared", "--no-checkout", "--", str(self.folder)]
            steps.run([*git, *clone, str(draft)], "copying the checkout (its objects are borrowed)")
            draft.replace(self.copy)
        (self.copy / ".git" / "index.lock").unlink(missing_ok=True)  # of a killed checkout
        inside = [*git, "-C", str(self.copy)]
        steps.run(
            [*inside, "checkout", "--quiet", "--force", "--detach", commit],
            f"checking out {commit[:_SHORT]}",
        )
        steps.run([*inside, "clean", "-ffdxq"], f"clearing what {commit[:_SHORT]} does not have")

    def _has_copy_of(self, commit: str) -> bool:
        """A copy of a shallow checkout borrows nothing, and lacks what was fetched since."""
        if not (self.copy / ".git").is_dir():
            return False
        return self._ask("cat-file", "-e", f"{commit}^{{commit}}", inside=self.copy).exit_code == 0

    def _ask(self, *words: str, inside: Path | None = None) -> Answer:
        folder = inside or self.folder
        try:
            return ask(["git", "-C", str(folder), *words], timeout_s=_ASK_TIMEOUT_S)
        except OSError as problem:
            raise BuildError(
                f"git cannot be started: {problem.strerror}", hint="Install git."
            ) from problem


def open_checkout(folder: Path, cache: Path) -> Checkout:
    """The checkout at a folder, or the one that the folder lies in; a bare repository will do.

    Raises UsageError where there is none.
    """
    place = folder.expanduser().absolute()
    if not place.is_dir():
        raise UsageError(f"{quoted(str(folder))} is no folder", hint="Name a llama.cpp checkout.")
    asked = Checkout(folder=place, copy=place)
    is_bare = asked._ask("rev-parse", "--is-bare-repository").stdout.strip() == "true"
    found = asked._ask("rev-parse", "--absolute-git-dir" if is_bare else "--show-toplevel")
    top = found.stdout.rstrip("\n")
    if found.exit_code != 0 or not top:
        said = (found.stderr.strip().splitlines() or ["git does not say why"])[-1]
        raise UsageError(
            f"{quoted(str(folder))} is no git checkout: {said[:200]}",
            hint="Name a llama.cpp checkout (the folder that holds .git) that this user may read.",
        )
    digest = hashlib.sha256(top.encode()).hexdigest()[:12]
    return Checkout(folder=Path(top), copy=cache / "git" / digest / "source")
