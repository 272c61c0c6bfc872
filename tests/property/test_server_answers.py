"""Whatever a server answers or logs, its readers give values that are possible, or say what is wrong."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from llamasweep.engines.http_exchange import RequestError, said_error
from llamasweep.engines.ollama_answers import (
    Asked,
    OllamaDurations,
    blob_path,
    check_answer,
    check_placement,
    parse_version,
    read_durations,
    read_placements,
    version_doubts,
)
from llamasweep.engines.ollama_server import ServerLog, read_command

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["total_duration", "load_duration", "prompt_eval_count", "prompt_eval_cached_count", "prompt_eval_duration", "eval_count",
     "eval_duration", "models", "name", "size", "size_vram", "context_length", "modelfile", "error", "message"]
)  # fmt: skip
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=10)


@given(OBJECTS, st.floats(0, 1e9) | st.none())
def test_figures_are_possible_or_refused(chunk: dict[str, object], first_tps: float | None) -> None:
    found = read_durations(chunk)
    counts = [getattr(found, name) for name in found.__dataclass_fields__]
    assert all(n is None or 0 <= n < 2**63 for n in counts)
    for rate in (found.timings.prompt_tps, found.timings.decode_tps):
        assert rate is None or rate >= 0
    assert _said_of(found, first_tps) <= {
        *("prompt_cached", "loaded_inside", "prompt_not_counted", "prompt_truncated", "early_stop")
    }


def _said_of(found: OllamaDurations, first_tps: float | None) -> set[str]:
    """Flags, or the kind of failure."""
    asked = Asked(n_prompt=10, n_gen=4, n_ctx=64)
    try:
        return set(check_answer(asked, found, "stop", first_prompt_tps=first_tps))
    except RequestError as problem:
        return {problem.kind}


@given(st.lists(OBJECTS, max_size=4) | VALUES)
def test_placements_are_possible(models: object) -> None:
    placements = read_placements({"models": models})
    for one in placements:
        assert one.gpu_fraction is None or 0 <= one.gpu_fraction <= 1
    flags = check_placement(placements, "m", n_ctx=64, knows_gpu=None)
    assert set(flags) <= {"unloaded", "other_models_loaded", "context_differs", "cpu_gpu_split"}


@given(OBJECTS)
def test_no_show_makes_a_path_of_anything_but_a_blob(show: dict[str, object]) -> None:
    assert blob_path(show) is None


@given(st.binary(max_size=200) | OBJECTS.map(lambda o: json.dumps(o).encode()))
def test_the_words_of_a_server_are_printable_and_short(body: bytes) -> None:
    said = said_error(body)
    assert said.isprintable()
    assert len(said) <= 1_300


WORDS = st.sampled_from(
    ["-c", "-np", "-b", "0", "-1", "4096", "999999999999", "--model", "--flash-attn", "--no-mmap", "on", '"', "\\", "x"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=14).map(" ".join))
def test_commands_and_logs_of_any_kind_are_read(command: str) -> None:
    applied = read_command(command)
    n_ctx = applied.get("n_ctx", 0)
    assert isinstance(n_ctx, int)
    log = ServerLog()
    log.feed(f'msg="starting llama-server" cmd="{command}"')
    log.feed(f'msg=load request="{{Operation:commit KvSize:{command} Parallel:0}}"')
    log.feed(command)
    assert len(log.runners) <= 2


@given(st.text(max_size=40))
def test_any_text_as_a_version_has_doubts_or_is_one(text: str) -> None:
    assert parse_version(text) is not None or version_doubts(text)
