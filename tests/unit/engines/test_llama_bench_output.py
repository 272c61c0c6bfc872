from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.engines.made import CALLS, RECORDED, RECORDED_BUILDS, recording

from llamasweep.engines.base import EngineEvent
from llamasweep.engines.llama_bench_output import (
    MAX_LINE_BYTES,
    LogFacts,
    LogReader,
    RowReader,
    parse_row,
)

PASTED = sorted(p for p in (RECORDED / "pasted").iterdir() if p.suffix != ".md")
GOOD = b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [ 5, 6 ]}'


def rows(lines: list[bytes]) -> list[dict[str, object]]:
    reader = RowReader()
    events = [e for line in lines if (e := reader.feed(line)) is not None and e.kind == "row"]
    assert [e.cell_index for e in events] == list(range(len(events)))
    return [e.row for e in events if e.row is not None]


def read_log(lines: list[str]) -> tuple[LogReader, list[EngineEvent]]:
    reader = LogReader()
    return reader, [e for line in lines if (e := reader.feed(line)) is not None]


# -- rows


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("build", RECORDED_BUILDS)
def test_rows_of_every_recorded_call_are_the_json_lines_and_nothing_else(
    build: str, call: str
) -> None:
    said = recording(build, call)
    is_jsonl = "jsonl" in said.argv
    expected = [json.loads(x) for x in said.stdout_lines if x.startswith(b"{")] if is_jsonl else []
    assert rows(said.stdout_lines) == expected


@pytest.mark.parametrize(
    ("build", "call", "n_rows"),
    [
        ("b11434", "jsonl_sweep", 16),
        ("b8247", "jsonl_sweep", 16),
        ("b4748", "jsonl_sweep", 16),
        ("b11434", "missing_second", 1),
        ("b11434", "vquant_no_fa", 1),
        ("b11434", "bad_flag", 0),
    ],
)
def test_rows_that_came_before_a_failure_count(build: str, call: str, n_rows: int) -> None:
    assert len(rows(recording(build, call).stdout_lines)) == n_rows


def test_samples_are_read_as_printed() -> None:
    said = recording("b11434", "jsonl_progress")
    assert [row["samples_ns"] for row in rows(said.stdout_lines)] == [
        json.loads(line)["samples_ns"] for line in said.stdout_lines if line
    ]


def test_a_deviation_that_is_no_number_costs_no_row() -> None:
    """llama-bench prints nan where its one-pass formula came out negative (2.3 of the page)."""
    line = recording("b11434", "jsonl_basic").stdout_lines[0]
    plain = json.loads(line)
    for word in (b"nan", b"-nan", b"NaN", b"-NaN", b"inf", b"-inf", b"Infinity"):
        broken = line.replace(
            f'"stddev_ts": {plain["stddev_ts"]:.6f}'.encode(), b'"stddev_ts": ' + word
        )
        assert broken != line
        row = parse_row(broken)
        assert row is not None
        assert row == plain | {"stddev_ts": None}


def test_a_name_that_looks_like_nan_is_left_alone() -> None:
    line = b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [5], "model_filename": "a: nan, b: NaN"}'
    row = parse_row(line)
    assert row is not None
    assert row["model_filename"] == "a: nan, b: NaN"
    row = parse_row(line[:-1] + b', "stddev_ts": nan}')
    assert row is not None
    assert row["stddev_ts"] is None


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"{}",
        b"[]",
        b'{"n_prompt": 8, "n_gen": 0}',
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": []}',
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": 5}',
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [0]}',
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [-5]}',
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [5.5]}',
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [true]}',
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": ["5"]}',
        b'{"n_prompt": true, "n_gen": 0, "samples_ns": [5]}',
        b'{"n_prompt": -1, "n_gen": 0, "samples_ns": [5]}',
        b'{"n_prompt": "8", "n_gen": 0, "samples_ns": [5]}',
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [1' + b"0" * 400 + b"]}",
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [1' + b"0" * 5000 + b"]}",
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [5]',
        b'{"a":' * 100_000,
        b"{" + b" " * MAX_LINE_BYTES + b"}",
        b'{"n_prompt": 8, "n_gen": 0, "samples_ns": [5], "x": "\xff"}',
        b"error: invalid parameter for argument: --bogus",
        b"[Thread debugging using libthread_db enabled]",
    ],
    ids=range(22),
)
def test_what_is_no_row_is_garbage_and_takes_no_place(line: bytes) -> None:
    reader = RowReader()
    event = reader.feed(line)
    assert event is not None
    assert event.kind == "garbage"
    assert event.text is not None
    assert len(event.text) <= 200
    after = reader.feed(GOOD)
    assert after is not None
    assert after.cell_index == 0


@pytest.mark.parametrize("line", [b"", b"   ", b"\r", b"\t\r"])
def test_an_empty_line_says_nothing(line: bytes) -> None:
    assert RowReader().feed(line) is None


def test_a_line_may_end_as_on_windows() -> None:
    event = RowReader().feed(GOOD + b"\r")
    assert event is not None
    assert event.kind == "row"


@pytest.mark.parametrize("path", PASTED, ids=lambda p: p.name)
def test_pasted_outputs_never_break_the_readers(path: Path) -> None:
    content = path.read_bytes()
    found = rows(content.split(b"\n"))
    if path.suffix == ".jsonl":
        n_objects = sum(line.startswith(b"{") for line in content.splitlines())
        assert len(found) == n_objects
    else:
        assert found == []  # other formats tell no single repetitions, or not one row a line
    reader, events = read_log(content.decode("utf-8", "replace").splitlines())
    assert events == []
    assert reader.count is None


# -- progress


def _index(event: EngineEvent) -> int:
    assert event.cell_index is not None
    return event.cell_index


@pytest.mark.parametrize("build", RECORDED_BUILDS)
def test_progress_of_a_sweep_tells_every_step_in_order(build: str) -> None:
    reader, events = read_log(recording(build, "jsonl_sweep").stderr_lines)
    assert reader.count == 16
    assert len(events) == len(recording(build, "jsonl_sweep").stderr_lines)
    assert [_index(e) for e in events] == sorted(_index(e) for e in events)
    assert {_index(e) for e in events} == set(range(16))
    first = [(e.step, e.repetition_index) for e in events if e.cell_index == 0]
    assert first == [("starting", None), ("warmup_prompt", None), ("prompt", 0), ("prompt", 1)]
    pg = [(e.step, e.repetition_index) for e in events if e.cell_index == 3]
    assert pg == [
        ("starting", None),
        ("warmup_prompt", None),
        ("warmup_generation", None),
        ("prompt", 0),
        ("generation", 0),
        ("prompt", 1),
        ("generation", 1),
    ]
    assert all(e.count == 16 for e in events if e.step == "starting")


@pytest.mark.parametrize("build", ["b8247", "b11434"])
def test_progress_tells_which_depths_were_restored(build: str) -> None:
    _, events = read_log(recording(build, "jsonl_depth").stderr_lines)
    depths = [(e.cell_index, e.repetition_index, e.is_cached) for e in events if e.step == "depth"]
    assert depths == [(2, 0, False), (2, 1, True), (3, 0, True), (3, 1, True)]


@pytest.mark.parametrize(
    "line",
    [
        "llama-bench: benchmark 0/4: starting",
        "llama-bench: benchmark 5/4: starting",
        "llama-bench: benchmark 1/0: starting",
        "llama-bench: benchmark 1/4: prompt run 0/2",
        "llama-bench: benchmark 1/4: prompt run 3/2",
        f"llama-bench: benchmark {'9' * 5000}/4: starting",
        f"llama-bench: benchmark 1/4: prompt run {'9' * 5000}/2",
        "llama-bench: benchmark \u0661/4: starting",
        "llama-bench: benchmark 1/4: starting now",
        " llama-bench: benchmark 1/4: starting",
        "llama-bench: benchmark 1/4: depth run 1/2 (not cached)",
    ],
)
def test_a_line_that_cannot_be_progress_is_none(line: str) -> None:
    reader = LogReader()
    assert reader.feed(line) is None
    assert (reader.current, reader.count) == (None, None)


# -- facts


@pytest.mark.parametrize(
    ("build", "n_ctx", "batches", "flash_attn"),
    [
        ("b4748", 32, (64, 64), "off"),
        ("b8247", 256, (16, 8), "off"),
        ("b11434", 256, (16, 8), "on"),
    ],
)
def test_a_verbose_log_tells_context_batches_and_flash_attention(
    build: str, n_ctx: int, batches: tuple[int, int], flash_attn: str
) -> None:
    """b11434 at auto prints `flash_attn = auto`, then `resolve_fused_ops: Flash Attention enabled`."""
    lines = recording(build, "verbose").stderr_lines
    first = next(i for i, x in enumerate(lines) if "n_seq_max" in x)
    second = next(i for i, x in enumerate(lines) if "n_seq_max" in x and i > first)
    progress = [f"llama-bench: benchmark {n}/2: starting" for n in (1, 2)]
    told = [progress[0], *lines[: second - 2], progress[1], *lines[second - 2 :]]
    reader, _ = read_log(told)
    for index, n_batch in enumerate(batches):
        facts = reader.facts(index)
        assert (facts.n_ctx, facts.n_batch, facts.n_ubatch) == (n_ctx, n_batch, n_batch)
        assert facts.flash_attn == flash_attn
        assert facts.buffers_mib["CPU KV"] > 0
        assert not facts.is_unpinned
    assert reader.load.load_mode == "mmap"
    assert reader.load.n_layers_offloaded is None


def test_the_context_line_is_not_mistaken_for_the_models_own_context() -> None:
    reader, _ = read_log(["print_info: n_ctx_train      = 32768", "llama_context: n_ctx_seq = 256"])
    assert reader.load == LogFacts()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("llama_context: flash_attn            = enabled", "on"),
        ("llama_context: flash_attn    = disabled", "off"),
        ("llama_init_from_model: flash_attn    = 1", "on"),
        ("llama_new_context_with_model: flash_attn = 0", "off"),
        ("llama_context: flash_attn            = auto", None),
        ("llama_context: Flash Attention was auto, set to enabled", "on"),
        ("resolve_fused_ops: Flash Attention disabled", "off"),
    ],
)
def test_flash_attention_is_read_as_each_build_says_it(line: str, expected: str | None) -> None:
    assert read_log([line])[0].load.flash_attn == expected


def test_the_resolved_flash_attention_counts_and_not_the_wish() -> None:
    lines = ["llama_context: flash_attn = auto", "resolve_fused_ops: Flash Attention disabled"]
    assert read_log(lines)[0].load.flash_attn == "off"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "load_tensors: loading model tensors, this can take a while... (load_mode = mmap+mlock)",
            "mmap+mlock",
        ),
        (
            "load_tensors: loading model tensors, this can take a while... (mmap = true, direct_io = false)",
            "mmap",
        ),
        (
            "load_tensors: loading model tensors, this can take a while... (mmap = false, direct_io = true)",
            "dio",
        ),
        (
            "load_tensors: loading model tensors, this can take a while... (mmap = true, direct_io = true)",
            "dio",
        ),
        (
            "load_tensors: loading model tensors, this can take a while... (mmap = false, direct_io = false)",
            "none",
        ),
        ("load_tensors: loading model tensors, this can take a while... (mmap = true)", "mmap"),
        ("load_tensors: loading model tensors, this can take a while... (mmap = false)", "none"),
        ("load_tensors: loading", None),
    ],
)
def test_the_load_mode_is_read_as_each_build_says_it(line: str, expected: str | None) -> None:
    assert read_log([line])[0].load.load_mode == expected


def test_offloaded_layers_and_buffers_are_of_the_load_even_after_the_first_test_began() -> None:
    lines = [
        "llama-bench: benchmark 1/2: starting",
        "load_tensors: offloaded 20/33 layers to GPU",
        "load_tensors:        CUDA0 model buffer size =  3577.56 MiB",
        "load_tensors:        CUDA0 model buffer size =    10.00 MiB",
        "~llama_context:        CPU compute buffer size is   0.1803 MiB, matches expectation of   0.1803 MiB",
    ]
    reader, _ = read_log(lines)
    assert (reader.load.n_layers_offloaded, reader.load.n_layers_total) == (20, 33)
    assert reader.facts(0).buffers_mib == {"CUDA0 model": 3587.56}


def test_threads_that_could_not_be_pinned_are_noticed() -> None:
    lines = [
        "llama-bench: benchmark 1/1: starting",
        "warn: failed to set affinity mask 0xff00 (err 22: Invalid argument)",
    ]
    assert read_log(lines)[0].facts(0).is_unpinned


@pytest.mark.parametrize(
    "line",
    [
        f"llama_context: n_ctx = {'9' * 5000}",
        f"llama_context: n_batch = {'9' * 30}",
        f"load_tensors: offloaded {'9' * 5000}/33 layers to GPU",
        "load_tensors:   CPU model buffer size =     3.2.3 MiB",
        "load_tensors:   CPU model buffer size =     . MiB",
        "load_tensors:   CPU model buffer size =     " + "9" * 5000 + " MiB",
        "",
        "\x00\x1b[31m",
    ],
)
def test_odd_log_lines_are_passed_over(line: str) -> None:
    reader, events = read_log([line])
    assert events == []
    assert reader.load == LogFacts()
