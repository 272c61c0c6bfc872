"""Models behind a web address: what a good server costs, and what bad ones cannot do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.model_server import ModelServer, model_server
from tests.unit.gguf import headers

from llamasweep.errors import ModelFileError
from llamasweep.gguf.header import read_model
from llamasweep.gguf.remote import read_remote_model
from llamasweep.gguf.wire import Limits

WEIGHTS: tuple[headers.Tensor, ...] = (("blk.0.ffn_up.weight", (65_536, 65_536), "q4_K"),)
N_VOCABULARY = 150_000
QUICK = Limits(silent_s=0.3, total_s=0.6, n_bytes=16 * 2**20)
PATIENT = Limits(silent_s=20, total_s=60, n_bytes=16 * 2**20)


def large_head() -> tuple[bytes, int]:
    """A model of 2.3 GiB whose vocabulary takes some megabytes."""
    vocabulary = [f"a token of some length {i}" for i in range(N_VOCABULARY)]
    metadata = {**headers.TINY_METADATA, "tokenizer.ggml.tokens": vocabulary, "z.last": 7}
    return headers.gguf_head(metadata, WEIGHTS)


@pytest.fixture(scope="module")
def head() -> tuple[bytes, int]:
    return large_head()


@pytest.fixture
def server(head: tuple[bytes, int], monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with model_server() as running:
        running.add("m.gguf", *head)
        running.add("tiny.gguf", *headers.gguf_head(headers.TINY_METADATA, headers.TINY_TENSORS))
        yield running


@pytest.mark.parametrize("behaviour", ["ranges", "whole", "moved", "moved_with_endless_body"])
def test_a_remote_model_has_the_facts_of_the_same_file(
    server: ModelServer, head: tuple[bytes, int], behaviour: str, tmp_path: Path
) -> None:
    local = read_model(headers.write_sparse(tmp_path / "m.gguf", *head))

    facts = read_remote_model(f"{server.url}/{behaviour}/m.gguf", PATIENT)

    assert facts == local
    assert facts.n_vocab == N_VOCABULARY
    assert dict(facts.metadata)["z.last"] == 7


def test_a_few_megabytes_are_asked_for_in_a_few_requests(server: ModelServer) -> None:
    read_remote_model(f"{server.url}/ranges/m.gguf", PATIENT)

    n_head_bytes, n_file_bytes = len(server.files["m.gguf"][0]), server.files["m.gguf"][1]
    assert n_file_bytes > 2**31
    assert server.n_sent_bytes < 2 * n_head_bytes + 2**20
    assert len(server.requests) <= 4


def test_a_small_file_takes_one_request(server: ModelServer) -> None:
    facts = read_remote_model(f"{server.url}/ranges/tiny.gguf", PATIENT)

    assert facts.name == "Tiny"
    assert len(server.requests) == 1


def test_nothing_that_identifies_the_user_is_sent(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login u password p\n")
    monkeypatch.setenv("HOME", str(tmp_path))

    read_remote_model(f"{server.url}/moved/m.gguf?key=mine", PATIENT)

    assert len(server.requests) > 1
    for _, sent in server.requests:
        assert set(sent) <= {"Host", "User-Agent", "Accept-Encoding", "Range", "Connection"}


def test_a_split_model_is_read_from_its_first_shard(server: ModelServer) -> None:
    for number in range(3):
        split = {"split.no": number, "split.count": 3, "split.tensors.count": 3}
        tensor: headers.Tensor = (f"blk.{number}.attn_q.weight", (256, 256), "q4_K")
        head, n_data = headers.gguf_head({**headers.TINY_METADATA, **split}, [tensor])
        server.add(f"m x-{number + 1:05d}-of-00003.gguf", head, n_data)
        server.files[f"m%20x-{number + 1:05d}-of-00003.gguf"] = (head, len(head) + n_data)

    facts = read_remote_model(f"{server.url}/ranges/m%20x-00001-of-00003.gguf?key=mine", PATIENT)

    assert facts.n_shards == 3
    assert [t.name for t in facts.tensors] == [f"blk.{i}.attn_q.weight" for i in range(3)]
    assert all(path.endswith("?key=mine") for path, _ in server.requests)


def test_a_missing_shard_is_named_without_the_key_in_the_address(server: ModelServer) -> None:
    split = {"split.no": 0, "split.count": 2}
    head, n_data = headers.gguf_head({**headers.TINY_METADATA, **split}, headers.TINY_TENSORS)
    server.add("m-00001-of-00002.gguf", head, n_data)

    with pytest.raises(
        ModelFileError, match=r"m-00002-of-00002.gguf': there is no such file"
    ) as why:
        read_remote_model(f"{server.url}/ranges/m-00001-of-00002.gguf?key=secret", PATIENT)

    assert "secret" not in str(why.value)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("status-401/m.gguf", "wants a sign-in"),
        ("status-404/m.gguf", "there is no such file"),
        ("status-416/m.gguf", "empty or shorter"),
        ("status-503/m.gguf", "refused"),
        ("ranges/other.gguf", "there is no such file"),
        ("lengthless/m.gguf", "tells no length"),
        ("elsewhere/m.gguf", "other bytes than were asked"),
        ("wordless/m.gguf", "does not say which bytes"),
        ("short/m.gguf", "less than it promised"),
        ("grows/m.gguf", "changed while it was read"),
        ("compressed/m.gguf", "compressed"),
        ("circle/m.gguf", "redirects again and again"),
        ("to_itself/m.gguf", "redirects again and again"),
        ("to_file/m.gguf", "redirects to what is not an http or https"),
        ("to_sign_in/m.gguf", "redirects to an address with a sign-in"),
    ],
)
def test_a_server_that_does_wrong_is_told_by_what_it_did(
    server: ModelServer, path: str, words: str
) -> None:
    with pytest.raises(ModelFileError, match=words):
        read_remote_model(f"{server.url}/{path}", PATIENT)


@pytest.mark.parametrize("behaviour", ["silent", "drips", "drips_head"])
def test_a_slow_server_is_given_up_in_time(server: ModelServer, behaviour: str) -> None:
    began = time.monotonic()

    with pytest.raises(ModelFileError, match=r"silent for|took more than"):
        read_remote_model(f"{server.url}/{behaviour}/m.gguf", QUICK)

    assert time.monotonic() - began < 5


def test_an_endless_head_ends_with_the_budget(server: ModelServer) -> None:
    endless = b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (60_000).to_bytes(8, "little")
    key = headers.text("k")
    endless += (
        b"".join(headers.text(f"k{i}") + headers.typed("v" * 4000) for i in range(3000)) + key * 10
    )
    server.add("m.gguf", endless, 2**40)

    with pytest.raises(ModelFileError, match=r"not complete after 2 MiB|more than 8 MiB"):
        read_remote_model(f"{server.url}/ranges/m.gguf", Limits(n_bytes=2 * 2**20))

    assert server.n_sent_bytes < 8 * 2**20


def test_a_closed_port_cannot_be_reached() -> None:
    with model_server() as gone:
        url = gone.url

    with pytest.raises(ModelFileError, match="cannot be reached"):
        read_remote_model(f"{url}/ranges/m.gguf", QUICK)
