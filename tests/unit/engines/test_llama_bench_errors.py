from __future__ import annotations

import signal

import pytest
from tests.unit.engines.made import RECORDED_BUILDS, recording

from llamasweep.engines.base import Failure
from llamasweep.engines.llama_bench_errors import explain

GENERIC = "llama_bench: error: failed to load model 'm.gguf'"
NO_CONTEXT = "llama_bench: error: failed to create context with model 'm.gguf'"
LOADING = "llama_model_load: error loading model: "
CONTEXT = "llama_init_from_model: failed to initialize the context: "
THROWN = "terminate called after throwing an instance of "


def why(*lines: str, code: int | None = 1, by: str | None = None, oom: bool = False) -> Failure:
    failure = explain(
        exit_code=None if by else code, exit_signal=by, stderr_lines=lines, was_oom_killed=oom
    )
    assert failure is not None
    return failure


def short(failure: Failure) -> tuple[str, str, str]:
    return failure.status, failure.kind, failure.reach


def why_recorded(build: str, call: str) -> Failure | None:
    said = recording(build, call)
    number = said.exit_code - 128
    return explain(
        exit_code=said.exit_code if number < 0 else None,
        exit_signal=signal.Signals(number).name if number > 0 else None,
        stderr_lines=said.stderr_lines[-30:],
        was_oom_killed=False,
    )


# -- recorded

RECORDED = [
    ("b11434", "bad_flag", "failed", "bad_argument", "call", "--bogus"),
    ("b11434", "bad_magic", "failed", "model_damaged", "load", "invalid magic characters: 'hell'"),
    ("b11434", "bad_value", "failed", "bad_argument", "call", "-t"),
    ("b11434", "depth_too_big", "out_of_memory", "allocation_failed", "cell", "attempted to allocate 97656.50 MB"),
    ("b11434", "missing_file", "failed", "model_missing", "load", "No such file or directory"),
    ("b11434", "missing_second", "failed", "model_missing", "load", "No such file or directory"),
    ("b11434", "threads_zero", "failed", "assertion", "cell", "GGML_ASSERT(cplan->n_threads > 0) failed"),
    ("b11434", "truncated", "failed", "model_damaged", "load", "not within the file bounds"),
    ("b11434", "unknown_arch", "failed", "unknown_architecture", "load", "unknown model architecture: 'zlama'"),
    ("b11434", "vquant_no_fa", "failed", "needs_flash_attn", "cell", "quantized V cache requires flash_attn"),
    # builds before b11311 hide the reason unless they run with -v; then only the last line is true
    ("b8247", "bad_flag", "failed", "bad_argument", "call", "--bogus"),
    ("b8247", "bad_magic", "failed", "exit_code", "load", "failed to load model '/models/text.gguf'"),
    ("b8247", "bad_value", "failed", "bad_argument", "call", "-t"),
    ("b8247", "depth_too_big", "failed", "exit_code", "cell", "failed to create context"),
    ("b8247", "missing_file", "failed", "exit_code", "load", "failed to load model '/models/none.gguf'"),
    ("b8247", "missing_second", "failed", "exit_code", "load", "failed to load model"),
    ("b8247", "threads_zero", "failed", "assertion", "cell", "GGML_ASSERT"),
    ("b8247", "truncated", "failed", "exit_code", "load", "failed to load model"),
    ("b8247", "unknown_arch", "failed", "exit_code", "load", "failed to load model"),
    ("b8247", "version", "failed", "bad_argument", "call", "--version"),
    ("b8247", "vquant_no_fa", "failed", "exit_code", "cell", "failed to create context"),
    ("b4748", "bad_flag", "failed", "bad_argument", "call", "--bogus"),
    ("b4748", "bad_magic", "failed", "model_damaged", "load", "invalid magic"),
    ("b4748", "bad_value", "failed", "assertion", "cell", "GGML_ASSERT(n_threads > 0) failed"),
    ("b4748", "depth_too_big", "failed", "bad_argument", "call", "-d"),
    ("b4748", "jsonl_depth", "failed", "bad_argument", "call", "-d"),
    ("b4748", "list_devices", "failed", "bad_argument", "call", "--list-devices"),
    ("b4748", "missing_file", "failed", "model_unreadable", "load", "failed to open GGUF file"),
    ("b4748", "missing_second", "failed", "model_unreadable", "load", "failed to open GGUF file"),
    ("b4748", "threads_zero", "failed", "assertion", "cell", "GGML_ASSERT"),
    ("b4748", "truncated", "failed", "exit_code", "load", "failed to load model"),
    ("b4748", "unknown_arch", "failed", "exit_code", "load", "failed to load model"),
    ("b4748", "version", "failed", "bad_argument", "call", "--version"),
    ("b4748", "vquant_no_fa", "failed", "exit_code", "cell", "failed to create context"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("build", "call", "status", "kind", "reach", "said"), RECORDED, ids=lambda x: str(x)[:20]
)
def test_a_recorded_failure_is_told_by_its_true_reason(
    build: str, call: str, status: str, kind: str, reach: str, said: str
) -> None:
    failure = why_recorded(build, call)
    assert failure is not None
    assert short(failure) == (status, kind, reach)
    assert said in failure.message


def test_every_recorded_failure_is_in_the_table() -> None:
    from tests.unit.engines.made import CALLS

    failed = {(b, c) for b in RECORDED_BUILDS for c in CALLS if recording(b, c).exit_code}
    assert failed == {(row[0], row[1]) for row in RECORDED}


@pytest.mark.parametrize("call", ["jsonl_sweep", "jsonl_depth", "verbose"])
def test_a_recorded_success_is_no_failure(call: str) -> None:
    assert why_recorded("b11434", call) is None


# -- section 4 of the page on llama-bench, row by row

CASES: list[tuple[str, tuple[str, ...], int | None, str | None, tuple[str, str, str], str]] = [
    ("missing file", ("gguf_init_from_file: failed to open GGUF file 'm.gguf' (No such file or directory)", GENERIC),
     1, None, ("failed", "model_missing", "load"), "No such file"),
    ("unreadable file", ("gguf_init_from_file: failed to open GGUF file 'm.gguf' (Permission denied)", GENERIC),
     1, None, ("failed", "model_unreadable", "load"), "Permission denied"),
    ("directory or empty", ("gguf_init_from_reader: failed to read magic", GENERIC),
     1, None, ("failed", "model_damaged", "load"), "failed to read magic"),
    ("wrong magic", ("gguf_init_from_reader: invalid magic characters: 'hell', expected 'GGUF'", GENERIC),
     1, None, ("failed", "model_damaged", "load"), "invalid magic"),
    ("version 99", ("gguf_init_from_reader: this GGUF file is version 99 but this software only supports up to version 3",
                    LOADING + "llama_model_loader: failed to load model from m.gguf", GENERIC),
     1, None, ("failed", "model_damaged", "load"), "version 99"),
    ("truncated header", ("gguf_init_from_reader: failed to read key-value pairs", GENERIC),
     1, None, ("failed", "model_damaged", "load"), "key-value pairs"),
    ("truncated data", (LOADING + "tensor 'blk.0.ffn_up' data is not within the file bounds, model is corrupted", GENERIC),
     1, None, ("failed", "model_damaged", "load"), "not within the file bounds"),
    ("corrupt KV type", ("gguf_init_from_reader: key 'general.architecture' has invalid GGUF type 2133315744", GENERIC),
     1, None, ("failed", "model_damaged", "load"), "invalid GGUF type"),
    ("missing shard", (LOADING + "llama_model_loader: failed to load GGUF split from split-00002-of-00003.gguf", GENERIC),
     1, None, ("failed", "model_damaged", "load"), "split-00002-of-00003"),
    ("not shard 1", (LOADING + "illegal split file idx: 2 (file: m), model must be loaded with the first split", GENERIC),
     1, None, ("failed", "load_failed", "load"), "must be loaded with the first split"),
    ("unknown architecture", (LOADING + "unknown model architecture: 'llamazilla'", GENERIC),
     1, None, ("failed", "unknown_architecture", "load"), "llamazilla"),
    ("missing metadata", (LOADING + "error loading model hyperparameters: key not found in model: llama.context_length", GENERIC),
     1, None, ("failed", "model_incomplete", "load"), "llama.context_length"),
    ("missing tensor", (LOADING + "check_tensor_dims: tensor 'X' not found", GENERIC),
     1, None, ("failed", "model_incomplete", "load"), "tensor 'X' not found"),
    ("wrong shape", (LOADING + "check_tensor_dims: tensor 'X' has wrong shape; expected 1, got 2", GENERIC),
     1, None, ("failed", "model_incomplete", "load"), "wrong shape"),
    ("MoE keys missing", ("src/llama-model.cpp:1366: GGML_ASSERT(n_expert_used_max > 0) failed",),
     None, "SIGABRT", ("failed", "assertion", "cell"), "n_expert_used_max"),
    ("optional tensor that the graph needs", (), None, "SIGSEGV", ("failed", "signal", "cell"), "ended by SIGSEGV"),
    ("removed flag", ("error: invalid parameter for argument: -mmp",),
     1, None, ("failed", "bad_argument", "call"), "-mmp"),
    ("invalid value", ("error: invalid range format", "error: invalid parameter for argument: -ngl"),
     1, None, ("failed", "bad_argument", "call"), "invalid range format; error: invalid parameter for argument: -ngl"),
    ("number beyond int", ("error: stoi", "error: invalid parameter for argument: -p"),
     1, None, ("failed", "bad_argument", "call"), "stoi"),
    ("switch that is none", ('error: invalid value: "foo"',), 1, None, ("failed", "bad_argument", "call"), "foo"),
    ("unknown device", ("error: invalid device: foo",), 1, None, ("failed", "bad_argument", "call"), "foo"),
    ("bad buffer type", ("error: invalid parameter for argument: -ot",),
     1, None, ("failed", "bad_argument", "call"), "-ot"),
    ("bad regex", (LOADING + "Unexpected character within '[...]' in regular expression", GENERIC),
     1, None, ("failed", "load_failed", "load"), "regular expression"),
    ("too many shares", ("llama-bench.cpp:929: GGML_ASSERT(split_arg.size() <= llama_max_devices()) failed",),
     None, "SIGABRT", ("failed", "assertion", "cell"), "llama_max_devices"),
    ("quantised V, off", ("llama_init_from_model: quantized V cache requires flash_attn to be enabled", NO_CONTEXT),
     1, None, ("failed", "needs_flash_attn", "cell"), "requires flash_attn"),
    ("quantised V, older words", ("llama_init_from_model: V cache quantization requires flash_attn", NO_CONTEXT),
     1, None, ("failed", "needs_flash_attn", "cell"), "requires flash_attn"),
    ("quantised V, auto became off", (CONTEXT + "quantized V cache was requested, but this requires Flash Attention", NO_CONTEXT),
     1, None, ("failed", "needs_flash_attn", "cell"), "requires Flash Attention"),
    ("head size", ("llama_init_from_model: K cache type q8_0 with block size 32 does not divide n_embd_head_k=80", NO_CONTEXT),
     1, None, ("failed", "head_size", "cell"), "n_embd_head_k=80"),
    ("another context fault", (CONTEXT + "rope is bent", NO_CONTEXT),
     1, None, ("failed", "context_failed", "cell"), "rope is bent"),
    ("depth of 98 GB", ("ggml_aligned_malloc: insufficient memory (attempted to allocate 97656.50 MB)",
                        CONTEXT + "failed to allocate buffer for kv cache", NO_CONTEXT),
     1, None, ("out_of_memory", "allocation_failed", "cell"), "97656.50 MB"),
    ("limit too small for mmap", (LOADING + "mmap failed: Cannot allocate memory", GENERIC),
     1, None, ("out_of_memory", "allocation_failed", "load"), "mmap failed"),
    ("limit too small to read", (LOADING + "unable to allocate CPU buffer", GENERIC),
     1, None, ("out_of_memory", "allocation_failed", "load"), "unable to allocate CPU buffer"),
    ("compute buffer", (CONTEXT + "failed to allocate compute pp buffers", NO_CONTEXT),
     1, None, ("out_of_memory", "allocation_failed", "cell"), "compute pp buffers"),
    ("threads that do not fit", ("libgomp: Thread creation failed: Resource temporarily unavailable",),
     1, None, ("out_of_memory", "allocation_failed", "cell"), "Thread creation failed"),
    ("no threads", ("ggml-cpu.c:1: GGML_ASSERT(cplan->n_threads > 0) failed",),
     None, "SIGABRT", ("failed", "assertion", "cell"), "n_threads"),
    ("very many threads", (), None, "SIGSEGV", ("failed", "signal", "cell"), "SIGSEGV"),
    ("no batch", ("llama-context.cpp:1: GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max) failed",),
     None, "SIGABRT", ("failed", "assertion", "cell"), "n_outputs_max"),
    ("bad mask, which only its own cells share", ("llama_bench: failed to parse cpu-mask: zz",),
     1, None, ("failed", "bad_argument", "cell"), "cpu-mask: zz"),
    ("priority", ("llama_bench: error: failed to set process priority",),
     1, None, ("failed", "priority_refused", "call"), "process priority"),
    ("killed by hand", (), None, "SIGKILL", ("failed", "signal", "cell"), "SIGKILL"),
    ("reader closed", (), None, "SIGPIPE", ("failed", "signal", "cell"), "SIGPIPE"),
    # not in the section: other ways to die
    ("CUDA out of memory", ("CUDA error: out of memory", "ggml-cuda.cu:88: CUDA error"),
     None, "SIGABRT", ("out_of_memory", "allocation_failed", "cell"), "out of memory"),
    ("CUDA fault", ("CUDA error: an illegal memory access was encountered", "ggml-cuda.cu:88: CUDA error"),
     None, "SIGABRT", ("failed", "device_error", "cell"), "illegal memory access"),
    ("Vulkan device lost", (THROWN + "'vk::DeviceLostError'",
                            "  what():  vk::Device::waitForFences: ErrorDeviceLost"),
     None, "SIGABRT", ("failed", "device_error", "cell"), "ErrorDeviceLost"),
    ("exception", (THROWN + "'std::runtime_error'", "  what():  odd things"),
     None, "SIGABRT", ("failed", "exception", "cell"), "odd things"),
    ("memory by exception", (THROWN + "'std::bad_alloc'", "  what():  std::bad_alloc"),
     None, "SIGABRT", ("out_of_memory", "allocation_failed", "cell"), "bad_alloc"),
    ("not startable", ("llamasweep: cannot start '/b/llama-bench': Permission denied",),
     127, None, ("failed", "not_started", "call"), "Permission denied"),
    ("library missing", ("/b/llama-bench: error while loading shared libraries: libcudart.so.12: cannot open it",),
     127, None, ("failed", "not_started", "call"), "libcudart.so.12"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "code", "by", "expected", "said"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_known_way_to_fail_is_told_by_its_reason(
    lines: tuple[str, ...],
    code: int | None,
    by: str | None,
    expected: tuple[str, str, str],
    said: str,
) -> None:
    failure = why(*lines, code=code, by=by)
    assert short(failure) == expected
    assert said in failure.message


@pytest.mark.parametrize(
    "benign",
    [
        "warning: failed to mlock 4096-byte buffer (after previously locking 0 bytes): Cannot allocate memory",
        "ggml_cuda_host_malloc: failed to allocate 256.00 MiB of pinned memory: out of memory",
        "ggml_vulkan: Failed to allocate pinned memory (vk::Device::allocateMemory: ErrorOutOfDeviceMemory)",
        "ggml_backend_sched_alloc_splits: failed to allocate graph, reserving (backend_ids_changed = 1)",
    ],
)
def test_what_the_engine_survives_is_not_taken_for_the_cause(benign: str) -> None:
    assert short(why(benign, by="SIGSEGV")) == ("failed", "signal", "cell")
    assert short(why(benign, LOADING + "unknown model architecture: 'x'", GENERIC))[1] == (
        "unknown_architecture"
    )


def test_a_clean_end_is_no_failure() -> None:
    end = {"exit_code": 0, "exit_signal": None, "was_oom_killed": True}
    assert explain(**end, stderr_lines=["error: failed to load model"]) is None  # type: ignore[arg-type]


def test_the_kernels_word_makes_a_kill_a_lack_of_memory() -> None:
    assert short(why(by="SIGKILL", oom=True)) == ("out_of_memory", "oom_killed", "cell")
    assert short(why(by="SIGSEGV", oom=True)) == ("failed", "signal", "cell")


def test_an_ending_without_a_word_says_so() -> None:
    assert why(code=3).message == "exit code 3, and nothing on stderr says why"
    assert why("llama-bench: benchmark 1/2: starting", "", code=3).message == (
        "exit code 3, and nothing on stderr says why"
    )


def test_unknown_last_words_are_not_sold_as_the_reason() -> None:
    failure = why("something odd", "llama_context: n_ctx = 256", code=3)
    assert failure.message == "exit code 3; the last thing on stderr was: something odd"


def test_a_long_reason_is_cut() -> None:
    assert len(why("error: " + "x" * 10_000).message) < 450
