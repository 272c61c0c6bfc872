"""What devices can do by their makers' figures: bandwidth, memory, peak rates, each with its source.

The table is `devices.csv` beside this module. Finds a device by what people and drivers call it;
knows nothing of the machine it runs on and measures nothing.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from llamasweep.errors import UsageError

_MAX_NAME_LENGTH = 200
_N_SUGGESTIONS = 3
_MEMORY_TOLERANCE = 0.10
"""Drivers keep a share for themselves, and error correction costs up to 7 %."""

_SHARES_MEMORY = "shares system memory"
"""Note of graphics whose memory is whatever is plugged in; their row is of one configuration."""

_SAYS_NOTHING = frozenset(
    {
        *("nvidia", "geforce", "amd", "ati", "radeon", "intel", "apple", "qualcomm", "gpu"),
        *("graphics", "generation", "edition", "workstation", "corporation", "chip", "card"),
    }
)
"""Words that drivers and people add or leave out without meaning another device."""

_MEANS_ANOTHER = frozenset(
    {
        *("ti", "super", "d", "gre", "xt", "xtx", "pro", "max", "ultra", "plus", "extreme"),
        *("laptop", "mobile", "q", "nvl", "elite"),
    }
)
"""Words that make another device of it: "M4 Pro" is no way to write "M4"."""

_GLUED = (
    (re.compile(r"\((?:r|tm|c)\)|[®™©]"), " "),
    (re.compile(r"\b(rtx|gtx|rx|arc|epyc|xeon)(?=\d)"), r"\1 "),
    (re.compile(r"\b(\d{3,4})(ti|super|xtx|xt|gre)(super)?\b"), r"\1 \2 \3"),
    (re.compile(r"\b(m\d)(pro|max|ultra)\b"), r"\1 \2"),
    (re.compile(r"\b(\d+)\s*(?:gb|gib)\b"), r"\1gb"),
    (re.compile(r"\bsxm\d\b"), "sxm"),
    (re.compile(r"\bpci-?e\b"), "pcie"),
)


class Device(NamedTuple):
    """One row of the table. Rates are peaks without sparsity; None is "no figure with a source".

    device_class: gpu, soc or "cpu platform" (memory of a kind, no processor). memory_bytes: what
    makers call GB is 2^30 here, as drivers report it; None where it varies or is not told.
    fp16_tensor_…: of matrix units, with the sum kept in FP16 or in FP32; on NVIDIA's consumer cards
    the second is half. fp16_vector: of the shader units. int8_op_per_s: of matrix units.
    bandwidth_source and tensor_source: of those figures; source: of all others.
    """

    name: str
    device_class: str
    vendor: str | None
    memory_type: str | None
    bandwidth_bytes_per_s: float
    memory_bytes: int | None
    fp16_tensor_fp16_accumulate_flop_per_s: float | None
    fp16_tensor_fp32_accumulate_flop_per_s: float | None
    fp32_flop_per_s: float | None
    fp16_vector_flop_per_s: float | None
    int8_op_per_s: float | None
    bandwidth_source: str
    tensor_source: str | None
    source: str
    notes: str | None
    aliases: tuple[str, ...]


def devices() -> tuple[Device, ...]:
    """All rows, in the order of the table."""
    return _table()


@cache
def _table() -> tuple[Device, ...]:
    text = Path(__file__).with_name("devices.csv").read_text(encoding="utf-8")
    return tuple(_device(row) for row in csv.DictReader(text.splitlines()))


def _device(row: dict[str, str]) -> Device:
    def scaled(column: str, factor: float) -> float | None:
        return round(float(row[column]) * factor) if row[column] else None

    memory_bytes = scaled("memory_GB", 2**30)
    return Device(
        name=row["device"],
        device_class=row["class"],
        vendor=row["vendor"] or None,
        memory_type=row["memory_type"] or None,
        bandwidth_bytes_per_s=round(float(row["mem_bandwidth_GBps"]) * 1e9),
        memory_bytes=None if memory_bytes is None else int(memory_bytes),
        fp16_tensor_fp16_accumulate_flop_per_s=scaled("fp16_tensor_TFLOPS_fp16_accumulate", 1e12),
        fp16_tensor_fp32_accumulate_flop_per_s=scaled("fp16_tensor_TFLOPS_fp32_accumulate", 1e12),
        fp32_flop_per_s=scaled("fp32_TFLOPS", 1e12),
        fp16_vector_flop_per_s=scaled("fp16_vector_TFLOPS", 1e12),
        int8_op_per_s=scaled("int8_TOPS_dense", 1e12),
        bandwidth_source=row["bandwidth_basis"],
        tensor_source=row["tensor_basis"] or None,
        source=row["source"],
        notes=row["notes"] or None,
        aliases=tuple(alias for alias in row["aliases"].split("|") if alias),
    )


def find_device(name: str) -> Device:
    """The one device of that name or alias, as people or drivers write it.

    Raises UsageError where there is none, with the nearest names, or several, with all of them.
    """
    found = find_devices(name)
    if len(found) == 1:
        return found[0]
    shown = name if len(name) <= 60 else name[:57] + "..."
    if found:
        raise UsageError(
            f"{shown!r} can be {len(found)} devices",
            hint="Say which: " + ", ".join(repr(device.name) for device in found),
        )
    near = nearest_names(name)
    raise UsageError(
        f"the device table has no {shown!r}",
        hint=(f"Near: {', '.join(map(repr, near))}. " if near else "")
        + "`llamasweep devices` lists all; a bandwidth can be given as a number instead.",
    )


def find_devices(name: str) -> tuple[Device, ...]:
    """All devices that the name can mean, the whole name first; () where it means none.

    A name may leave out vendor, memory size and form factor, but no word that makes another device.
    """
    name = name[:_MAX_NAME_LENGTH].strip()
    folded = name.casefold()
    asked = _words(name)
    if not asked:
        return ()
    candidates = [device for device in devices() if _has_letters_of(device, asked)]
    for rule in (_is_name, _is_same_words, _is_shortened):
        found = tuple(device for device in candidates if rule(device, folded, asked))
        if found:
            return found
    return ()


def match_reported(name: str, memory_bytes: int | None) -> Device | None:
    """The device that a driver reports under this name and with this much memory; None if unclear.

    memory_bytes: as reported, within 10 % of the maker's; None where it is not known.
    """
    fits = [d for d in find_devices(name) if _has_memory(d, memory_bytes)]
    return fits[0] if len(fits) == 1 else None


def socs_named_in(text: str) -> tuple[Device, ...]:
    """The chips with memory of their own whose name stands in a longer text, the longest deciding.

    text: what the system says of processor or board, such as "Raspberry Pi 5 Model B Rev 1.0".
    Several where a name has variants, () where none is named.
    """
    told = f" {' '.join(_word_list(text[:_MAX_NAME_LENGTH]))} "
    found: dict[int, list[Device]] = {}
    for device in devices():
        if device.device_class != "soc" or device.notes == _SHARES_MEMORY:
            continue
        names = (device.name.partition("(")[0], *device.aliases)
        lengths = [len(n) for n in (" ".join(_word_list(x)) for x in names) if f" {n} " in told]
        if lengths:
            found.setdefault(max(lengths), []).append(device)
    return tuple(found[max(found)]) if found else ()


def nearest_names(name: str) -> list[str]:
    """Up to three names or aliases of the table that look most like it."""
    import difflib  # noqa: PLC0415  (only a name that is not found needs it)

    asked = " ".join(sorted(_words(name[:_MAX_NAME_LENGTH])))
    by_text = {" ".join(sorted(_words(n))): d.name for d in devices() for n in _names(d)}
    close = difflib.get_close_matches(asked, by_text, n=2 * _N_SUGGESTIONS, cutoff=0.5)
    return list(dict.fromkeys(by_text[text] for text in close))[:_N_SUGGESTIONS]


def _has_memory(device: Device, memory_bytes: int | None) -> bool:
    if memory_bytes is None or device.memory_bytes is None:
        return True
    return abs(memory_bytes - device.memory_bytes) <= _MEMORY_TOLERANCE * device.memory_bytes


def _names(device: Device) -> Iterable[str]:
    return (device.name, *device.aliases)


def _has_letters_of(device: Device, asked: frozenset[str]) -> bool:
    """Whether the words can be the device's at all: a cheap look that spares the splitting of most names into words."""
    text = "".join((*_names(device), device.memory_type or "")).casefold()
    squeezed = "".join(filter(str.isalnum, text))
    return all(word in squeezed for word in asked)


def _is_name(device: Device, folded: str, _: frozenset[str]) -> bool:
    return any(folded == name.casefold() for name in _names(device))


def _is_same_words(device: Device, _: str, asked: frozenset[str]) -> bool:
    return any(asked == _words(name) for name in _names(device))


def _is_shortened(device: Device, _: str, asked: frozenset[str]) -> bool:
    words = _words(device.name) | _words(device.memory_type or "")
    return asked <= words and not (_words(device.name) - asked) & _MEANS_ANOTHER


@lru_cache(maxsize=1024)
def _words(name: str) -> frozenset[str]:
    return frozenset(_word_list(name)) - _SAYS_NOTHING


def _word_list(name: str) -> list[str]:
    text = name.casefold()
    for pattern, replacement in _GLUED:
        text = pattern.sub(replacement, text)
    return re.findall(r"[a-z0-9]+", text)
