from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.builds import write_build
from tests.fakes.models import write_model
from tests.unit.engines.made import (
    PG,
    PP,
    RECORDED_BUILDS,
    TG,
    block,
    build,
    cell,
    gpu_build,
    group,
    recording,
)

from llamasweep.engines.base import CallOptions, Verified
from llamasweep.engines.llama_bench import describe, tell_what_cannot_be_said
from llamasweep.engines.llama_bench_applied import pair_rows, verify
from llamasweep.engines.llama_bench_output import LogFacts
from llamasweep.sweep.cell import Block, Cell, Test
from llamasweep.sweep.subjects import Build

OPTIONS = CallOptions(model_path="/m.gguf", n_reps=3)
START = ["/b/llama-bench", "-m", "/m.gguf", "-o", "jsonl", "-r", "3", "-v", "--progress"]


def argv(of: Block, on: Build | None = None, options: CallOptions = OPTIONS) -> list[str]:
    return list(describe(group(of, on), options).argv)


# -- the call


def test_a_plain_group_says_both_tests() -> None:
    assert argv(block(PP, TG)) == [*START, "-p", "16", "-n", "8"]


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        ((PP,), ["-p", "16", "-n", "0"]),
        ((TG,), ["-p", "0", "-n", "8"]),
        ((PG,), ["-p", "0", "-n", "0", "-pg", "16,8"]),
        (
            (PP, Test(n_prompt=32, n_gen=0), TG, PG, Test(n_prompt=64, n_gen=4)),
            ["-p", "16,32", "-n", "8", "-pg", "16,8", "-pg", "64,4"],
        ),
    ],
)
def test_tests_that_are_not_asked_for_are_switched_off(
    tests: tuple[Test, ...], words: list[str]
) -> None:
    """The defaults of -p and -n would add 512 and 128."""
    assert argv(block(*tests)) == [*START, *words]


def test_axes_stand_in_the_order_of_the_engines_loops() -> None:
    of = block(
        PP, n_threads=(1, 2), type_k="q8_0", n_batch=(256, 512), n_gpu_layers=10, load_mode="mmap",
        flash_attn="auto", no_kv_offload=True, n_depth=(0, 64), numa="isolate",
    )  # fmt: skip
    assert argv(of, gpu_build())[len(START) :] == [
        "--numa", "isolate", "-ngl", "10", "-lm", "mmap", "-b", "256,512", "-ctk", "q8_0", "-nkvo", "1",
        "-fa", "auto", "-t", "1,2", "-d", "0,64", "-p", "16", "-n", "0",
    ]  # fmt: skip


def test_an_old_build_gets_its_own_words() -> None:
    of = block(PP, flash_attn="on", load_mode="none", n_depth=0, n_threads=2)
    assert argv(of, build("b4748"))[len(START) :] == [
        "-mmp", "0", "-fa", "1", "-t", "2", "-p", "16", "-n", "0",
    ]  # fmt: skip


def test_the_unified_binary_is_started_with_its_verb() -> None:
    unified = build(argv_prefix=("/b/llama", "bench"))
    assert argv(block(PP), unified)[:3] == ["/b/llama", "bench", "-m"]


def test_no_warm_up_is_said_where_the_build_knows_it() -> None:
    cold = replace(OPTIONS, warmup=False)
    assert argv(block(PP), options=cold)[len(START)] == "--no-warmup"
    assert "--no-warmup" not in argv(block(PP), build("b4748"), cold)
    assert tell_what_cannot_be_said(group(block(PP)), cold) == []
    assert tell_what_cannot_be_said(group(block(PP), build("b4748")), cold) == [
        "b4748 has no --no-warmup; it warms up as it always does"
    ]
    assert tell_what_cannot_be_said(group(block(PP), build("b4748")), OPTIONS) == []


def test_a_build_without_progress_is_told_of_and_not_asked_for_it() -> None:
    silent = build(options=build().options - {"--progress"})
    assert "--progress" not in argv(block(PP), silent)
    assert tell_what_cannot_be_said(group(block(PP), silent), OPTIONS) == [
        "b11434 has no --progress; phases cannot be told apart"
    ]


def test_extra_arguments_come_last_and_unaltered() -> None:
    extra = ("--delay", "1", "$(touch x)", "a b")
    assert argv(block(PP), options=replace(OPTIONS, extra_args=extra))[-4:] == list(extra)


def test_the_environment_of_the_sweep_comes_after_ours() -> None:
    call = describe(group(block(PP)), replace(OPTIONS, env=(("GGML_X", "1"), ("LC_ALL", "de"))))
    assert call.env == (
        ("GGML_NO_BACKTRACE", "1"), ("LC_ALL", "C"), ("GGML_X", "1"), ("LC_ALL", "de"),
    )  # fmt: skip


# -- the order of rows


def _row_of(cell: Cell, row: dict[str, Any]) -> bool:
    params = {k: v for k, v in cell.params if k in row}
    asked = {"n_prompt": cell.test.n_prompt, "n_gen": cell.test.n_gen, **params}
    return all(row[k] == v for k, v in asked.items())


@pytest.mark.parametrize("name", RECORDED_BUILDS)
def test_expected_cells_stand_in_the_order_of_the_recorded_rows(name: str) -> None:
    """`-p 16,32 -n 8 -pg 16,8 -t 1,2 -ub 16,32`: 16 rows."""
    of = block(PP, Test(n_prompt=32, n_gen=0), TG, PG, n_ubatch=(16, 32), n_threads=(1, 2))
    expected = describe(group(of, build(name)), OPTIONS).expected
    said = [json.loads(line) for line in recording(name, "jsonl_sweep").stdout_lines if line]
    assert len(said) == len(expected) == 16
    assert all(_row_of(c, row) for c, row in zip(expected, said, strict=True))


@pytest.mark.parametrize("name", ["b8247", "b11434"])
def test_expected_depths_stand_in_the_order_of_the_recorded_rows(name: str) -> None:
    of = block(PP, TG, n_depth=(0, 64))
    expected = describe(group(of, build(name)), OPTIONS).expected
    said = [json.loads(line) for line in recording(name, "jsonl_depth").stdout_lines if line]
    assert len(said) == len(expected)
    assert all(_row_of(c, row) for c, row in zip(expected, said, strict=True))


def test_expected_cells_stand_in_the_order_of_the_fake_engines_rows(tmp_path: Path) -> None:
    """The fake follows the order of the real loops (3.1 of the page)."""
    program = write_build(tmp_path / "bin", build="b11434")
    model_path = write_model(tmp_path / "m.gguf", {"rep_s": 0, "warmup_s": 0, "depth_s": 0})
    of = block(
        PP, TG, PG, embeddings=(False, True), n_batch=(64, 32), n_ubatch=(16, 8), type_k=("f16", "q8_0"),
        no_kv_offload=(False, True), n_threads=(2, 1), n_depth=(64, 0), poll=(50, 0),
    )  # fmt: skip
    on = build(path=str(program), argv_prefix=(str(program),))
    options = CallOptions(model_path=str(model_path), n_reps=1)
    call = describe(group(of, on), options)
    done = subprocess.run(
        call.argv,
        env={**os.environ, **dict(call.env)},
        capture_output=True,
        check=True,
        cwd=tmp_path,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(call.expected) == of.n_cells == 3 * 2**8
    for expected, row in zip(call.expected, said, strict=True):
        row["no_kv_offload"], row["embeddings"] = (
            bool(row["no_kv_offload"]),
            bool(row["embeddings"]),
        )
        assert _row_of(expected, row)


# -- rows to cells


def _cells(*depths: int) -> list[Cell]:
    return [cell(test, n_depth=d, n_threads=1) for d in depths for test in (PP, TG)]


def _said(*cells: Cell) -> list[dict[str, Any]]:
    return [row(n_prompt=c.test.n_prompt, n_gen=c.test.n_gen, **dict(c.params)) for c in cells]


def test_rows_pair_with_cells_one_by_one() -> None:
    cells = _cells(0, 64)
    assert pair_rows(cells, _said(*cells)) == [0, 1, 2, 3]
    assert pair_rows(cells, _said(*cells[:2])) == [0, 1]
    assert pair_rows(cells, []) == []


def test_a_cell_whose_row_was_garbage_is_left_out() -> None:
    cells = _cells(0, 64)
    assert pair_rows(cells, _said(cells[0], cells[2], cells[3])) == [0, 2, 3]


def test_a_row_that_fits_nowhere_stays_at_its_turn() -> None:
    cells = _cells(0, 64)
    odd = row(n_prompt=999)
    assert pair_rows(cells, [odd, *_said(*cells[1:])]) == [0, 1, 2, 3]
    assert pair_rows(cells, [*_said(*cells), odd]) == [0, 1, 2, 3]


def test_rows_beyond_the_last_cell_are_left_out() -> None:
    cells = _cells(0)
    assert pair_rows(cells, _said(*cells, *cells)) == [0, 1]


def test_thousands_of_rows_that_fit_nowhere_are_paired_in_no_time() -> None:
    cells = [cell(PP, cpu_mask="0xf", poll=i) for i in range(1500)]
    odd = [row(cpu_mask="0x1", poll=i) for i in range(1500)]
    assert pair_rows(cells, odd) == list(range(1500))


# -- requested against applied


def row(**fields: Any) -> dict[str, Any]:
    """A row of b11434 with every field, as recorded for pp16, with some said otherwise."""
    lines = recording("b11434", "jsonl_basic").stdout_lines
    content: dict[str, Any] = json.loads(lines[0])
    return content | fields


def judged(
    of: Cell,
    said: dict[str, Any],
    facts: LogFacts | None = None,
    load: LogFacts | None = None,
    *,
    cpu_only: bool = False,
) -> Verified:
    return verify(of, said, facts or LogFacts(), load or LogFacts(), cpu_only=cpu_only)


def test_a_row_that_answers_the_question_is_clean() -> None:
    of = cell(PP, n_threads=1, n_batch=2048, type_k="f16", no_kv_offload=False, n_depth=0)
    found = judged(of, row())
    assert (found.differences, found.mismatch, found.flags) == ((), None, ())
    assert found.applied["n_threads"] == 1
    assert found.applied["no_kv_offload"] is False
    assert found.applied["no_op_offload"] is False  # an int in the row


@pytest.mark.parametrize(
    ("name", "echo"),
    [
        ("flash_attn", -1),
        ("n_gpu_layers", -1),
        ("load_mode", "auto"),
        ("lazy_mode", "auto"),
        ("devices", "auto"),
    ],
)
def test_an_echo_of_automatic_is_no_effect(name: str, echo: Any) -> None:
    """0.8 of the page: these are requests; what became of them only the log tells."""
    assert name not in judged(cell(PP), row(**{name: echo})).applied


@pytest.mark.parametrize(("echo", "applied"), [(1, "on"), (0, "off"), (True, "on"), (False, "off")])
def test_flash_attention_is_a_word_whatever_the_build_prints(echo: Any, applied: str) -> None:
    assert judged(cell(PP), row(flash_attn=echo)).applied["flash_attn"] == applied


def test_automatic_is_content_with_any_outcome() -> None:
    of = cell(PP, flash_attn="auto", n_gpu_layers=-1, load_mode="auto")
    load = LogFacts(load_mode="mmap", n_layers_offloaded=20, n_layers_total=33)
    found = judged(of, row(), LogFacts(flash_attn="off"), load)
    assert found.differences == ()
    assert found.applied["flash_attn"] == "off"
    assert found.applied["n_gpu_layers"] == 20
    assert found.applied["load_mode"] == "mmap"


def test_a_wish_that_was_not_granted_is_a_difference() -> None:
    of = cell(PP, flash_attn="on", n_threads=2)
    found = judged(of, row(flash_attn=1, n_threads=2), LogFacts(flash_attn="off"))
    assert found.differences == ("flash_attn: asked on, applied off",)
    assert found.flags == ("applied_differs",)
    assert found.mismatch is None


def test_a_clamped_batch_is_a_word_and_no_doubt() -> None:
    of = cell(PP, n_batch=2048, n_ubatch=512)
    found = judged(of, row(), LogFacts(n_batch=16, n_ubatch=16))
    assert found.differences == (
        "n_batch: asked 2048, applied 16",
        "n_ubatch: asked 512, applied 16",
    )
    assert found.flags == ("clamped",)
    assert (found.applied["n_batch"], found.applied["n_ubatch"]) == (16, 16)


def test_both_flags_stand_side_by_side() -> None:
    of = cell(PP, n_batch=2048, n_threads=4)
    found = judged(of, row(n_threads=1), LogFacts(n_batch=16))
    assert found.flags == ("clamped", "applied_differs")


def test_a_process_that_could_not_be_pinned_is_flagged() -> None:
    assert judged(cell(PP), row(), LogFacts(is_unpinned=True)).flags == ("unpinned",)
    assert judged(cell(PP), row(), load=LogFacts(is_unpinned=True)).flags == ("unpinned",)


@pytest.mark.parametrize(
    ("asked", "offloaded", "total", "differs"),
    [
        (99, 33, 33, False),
        (40, 33, 33, False),  # more than there are is all of them
        (20, 20, 33, False),
        (33, 20, 33, True),
        (99, 20, 33, True),
        (0, 0, 33, False),
    ],
)
def test_layers_are_compared_with_what_the_log_says(
    asked: int, offloaded: int, total: int, differs: bool
) -> None:
    load = LogFacts(n_layers_offloaded=offloaded, n_layers_total=total)
    found = judged(cell(PP, n_gpu_layers=asked), row(n_gpu_layers=asked), load=load)
    assert bool(found.differences) == differs
    assert found.applied["n_gpu_layers"] == offloaded


def test_a_build_without_a_gpu_puts_no_layer_there() -> None:
    found = judged(cell(PP), row(n_gpu_layers=99), cpu_only=True)
    assert found.applied["n_gpu_layers"] == 0


@pytest.mark.parametrize(
    ("name", "asked", "echo", "differs"),
    [
        ("tensor_split", "3,1", "3.00/1.00", False),
        ("tensor_split", "3/1/0", "3.00/1.00", False),
        ("tensor_split", "3/1", "1.00/1.00", True),
        ("tensor_split", "x", "1.00", True),
        ("devices", "CUDA0,CUDA1", "CUDA0/CUDA1", False),
        ("devices", "CUDA0", "CUDA1", True),
        ("cpu_mask", "0x03", "0x3", False),
        ("cpu_mask", "3", "0x3", False),
        ("cpu_mask", "0x3", "0x1", True),
        ("cpu_mask", "zz", "0x1", True),
        ("type_k", "q8_0", "q8_0", False),
        ("type_k", "q8_0", "f16", True),
        ("no_host", True, True, False),
        ("no_host", True, False, True),
        ("no_op_offload", True, 1, False),
        ("load_mode", "mmap", "dio", True),
        ("lazy_mode", "off", "off", False),
    ],
)
def test_spellings_of_the_same_value_are_the_same(
    name: str, asked: Any, echo: Any, differs: bool
) -> None:
    found = judged(cell(PP, **{name: asked}), row(**{name: echo}))
    assert bool(found.differences) == differs


@pytest.mark.parametrize("name", ["numa", "prio", "rpc"])
def test_what_no_row_tells_is_not_compared(name: str) -> None:
    found = judged(cell(PP, **{name: 1 if name == "prio" else "x"}), row())
    assert found.differences == ()
    assert name not in found.applied


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n_prompt": 32}, "the engine measured n_prompt 32 instead of 16"),
        ({"n_gen": 4}, "the engine measured n_gen 4 instead of 0"),
        ({"n_depth": 64}, "the engine measured n_depth 64 instead of 0"),
        (
            {"n_prompt": 0, "n_gen": 8},
            "the engine measured n_prompt 0 instead of 16, n_gen 8 instead of 0",
        ),
    ],
)
def test_a_row_of_another_question_is_a_mismatch(fields: dict[str, Any], said: str) -> None:
    assert judged(cell(PP), row(**fields)).mismatch == said


def test_a_depth_that_an_old_row_does_not_tell_is_no_mismatch() -> None:
    old = json.loads(recording("b4748", "jsonl_basic").stdout_lines[0])
    assert judged(cell(PP), old).mismatch is None


@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        ({"use_mmap": True}, "mmap"),
        ({"use_mmap": False}, "none"),
        ({"use_mmap": True, "use_direct_io": True}, "dio"),
        ({"use_mmap": False, "use_direct_io": False}, "none"),
        ({}, None),
    ],
)
def test_the_load_mode_of_old_rows_is_read_from_their_switches(
    fields: dict[str, Any], mode: str | None
) -> None:
    old = {"n_prompt": 16, "n_gen": 0, **fields}
    assert judged(cell(PP), old).applied.get("load_mode") == mode


def test_the_log_knows_the_load_mode_better_than_the_row() -> None:
    old = {"n_prompt": 16, "n_gen": 0, "use_mmap": True, "use_direct_io": True}
    found = judged(cell(PP, load_mode="dio"), old, load=LogFacts(load_mode="mmap"))
    assert found.differences == ("load_mode: asked dio, applied mmap",)


@pytest.mark.parametrize("value", [[1], {"a": 1}, None, 1.5, "x", 2**70, float("nan")])
def test_a_field_of_the_wrong_kind_is_not_taken_for_an_effect(value: Any) -> None:
    found = judged(cell(PP, n_threads=2), row(n_threads=value))
    assert "n_threads" not in found.applied
    assert found.differences == ()


@pytest.mark.parametrize("value", [[1], {"a": 1}, 7, 1.5, "maybe"])
def test_a_switch_of_the_wrong_kind_is_not_taken_for_an_effect(value: Any) -> None:
    found = judged(cell(PP), row(flash_attn=value, no_host=value))
    assert "flash_attn" not in found.applied
    assert "no_host" not in found.applied


@pytest.mark.parametrize("name", RECORDED_BUILDS)
def test_recorded_rows_of_every_build_are_clean(name: str) -> None:
    of = block(PP, Test(n_prompt=32, n_gen=0), TG, PG, n_ubatch=(16, 32), n_threads=(1, 2))
    said = [json.loads(line) for line in recording(name, "jsonl_sweep").stdout_lines if line]
    for expected, content in zip(of.cells(), said, strict=True):
        found = judged(expected, content, cpu_only=True)
        assert (found.differences, found.mismatch, found.flags) == ((), None, ())
        assert all(isinstance(v, int | str) for v in found.applied.values())
