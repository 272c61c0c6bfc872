"""Whatever an engine prints, its readers neither raise nor take nonsense for a result."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engines.made import PP, TG, cell, recording

from llamasweep.engines.llama_bench_applied import pair_rows, verify
from llamasweep.engines.llama_bench_errors import explain
from llamasweep.engines.llama_bench_output import LogFacts, LogReader, RowReader, parse_row

ROWS = [
    line
    for name in ("b4748", "b8247", "b11434")
    for line in recording(name, "jsonl_sweep").stdout_lines
    if line
]
LOG_LINES = [
    line
    for name in ("b4748", "b8247", "b11434")
    for call in ("verbose", "jsonl_depth", "jsonl_sweep", "depth_too_big", "truncated")
    for line in recording(name, call).stderr_lines
]
FIELDS = sorted({key for line in ROWS for key in json.loads(line)})

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def _is_result(row: dict[str, Any]) -> bool:
    samples = row["samples_ns"]
    return bool(samples) and all(type(ns) is int and 0 < ns < 2**63 for ns in samples)


@st.composite
def damaged(draw: st.DrawFn, lines: list[bytes]) -> bytes:
    """A line with a piece replaced, doubled or lost."""
    line = draw(st.sampled_from(lines))
    start = draw(st.integers(0, len(line)))
    end = draw(st.integers(start, min(len(line), start + 40)))
    return line[:start] + draw(st.binary(max_size=20)) + line[end:]


@given(st.lists(st.binary(max_size=200) | damaged(ROWS), max_size=6))
def test_arbitrary_and_damaged_lines_on_stdout_never_raise(lines: list[bytes]) -> None:
    reader = RowReader()
    for line in lines:
        before = reader.n_rows
        event = reader.feed(line)
        assert reader.n_rows == before + (event is not None and event.kind == "row")
        if event is not None and event.row is not None:
            assert event.cell_index == before
            assert _is_result(event.row)


@given(st.dictionaries(st.sampled_from(FIELDS), values, max_size=8), st.sampled_from(ROWS))
def test_rows_with_any_fields_are_judged_without_raising(
    fields: dict[str, Any], line: bytes
) -> None:
    row = parse_row(json.dumps(json.loads(line) | fields).encode())
    if row is None:
        return
    asked = cell(
        PP, n_threads=2, flash_attn="on", type_k="f16", devices="CUDA0", tensor_split="1/2", cpu_mask="0x3",
        no_host=True, n_gpu_layers=99, load_mode="mmap",
    )  # fmt: skip
    found = verify(asked, row, LogFacts(), LogFacts(), cpu_only=False)
    assert all(type(value) in {int, str, bool} for value in found.applied.values())
    assert len(pair_rows([asked, cell(TG)], [row, row, row])) <= 2


@given(st.lists(st.text(max_size=100) | damaged([x.encode() for x in LOG_LINES]), max_size=20))
def test_arbitrary_and_damaged_lines_on_stderr_never_raise(lines: list[str | bytes]) -> None:
    reader = LogReader()
    texts = [x if isinstance(x, str) else x.decode("utf-8", "replace") for x in lines]
    for text in texts:
        event = reader.feed(text)
        if event is not None:
            assert event.cell_index is not None
            assert event.cell_index >= 0
            assert event.repetition_index is None or event.repetition_index >= 0
    failure = explain(exit_code=1, exit_signal=None, stderr_lines=texts, was_oom_killed=False)
    assert failure is not None
    assert failure.message
    assert len(failure.message) < 1000


@settings(max_examples=50)
@given(st.sampled_from(ROWS), st.integers(0, 2000))
def test_a_row_cut_short_is_no_row(line: bytes, length: int) -> None:
    assert parse_row(line[: min(length, len(line) - 1)]) is None


@given(
    st.integers(1, 10**9),
    st.integers(1, 10**9),
    st.sampled_from(["starting", "prompt run", "depth run"]),
)
def test_a_progress_line_counts_within_its_own_bounds(index: int, count: int, step: str) -> None:
    tail = step if step == "starting" else f"{step} 1/1"
    event = LogReader().feed(f"llama-bench: benchmark {index}/{count}: {tail}")
    if index > count or index >= 10**9 or count >= 10**9:
        assert event is None
    else:
        assert event is not None
        assert event.cell_index == index - 1
