"""Model entries of a sweep -> model sources, and the labels that people see. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePath

from llamasweep.sweep.spec import ModelEntry
from llamasweep.sweep.subjects import ModelSource


def source_templates(entry: ModelEntry) -> list[ModelSource]:
    """One source per quantisation asked for; the path is as written, with `{quant}` filled in.

    The label is empty where the file's own name is to become it.
    """
    return [
        ModelSource(
            label=_label(entry, quant),
            path=_filled(entry.path or entry.glob, quant),
            synth=entry.synth,
            served=entry.ollama or entry.served,
            quant_asked=quant,
            quality=entry.quality,
        )
        for quant in entry.quants or (None,)
    ]


def _filled(text: str | None, quant: str | None) -> str | None:
    return text if text is None or quant is None else text.replace("{quant}", quant)


def _label(entry: ModelEntry, quant: str | None) -> str:
    base = entry.label or entry.synth or entry.ollama or entry.served or ""
    return f"{base} {quant}" if base and quant else base


def labelled(sources: Sequence[ModelSource]) -> list[ModelSource]:
    """Sources with a label each, unique: the file's name where none is given, then #2, #3 …"""
    named = [
        s if s.label else replace(s, label=PurePath(s.path or "model").stem or "model")
        for s in sources
    ]
    taken = {s.label for s in named}
    seen: Counter[str] = Counter()
    unique: list[ModelSource] = []
    for source in named:
        seen[source.label] += 1
        label, number = source.label, seen[source.label]
        while number > 1:
            label = f"{source.label} #{number}"
            if label not in taken:
                break
            number += 1
        taken.add(label)
        unique.append(source if label == source.label else replace(source, label=label))
    return unique


def model_matches(source: ModelSource, pattern: str) -> bool:
    """Whether a sweep's `model: pattern` (`*` and `?` allowed) means this source.

    The label counts with and without the quantisation that it was given.
    """
    names = {source.label}
    if source.quant_asked is not None:
        names.add(source.label.removesuffix(f" {source.quant_asked}"))
    return any(fnmatchcase(name, pattern) or name == pattern for name in names)
