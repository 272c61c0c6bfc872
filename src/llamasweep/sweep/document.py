"""YAML text -> plain values that know their line, safely and without YAML 1.1's surprises. Pure.

`on`, `off`, `07:00`, `0x3` and `1e3` stay text; only plain decimal numbers, true, false and null
are anything else. Tags, merge keys, duplicate keys, cycles and documents beyond the bounds are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from llamasweep.errors import SweepFileError, SweepProblem

MAX_BYTES = 1_000_000
MAX_WRITTEN = 60_000
"""Keys, values and ends of lists in the text; some seconds of reading, far beyond what people write."""
MAX_NODES = 200_000
"""Values once aliases are unfolded."""
MAX_DEPTH = 40

Place = tuple[str | int, ...]
"""Keys and 0-based indices from the root of a document."""

_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\.[0-9]{1,17}")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """Where a value was written; line is 1-based."""

    file: str
    line: int


@dataclass(kw_only=True, slots=True)
class Document:
    """A document as plain dicts, lists and scalars, and where each of them was written."""

    file: str
    data: dict[str, Any]
    positions: dict[Place, Position] = field(default_factory=dict)

    def position(self, path: Place) -> Position | None:
        """Of the value at `path`, or of the nearest thing around it that has one."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.positions:
                return self.positions[path[:length]]
        return None

    def problem(self, path: Place, message: str, suggestion: str | None = None) -> SweepProblem:
        """A problem at `path`, with the file and line of the nearest known place."""
        position = self.position(path)
        return SweepProblem(
            file=position.file if position else self.file,
            line=position.line if position else None,
            where=path_text(path),
            message=message,
            suggestion=suggestion,
        )


def path_text(path: Place) -> str:
    """`matrix.depth[2]`; the root is `(document)`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(document)"


class _RefusedError(Exception):
    """A fault that makes the rest of the document unreadable."""

    def __init__(self, line: int | None, where: Place, message: str) -> None:
        super().__init__(message)
        self.line, self.where, self.message = line, where, message


def read_document(text: str, file: str) -> Document:
    """The one mapping in `text`. Raises SweepFileError with every fault that can be told apart."""
    try:
        return _read(text, file)
    except _RefusedError as fault:
        raise SweepFileError(
            [
                SweepProblem(
                    file=file, line=fault.line, where=path_text(fault.where), message=fault.message
                )
            ]
        ) from None


def _read(text: str, file: str) -> Document:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _RefusedError(None, (), f"the file is larger than {MAX_BYTES:,} bytes")
    try:
        _check_events(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        reason = " ".join(str(part) for part in (fault.context, fault.problem) if part)
        raise _RefusedError(
            mark.line + 1 if mark else None, (), f"not valid YAML: {reason}"
        ) from None
    except yaml.YAMLError as fault:
        reason = str(fault).splitlines()[0]
        raise _RefusedError(None, (), f"not valid YAML: {reason}") from None
    if root is None:
        raise _RefusedError(1, (), "the file is empty")
    if not isinstance(root, yaml.MappingNode):
        raise _RefusedError(_line(root), (), "a sweep is a mapping: `key: value` lines")
    builder = _Builder(file)
    data = builder.build(root, (), frozenset())
    if builder.problems:
        raise SweepFileError(builder.problems)
    return Document(file=file, data=data, positions=builder.positions)


def _check_events(text: str) -> None:
    """Bound nesting and size before the recursive composer sees the text."""
    depth = 0
    for n_events, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        line = event.start_mark.line + 1 if event.start_mark else None
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise _RefusedError(line, (), f"the tag {tag!r} is not allowed; write a plain value")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _RefusedError(line, (), f"nested deeper than {MAX_DEPTH} levels")
        if n_events > MAX_WRITTEN:
            raise _RefusedError(line, (), f"more than {MAX_WRITTEN:,} keys and values")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Builder:
    """Turns composed nodes into plain values, noting positions and faults on the way."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.positions: dict[Place, Position] = {}
        self.problems: list[SweepProblem] = []
        self._n_nodes = 0

    def build(self, node: yaml.Node, path: Place, inside: frozenset[int]) -> Any:
        self._n_nodes += 1
        if self._n_nodes > MAX_NODES:
            raise _RefusedError(
                _line(node), path, f"aliases expand to more than {MAX_NODES:,} values"
            )
        if id(node) in inside:
            raise _RefusedError(_line(node), path, "an alias refers to something that contains it")
        if len(path) > MAX_DEPTH:
            raise _RefusedError(_line(node), path, f"aliases nest deeper than {MAX_DEPTH} levels")
        self.positions[path] = Position(file=self.file, line=_line(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, inside | {id(node)})
        if isinstance(node, yaml.SequenceNode):
            within = inside | {id(node)}
            return [self.build(item, (*path, i), within) for i, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _fault(self, node: yaml.Node, path: Place, message: str) -> None:
        self.problems.append(
            SweepProblem(file=self.file, line=_line(node), where=path_text(path), message=message)
        )

    def _mapping(
        self, node: yaml.MappingNode, path: Place, inside: frozenset[int]
    ) -> dict[Hashable, Any]:
        built: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in built:
                first = self.positions[(*path, key)].line
                self._fault(
                    key_node, (*path, key), f"the key is given twice (first in line {first})"
                )
                continue
            built[key] = self.build(value_node, (*path, key), inside)
            self.positions[(*path, key)] = Position(file=self.file, line=_line(key_node))
        return built

    def _key(self, node: yaml.Node, path: Place) -> str | None:
        if not isinstance(node, yaml.ScalarNode):
            self._fault(node, path, "a key must be a word")
            return None
        if node.tag == "tag:yaml.org,2002:merge":
            self._fault(node, path, "merge keys (<<) are not supported; use `extends`")
            return None
        return str(node.value)

    def _scalar(self, node: yaml.Node, path: Place) -> Any:
        text = str(node.value)
        explicit = isinstance(node, yaml.ScalarNode) and node.style is not None
        if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
            self._fault(node, path, "text may not hold a zero byte or half a character")
            return None
        return text if explicit else plain_value(text)


def plain_value(text: str) -> Any:
    """What unquoted text means: null, true, false, a decimal number, else the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def merged(base: Document, over: Document) -> Document:
    """`over` on top of `base`: mappings are merged key by key, everything else is replaced whole.

    A key set to null in `over` takes the base's value away.
    """
    positions: dict[Place, Position] = {(): over.positions[()]} if () in over.positions else {}
    data = _merge(base, over, (), base.data, over.data, positions)
    return Document(file=over.file, data=data, positions=positions)


def _merge(
    base: Document,
    over: Document,
    path: Place,
    low: dict[str, Any],
    high: dict[str, Any],
    positions: dict[Place, Position],
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key in [*low, *(k for k in high if k not in low)]:
        here = (*path, key)
        if key in high and high[key] is None and key in low:
            continue
        if isinstance(low.get(key), dict) and isinstance(high.get(key), dict):
            positions[here] = over.positions[here]
            result[key] = _merge(base, over, here, low[key], high[key], positions)
            continue
        source, value = (over, high[key]) if key in high else (base, low[key])
        result[key] = value
        positions.update(_below(source, here, value))
    return result


def _below(source: Document, path: Place, value: object) -> Iterator[tuple[Place, Position]]:
    """Positions of a value and of everything in it."""
    if path in source.positions:
        yield path, source.positions[path]
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield from _below(source, (*path, key), inner)
