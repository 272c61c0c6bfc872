"""The client of Ollama's API against a server of known timing, and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.timed_server import TimedServer, timed_server

from llamasweep.engines.http_exchange import Limits, RequestError, parse_base_url
from llamasweep.engines.ollama_api import (
    Generate,
    OllamaServer,
    file_digest,
    generate,
    spelled_options,
)
from llamasweep.engines.ollama_names import cell_name, is_of_cell, own_name
from llamasweep.errors import ModelFileError, UsageError

SHORT = Limits(connect_s=2, silent_s=0.3, total_s=1.0, body_bytes=1 << 20)


@pytest.fixture(scope="module")
def server() -> Iterator[TimedServer]:
    with timed_server() as running:
        yield running


def ask(server: TimedServer, **behaviour: Any) -> Any:
    address = parse_base_url(server.base_url(**behaviour))
    return generate(address, Generate(model="m", prompt="1 x", n_gen=8), SHORT)


def test_our_clock_and_the_servers_are_both_kept(server: TimedServer) -> None:
    server.take_log()
    answer = ask(server, ttft_s=0.05, gap_s=0.01)
    (served,) = server.take_log()
    assert answer.timing.ttft_ms >= 50
    assert [
        seen >= sent for seen, sent in zip(answer.timing.event_ns, served.sent_ns, strict=True)
    ] == [True] * 8
    assert answer.durations.timings.decode_tps == pytest.approx(100)
    assert (answer.text, answer.done_reason) == (" w" * 8, "length")
    assert set(answer.flags) <= {"clocks_differ"}  # the fake server tells its plan, not what it did


def test_a_request_leaves_no_option_to_chance(server: TimedServer) -> None:
    server.take_log()
    address = parse_base_url(server.base_url())
    options: dict[str, int | float | bool] = {
        "n_ctx": 1024,
        "n_batch": 256,
        "n_threads": 2,
        "seed": 1,
    }
    generate(address, Generate(model="m", prompt="1 x", n_gen=8, options=options), SHORT)
    (served,) = server.take_log()
    assert served.body == {
        "model": "m", "prompt": "1 x", "raw": True, "stream": True, "think": False, "truncate": False, "keep_alive": "30m",
        "options": {"num_ctx": 1024, "num_batch": 256, "num_thread": 2, "seed": 1, "num_predict": 8},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ({"fault": "status_500"}, "http_status"),
        ({"fault": "wrong_type"}, "wrong_content_type"),
        ({"fault": "silent"}, "timeout"),
        ({"fault": "slow_headers"}, "timeout"),
        ({"fault": "close_early"}, "cut_short"),
        ({"fault": "close_early", "is_chunked": False}, "no_final_chunk"),
        ({"fault": "no_done"}, "no_final_chunk"),
        ({"fault": "not_json"}, "garbage_output"),
        ({"fault": "endless_line"}, "too_large"),
        ({"fault": "no_tokens", "fault_at": 99}, "no_tokens"),
        ({"n_tokens": 5}, "early_stop"),
    ],
    ids=str,
)
def test_a_broken_answer_is_a_failure(
    server: TimedServer, behaviour: dict[str, Any], kind: str
) -> None:
    with pytest.raises(RequestError) as caught:
        ask(server, **behaviour)
    assert caught.value.kind == kind


def test_cached_tokens_are_flagged(server: TimedServer) -> None:
    assert ask(server, n_prompt=300, cached=200).flags[0] == "prompt_cached"


def test_an_option_that_ollama_would_pass_over_is_refused() -> None:
    with pytest.raises(UsageError, match="no option for n_cxt"):
        spelled_options({"n_cxt": 4096})


def test_only_models_of_our_own_are_made_or_removed(server: TimedServer) -> None:
    ollama = OllamaServer(parse_base_url(server.url))
    with pytest.raises(UsageError, match="not a model of llamasweep's own"):
        ollama.delete("llama3:latest")
    with pytest.raises(UsageError, match="not a model of llamasweep's own"):
        ollama.derive("llama3:latest", "x")


def test_names_say_what_is_in_a_model() -> None:
    one = own_name("base", {"num_ctx": 1024, "seed": 1})
    assert one == own_name("base", {"seed": 1, "num_ctx": 1024})
    assert (
        len(
            {
                one,
                own_name("base", {"num_ctx": 2048}),
                own_name("other", {}),
                own_name("base", {}, None),
            }
        )
        == 4
    )


def test_models_of_cells_are_told_by_their_owner() -> None:
    name = cell_name("0123abcd", "base", {"num_ctx": 1024}, None)
    assert is_of_cell(name, "0123abcd")
    assert is_of_cell(f"{name}:latest", "0123abcd")
    others = (own_name("base", {}), f"{name}:other", f"x{name}", f"{name}0", "llamasweep-cell-")
    assert not any(is_of_cell(other, "0123abcd") for other in others)
    assert not is_of_cell(name, "99999999")
    assert not is_of_cell(name, ".*")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"abc")
    assert file_digest(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(ModelFileError, match="cannot be read"):
        file_digest(tmp_path / "none.gguf")


def test_something_else_that_answers_is_no_ollama(server: TimedServer) -> None:
    with pytest.raises(RequestError):
        OllamaServer(parse_base_url(server.base_url())).version()
