"""How long `llamasweep ceiling` takes from start to answer, as a multiple of a bare interpreter's start. Aim: at most 10.

On a model file with a vocabulary of 150,000 tokens and a device by name, and on a shape that needs no file; the header
read of that file is measured beside it. Compiled modules are kept in a folder of the benchmark, as an installed program
keeps them, whatever the environment says about writing them.
"""

from __future__ import annotations

import statistics
import struct
import sys
import time
from pathlib import Path

from benchmarks.bare import LLAMASWEEP, emit, parser, run, scratch

N_PAIRS = 21
N_TOKENS = 150_000
N_READS = 15
SHAPE, QUANT = "Qwen3-8B", "Q4_K_M"
_ARRAY, _STRING, _UINT32, _FLOAT32, _BOOL, _INT32 = 9, 8, 4, 6, 7, 5


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: object) -> bytes:
    """A metadata value with its type before it."""
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _text(value)
    assert isinstance(value, list)
    if value and isinstance(value[0], str):
        head = struct.pack("<IIQ", _ARRAY, _STRING, len(value))
        return head + b"".join(map(_text, value))
    return struct.pack(f"<IIQ{len(value)}i", _ARRAY, _INT32, len(value), *value)


def write_header_only(path: Path) -> int:
    """A real shape with a large vocabulary, merges and token types, and a hole for weights. Returns the head's length."""
    from llamasweep.gguf.ggml_types import type_by_name
    from llamasweep.gguf.shapes import planned_metadata, planned_tensors

    metadata = {
        **planned_metadata(SHAPE, QUANT),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": [f"token number {i}" for i in range(N_TOKENS)],
        "tokenizer.ggml.merges": [f"left{i} right{i}" for i in range(N_TOKENS)],
        "tokenizer.ggml.token_type": [1] * N_TOKENS,
    }
    tensors = planned_tensors(SHAPE, QUANT)
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    parts += [_text(key) + _value(value) for key, value in metadata.items()]
    offset = 0
    for tensor in tensors:
        ne = tensor.ne
        parts.append(_text(tensor.name) + struct.pack(f"<I{len(ne)}Q", len(ne), *ne))
        parts.append(struct.pack("<IQ", type_by_name(tensor.ggml_type).type_id, offset))
        offset += -(-tensor.n_bytes // 32) * 32
    head = b"".join(parts)
    with path.open("wb") as file:
        file.write(head + bytes(-len(head) % 32))
        file.truncate(file.tell() + offset)
    return len(head)


def header_read_s(path: Path) -> float:
    """Median time to read the head in a running process."""
    from llamasweep.gguf.header import read_model

    taken = []
    for _ in range(N_READS):
        began = time.perf_counter()
        facts = read_model(path)
        taken.append(time.perf_counter() - began)
        assert facts.n_vocab == N_TOKENS
    return statistics.median(taken)


def main() -> None:
    """Alternate a bare interpreter, the verb on a file and the verb on a shape; compare the medians."""
    parser(__doc__, minutes=1).parse_args()
    with scratch() as folder:
        path = folder / "m.gguf"
        n_head_bytes = write_header_only(path)
        device = ["--device", "RTX 4090", "--json"]
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "file": [LLAMASWEEP, "ceiling", str(path), *device],
            "shape": [LLAMASWEEP, "ceiling", SHAPE, "--quant", QUANT, *device],
        }
        env = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(N_PAIRS + 1):
            for name, argv in commands.items():
                wall_s = run(argv, cwd=folder, env=env).wall_s
                if number > 0:  # the first ones compile
                    taken[name].append(wall_s)
        medians = {name: statistics.median(times) for name, times in taken.items()}
        emit(
            "ceiling_start",
            {
                "bare_interpreter_s": round(medians["bare"], 4),
                "ceiling_of_a_file_s": round(medians["file"], 4),
                "ceiling_of_a_shape_s": round(medians["shape"], 4),
                "ratio_file": round(medians["file"] / medians["bare"], 2),
                "ratio_shape": round(medians["shape"] / medians["bare"], 2),
                "ratio_aim_at_most": 10,
                "header_read_s": round(header_read_s(path), 4),
                "header_read_aim_below_s": 0.1,
                "header_bytes": n_head_bytes,
                "n_tokens": N_TOKENS,
                "n_pairs": N_PAIRS,
            },
        )


if __name__ == "__main__":
    main()
