"""A llama.cpp checkout of the user's, asked and never changed: which commits lie between two, and a copy to compile from.

The copy is a clone in the cache that borrows the checkout's objects; nothing is written into the checkout. Git is asked without
the `GIT_*` settings of our own environment, which name another repository inside `git bisect run`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from llamasweep.builds.compilation import Steps
from llamasweep.builds.invocation import Answer, ask
from llamasweep.errors import BuildError, UsageError, quoted

_ASK_TIMEOUT_S = 60.0
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT = 12
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    """folder: of the user's checkout. copy: of ours, made when a commit is asked for."""

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
                f"{quoted(rev)} names no commit in {self.folder}",
                hint="Name a hash, a tag or a branch; `git fetch --tags` brings those of others.",
            )
        return found

    def between(self, good: str, bad: str) -> list[str]:
        """Full hashes from good to bad, both included, oldest first, along first parents.

        Raises UsageError where good is not before bad, BuildError where there are more commits than can be.
        """
        if self._ask("merge-base", "--is-ancestor", good, bad).exit_code != 0 or good == bad:
            raise UsageError(
                f"the good commit {good[:_SHORT]} is not before the bad one {bad[:_SHORT]}",
                hint="--good is the older commit, and the history between must be here (`git fetch --unshallow`).",
            )
        answer = self._ask("rev-list", "--first-parent", "--reverse", f"{good}..{bad}")
        if answer.exit_code != 0 or answer.is_flood:
            raise BuildError(
                f"git cannot list the commits from {good[:_SHORT]} to {bad[:_SHORT]}",
                hint="Choose ends that lie closer together.",
            )
        return [good, *answer.stdout.split()]

    def title(self, commit: str) -> str | None:
        """The first line of a commit's message, None where git does not tell."""
        answer = self._ask("log", "-1", "--format=%s", commit)
        return answer.stdout.strip()[:120] or None if answer.exit_code == 0 else None

    def take(self, commit: str, steps: Steps) -> None:
        """Make the copy hold this commit and nothing else. Raises BuildError."""
        git = ["git", *_QUIET]
        if not (self.copy / ".git").is_dir():
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

    def _ask(self, *words: str) -> Answer:
        try:
            return ask(["git", "-C", str(self.folder), *words], timeout_s=_ASK_TIMEOUT_S)
        except OSError as problem:
            raise BuildError(
                f"git cannot be started: {problem.strerror}", hint="Install git."
            ) from problem


def open_checkout(folder: Path, cache: Path) -> Checkout:
    """The checkout at a folder, or the one that the folder lies in. Raises UsageError where there is none."""
    place = folder.expanduser().absolute()
    if not place.is_dir():
        raise UsageError(f"{quoted(str(folder))} is no folder", hint="Name a llama.cpp checkout.")
    found = Checkout(folder=place, copy=place)._ask("rev-parse", "--show-toplevel")
    top = found.stdout.rstrip("\n")
    if found.exit_code != 0 or not top:
        said = (found.stderr.strip().splitlines() or ["git does not say why"])[-1]
        raise UsageError(
            f"{quoted(str(folder))} is no git checkout: {said[:200]}",
            hint="Name a llama.cpp checkout that this user may read.",
        )
    digest = hashlib.sha256(top.encode()).hexdigest()[:12]
    return Checkout(folder=Path(top), copy=cache / "git" / digest / "source")
