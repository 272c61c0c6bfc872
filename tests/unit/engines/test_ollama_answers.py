"""What Ollama's answers mean, from recorded ones, and each known trap as a flag or a failure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llamasweep.engines.http_exchange import RequestError
from llamasweep.engines.ollama_answers import (
    Asked,
    OllamaDurations,
    Placement,
    blob_path,
    check_answer,
    check_placement,
    check_room,
    has_engine_inside,
    parse_version,
    read_durations,
    read_placements,
    run_adds_space,
    version_doubts,
)

GOLDEN = Path(__file__).parents[2] / "golden"
VERSIONS = ("v0.11.4", "v0.24.0", "v0.32.15")
MS = 1_000_000


def recorded(version: str, name: str) -> Any:
    return json.loads((GOLDEN / "ollama_recorded" / version / name).read_text(encoding="utf-8"))


def last_chunk(version: str) -> dict[str, Any]:
    text = (GOLDEN / "ollama_recorded" / version / "api_generate_stream.ndjson").read_text()
    chunk: dict[str, Any] = json.loads(text.splitlines()[-1])
    return chunk


RECORDED = {
    "v0.11.4": (5_913_985_993, 260_416_040, 14, None, 241_368_099, 32, 5_411_711_044),
    "v0.24.0": (4_517_102_253, 284_527_832, 14, None, 495_499_846, 32, 3_733_106_622),
    "v0.32.15": (1_390_490_403, 277_607_721, 11, None, 411_867_000, 16, 698_558_000),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_final_chunk_gives_what_a_person_reads(version: str) -> None:
    names = OllamaDurations.__dataclass_fields__
    found = read_durations(last_chunk(version))
    assert tuple(getattr(found, name) for name in names) == RECORDED[version]


def test_the_documented_answer_with_cached_tokens_is_read() -> None:
    text = (GOLDEN / "ollama_verbose" / "28_ollama-docs-api-usage.txt").read_text()
    found = read_durations(json.loads(text))
    assert (found.prompt_eval_count, found.prompt_eval_cached_count) == (11, 8)
    assert found.timings.prompt_count == 3
    assert found.timings.prompt_tps == pytest.approx(3 / 0.013074791)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["api_generate_load.json", "api_generate_unload.json"])
def test_an_answer_to_a_load_has_no_figures_and_they_are_absent(version: str, name: str) -> None:
    found = read_durations(recorded(version, name))
    assert found == OllamaDurations()
    assert (found.timings.prompt_tps, found.timings.decode_tps) == (None, None)


@pytest.mark.parametrize("value", [-1, 1.5, "7", True, None, 2**63, [1]])
def test_what_is_no_count_is_absent(value: object) -> None:
    assert read_durations({"eval_count": value}) == OllamaDurations()


GOOD = OllamaDurations(
    total_duration_ns=900 * MS,
    load_duration_ns=2 * MS,
    prompt_eval_count=256,
    prompt_eval_duration_ns=100 * MS,
    eval_count=64,
    eval_duration_ns=630 * MS,
)
ASKED = Asked(n_prompt=256, n_gen=64, n_ctx=1024)


def test_a_good_answer_has_no_flag_and_its_rate_counts_intervals() -> None:
    assert check_answer(ASKED, GOOD, "length") == ()
    assert GOOD.timings.decode_tps == pytest.approx(100)
    assert GOOD.timings.prompt_tps == pytest.approx(2560)


def test_a_prompt_that_was_cut_is_a_failure() -> None:
    with pytest.raises(RequestError, match="read 130 tokens of a prompt of 256") as caught:
        check_answer(ASKED, replace(GOOD, prompt_eval_count=130), "length")
    assert caught.value.kind == "prompt_truncated"


@pytest.mark.parametrize("count", [63, 1, None])
def test_an_answer_that_ended_early_is_a_failure(count: int | None) -> None:
    with pytest.raises(RequestError, match=r"of 64 tokens, reason stop") as caught:
        check_answer(ASKED, replace(GOOD, eval_count=count), "stop")
    assert caught.value.kind == "early_stop"


def test_an_answer_may_end_early_where_no_length_was_asked_for() -> None:
    assert check_answer(replace(ASKED, is_fixed=False), replace(GOOD, eval_count=9), "stop") == ()


@pytest.mark.parametrize(
    ("change", "first_tps", "flags"),
    [
        ({"prompt_eval_cached_count": 200}, None, ("prompt_cached",)),
        ({"prompt_eval_cached_count": 1}, None, ()),
        ({"prompt_eval_duration_ns": 5 * MS}, 2560.0, ("prompt_cached",)),
        ({"prompt_eval_duration_ns": 50 * MS}, 2560.0, ()),
        ({"load_duration_ns": 850 * MS}, None, ("loaded_inside",)),
        ({"prompt_eval_count": None}, 2560.0, ("prompt_not_counted",)),
    ],
)
def test_doubts_are_flags(
    change: dict[str, Any], first_tps: float | None, flags: tuple[str, ...]
) -> None:
    found = check_answer(ASKED, replace(GOOD, **change), "length", first_prompt_tps=first_tps)
    assert found == flags


def test_a_cache_that_was_wanted_is_no_doubt() -> None:
    warm = replace(ASKED, has_warm_cache=True)
    assert check_answer(warm, replace(GOOD, prompt_eval_cached_count=200), "length") == ()


def test_the_recorded_repetition_of_a_prompt_is_seen() -> None:
    asked = Asked(n_prompt=None, n_gen=16, n_ctx=1024)
    first = read_durations(last_chunk("v0.32.15"))
    again = read_durations(recorded("v0.32.15", "api_generate_cached.json"))
    flags = check_answer(asked, again, "length", first_prompt_tps=first.timings.prompt_tps)
    assert "prompt_cached" in flags


def test_what_does_not_fit_is_refused_before_it_is_sent() -> None:
    check_room(replace(ASKED, n_ctx=320))
    check_room(replace(ASKED, n_ctx=None))
    check_room(replace(ASKED, n_prompt=None))
    with pytest.raises(RequestError, match="exceed num_ctx 319"):
        check_room(replace(ASKED, n_ctx=319))


@pytest.mark.parametrize(
    ("text", "version"),
    [("0.32.15", (0, 32, 15)), ("v0.5.13", (0, 5, 13)), ("0.12.4rc5", (0, 12, 4)), ("0.0.0", None), ("", None), ("x", None)],
)  # fmt: skip
def test_versions_are_read_and_none_is_made_up(
    text: str, version: tuple[int, int, int] | None
) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0.0.0", "does not tell"),
        ("0.1.9", "loses its count"),
        ("0.6.1", "whole milliseconds"),
        ("0.12.4", "wait for a slot"),
        ("0.12.6", "last batch only"),
        ("0.30.0", "leaves out cached"),
        ("0.32.15", "inflates"),
    ],
)
def test_versions_known_to_be_wrong_say_so(text: str, word: str) -> None:
    assert any(word in doubt for doubt in version_doubts(text))


@pytest.mark.parametrize("text", ["0.12.7", "0.24.0", "0.33.3", "0.40.12"])
def test_versions_without_known_faults_say_nothing(text: str) -> None:
    assert version_doubts(text) == ()


def test_where_the_engine_is_follows_from_the_version() -> None:
    assert [has_engine_inside(v) for v in ("0.11.4", "0.32.15", "0.0.0")] == [True, False, None]


def test_what_the_command_line_adds_follows_from_the_version() -> None:
    assert [run_adds_space(v) for v in ("0.12.9", "0.12.10", "0.0.0")] == [True, False, None]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_placement_is_read(version: str) -> None:
    (found,) = read_placements(recorded(version, "api_ps.json"))
    assert found.gpu_fraction == 0
    assert found.n_ctx is not None
    assert check_placement((found,), found.name, n_ctx=found.n_ctx, knows_gpu=False) == ()


def placement(**change: Any) -> Placement:
    base = Placement(name="m:latest", digest=None, size_bytes=100, vram_bytes=0, n_ctx=1024)
    return replace(base, **change)


@pytest.mark.parametrize(
    ("placements", "knows_gpu", "flags"),
    [
        ((placement(),), None, ()),
        ((), None, ("unloaded",)),
        ((placement(name="other:latest"),), None, ("unloaded", "other_models_loaded")),
        ((placement(), placement(name="other:latest")), None, ("other_models_loaded",)),
        ((placement(n_ctx=512),), None, ("context_differs",)),
        ((placement(vram_bytes=52),), True, ("cpu_gpu_split",)),
        ((placement(vram_bytes=52),), None, ("cpu_gpu_split",)),
        ((placement(vram_bytes=52),), False, ()),
        ((placement(vram_bytes=100),), True, ()),
        ((placement(size_bytes=0),), True, ()),
        ((placement(vram_bytes=101),), True, ()),
    ],
)
def test_where_the_model_lies_is_checked(
    placements: tuple[Placement, ...], knows_gpu: bool | None, flags: tuple[str, ...]
) -> None:
    assert check_placement(placements, "m", n_ctx=1024, knows_gpu=knows_gpu) == flags


@pytest.mark.parametrize("answer", [None, [], {}, {"models": 7}, {"models": [{}, {"name": 3}, 1]}])
def test_an_answer_without_models_has_none(answer: object) -> None:
    assert read_placements(answer) == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_blob_of_a_recorded_model_is_found(version: str) -> None:
    path = blob_path(recorded(version, "api_show.json"))
    assert path is not None
    assert re.search(r"/models/blobs/sha256-[0-9a-f]{64}$", path)


@pytest.mark.parametrize(
    "show", [{}, {"modelfile": 3}, {"modelfile": "FROM llama3\nFROM /etc/passwd\n"}]
)
def test_no_other_path_is_taken_for_a_blob(show: dict[str, Any]) -> None:
    assert blob_path(show) is None
