"""What belongs together in a split model: names of its files, what each must say, the facts of all.

Is handed names and layouts; opens nothing. As `llama_split_path` of llama.cpp b11434 names them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llamasweep.errors import ModelFileError, quoted
from llamasweep.gguf.facts import ModelFacts, TensorInfo, facts_from
from llamasweep.gguf.layout import Layout

MAX_SHARDS = 4_096
_SHARD_NAME = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)


def shard_number(name: str) -> int | None:
    """1 for `NAME-00001-of-00003.gguf` in any case; None where a file is not named like a shard."""
    match = _SHARD_NAME.fullmatch(name.lower())
    return int(match["number"]) if match else None


def n_shards(first: Layout) -> int:
    """Files that the model is split into, 1 where it is not."""
    count = first.metadata.get("split.count", 0)
    return max(1, count) if isinstance(count, int) else 1


def shard_names(name: str, first: Layout) -> list[str]:
    """The names of all files of a split model: `NAME-00001-of-00003.gguf` and so on.

    name: of the file whose layout is given, which must be the first. Raises ModelFileError.
    """
    count = n_shards(first)
    if count > MAX_SHARDS:
        raise ModelFileError(f"claims to be split into {count} files")
    match = _SHARD_NAME.fullmatch(name)
    if match is None or int(match["count"]) != count:
        raise ModelFileError(
            f"is split into {count} files, but is not named like NAME-00001-of-{count:05d}.gguf",
            hint="Give the files of a split model their original names back.",
        )
    names = [f"{match['stem']}-{n:05d}-of-{count:05d}.gguf" for n in range(1, count + 1)]
    if first.metadata.get("split.no") != 0 or name != names[0]:
        raise ModelFileError(
            f"is a later shard of a split model of {count}",
            hint=f"Give the first shard instead: {quoted(names[0])}",
        )
    return names


def check_shard(layout: Layout, index: int) -> None:
    """Raise ModelFileError where a file is not the one of this index, counted from 0."""
    number = layout.metadata.get("split.no")
    if number != index:
        raise ModelFileError(
            f"should be shard {index} (from 0) but its key 'split.no' says {quoted(str(number))}"
        )


def check_union(layouts: Sequence[Layout]) -> None:
    """Raise ModelFileError unless each tensor is there once, and as many as the first promises."""
    names: set[str] = set()
    for index, layout in enumerate(layouts):
        for tensor in layout.tensors:
            if tensor.name in names:
                raise ModelFileError(
                    f"tensor {quoted(tensor.name)} of shard {index + 1} is in another shard too"
                )
            names.add(tensor.name)
    promised = layouts[0].metadata.get("split.tensors.count")
    if isinstance(promised, int) and promised != len(names):
        raise ModelFileError(
            f"its shards hold {len(names)} tensors but 'split.tensors.count' promises {promised}"
        )


def facts_of(layouts: Sequence[Layout]) -> ModelFacts:
    """The facts of a model from the layouts of all its files. Raises ModelFileError."""
    return facts_from(
        layouts[0].metadata,
        [
            TensorInfo(name=t.name, ne=t.ne, ggml_type=t.ggml_type, n_bytes=t.n_bytes)
            for layout in layouts
            for t in layout.tensors
        ],
        array_lengths=layouts[0].array_lengths,
        n_shards=len(layouts),
    )
