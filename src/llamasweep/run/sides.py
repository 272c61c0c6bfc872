"""The two sides of a comparison from what somebody wrote: builds of one run, two runs, or a baseline file.

Opens the store and the machine's own A/A record; judges nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamasweep.builds.backends import chosen_definitions
from llamasweep.builds.records import InstallFacts, read_record
from llamasweep.builds.registry import Registry
from llamasweep.errors import BuildError, StoreError, UsageError, plain_reason, quoted
from llamasweep.machine.noise_record import load_noise
from llamasweep.results.baseline import BASELINE_KIND, baseline_rows, read_baseline
from llamasweep.results.records import Attempt, RunData, RunInfo
from llamasweep.run.secrets import hide_in_argv
from llamasweep.stats.floor import Floor, default_floor, practical_floors, size_class
from llamasweep.store.locate import find_run, list_runs, load_run

MAX_BASELINE_BYTES = 64 << 20
_MACHINE_FACTS = (
    "os_name",
    "kernel",
    "governor",
    "frequency_driver",
    "energy_preference",
    "power_source",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One side. name: for people. rows: its attempts. facts: of build and machine, None where not known.

    is_auto: whether each cell was measured until it was clear. is_drawn: whether builds took turns in an order drawn anew in
    each round. run_id: None for a baseline.
    """

    name: str
    rows: tuple[Attempt, ...]
    facts: dict[str, str | None]
    is_auto: bool
    is_drawn: bool
    run_id: str | None


def find_sides(root: Path, a: str, b: str, *, run: str | None = None) -> tuple[Side, Side]:
    """The sides that two words mean, as `_find_sides` reads them. Raises StoreError, and UsageError where both are the same."""
    sides = _find_sides(root, a, b, run=run)
    if sides[0].run_id == sides[1].run_id and sides[0].rows == sides[1].rows:
        raise UsageError(
            f"A and B are the same: {sides[0].name}",
            hint="Name two runs, two builds of one run, or a baseline and a run.",
        )
    return sides


def _find_sides(root: Path, a: str, b: str, *, run: str | None) -> tuple[Side, Side]:
    """The sides that two words mean.

    A word is a baseline file, RUN:BUILD, a run (id, its beginning, the name of a sweep, a folder), or, where neither word is
    one of these or `run` is given, a build (label or number) of that run, else of the newest run that has both. Raises StoreError
    and UsageError.
    """
    if run is not None:
        loaded = load_run(find_run(root, run))
        return _of_run(loaded, a), _of_run(loaded, b)
    sides = [_side(root, word) for word in (a, b)]
    if sides[0] is not None and sides[1] is not None:
        return sides[0], sides[1]
    if sides[0] is None and sides[1] is None:
        return _builds_of_newest(root, a, b)
    missing = a if sides[0] is None else b
    raise StoreError(
        f"no run and no file {quoted(missing)} in {root}",
        hint="A and B are two runs, two builds of one run, RUN:BUILD, or a baseline file; `llamasweep results list` names runs.",
    )


def sides_of_run(path: Path) -> tuple[Side, Side]:
    """The two builds of a run, in the order in which it names them. Raises UsageError where it has not two."""
    loaded = load_run(path)
    labels = [str(build.get("label")) for build in loaded.info.builds]
    if len(labels) != 2:
        raise UsageError(
            f"the run {loaded.info.run_id} has {len(labels)} builds and not two",
            hint="Choose with `llamasweep compare A B --run RUN`.",
        )
    rows = [tuple(r for r in loaded.attempts if r.build_label == label) for label in labels]
    a, b = (_as_side(loaded, of, label, label) for of, label in zip(rows, labels, strict=True))
    return a, b


def is_drawn(info: RunInfo) -> bool:
    """Whether the builds of a run took turns, and which came first was drawn in each round."""
    return is_auto(info) or info.sweep_resolved.get("order") == "interleaved"


def is_auto(info: RunInfo) -> bool:
    """Whether the run measured each cell until it was clear."""
    return info.sweep_resolved.get("rounds") == "auto"


def _side(root: Path, word: str) -> Side | None:
    path = Path(word)
    if path.is_file():
        return baseline_side(path)
    try:
        return _whole_run(load_run(find_run(root, word)))
    except StoreError:
        head, colon, build = word.rpartition(":")
        if not colon:
            return None
    return _of_run(load_run(find_run(root, head)), build)


def find_side(root: Path, word: str | None) -> Side:
    """One side: a run, RUN:BUILD, or the newest run where nothing is named. Raises StoreError and UsageError."""
    side = _whole_run(load_run(find_run(root))) if word is None else _side(root, word)
    if side is None:
        raise StoreError(
            f"no run {quoted(word)} in {root}",
            hint="`llamasweep results list` names what is there.",
        )
    return side


def baseline_side(path: Path) -> Side:
    """A baseline file as a side. Raises StoreError where it is none."""
    try:
        with path.open("rb") as file:
            plain = json.loads(file.read(MAX_BASELINE_BYTES))
        baseline = read_baseline(plain)
    except (OSError, ValueError, RecursionError) as problem:
        raise StoreError(
            f"{path} is no baseline that can be read: {plain_reason(problem)}",
            hint=f"Make one with `llamasweep baseline save FILE`; it says {BASELINE_KIND!r}.",
        ) from problem
    return Side(
        name=f"{path.name} ({baseline.build_label or 'unknown build'})",
        rows=baseline_rows(baseline),
        facts=dict(baseline.facts),
        is_auto=False,
        is_drawn=False,
        run_id=None,
    )


def _whole_run(loaded: RunData) -> Side:
    builds = _labels(loaded.attempts)
    if len(builds) > 1:
        raise UsageError(
            f"the run {loaded.info.run_id} has {len(builds)} builds: {', '.join(builds[:5])}",
            hint=f"Choose one: {loaded.info.run_id}:{builds[0]}",
        )
    return _as_side(loaded, loaded.attempts, builds[0] if builds else None, loaded.info.run_id)


def _of_run(loaded: RunData, word: str) -> Side:
    label = build_named(loaded, word)
    if label is None:
        raise UsageError(
            f"the run {loaded.info.run_id} has no build {quoted(word)}",
            hint=f"It has {', '.join(_labels(loaded.attempts)[:5]) or 'none'}.",
        )
    rows = tuple(row for row in loaded.attempts if row.build_label == label)
    return _as_side(loaded, rows, label, label)


def build_named(loaded: RunData, word: str) -> str | None:
    """The label of the run's build that a word means: its label, or its number with or without a b."""
    labels = _labels(loaded.attempts)
    if word in labels:
        return word
    numbers = {
        str(row.build_number): row.build_label
        for row in loaded.attempts
        if row.build_number is not None
    }
    plain = word.removeprefix("b")
    return numbers.get(plain) or next((one for one in labels if one == f"b{plain}"), None)


def _labels(attempts: Sequence[Attempt]) -> list[str]:
    return list(dict.fromkeys(row.build_label for row in attempts if row.build_label is not None))


def _builds_of_newest(root: Path, a: str, b: str) -> tuple[Side, Side]:
    damaged = []
    for entry in list_runs(root):
        if entry.info is None:
            damaged.append(entry.run_id)
            continue
        try:
            loaded = load_run(entry.path)
        except StoreError:  # a run that cannot be read is none with these builds
            damaged.append(entry.run_id)
            continue
        if build_named(loaded, a) is not None and build_named(loaded, b) is not None:
            return _of_run(loaded, a), _of_run(loaded, b)
    left_out = f"; {len(damaged)} that cannot be read left out" if damaged else ""
    raise StoreError(
        f"no run in {root} has the builds {quoted(a)} and {quoted(b)}, and they name no runs{left_out}",
        hint=f"Measure them by turns: llamasweep ab SWEEP --builds {a} {b}",
    )


def _as_side(loaded: RunData, rows: Sequence[Attempt], build: str | None, name: str) -> Side:
    return Side(
        name=name,
        rows=tuple(rows),
        facts=_facts(loaded.info, build),
        is_auto=is_auto(loaded.info),
        is_drawn=is_drawn(loaded.info),
        run_id=loaded.info.run_id,
    )


def _facts(info: RunInfo, build: str | None) -> dict[str, str | None]:
    """Facts of build and machine that may explain a difference and are no column."""
    facts: dict[str, str | None] = {}
    entry: dict[str, Any] = next((e for e in info.builds if e.get("label") == build), {})
    features = entry.get("cpu_features")
    made = _install_facts(entry.get("content_hash"))
    facts["compiler"] = made.compiler if made else None
    facts["cmake_options"] = _definition_words(made) if made else None
    facts["instruction_sets"] = " ".join(features) if features else None
    for name in _MACHINE_FACTS:
        value = info.machine.get(name)
        facts[name] = None if value is None else str(value)
    drivers = [gpu.get("driver") for gpu in info.machine.get("gpus") or () if isinstance(gpu, dict)]
    known = sorted({str(driver) for driver in drivers if driver})
    facts["gpu_driver"] = ", ".join(known) if known else None
    facts["llamasweep_version"] = info.llamasweep_version
    return facts


def _install_facts(content_hash: object) -> InstallFacts | None:
    """How an installed build was made, as its own record says; None for others. Starts no program."""
    folder = Registry().folder
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            record = read_record(path)
        except BuildError:
            continue
        if record.build.content_hash == content_hash and record.install is not None:
            return record.install
    return None


def _definition_words(made: InstallFacts) -> str:
    """What `--define` made of it, as it would be typed, without the name of the user's folder."""
    chosen = chosen_definitions(made.definitions)
    home = os.path.expanduser("~")  # noqa: PTH111  (Path.home() raises where there is none)
    words = hide_in_argv([f"{name}={value}" for name, value in sorted(chosen.items())], home)
    return " ".join(words) or "none"


def machine_floors(fingerprint: str | None) -> dict[tuple[str, int], Floor]:
    """Floors of a machine from its A/A record; {} where there is none."""
    record = None if fingerprint is None else load_noise(fingerprint)
    return {} if record is None else practical_floors(record.pairs)


def floor_finder() -> Callable[[Attempt], float]:
    """The practical floor of a row: of its machine, kind of test and size of model, else the default of its kind."""
    known: dict[str | None, dict[tuple[str, int], Floor]] = {}

    def floor_of_row(row: Attempt) -> float:
        machine = row.machine_fingerprint
        if machine not in known:
            known[machine] = machine_floors(machine)
        size = row.model_size_bytes
        key = None if not size or size <= 0 else (row.test_kind, size_class(size))
        found = known[machine].get(key) if key is not None else None
        return (found or default_floor(row.test_kind)).floor_fraction

    return floor_of_row
