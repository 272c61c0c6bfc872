"""How to run it again: the sweep as a file, the exact call of each engine process, versions and hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from llamasweep.report import figures
from llamasweep.report.names import has_hidden, shell_line, shown
from llamasweep.results.records import RunData, RunInfo
from llamasweep.sweep.resolved import sweep_document

MAX_GROUPS = 300
MAX_YAML = 200_000
SAVED_AS = "sweep.yaml"
HIDDEN = "(hidden)"
"""What runs record in the place of a secret."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupCall:
    """One engine process. outcome: how it ended, in words. log_path: relative to the run's folder, None if unknown."""

    group_id: str
    command: str
    outcome: str
    log_path: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat:
    """Everything needed to do one run again.

    command: with the sweep's own file, None where there was none. sweep_yaml: a sweep file that asks the same, with every
    setting outright. notes: what it cannot hold. steps: commands that do it from that file. n_left_out: groups beyond
    the bound; run.json has them all.
    """

    run_id: str
    command: str | None
    sweep_yaml: str
    notes: tuple[str, ...]
    steps: str
    calls: tuple[GroupCall, ...]
    n_left_out: int
    versions: tuple[tuple[str, str], ...]
    hashes: tuple[tuple[str, str, str], ...]


def repeat(run: RunData) -> Repeat:
    """The section of one run."""
    info = run.info
    calls = tuple(_call(group) for group in info.groups[:MAX_GROUPS])
    return Repeat(
        run_id=shown(info.run_id, 160),
        command=shell_line(["llamasweep", "run", info.sweep_file]) if info.sweep_file else None,
        sweep_yaml=_yaml(sweep_document(info.sweep_resolved)),
        notes=_notes(info.sweep_resolved),
        steps=_steps(run),
        calls=calls,
        n_left_out=len(info.groups) - len(calls),
        versions=_versions(info),
        hashes=_hashes(run),
    )


def _notes(resolved: Mapping[str, Any]) -> tuple[str, ...]:
    """What the record holds no more, or never could."""
    notes = []
    if resolved.get("on_finish"):
        notes.append("on_finish is left out: the run kept no more of it than the program.")
    if HIDDEN in str([resolved.get(key) for key in ("env", "extra_args")]):
        notes.append(f"Secrets were not kept: put your own where {HIDDEN} stands.")
    if any(isinstance(one, Mapping) and one.get("path") for one in resolved.get("models") or ()):
        notes.append(
            "Paths of models are those of the machine that measured; the hashes below tell the files."
        )
    return tuple(notes)


def _steps(run: RunData) -> str:
    """Fetches the builds that have a number, then runs the file."""
    numbers = dict.fromkeys(a.build_number for a in run.attempts if a.build_number is not None)
    installs = [shell_line(["llamasweep", "builds", "install", str(n)]) for n in numbers]
    return "\n".join([*installs, f"llamasweep run {SAVED_AS}"])


def _call(group: Mapping[str, Any]) -> GroupCall:
    argv = [str(word) for word in group.get("argv") or ()]
    environment = group.get("env") or {}
    pairs = environment.items() if isinstance(environment, Mapping) else environment
    words = ["env", *(f"{key}={value}" for key, value in pairs)] if environment else []
    log = f"logs/{group['log_id']}.jsonl" if group.get("log_id") else None
    return GroupCall(
        group_id=shown(str(group.get("group_id", "unnamed")), 40),
        command=shell_line([*words, *argv]) if argv else "",
        outcome=_outcome(group),
        log_path=shown(str(log), 160) if log else None,
    )


def _outcome(group: Mapping[str, Any]) -> str:
    """How the process ended, how many cells it had and how long it took."""
    if group.get("exit_signal"):
        parts = [f"ended by {shown(str(group['exit_signal']), 30)}"]
    elif group.get("exit_code") is not None:
        parts = [f"exit code {shown(str(group['exit_code']), 12)}"]
    else:
        parts = ["exit code not recorded"]
    if isinstance(group.get("n_cells"), int):
        parts.insert(0, figures.counted(group["n_cells"], "cell"))
    start, end = group.get("start_ns"), group.get("end_ns")
    if isinstance(start, int) and isinstance(end, int) and end >= start:
        parts.append(figures.duration((end - start) / 1e9))
    return ", ".join(parts)


def _yaml(resolved: Mapping[str, Any]) -> str:
    text = yaml.safe_dump(dict(resolved), sort_keys=False, allow_unicode=True, width=100)
    if has_hidden(text):
        # YAML's own escapes keep the document exact while nothing in it can hide or reorder.
        text = yaml.safe_dump(dict(resolved), sort_keys=False, allow_unicode=False, width=100)
    if len(text) > MAX_YAML:
        return text[:MAX_YAML] + "\n# cut here; the whole is in run.json\n"
    return text


def _versions(info: RunInfo) -> tuple[tuple[str, str], ...]:
    first = {"llamasweep": info.llamasweep_version, "results schema": str(info.schema_version)}
    pairs = {**first, "seed": str(info.seed), **info.versions}
    return tuple((shown(name, 60), shown(str(value), 120)) for name, value in pairs.items())


def _hashes(run: RunData) -> tuple[tuple[str, str, str], ...]:
    """(build or model, name, hash) of everything that the attempts name."""
    found: dict[tuple[str, str, str], None] = {}
    for attempt in run.attempts:
        label = attempt.build_label or "build not recorded"
        build = f"{label} ({_version_words(attempt.build_number, attempt.build_commit)})"
        found[("build", shown(build), attempt.build_hash or "hash not recorded")] = None
    for attempt in run.attempts:
        name = shown(attempt.model_label) + (
            f" ({shown(attempt.model_file)})" if attempt.model_file else ""
        )
        found[("model", name, attempt.model_hash or "no hash: the file could not be read")] = None
    return tuple(found)


def _version_words(number: int | None, commit: str | None) -> str:
    words: Sequence[str] = [f"number {number}"] if number is not None else []
    words = [*words, f"commit {shown(commit, 40)}"] if commit else words
    return ", ".join(words) or "the binary tells no number and no commit"
