"""The head of the page: each run in a line, and its machine in a few words. Records in, plain data out.

What the machine does not tell is said to be unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from llamasweep.report import figures, headline
from llamasweep.report.figures import THIN
from llamasweep.report.names import shown
from llamasweep.report.rows import Row
from llamasweep.results.machine_record import MachineRecord
from llamasweep.results.records import RunData

MAX_FACTS = 60
_MAX_GPUS = 8
_FEATURES = ("amx_tile", "avx512f", "avx2", "avx", "sve", "neon")
"""The widest first: the one that a processor has is worth a word, those that it includes are not."""
_FEATURE_WORDS = {
    "amx_tile": "AMX",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
    "avx": "AVX",
    "sve": "SVE",
    "neon": "NEON",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineLine:
    """What is known of one part of the machine. unknown: what the system does not tell, '' if all is known; the reason is
    among the facts."""

    part: str
    known: str
    unknown: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunHead:
    """One run in a few lines. machine: its parts; () where the run recorded no machine. facts: everything, flattened."""

    run_id: str
    where: str
    line: str
    outcome: str
    machine: tuple[MachineLine, ...]
    facts: tuple[tuple[str, str], ...]


def head(run: RunData, rows: Sequence[Row]) -> RunHead:
    """The head of one run from its rows."""
    measured = sum(row.rates is not None for row in rows)
    outcome = f"{figures.counted(measured, 'cell')} measured"
    rest = headline.outcome_words(rows)
    if rest:
        outcome += f", {rest}"
    outcome += _left_words(run)
    return RunHead(
        run_id=shown(run.info.run_id),
        where=_where(run),
        line=_line(run),
        outcome=outcome,
        machine=_machine(run),
        facts=tuple(_flat(run.info.machine))[:MAX_FACTS],
    )


def _left_words(run: RunData) -> str:
    """What was not asked yet, each round of a cell by itself. Nothing in a run that came to its end: `rounds: auto` plans for
    more rounds than it needs."""
    if run.info.finished_at is not None:
        return ""
    planned = run.info.n_cells_planned
    left = planned - len({(a.cell_id, a.build_hash, a.round_index) for a in run.attempts})
    if left <= 0:
        return ""
    rounds = run.info.sweep_resolved.get("rounds")
    at_most = "at most " if rounds == "auto" else ""
    what = "" if rounds in (None, 1) else " measurements"
    return f", {at_most}{figures.count(left)} of {figures.count(planned)}{what} not done yet"


def _where(run: RunData) -> str:
    """The device as the engine names it: the GPU for a build with one, else the processor."""
    for attempt in run.attempts:
        backends = (attempt.build_backends or "").upper()
        if attempt.gpu_name and backends not in ("", "CPU", "BLAS"):
            return _device(attempt.gpu_name)
        if attempt.cpu_name:
            return _device(attempt.cpu_name)
    cpu = run.info.machine.get("cpu_name")
    return _device(cpu) if isinstance(cpu, str) and cpu else "a machine that told no name"


def _device(name: str) -> str:
    """The maker's name without its trade marks."""
    return shown(re.sub(r"\((?:R|TM)\)", "", name), 60)


def _line(run: RunData) -> str:
    builds = dict.fromkeys(
        shown(attempt.build_label, 60) for attempt in run.attempts if attempt.build_label
    )
    parts = [f"sweep {shown(run.info.sweep_name, 80)}"]
    if builds:
        parts.append(("build " if len(builds) == 1 else "builds ") + ", ".join(builds))
    start, end = _time(run.info.started_at), _time(run.info.finished_at)
    if start is not None:
        parts.append(f"{start:%Y-%m-%d %H:%M} UTC")
    if start is not None and end is not None:
        parts.append(figures.duration(max(0.0, (end - start).total_seconds())))
    elif end is None:
        parts.append("not finished")
    return " · ".join(parts)


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _machine(run: RunData) -> tuple[MachineLine, ...]:
    told = MachineRecord(plain=run.info.machine)
    if told.word("os") is None and told.word("cpu_name") is None:
        return ()
    return (_processor(told), _memory(told, run), _gpus(told), _system(told), _power(told))


def _processor(told: MachineRecord) -> MachineLine:
    cores, logical = told.count("n_cores_physical"), told.count("n_cores_logical")
    fast, allowed = told.count("n_cores_performance"), told.count("n_cpus_allowed")
    parts = [_device(told.word("cpu_name") or "unnamed")]
    if cores is not None:
        parts.append(figures.counted(cores, "core"))
    if fast is not None and cores is not None and fast < cores:
        parts.append(f"{fast} of them performance cores")
    if logical is not None and logical != cores:
        parts.append(figures.counted(logical, "thread"))
    if allowed is not None and logical is not None and allowed < logical:
        parts.append(f"the run could use {allowed}")
    quota = told.number("cpu_quota")
    if quota is not None:
        parts.append(f"limited to {figures.number(quota)} by its control group")
    features = told.words("cpu_features")
    widest = next((_FEATURE_WORDS[name] for name in _FEATURES if name in features), None)
    if widest is not None:
        parts.append(widest)
    cache = told.number("last_level_cache_bytes")
    if cache is not None:
        parts.append(f"{figures.size(cache)} of last-level cache")
    return MachineLine(part="CPU", known=", ".join(parts), unknown="")


def _memory(told: MachineRecord, run: RunData) -> MachineLine:
    size, speed = told.number("ram_bytes"), told.count("ram_speed_mts")
    channels, kind = told.count("ram_channels"), told.word("ram_type")
    parts = [figures.size(size) if size is not None else "size not known"]
    if kind is not None or speed is not None:
        parts.append("-".join(str(one) for one in (shown(kind or "RAM", 20), speed) if one))
    if channels is not None:
        parts.append(figures.counted(channels, "channel"))
    parts += _bandwidth(told, run)
    unknown = [word for word, value in (("speed", speed), ("channels", channels)) if value is None]
    return MachineLine(
        part="Memory",
        known=", ".join(parts),
        unknown=" and ".join(unknown),
    )


def _bandwidth(told: MachineRecord, run: RunData) -> list[str]:
    """What the ceilings rest on, where the engine read from RAM; else what the calibration measured."""
    spec = told.spec_ram_bytes_per_s
    calibrated = told.number("calibration", "ram", "best_bytes_per_s")
    words = [f"{figures.bandwidth(calibrated)} calibrated"] if calibrated is not None else []
    used = {
        attempt.ceiling_bandwidth_bytes_per_s
        for attempt in run.attempts
        if not attempt.gpu_name and attempt.ceiling_bandwidth_bytes_per_s
    }
    if len(used) == 1 and used != {calibrated}:
        words.append(f"{figures.bandwidth(used.pop())} taken for the ceilings")
    if spec is not None:
        words.append(f"{figures.bandwidth(spec)} by its specification")
    return words


def _gpus(told: MachineRecord) -> MachineLine:
    gpus = told.gpus
    if not gpus:
        return MachineLine(part="GPU", known="none found", unknown="")
    texts = []
    for gpu in gpus[:_MAX_GPUS]:
        size, driver = gpu.number("memory_bytes"), gpu.word("driver")
        parts = [_device(gpu.word("name") or f"unnamed {gpu.word('vendor') or 'device'}")]
        parts += [figures.size(size)] if size is not None else []
        parts.append(f"driver {shown(driver, 40)}" if driver else "driver not known")
        limit = gpu.number("power_limit_w")
        parts += [f"limit {figures.number(limit)}{THIN}W"] if limit is not None else []
        texts.append(" ".join([parts[0], f"({', '.join(parts[1:])})"]))
    more = f" and {len(gpus) - _MAX_GPUS} more" if len(gpus) > _MAX_GPUS else ""
    return MachineLine(part="GPU", known="; ".join(texts) + more, unknown="")


def _system(told: MachineRecord) -> MachineLine:
    parts = [shown(told.word("os_name") or told.word("os") or "unnamed", 60)]
    if kernel := told.word("kernel"):
        parts.append(f"kernel {shown(kernel, 60)}")
    if hypervisor := told.word("hypervisor"):
        named = "" if hypervisor == "unnamed" else f" ({shown(hypervisor, 40)})"
        parts.append(f"a virtual machine{named}")
    if (nodes := told.count("n_numa_nodes")) is not None and nodes > 1:
        parts.append(f"{nodes} NUMA nodes")
    return MachineLine(part="System", known=", ".join(parts), unknown="")


def _power(told: MachineRecord) -> MachineLine:
    source, governor = told.word("power_source"), told.word("governor")
    known = [f"on {shown(source, 30)}"] if source else []
    known += [f"governor {shown(governor, 40)}"] if governor else []
    missing = [w for w, v in (("source", source), ("governor", governor)) if not v]
    return MachineLine(
        part="Power",
        known=", ".join(known),
        unknown=" and ".join(missing),
    )


def _flat(facts: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Nested facts as `cpu.n_cores`; absent ones are said to be absent."""
    flat: list[tuple[str, str]] = []
    for key, value in facts.items():
        name = f"{before}{shown(str(key), 60)}"
        if isinstance(value, Mapping):
            flat += _flat(value, name + ".")
        elif isinstance(value, list | tuple):
            flat.append((name, shown(", ".join(str(item) for item in value), 200) or "none"))
        else:
            flat.append((name, "not known" if value is None else shown(str(value), 200)))
    return flat
