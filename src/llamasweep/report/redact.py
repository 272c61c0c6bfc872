"""Runs without what tells who measured them and where: every text of every record through one `Hider`. Pure.

Numbers, hashes of contents and names of products stay: without them the figures could not be judged.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from llamasweep.report.hiding import (
    HIDDEN,
    Hider,
    file_name,
    folder_of,
    hosts_in,
    is_path,
    names_in,
    peers_in,
)
from llamasweep.results.records import Attempt, RunData, RunInfo

NOTE = "Host and user names, folders, private addresses and serial numbers were left out of this report."
_PRIVATE_KEY = re.compile(
    r"serial|uuid|host_?name|node_?name|user_?name|mac_?addr|machine_?id|asset_?tag", re.I
)
_PRIVATE_KEYS = frozenset({"user", "username", "logname", "home", "host", "pwd"})
_OWN_KEY = re.compile(r"[a-z][a-z0-9_]*")
_FIXED = frozenset({"status", "test_kind", "source", "metric"})
"""Fields with a closed list of words: a person may be called like one of them."""
_PATH_KEYS = frozenset({"path", "file", "model", "glob", "folder", "dir", "mmproj"})
_PEER_FLAGS = frozenset({"--rpc", "-rpc", "--servers"})
_PATH_FLAGS = frozenset({"-m", "--model", "-mm", "--mmproj", "--lora", "-md", "--model-draft"})

_Record = TypeVar("_Record", bound=Any)


def redacted(runs: Sequence[RunData], words: Iterable[str] = ()) -> tuple[RunData, ...]:
    """The runs with all their texts hidden where needed. words: names of the machine and of the person who asks for it."""
    texts = {text for run in runs for text in _texts_of(run)}
    private = {text for run in runs for text in _private_values(run.info.machine)}
    private |= {
        text for run in runs for group in run.info.groups for text in _private_values(group)
    }
    paths = {text for text in texts if is_path(text)}
    for run in runs:
        paths |= {path for group in run.info.groups for path in _model_paths(group)}
        for part in (run.info.sweep_resolved, run.info.models, run.info.builds):
            paths |= set(_places(part))
    folders = {folder_of(path) for path in paths}
    given = [word for word in words if word]
    hosts = [part for word in given for part in (word, word.partition(".")[0])]
    peers = {peer for run in runs for text in _peer_texts(run) for peer in peers_in(text)}
    hide = Hider([*hosts, *private, *peers, *hosts_in(texts), *names_in(texts)], folders)
    return tuple(_run(run, hide) for run in runs)


def _run(run: RunData, hide: Hider) -> RunData:
    return RunData(
        info=_info(run.info, hide),
        attempts=tuple(_record(attempt, hide) for attempt in run.attempts),
        samples=tuple(_record(sample, hide) for sample in run.samples),
        readings=tuple(_record(reading, hide) for reading in run.readings),
    )


def _info(info: RunInfo, hide: Hider) -> RunInfo:
    plain = {f.name: _value(getattr(info, f.name), hide) for f in dataclasses.fields(info)}
    plain["sweep_resolved"] = _value(info.sweep_resolved, hide, has_own_keys=False)
    groups = [_group(group, hide) for group in info.groups]
    sweep_file = file_name(info.sweep_file) if info.sweep_file else None
    return RunInfo(
        **{
            **plain,
            "groups": groups,
            "sweep_file": sweep_file if sweep_file is None else hide(sweep_file),
            "notes": [*plain["notes"], NOTE],
        }
    )


def _group(group: Mapping[str, Any], hide: Hider) -> dict[str, Any]:
    plain: dict[str, Any] = _value(group, hide)
    argv = [str(word) for word in group.get("argv") or ()]
    if argv:
        before = ("", *argv)
        plain["argv"] = [
            hide(file_name(word)) if _is_place(word, flag) else hide(word)
            for flag, word in zip(before, argv, strict=False)
        ]
    return plain


def _is_place(word: str, flag: str) -> bool:
    return is_path(word) or (flag in _PATH_FLAGS and ("/" in word or "\\" in word))


def _record(record: _Record, hide: Hider) -> _Record:
    """The record itself where nothing in it changes."""
    changed = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if isinstance(value, str | tuple | dict) and value and field.name not in _FIXED:
            hidden = _value(value, hide)
            if hidden != value:
                changed[field.name] = hidden
    return dataclasses.replace(record, **changed) if changed else record


def _value(value: Any, hide: Hider, *, has_own_keys: bool = True) -> Any:
    """Plain data of the same shape. A field that is called after a secret is hidden whatever it holds.

    has_own_keys: keys that look like names of this program are ones, and stay.
    """
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {
            _key(str(key), hide, has_own_keys): HIDDEN
            if _is_private(key, item)
            else _value(_without_folder(key, item), hide, has_own_keys=has_own_keys)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        items = [_value(item, hide, has_own_keys=has_own_keys) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _without_folder(key: object, value: Any) -> Any:
    """A file's name for a field that is called after a path; anything else unaltered."""
    return file_name(value) if _names_place(key, value) else value


def _names_place(key: object, value: object) -> bool:
    is_text = isinstance(value, str) and ("/" in value or "\\" in value) and "://" not in value
    return key in _PATH_KEYS and is_text


def _key(key: str, hide: Hider, has_own_keys: bool) -> str:
    return key if has_own_keys and _OWN_KEY.fullmatch(key) else hide(key)


def _is_private(key: object, value: object) -> bool:
    name = str(key)
    is_named = name.casefold() in _PRIVATE_KEYS or _PRIVATE_KEY.search(name) is not None
    return is_named and isinstance(value, str | int) and not isinstance(value, bool)


def _private_values(value: object) -> Iterator[str]:
    """Texts under keys that are called after a secret."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _is_private(key, item):
                yield str(item)
            else:
                yield from _private_values(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _private_values(item)


def _places(value: object) -> Iterator[str]:
    """Paths under keys that are called after one."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if _names_place(key, item):
                yield str(item)
            else:
                yield from _places(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _places(item)


def _model_paths(group: Mapping[str, Any]) -> list[str]:
    argv = [str(word) for word in group.get("argv") or ()]
    return [word for flag, word in zip(("", *argv), argv, strict=False) if _is_place(word, flag)]


def _peer_texts(run: RunData) -> Iterator[str]:
    """What the run was told of other machines to compute on: `rpc` in the sweep and in rows, and flags of the engine."""
    for mapping in (run.info.sweep_resolved, *(a.requested for a in run.attempts)):
        yield from _named(mapping, "rpc")
    for attempt in run.attempts:
        yield from _named(attempt.applied, "rpc")
    for group in run.info.groups:
        argv = [str(word) for word in group.get("argv") or ()]
        for flag, word in itertools.pairwise(argv):
            if flag in _PEER_FLAGS:
                yield word


def _named(value: object, name: str) -> Iterator[str]:
    """All texts below a key of this name."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item) if str(key) == name else _named(item, name)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _named(item, name)


def _texts_of(run: RunData) -> Iterator[str]:
    yield from _texts(dataclasses.asdict(run.info))
    for attempt in run.attempts:
        yield from _attempt_texts(attempt)


def _attempt_texts(attempt: Attempt) -> Iterator[str]:
    for field in dataclasses.fields(attempt):
        yield from _texts(getattr(attempt, field.name))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(str(key))
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
