"""`llamasweep devices`: the table of bandwidths and peak rates, or one row of it with its sources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from llamasweep.ceilings.devices import Device
    from llamasweep.ceilings.memory_words import MemoryWords


@click.command(name="devices")
@click.argument("name", nargs=-1)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def command(name: tuple[str, ...], is_json: bool) -> None:
    """Bandwidth and peak rates by the makers' figures: all devices, or NAME.

    NAME may leave out vendor and memory size, or be memory such as DDR5-5600x2 (two channels).

    \b
    Example:
      llamasweep devices
      llamasweep devices RTX 4090
      llamasweep devices DDR5-5600x2 --json
    """
    from llamasweep.ceilings.devices import devices, find_devices

    asked = " ".join(name)
    found = find_devices(asked) if asked else devices()
    if len(found) == 1:
        _show_one(found[0], is_json=is_json)
    elif asked and (memory := _memory(asked, is_known=bool(found))) is not None:
        _show_memory(memory, is_json=is_json)
    else:
        _show_all(found, is_json=is_json)


def _memory(asked: str, *, is_known: bool) -> MemoryWords | None:
    """Memory by its words. None for what the table knows; raises UsageError where neither does."""
    from llamasweep.ceilings.devices import find_device
    from llamasweep.ceilings.memory_words import parse_memory
    from llamasweep.errors import UsageError

    try:
        return parse_memory(asked)
    except ValueError as problem:
        if is_known:
            return None
        if "DDR" in asked.upper():
            raise UsageError(str(problem)) from None
    find_device(asked)  # raises, with the nearest names
    return None


def as_plain(device: Device) -> dict[str, Any]:
    """A row as JSON values; what has no figure is null."""
    return {**device._asdict(), "aliases": list(device.aliases)}


def _show_all(found: tuple[Device, ...], *, is_json: bool) -> None:
    from llamasweep.cli.terminal import table_lines

    if is_json:
        click.echo(json.dumps([as_plain(device) for device in found], indent=2))
        return
    heads = ("device", "memory", "GB/s", "GiB", "FP16 TFLOPS", "INT8 TOPS")
    rows = [
        (
            device.name,
            device.memory_type or "",
            f"{device.bandwidth_bytes_per_s / 1e9:g}",
            f"{device.memory_bytes / 2**30:g}" if device.memory_bytes else "",
            _tera(device.fp16_tensor_fp32_accumulate_flop_per_s or device.fp16_vector_flop_per_s),
            _tera(device.int8_op_per_s),
        )
        for device in found
    ]
    for line in table_lines(heads, rows):
        click.echo(line)
    click.echo("\nFP16: matrix units that sum in FP32, else the shader units. Empty: no figure.")
    click.echo("Sources stand with each device: llamasweep devices NAME")


def _tera(per_s: float | None) -> str:
    return "" if per_s is None else f"{per_s / 1e12:g}"


def _show_one(device: Device, *, is_json: bool) -> None:
    from llamasweep.cli.terminal import printable
    from llamasweep.units import format_bytes

    if is_json:
        click.echo(json.dumps(as_plain(device), indent=2))
        return
    tensor, other = device.tensor_source or "no source", device.source
    memory = None if device.memory_bytes is None else format_bytes(device.memory_bytes)
    rates = (
        ("FP16 matrix, FP32 sum", device.fp16_tensor_fp32_accumulate_flop_per_s, "FLOPS", tensor),
        ("FP16 matrix, FP16 sum", device.fp16_tensor_fp16_accumulate_flop_per_s, "FLOPS", tensor),
        ("INT8 matrix", device.int8_op_per_s, "OPS", device.tensor_source or other),
        ("FP16 vector", device.fp16_vector_flop_per_s, "FLOPS", other),
        ("FP32", device.fp32_flop_per_s, "FLOPS", other),
    )
    click.echo(printable(device.name))
    lines = [
        (
            "bandwidth",
            f"{device.bandwidth_bytes_per_s / 1e9:g} GB/s",
            device.bandwidth_source,
        ),
        ("memory", f"{memory or 'what is plugged in'} {device.memory_type or ''}".rstrip(), other),
        *(
            (name, "no figure" if rate is None else f"{rate / 1e12:g} T{unit}", source)
            for name, rate, unit, source in rates
        ),
    ]
    for name, value, source in lines:
        click.echo(
            printable(f"  {name:<22} {value:<22} {'' if value == 'no figure' else source}".rstrip())
        )
    if device.notes:
        click.echo(f"  {printable(device.notes)}")


def _show_memory(memory: MemoryWords, *, is_json: bool) -> None:
    from dataclasses import asdict

    if is_json:
        click.echo(json.dumps(asdict(memory), indent=2))
        return
    click.echo(memory.source)
