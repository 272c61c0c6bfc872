"""`llamasweep calibrate`: measure this machine once, show it on one screen, and keep it for sweeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from llamasweep.machine.bandwidth import Bandwidth
    from llamasweep.machine.calibration import Calibration
    from llamasweep.machine.memory_curve import MemoryCurve
    from llamasweep.machine.spec_bandwidth import SpecFigure


@click.command(name="calibrate")
@click.option("--quick", "is_quick", is_flag=True, help="A few seconds, with less certain figures.")
@click.option(
    "--disk",
    "disk_folder",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Measure the disk of this folder (default: the user's cache, where generated models are).",
)
@click.option(
    "--show", "is_shown", is_flag=True, help="Show the newest calibration, measure nothing."
)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def command(is_quick: bool, disk_folder: Path | None, is_shown: bool, is_json: bool) -> None:
    """What this machine can really do: RAM, disk, matrices, beside the specification.

    Reads RAM with 1, 2, 4 … threads, writes and removes a file of at most 1 GiB, and keeps the result
    for sweeps on this machine. Best on an idle machine.

    \b
    Example:
      llamasweep calibrate
      llamasweep calibrate --quick --json
      llamasweep calibrate --show
    """
    from llamasweep.errors import UsageError
    from llamasweep.machine.calibration import calibration_path, load_calibration
    from llamasweep.machine.facts import read_facts

    facts = read_facts()
    if is_shown:
        found = load_calibration(facts.fingerprint)
        if found is None:
            raise UsageError("this machine is not calibrated", hint="Run `llamasweep calibrate`.")
    else:
        found = _measure(facts, is_quick=is_quick, disk_folder=disk_folder)
    path = calibration_path(found.fingerprint)
    if is_json:
        click.echo(json.dumps({**found.to_dict(), "path": str(path)}, indent=2))
        return
    for line in _lines(found):
        click.echo(line)
    click.echo(f"\nKept in {path}; sweeps on this machine use it.")


def _measure(facts: Any, *, is_quick: bool, disk_folder: Path | None) -> Calibration:
    """Under the sweep's lock: a sweep and a calibration would spoil each other."""
    from llamasweep.errors import StoreError
    from llamasweep.machine.calibrate import calibrate
    from llamasweep.machine.calibration import load_calibration, store_calibration
    from llamasweep.run.lock import SweepLock

    on_step, end_steps = _progress()
    with SweepLock("calibrate"):
        try:
            found = calibrate(
                facts,
                is_quick=is_quick,
                disk_folder=disk_folder,
                before=load_calibration(facts.fingerprint),
                on_step=on_step,
            )
        finally:
            end_steps()
    try:
        store_calibration(found)
    except OSError as problem:
        raise StoreError(
            f"the calibration could not be kept: {problem}",
            hint="Make the cache writable, or set LLAMASWEEP_CACHE to another folder.",
        ) from problem
    return found


def _progress() -> tuple[Callable[[str], None], Callable[[], None]]:
    """(show a step, end the display): one line that changes on a terminal, else a line for each part."""
    is_terminal = sys.stderr.isatty()
    parts: set[str] = set()

    def show(step: str) -> None:
        if is_terminal:
            click.echo(f"\r\x1b[K{step[:100]} …", nl=False, err=True)
            return
        part = step.partition(":")[0]
        if part not in parts:
            parts.add(part)
            click.echo(f"{part} …", err=True)

    def end() -> None:
        if is_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)

    return show, end


def _lines(found: Calibration) -> Iterator[str]:
    """One screen."""
    from llamasweep.cli.terminal import printable
    from llamasweep.units import format_flop_per_s, format_seconds

    reasons = dict(found.reasons)
    how = "quickly calibrated" if found.is_quick else "calibrated"
    age = format_seconds(round(found.age_s())) + " ago" if found.age_s() >= 60 else "just now"
    yield f"This machine, {how} {found.measured_at[:10]} ({age})"
    yield ""
    if found.ram is None:
        yield f"RAM       not measured: {printable(reasons.get('ram', 'no reason told'))}"
    else:
        yield from _ram_lines(found.ram)
    yield from _spec_lines(found.spec_ram, found.ram_fraction_of_spec)
    for spec in found.spec_gpus:
        yield ""
        yield from _spec_lines(spec, None)
    yield ""
    yield from _disk_lines(found, reasons)
    if found.matrix is None:
        yield f"CPU       not measured: {printable(reasons.get('matrix', 'no reason told'))}"
    else:
        yield (
            f"CPU       {format_flop_per_s(found.matrix.best_flop_per_s)} FP32 matrix product, "
            f"NumPy with {printable(found.matrix.blas or 'its own library')}"
        )
        yield "          a reference between machines; llama.cpp computes with other kernels"
    for warning in found.warnings:
        yield ""
        yield f"!  {printable(warning)}"


def _ram_lines(ram: MemoryCurve) -> Iterator[str]:
    from llamasweep.units import format_bytes, format_bytes_per_s

    best = ram.best
    yield (
        f"RAM       {format_bytes_per_s(best.best_bytes_per_s)} read, the best of {best.n_rounds} rounds "
        f"(median {format_bytes_per_s(best.median_bytes_per_s)}), {_threads(best.n_threads)}"
    )
    heads = {"huge": "huge pages", "4 KiB": "4 KiB pages", "system": "best"}
    yield "          threads" + "".join(f"{heads[kind]:>16}" for kind in ram.kinds)
    for n_threads in sorted({point.n_threads for point in ram.points}):
        cells = (_cell(ram.of(kind), n_threads) for kind in ram.kinds)
        yield f"          {n_threads:>7}" + "".join(f"{cell:>16}" for cell in cells).rstrip()
    knee = ram.knee_threads
    if knee is not None:
        verb = "reaches" if knee == 1 else "reach"
        yield f"          the knee: {_threads(knee)} {verb} 95 % of it; more read hardly faster"
    yield (
        f"          by {_how(best.method)} over {format_bytes(best.buffer_bytes)}; "
        "mapped model files lie on 4 KiB pages"
    )
    for method in ram.methods:
        if method != best.method:
            other = max(p.best_bytes_per_s for p in ram.points if p.method == method)
            yield f"          {format_bytes_per_s(other)} by {_how(method)}"


def _how(method: str) -> str:
    from llamasweep.cli.terminal import printable
    from llamasweep.machine.scanners import VECTOR_MATRIX

    streams = {
        "memchr": ", one stream per thread",
        "memcmp": ", two streams per thread",
        VECTOR_MATRIX: " (FP32), rows beside each other",
    }
    return printable(method) + streams.get(method, "")


def _cell(points: tuple[Bandwidth, ...], n_threads: int) -> str:
    from llamasweep.units import format_bytes_per_s

    found = [p.best_bytes_per_s for p in points if p.n_threads == n_threads]
    return format_bytes_per_s(found[0]) if found else ""


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _spec_lines(spec: SpecFigure, fraction: float | None) -> Iterator[str]:
    from llamasweep.cli.terminal import printable
    from llamasweep.units import format_bytes_per_s

    head = "          " if spec.of == "RAM" else f"{'GPU':<10}{printable(spec.of)}: "
    if spec.bytes_per_s is None:
        yield f"{head}specification not known: {printable(spec.reason or 'no reason told')}"
        return
    share = "" if fraction is None else f"; {fraction:.0%} of it was measured"
    yield f"{head}specified {format_bytes_per_s(spec.bytes_per_s)}{share}"
    yield f"          from {printable(spec.source or 'an unknown source')}"


def _disk_lines(found: Calibration, reasons: dict[str, str]) -> Iterator[str]:
    from llamasweep.cli.terminal import printable
    from llamasweep.units import format_bytes_per_s

    disk = found.disk
    if disk is None:
        yield f"Disk      not measured: {printable(reasons.get('disk', 'no reason told'))}"
        return
    yield (
        f"Disk      {format_bytes_per_s(disk.sequential_bytes_per_s)} in large blocks, "
        f"{format_bytes_per_s(disk.random_bytes_per_s)} page by page "
        f"({disk.random_latency_s * 1e6:.0f} µs each)"
    )
    yield f"          {printable(found.disk_folder or '')} ({disk.filesystem or 'file system not told'}), {disk.method}"
