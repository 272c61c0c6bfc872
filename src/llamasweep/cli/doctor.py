"""`llamasweep doctor`: what is on this machine, and what each missing thing would need. Changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from llamasweep.machine.facts import MachineFacts
    from llamasweep.machine.quiet import QuietReport


@click.command(name="doctor")
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
@click.option(
    "--bandwidth", "has_bandwidth", is_flag=True, help="Measure the RAM's read bandwidth too."
)
def command(is_json: bool, has_bandwidth: bool) -> None:
    """What is on this machine, and what is missing.

    \b
    Example:
      llamasweep doctor
      llamasweep doctor --json --bandwidth
    """
    found = examine(has_bandwidth=has_bandwidth)
    if is_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _print(found)


def examine(*, has_bandwidth: bool = False) -> dict[str, Any]:
    """Everything that doctor tells, as plain JSON values. Takes about a second."""
    from llamasweep.cli.doctor_servers import find_servers
    from llamasweep.machine import quiet
    from llamasweep.machine.awake import keep_awake
    from llamasweep.machine.facts import read_facts
    from llamasweep.machine.gpus import open_nvml
    from llamasweep.machine.words import thread_words

    nvml = open_nvml()
    facts = read_facts(nvml=nvml)
    report = quiet.check(facts, nvml=nvml)
    with keep_awake("llamasweep doctor asks whether this works") as awake:
        pass
    engines, engine_problem = _engines()
    found: dict[str, Any] = {
        "machine": facts.to_dict(),
        "thread_words": thread_words(facts),
        "engines": engines,
        "engine_problem": engine_problem,
        "servers": find_servers(engines),
        "nvml": {"answers": nvml.module is not None, "reason": nvml.reason},
        "gpu_backend": _gpu_backend(),
        "build_tools": _build_tools(),
        "sensors_absent": _sensors_absent(),
        "load_average": _load_average(),
        "noise": _noise(facts.fingerprint),
        "quiet": {
            "is_quiet": report.is_quiet,
            "findings": list(report.findings),
            "flags": list(report.flags),
            "cpu_use_other_cores": report.cpu_use_other_cores,
            "cpu_pressure_fraction": report.cpu_pressure_fraction,
            "cpu_steal_fraction": report.cpu_steal_fraction,
            "reasons": dict(report.reasons),
        },
        "awake": {"is_kept": awake.is_kept, "how": awake.how, "reason": awake.reason},
    }
    if has_bandwidth:
        found["ram_bandwidth"] = _bandwidth(facts)
    found["needs"] = [
        {"missing": missing, "needs": needs} for missing, needs in _needs(found, facts, report)
    ]
    return found


def _engines() -> tuple[list[dict[str, Any]], str | None]:
    """The builds that can be used, the default one marked, and why there is no default."""
    from llamasweep.builds.registry import Registry
    from llamasweep.errors import LlamasweepError

    registry = Registry()
    builds = {build.path: build for build in registry.list()}
    default, problem = None, None
    try:
        default = registry.default()
        builds.setdefault(default.path, default)
    except LlamasweepError as error:
        problem = error.message
    rows = [
        {
            "label": build.label,
            "path": build.path,
            "version": build.version,
            "number": build.number,
            "commit": build.commit,
            "backends": None if build.backends is None else list(build.backends),
            "devices": None if build.devices is None else list(build.devices),
            "is_default": default is not None and build.path == default.path,
        }
        for build in builds.values()
    ]
    return rows, problem


def _gpu_backend() -> dict[str, Any]:
    """Which backend a build made here would get, and what it would need for the GPU."""
    from llamasweep.builds.backends import choose_backend
    from llamasweep.builds.toolchain import read_machine_tools

    choice = choose_backend(read_machine_tools())
    return {"backend": choice.backend, "reason": choice.reason, "advice": choice.advice}


def _build_tools() -> dict[str, str | None]:
    import shutil

    from llamasweep.builds.toolchain import find_compiler

    return {
        "compiler": find_compiler(),
        "cmake": shutil.which("cmake"),
        "ninja": shutil.which("ninja") or shutil.which("ninja-build"),
    }


def _sensors_absent() -> dict[str, str]:
    from llamasweep.telemetry.sources import open_sources

    opened = open_sources()
    try:
        return dict(opened.absent)
    finally:
        opened.close()


def _noise(fingerprint: str) -> dict[str, Any]:
    """Whether this machine's own scatter is known, how old that is, and what is wrong with it."""
    from llamasweep.machine.noise_record import OLD_AFTER_S, load_noise

    record = load_noise(fingerprint)
    if record is None:
        return {
            "measured_at": None,
            "n_cells": 0,
            "problem": "this machine's own scatter, so that comparisons of builds know what counts",
        }
    age_s = record.age_s()
    problem = None
    if age_s > OLD_AFTER_S:
        problem = (
            f"a newer measure of this machine's own scatter: it is {age_s / 86400:.0f} days old"
        )
    return {"measured_at": record.measured_at, "n_cells": len(record.cells), "problem": problem}


def _load_average() -> list[float] | None:
    import os

    try:
        return list(os.getloadavg())
    except (OSError, AttributeError):
        return None


def _bandwidth(facts: MachineFacts) -> dict[str, Any]:
    from llamasweep.machine.bandwidth import measure_quickly

    told: list[str] = []
    measured = measure_quickly(facts, on_reason=told.append)
    if measured is None:
        return {"best_bytes_per_s": None, "reason": told[0] if told else None}
    return {
        "best_bytes_per_s": measured.best_bytes_per_s,
        "median_bytes_per_s": measured.median_bytes_per_s,
        "n_threads": measured.n_threads,
        "is_noisy": measured.is_noisy,
    }


_QUIET_ADVICE = {
    "busy": "close other programs, or measure when they are done",
    "cpu_pressure": "close other programs, or measure when they are done",
    "stolen_cpu": "another machine on the same host is busy; repeat later and compare",
    "swapping": "free memory until nothing is swapped",
    "slow_governor": "`sudo cpupower frequency-set -g performance` for the time of measuring",
    "on_battery": "plug the machine in",
    "gpu_busy": "end the other programs that compute on the GPU",
    "throttled": "let the machine cool down; a `cooldown` in the sweep waits between groups",
    "hot": "let the machine cool down; a `cooldown` in the sweep waits between groups",
}


def _needs(
    found: dict[str, Any], facts: MachineFacts, report: QuietReport
) -> list[tuple[str, str]]:
    """(what is missing, what it would need), most important first."""
    needs: list[tuple[str, str]] = []
    if found["engine_problem"] is not None:
        from llamasweep.builds.registry import INSTALL_HINT

        needs.append((found["engine_problem"], INSTALL_HINT))
        tools = found["build_tools"]
        if tools["compiler"] is None:
            needs.append(("a C++ compiler, to install builds", "install g++ or clang"))
        if tools["cmake"] is None or tools["ninja"] is None:
            needs.append(
                ("CMake or Ninja on PATH", "nothing: `builds install` fetches them from PyPI")
            )
    if found["gpu_backend"]["advice"] is not None:
        needs.append(("a build that uses the GPU", found["gpu_backend"]["advice"]))
    reasons = dict(facts.reasons)
    if "on the PCI bus" in reasons.get("gpu_nvidia", ""):
        needs.append((reasons["gpu_nvidia"], "install NVIDIA's driver; NVML comes with it"))
    if found["noise"]["problem"] is not None:
        needs.append(
            (found["noise"]["problem"], "`llamasweep noise SWEEP` measures a build against itself")
        )
    needs += [
        (finding, _QUIET_ADVICE.get(flag, "repeat when it is over"))
        for flag, finding in zip(report.flags, report.findings, strict=True)
    ]
    if facts.spec_ram_bandwidth_bytes_per_s is None:
        needs.append(
            (
                "the RAM's bandwidth by its data sheet",
                "nothing: it is measured instead (`doctor --bandwidth`), or give it in the sweep",
            )
        )
    if not found["awake"]["is_kept"]:
        needs.append(
            (f"keeping the machine awake ({found['awake']['reason']})", "switch off sleep yourself")
        )
    return needs


def _print(found: dict[str, Any]) -> None:
    """Sections of lines, coloured on a terminal."""
    from rich.console import Console
    from rich.text import Text

    from llamasweep.cli.terminal import printable

    console = Console(soft_wrap=True, highlight=False)
    for title, lines in _sections(found):
        console.print(Text(title, style="bold"))
        for mark, text in lines:
            style = {"+": "green", "-": "yellow", "!": "red"}.get(mark, "")
            console.print(Text(f"  {mark} ", style=style) + Text(printable(text)))


def _sections(found: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """(title, [(mark, line)]): "+" is there, "-" is absent, "!" would spoil a measurement."""
    from llamasweep.cli.doctor_servers import server_lines

    sections = [
        ("Engines", _engine_lines(found)),
        ("Servers", server_lines(found["servers"])),
        ("Machine", _machine_lines(found)),
        ("GPUs", _gpu_lines(found)),
        ("Sensors", [("-", f"{k}: {v}") for k, v in found["sensors_absent"].items()]),
        ("Just now", _quiet_lines(found)),
    ]
    needs = [("-", f"{need['missing']}: {need['needs']}") for need in found["needs"]]
    return [*sections, ("What would need what", needs or [("+", "nothing is missing")])]


def _engine_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    lines = []
    for engine in found["engines"]:
        version = engine["version"] or engine["number"] or "version not told"
        backends = ", ".join(engine["backends"] or []) or "backends not told"
        default = " (taken by default)" if engine["is_default"] else ""
        lines.append(("+", f"{engine['label']}: {version}, {backends}, {engine['path']}{default}"))
    if found["engine_problem"] is not None:
        lines.append(("!", found["engine_problem"]))
    return lines


def _machine_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    from llamasweep.units import format_bytes, format_bytes_per_s

    machine, reasons = found["machine"], found["machine"]["reasons"]
    speed = (
        f", {machine['ram_type'] or 'RAM'} at {machine['ram_speed_mts']} MT/s"
        if machine["ram_speed_mts"]
        else ""
    )
    facts = [
        ("CPU", "cpu_name", machine["cpu_name"]),
        (
            "cores",
            "n_cores_physical",
            machine["n_cores_physical"]
            and f"{machine['n_cores_physical']} physical, {machine['n_cores_logical']} logical, "
            f"{machine['n_cores_performance']} of them fast",
        ),
        ("RAM", "ram_bytes", machine["ram_bytes"] and format_bytes(machine["ram_bytes"]) + speed),
        ("RAM channels", "ram_channels", machine["ram_channels"]),
        ("system", "os_name", machine["os_name"] and f"{machine['os_name']} ({machine['kernel']})"),
        ("hypervisor", "hypervisor", machine["hypervisor"]),
        ("governor", "governor", machine["governor"]),
        ("power", "power_source", machine["power_source"]),
    ]
    lines = [
        ("-", f"{name}: not known, {reasons.get(key, 'the system does not tell')}")
        if value is None
        else ("+", f"{name}: {value if value != '' else 'none'}")
        for name, key, value in facts
    ]
    bandwidth = found.get("ram_bandwidth")
    if bandwidth is not None and bandwidth["best_bytes_per_s"] is not None:
        best = format_bytes_per_s(bandwidth["best_bytes_per_s"])
        median = format_bytes_per_s(bandwidth["median_bytes_per_s"])
        lines.append(("+", f"RAM bandwidth measured: best {best}, median {median}"))
    elif bandwidth is not None:
        lines.append(("-", f"RAM bandwidth: {bandwidth['reason']}"))
    return lines


def _gpu_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    from llamasweep.units import format_bytes

    lines = [
        (
            "+",
            f"{gpu['name']}: "
            + (
                format_bytes(gpu["memory_bytes"]) if gpu["memory_bytes"] else "no memory of its own"
            ),
        )
        for gpu in found["machine"]["gpus"]
    ]
    lines += [
        ("-", f"{key.removeprefix('gpu_')}: {reason}")
        for key, reason in found["machine"]["reasons"].items()
        if key.startswith("gpu_")
    ]
    if found["nvml"]["answers"]:
        lines.append(("+", "NVML answers"))
    return lines


def _quiet_lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [("!", finding) for finding in found["quiet"]["findings"]]
    if not lines:
        lines.append(("+", "the machine is quiet"))
    if found["load_average"] is not None:
        shown = ", ".join(f"{load:.2f}" for load in found["load_average"])
        lines.append(("+", f"load average: {shown}"))
    awake = found["awake"]
    lines.append(
        ("+", f"can be kept awake by {awake['how']}")
        if awake["is_kept"]
        else ("-", f"cannot be kept awake: {awake['reason']}")
    )
    return lines
