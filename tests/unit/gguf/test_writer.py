"""Generated files: readable, reproducible, silent where they must be, whole or not there."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.unit.gguf import dequantise
from tests.unit.gguf.micro import use_micro_shapes

from llamasweep.errors import ModelSynthError
from llamasweep.gguf.ggml_types import row_bytes
from llamasweep.gguf.header import read_model, read_shards
from llamasweep.gguf.mixture import QUANTS
from llamasweep.gguf.shapes import planned_tensors
from llamasweep.gguf.vocabulary import N_SILENT
from llamasweep.gguf.writer import planned_file_bytes, write_model


@pytest.fixture(autouse=True)
def _micro_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_micro_shapes(monkeypatch)


def _tensor_bytes(path: Path, name: str) -> bytes:
    (shard,) = read_shards(path)
    tensor = next(t for t in shard.layout.tensors if t.name == name)
    return path.read_bytes()[tensor.start : tensor.start + tensor.n_bytes]


def _floats(octets: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(octets) // 4}f", octets)


@pytest.mark.parametrize("quant", QUANTS)
def test_the_reader_finds_what_was_planned(tmp_path: Path, quant: str) -> None:
    path = tmp_path / "model.gguf"

    write_model("micro", quant, path)

    facts = read_model(path)
    assert list(facts.tensors) == planned_tensors("micro", quant)
    assert facts.is_synthetic
    assert facts.quant_short == quant
    assert facts.n_vocab == 512
    assert path.stat().st_size == planned_file_bytes("micro", quant)


def test_the_data_of_the_last_tensor_ends_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model("micro", "Q4_K_M", path)

    (shard,) = read_shards(path)

    last = shard.layout.tensors[-1]
    assert shard.layout.data_start % 32 == 0
    assert 0 <= path.stat().st_size - (last.start + last.n_bytes) < 32


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        write_model("micro", "Q4_K_M", tmp_path / name, seed=seed)

    first, second, third = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == second
    assert first != third


class Head(NamedTuple):
    shape: str
    quant: str
    tensor: str
    kind: str


@pytest.mark.parametrize(
    "head",
    [
        Head("micro", "Q4_K_M", "output.weight", "q6_K"),
        Head("micro", "Q8_0", "output.weight", "q8_0"),
        Head("micro-tied", "Q4_0", "token_embd.weight", "q6_K"),
        Head("micro-tied", "Q8_0", "token_embd.weight", "q8_0"),
    ],
)
def test_only_the_rows_of_silent_tokens_are_zero_in_the_head(tmp_path: Path, head: Head) -> None:
    path = tmp_path / "model.gguf"
    write_model(head.shape, head.quant, path)

    octets = _tensor_bytes(path, head.tensor)

    n_row = row_bytes(head.kind, 256)
    n_block = row_bytes(head.kind, 256 if head.kind == "q6_K" else 32)
    rows = [octets[i : i + n_row] for i in range(0, len(octets), n_row)]
    sums = [
        sum(
            abs(v)
            for at in range(0, n_row, n_block)
            for v in dequantise.BLOCKS[head.kind](row[at : at + n_block])
        )
        for row in rows[:20]
    ]
    assert sums[:N_SILENT] == [0] * N_SILENT
    assert all(total > 1 for total in sums[N_SILENT:])


def test_an_untied_embedding_has_no_zero_row(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model("micro", "F16", path)

    octets = _tensor_bytes(path, "token_embd.weight")

    assert any(octets[:512])


def test_rows_of_a_matrix_differ(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model("micro", "Q4_0", path)

    octets = _tensor_bytes(path, "token_embd.weight")

    rows = {octets[i : i + 144] for i in range(0, len(octets), 144)}
    assert len(rows) == 512


def test_norms_are_ones_decays_negative_and_corrections_zero(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model("micro", "Q4_0", path)

    def values(name: str) -> tuple[float, ...]:
        return _floats(_tensor_bytes(path, name))

    assert set(values("output_norm.weight")) == {1.0}
    assert set(values("blk.1.attn_norm.weight")) == {1.0}
    assert set(values("blk.0.ssm_d")) == {1.0}
    assert set(values("blk.0.exp_probs_b.bias")) == {0.0}
    assert all(-3 < v < 0 for v in values("blk.0.ssm_a"))
    assert all(abs(v) < 0.1 for v in values("blk.0.ssm_dt.bias"))


def test_the_last_norm_before_a_tied_head_has_random_signs(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_model("micro-tied", "Q4_0", path)

    values = _floats(_tensor_bytes(path, "output_norm.weight"))

    assert {abs(v) for v in values} == {0.125}
    assert 64 < sum(v > 0 for v in values) < 192


def test_progress_counts_up_to_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    seen: list[tuple[int, int]] = []

    write_model("micro", "Q8_0", path, on_progress=lambda done, total: seen.append((done, total)))

    n_bytes = path.stat().st_size
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (n_bytes, n_bytes)
    assert {total for _, total in seen} == {n_bytes}


def _fail_with(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("stop")])
def test_an_interrupted_write_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        write_model("micro", "Q8_0", tmp_path / "m.gguf", on_progress=lambda *_: _fail_with(error))

    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_is_one_sentence_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"old")
    full = OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ModelSynthError, match="no room on the disk"):
        write_model("micro", "Q8_0", path, on_progress=lambda *_: _fail_with(full))

    assert [p.name for p in tmp_path.iterdir()] == ["m.gguf"]
    assert path.read_bytes() == b"old"


def test_free_disk_is_checked_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    with pytest.raises(ModelSynthError, match="GiB free"):
        write_model("micro", "Q8_0", tmp_path / "m.gguf")

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(ModelSynthError, match="cannot write"):
        write_model("micro", "Q8_0", tmp_path / "file" / "m.gguf")


def test_seeds_outside_64_bits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelSynthError, match="seed -1"):
        write_model("micro", "Q8_0", tmp_path / "m.gguf", seed=-1)


def test_a_link_stays_and_the_model_is_written_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link.gguf").symlink_to(tmp_path / "model.gguf")

    write_model("micro", "Q4_0", tmp_path / "link.gguf")

    assert (tmp_path / "link.gguf").is_symlink()
    assert (tmp_path / "model.gguf").read_bytes()[:4] == b"GGUF"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_model_goes_through_a_pipe_that_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()

    write_model("micro", "Q4_0", pipe)

    reader.join(timeout=30)
    assert len(read[0]) == planned_file_bytes("micro", "Q4_0")
    assert pipe.is_fifo()
