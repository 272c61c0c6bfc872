"""Reading model files: thirty real shapes, split files, and everything that can be wrong with a file."""

from __future__ import annotations

import csv
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.gguf import headers

from llamasweep.errors import ModelFileError
from llamasweep.gguf.header import content_hash, n_file_bytes, read_model, sample_starts

MODELS = headers.golden_models()
with (headers.GOLDEN / "models.csv").open(encoding="utf-8", newline="") as _file:
    TRUTH = {row["model"]: row for row in csv.DictReader(_file)}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_totals_equal_what_llama_cpp_reports(name: str, tmp_path: Path) -> None:
    metadata, tensors = MODELS[name]
    head, n_data_bytes = headers.gguf_head(metadata, tensors)
    path = headers.write_sparse(tmp_path / "model.gguf", head, n_data_bytes)
    truth = TRUTH[name]

    facts = read_model(path)

    assert facts.n_params == int(truth["model_n_params"])
    assert facts.size_bytes == int(truth["model_size_bytes"])
    assert len(facts.tensors) == int(truth["n_tensors"])
    assert facts.arch == truth["arch"]
    assert facts.quant_short == truth["quant"]
    assert truth["llama_bench_model_type"].endswith(facts.quant)
    assert facts.n_layers == int(truth["block_count"])
    assert facts.n_embd == int(truth["embedding_length"])
    assert facts.n_expert == int(truth["expert_count"] or 0)
    assert facts.n_expert_used == int(truth["expert_used"] or 0)
    assert facts.n_vocab == int(truth["vocab"])
    assert facts.tied_embeddings == (truth["tied_embeddings"] == "1")
    assert n_file_bytes(path) == len(head) + n_data_bytes


def test_header_with_a_large_vocabulary_is_read_without_building_it(tmp_path: Path) -> None:
    vocabulary = {
        "tokenizer.ggml.tokens": [f"token{i}" for i in range(150_000)],
        "tokenizer.ggml.merges": [f"a{i} b{i}" for i in range(150_000)],
        "tokenizer.ggml.token_type": [1] * 150_000,
    }
    path = headers.write_tiny(tmp_path / "m.gguf", metadata=vocabulary)

    size_bytes = path.stat().st_size
    tracemalloc.start()
    try:
        facts = read_model(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert facts.n_vocab == 150_000
    assert not any(key.startswith("tokenizer.") for key, _ in facts.metadata)
    assert peak_bytes < size_bytes / 2  # a megabyte is read at a time; the strings alone take 20


def test_scalars_and_short_arrays_are_kept(tmp_path: Path) -> None:
    metadata = {"llama.attention.head_count": [0, 8, 4], "x.flag": True, "x.scale": 0.5}
    path = headers.write_tiny(tmp_path / "m.gguf", metadata=metadata)

    kept = dict(read_model(path).metadata)

    assert kept["llama.attention.head_count"] == (0, 8, 4)
    assert kept["x.flag"] is True
    assert kept["x.scale"] == 0.5


# -- what can be wrong with a file


def _shorten(path: Path, n_bytes: int) -> Path:
    os.truncate(path, n_bytes)
    return path


def _plain(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _tiny(path: Path, **changes: Any) -> Path:
    return headers.write_tiny(path, **changes)


def _fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _counts(n_tensors: int, n_keys: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_keys)


WRONG: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda p: p, "there is no such file"),
    "directory": (lambda p: p.parent, "this is a directory"),
    "pipe": (_fifo, "not a regular file"),
    "empty": (lambda p: _plain(p, b""), "only 0 bytes long"),
    "text": (lambda p: _plain(p, b"hello world, this is no model"), "begins with b'hell'"),
    "lfs": (
        lambda p: _plain(p, b"version https://git-lfs.github.com/spec/v1\n"),
        "a Git LFS pointer",
    ),
    "web page": (lambda p: _plain(p, b"<!DOCTYPE html><title>404</title>"), "a web page"),
    "version 1": (lambda p: _tiny(p, version=1), "version 1 is no longer supported"),
    "version 99": (lambda p: _tiny(p, version=99), "version 99 is not known"),
    "big endian": (lambda p: _tiny(p, version=3 << 24), "big-endian"),
    "cut in the head": (lambda p: _shorten(_tiny(p), 150), "truncated or corrupt"),
    "cut in the data": (
        lambda p: _tiny(p, cut_bytes=1),
        r"'output_norm.weight' ends at byte \d+ but the file has only \d+ bytes: it is truncated",
    ),
    "many tensors": (lambda p: _plain(p, _counts(2**63, 0)), "claims 9223372036854775808 tensors"),
    "many keys": (lambda p: _plain(p, _counts(0, 2**60)), "metadata keys; 65536 is the most"),
    "keys that are not there": (
        lambda p: _plain(p, _counts(0, 60_000) + b"\1" + bytes(30)),
        "metadata key 0 reaches|'value|invalid|is empty|truncated",
    ),
    "long key": (
        lambda p: _plain(p, _counts(0, 1) + struct.pack("<Q", 2**62)),
        "metadata key 0 is 4611686018427387904 bytes long",
    ),
    "empty key": (lambda p: _plain(p, _counts(0, 1) + bytes(8)), "metadata key 0 is empty"),
    "key twice": (
        lambda p: _plain(p, _counts(0, 2) + 2 * (headers.text("a.b") + headers.typed(1))),
        "'a.b' appears twice",
    ),
    "key of no type": (
        lambda p: _plain(p, _counts(0, 1) + headers.text("a.b") + struct.pack("<I", 77)),
        "the value of 'a.b' has the invalid type 77",
    ),
    "array of arrays": (
        lambda p: _tiny(p, metadata={"a.b": struct.pack("<IIQ", 9, 9, 3)}),
        "array of the invalid type 9",
    ),
    "endless strings": (
        lambda p: _tiny(p, metadata={"a.b": struct.pack("<IIQ", 9, 8, 2**61)}),
        "claims 2305843009213693952 strings",
    ),
    "endless numbers": (
        lambda p: _tiny(p, metadata={"a.b": struct.pack("<IIQ", 9, 10, 2**61)}),
        "reaches beyond the end of the file",
    ),
    "string beyond the end": (
        lambda p: _tiny(p, metadata={"a.b": struct.pack("<IIQQ", 9, 8, 3, 2**64 - 1)}),
        "reaches beyond the end of the file",
    ),
    "alignment": (
        lambda p: _tiny(p, metadata={"general.alignment": 33}),
        "general.alignment is 33, not a power of two",
    ),
    "alignment of no number": (
        lambda p: _tiny(p, metadata={"general.alignment": "32"}),
        "general.alignment is not a number",
    ),
    "alignment larger than the layout": (
        lambda p: _tiny(p, metadata={"general.alignment": 2**20}),
        "not a multiple of the alignment 1048576",
    ),
    "no architecture": (
        lambda p: _tiny(p, metadata={"general.architecture": 7}),
        "'general.architecture' is missing",
    ),
    "vocabulary only": (lambda p: _tiny(p, tensors=()), "holds no weights"),
    "tensor twice": (
        lambda p: _tiny(p, tensors=[("a", (4,), "f32"), ("a", (4,), "f32")]),
        "tensor 'a' appears twice",
    ),
    "long tensor name": (
        lambda p: _tiny(p, tensors=[("n" * 64, (4,), "f32")]),
        "the name of tensor 0 is 64 bytes long",
    ),
    "five dimensions": (
        lambda p: _tiny(p, tensors=[("a", (1, 1, 1, 1, 1), "f32")]),
        "tensor 'a' has 5 dimensions",
    ),
    "not split": (
        lambda p: _tiny(p, metadata={"split.count": 3, "split.no": 0}),
        "is split into 3 files, but is not named like",
    ),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_wrong_files_are_refused_with_their_reason(case: str, tmp_path: Path) -> None:
    make, reason = WRONG[case]
    path = make(tmp_path / "wrong.gguf")

    with pytest.raises(ModelFileError, match=reason) as refusal:
        read_model(path)

    assert str(path) in refusal.value.message


def _tensor(name: str, ne: tuple[int, ...], type_id: int, offset: int) -> bytes:
    return (
        headers.text(name)
        + struct.pack(f"<I{len(ne)}Q", len(ne), *ne)
        + struct.pack("<IQ", type_id, offset)
    )


ARCHITECTURE = headers.text("general.architecture") + headers.typed("llama")


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ([_tensor("a", (64,), 0, 0), _tensor("b", (64,), 0, 32)], "'a' and 'b' overlap"),
        ([_tensor("a", (64,), 0, 0), _tensor("b", (64,), 0, 0)], "'a' and 'b' overlap"),
        ([_tensor("a", (64,), 0, 2**63)], "it is truncated"),
        ([_tensor("a", (64,), 0, 7)], "not a multiple of the alignment 32"),
        ([_tensor("a", (2**62, 2**62), 0, 0)], "impossible shape"),
        ([_tensor("a", (2**64 - 1,), 0, 0)], "impossible shape"),
        ([_tensor("a", (0, 2**62, 2**62), 0, 0)], "impossible shape"),
        ([_tensor("a", (33,), 2, 0)], "tensor 'a': a row of 33 elements"),
        ([_tensor("a", (32,), 31, 0)], r"tensor 'a': tensor type 31 \(q4_0_4_4\) was removed"),
        ([_tensor("a", (32,), 999, 0)], "tensor 'a': unknown tensor type 999"),
        ([_tensor("evil\x1b[2J\n", (32,), 999, 0)], r"tensor 'evil\\x1b\[2J\\n'"),
    ],
)
def test_hostile_tensors_are_refused(tensors: list[bytes], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(_counts(len(tensors), 1) + ARCHITECTURE + b"".join(tensors) + bytes(4096))

    with pytest.raises(ModelFileError, match=reason):
        read_model(path)


def test_control_characters_of_a_file_name_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "evil\x1b[31m\n.gguf"

    with pytest.raises(ModelFileError) as refusal:
        read_model(path)

    assert "\x1b" not in refusal.value.message
    assert "\n" not in refusal.value.message


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(ModelFileError, match="NUL"):
        read_model(Path("a\0b.gguf"))


def test_more_metadata_than_any_model_has_is_refused(tmp_path: Path) -> None:
    metadata = {f"x.{i}": "y" * 60_000 for i in range(200)}

    with pytest.raises(ModelFileError, match="more than 8 MiB of metadata values"):
        read_model(headers.write_tiny(tmp_path / "m.gguf", metadata=metadata))


def test_a_long_string_is_skipped_not_kept(tmp_path: Path) -> None:
    metadata = {"tokenizer.chat_template": "t" * 100_000, "z.after": 3}

    kept = dict(read_model(headers.write_tiny(tmp_path / "m.gguf", metadata=metadata)).metadata)

    assert "tokenizer.chat_template" not in kept
    assert kept["z.after"] == 3


# -- split files


def _write_split(folder: Path, *, count: int = 3, promised: int = 3) -> list[Path]:
    paths = []
    for number in range(count):
        split = {"split.no": number, "split.count": count, "split.tensors.count": promised}
        paths.append(
            headers.write_tiny(
                folder / f"m-{number + 1:05d}-of-{count:05d}.gguf",
                metadata=split,
                tensors=[(f"blk.{number}.attn_q.weight", (256, 256), "q4_K")],
            )
        )
    return paths


def test_a_split_model_is_the_union_of_its_shards(tmp_path: Path) -> None:
    paths = _write_split(tmp_path)

    facts = read_model(paths[0])

    assert facts.n_shards == 3
    assert facts.n_params == 3 * 256 * 256
    assert [t.name for t in facts.tensors] == [f"blk.{i}.attn_q.weight" for i in range(3)]
    assert n_file_bytes(paths[0]) == sum(p.stat().st_size for p in paths)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    paths = _write_split(tmp_path)
    paths[1].unlink()

    with pytest.raises(ModelFileError, match=r"shard 2 of 3 is missing: 'm-00002-of-00003.gguf'"):
        read_model(paths[0])


def test_a_later_shard_points_to_the_first(tmp_path: Path) -> None:
    paths = _write_split(tmp_path)

    with pytest.raises(ModelFileError, match="later shard of a split model of 3") as refusal:
        read_model(paths[1])

    assert refusal.value.hint == "Give the first shard instead: 'm-00001-of-00003.gguf'"


def test_shards_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    paths = _write_split(tmp_path)
    paths[2].unlink()
    paths[2].symlink_to(paths[1].name)

    with pytest.raises(ModelFileError, match=r"should be shard 2 \(from 0\)"):
        read_model(paths[0])


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    paths = _write_split(tmp_path)
    headers.write_tiny(
        paths[2],
        metadata={"split.no": 2, "split.count": 3},
        tensors=[("blk.0.attn_q.weight", (256, 256), "q4_K")],
    )

    with pytest.raises(ModelFileError, match="is in another shard too"):
        read_model(paths[0])


def test_a_wrong_promise_of_tensors_is_refused(tmp_path: Path) -> None:
    paths = _write_split(tmp_path, promised=5)

    with pytest.raises(
        ModelFileError, match=r"hold 3 tensors but 'split.tensors.count' promises 5"
    ):
        read_model(paths[0])


# -- content hash


def _age(path: Path) -> None:
    os.utime(path, ns=(10**18, 10**18))


def _poke(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_content_hash_follows_content_not_name(tmp_path: Path) -> None:
    first = headers.write_tiny(tmp_path / "a.gguf")
    second = headers.write_tiny(tmp_path / "b.gguf")

    before = content_hash(first)

    assert len(before) == 32
    assert content_hash(second) == before
    _poke(second, second.stat().st_size - 1, b"\1")
    assert content_hash(second) != before


def test_content_hash_covers_every_shard(tmp_path: Path) -> None:
    paths = _write_split(tmp_path)
    before = content_hash(paths[0])

    _poke(paths[2], paths[2].stat().st_size - 1, b"\1")

    assert content_hash(paths[0]) != before


def test_content_hash_is_kept_for_settled_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("LLAMASWEEP_CACHE", str(cache))
    path = headers.write_tiny(tmp_path / "a.gguf")

    content_hash(path)
    assert not cache.exists()  # written just now: its time stamp proves nothing yet

    _age(path)
    made = content_hash(path)
    (entry,) = (cache / "model_hashes").iterdir()
    assert entry.read_text(encoding="ascii").strip() == made
    entry.write_text("f" * 32, encoding="ascii")
    assert content_hash(path) == "f" * 32
    entry.write_text("nonsense", encoding="ascii")
    assert content_hash(path) == made


def test_content_hash_works_without_a_writable_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="ascii")
    monkeypatch.setenv("LLAMASWEEP_CACHE", str(blocked))
    path = headers.write_tiny(tmp_path / "a.gguf")
    _age(path)

    assert len(content_hash(path)) == 32


def test_samples_reach_from_the_first_to_the_last_byte() -> None:
    starts = sample_starts(1_000, 10**9)

    assert starts[0] == 1_000
    assert starts[-1] + 4_096 == 10**9
    assert len(starts) == 256
    assert sample_starts(1_000, 1_000) == []
    assert sample_starts(1_000, 1_500) == [1_000]
    assert sample_starts(0, 4_097) == [0, 1]
