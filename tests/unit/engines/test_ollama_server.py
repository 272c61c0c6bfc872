"""What a server's log says it applied, from lines that v0.11, v0.24 and v0.32 write."""

from __future__ import annotations

import pytest

from llamasweep.engines.http_exchange import free_port
from llamasweep.engines.ollama_server import (
    ServerLog,
    ServerSettings,
    describe_server,
    read_command,
)
from llamasweep.errors import UsageError

BESIDE = (
    'time=2026-11-29T17:35:33.798Z level=INFO source=llama_server.go:433 msg="starting llama-server" cmd="/opt/llama-server'
    " --model /tmp/models/blobs/sha256-36a6 --port 41007 --host 127.0.0.1 --no-webui --offline -c 2048 -np 2 --log-verbosity 4"
    " --no-log-prefix --no-log-timestamps --no-jinja --chat-template chatml --load-mode none --flash-attn auto -b 256 -ub 128"
    ' -t 2 --context-shift --keep 4 --cache-type-k q8_0 --cache-type-v q8_0"'
)
INSIDE = (
    'time=2026-11-29T13:02:13.000Z level=INFO source=server.go:438 msg="starting runner" cmd="/opt/bin/ollama runner --model'
    ' /tmp/models/blobs/sha256-69ab --ctx-size 1024 --batch-size 512 --threads 2 --no-mmap --parallel 1 --port 40001"'
)


def test_the_command_of_a_server_beside_is_the_truth() -> None:
    log = ServerLog()
    log.feed(BESIDE)
    assert dict(log.applied) == {
        "model": "/tmp/models/blobs/sha256-36a6",
        "n_ctx_total": 2048,
        "n_parallel": 2,
        "n_ctx": 1024,
        "has_jinja": False,
        "chat_template": "chatml",
        "load_mode": "none",
        "flash_attn": "auto",
        "n_batch": 256,
        "n_ubatch": 128,
        "n_threads": 2,
        "type_k": "q8_0",
        "type_v": "q8_0",
    }


def test_the_command_of_an_engine_inside_is_the_truth() -> None:
    log = ServerLog()
    log.feed(INSIDE)
    assert dict(log.applied) == {
        "model": "/tmp/models/blobs/sha256-69ab",
        "n_ctx_total": 1024,
        "n_ctx": 1024,
        "n_batch": 512,
        "n_threads": 2,
        "load_mode": "none",
        "n_parallel": 1,
    }


def test_an_engine_inside_that_tells_its_settings_later_is_read_too() -> None:
    log = ServerLog()
    log.feed('msg="starting runner" cmd="/opt/bin/ollama runner --model /tmp/b --port 40001"')
    log.feed(
        'level=INFO source=runner.go:1271 msg=load request="{Operation:commit LoraPath:[] Parallel:1 BatchSize:512 '
        'FlashAttention:Disabled KvSize:4096 KvCacheType: NumThreads:2 GPULayers:[] MultiUserCache:false}"'
    )
    assert log.applied["n_ctx"] == 4096
    assert (log.applied["n_batch"], log.applied["n_threads"]) == (512, 2)
    assert log.applied["flash_attn"] == "disabled"
    assert "type_kv" not in log.applied


@pytest.mark.parametrize(
    "line",
    [
        "llama_kv_cache_unified: KV self size  =   32.00 MiB, K (f16):   16.00 MiB, V (f16):   16.00 MiB",
        "llama_kv_cache: size =   32.00 MiB (  4096 cells,   8 layers,  1/1 seqs), K (f16):   16.00 MiB, V (f16):   16.00 MiB",
    ],
)
def test_the_types_of_the_cache_that_was_made_rule_over_what_was_asked(line: str) -> None:
    """v0.11 starts no flash attention on a CPU, and then leaves the asked type out without a word."""
    log = ServerLog()
    log.feed(BESIDE)
    log.feed(line)
    assert (log.applied["type_k"], log.applied["type_v"]) == ("f16", "f16")
    assert log.applied["n_threads"] == 2


def test_a_cached_prompt_is_told_by_the_log() -> None:
    log = ServerLog()
    log.feed(
        "slot   operator(): id  0 | task 19 | new prompt, n_ctx_slot = 1024, n_keep = 4, task.n_tokens = 14"
    )
    log.feed("slot   operator(): id  0 | task 19 | cached n_tokens = 1, memory_seq_rm [1, end)")
    assert (log.prompts, log.cached_counts) == ([(1024, 14)], [1])


def test_version_library_and_processor_are_read() -> None:
    log = ServerLog()
    assert ServerLog().knows_gpu is None
    log.feed(
        'level=INFO source=routes.go:2008 msg="Listening on 127.0.0.1:18434 (version 0.32.15)"'
    )
    log.feed(
        'level=INFO source=types.go:50 msg="inference compute" id=cpu library=cpu compute="" name=cpu'
    )
    log.feed("cmn  common_param: system_info: n_threads = 2 | CPU : AVX2 = 1 | ")
    assert log.version == "0.32.15"
    log.feed("cmn  common_param: common_params_print_info: build 10488 (sdist) with GNU 12.2.0 for")
    assert log.build == 10488
    assert not log.knows_gpu
    assert log.system == "n_threads = 2 | CPU : AVX2 = 1 |"
    log.feed('msg="inference compute" id=0 library=CUDA compute=8.9')
    assert log.libraries == {"cpu", "CUDA"}
    assert log.knows_gpu


def test_a_prompt_that_was_cut_leaves_a_note() -> None:
    log = ServerLog()
    log.feed(
        'level=WARN source=runner.go:127 msg="truncating input prompt" limit=512 prompt=8001 keep=4 new=512'
    )
    assert len(log.notes) == 1


@pytest.mark.parametrize("command", ["", "-c", "-c x -np 0 -b -5x", "--model --port", "-np 0 -c 5"])
def test_a_command_that_says_nothing_gives_nothing_wrong(command: str) -> None:
    assert "n_ctx" not in read_command(command)


def test_a_flood_of_lines_stays_small() -> None:
    log = ServerLog()
    for _ in range(60_000):
        log.feed("cached n_tokens = 1")
    assert len(log.cached_counts) <= 20_000


def test_a_server_is_called_with_its_own_folders_and_without_the_network() -> None:
    settings = ServerSettings(type_kv="q8_0", flash_attn=True, n_parallel=4)
    call = describe_server("/opt/ollama", 1234, models="/m", home="/h", settings=settings)
    env = dict(call.env)
    assert call.argv == ("/opt/ollama", "serve")
    assert env["OLLAMA_HOST"] == "127.0.0.1:1234"
    assert (env["OLLAMA_MODELS"], env["HOME"], env["OLLAMA_NO_CLOUD"]) == ("/m", "/h", "1")
    assert (env["OLLAMA_KV_CACHE_TYPE"], env["OLLAMA_FLASH_ATTENTION"]) == ("q8_0", "1")
    assert env["OLLAMA_NUM_PARALLEL"] == "4"


def test_settings_that_are_open_are_not_said() -> None:
    env = dict(describe_server("ollama", 1, models="/m", home="/h").env)
    assert not {"OLLAMA_KV_CACHE_TYPE", "OLLAMA_FLASH_ATTENTION"} & set(env)


def test_a_kv_type_that_ollama_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match="no KV cache of type 'q5_1'"):
        describe_server(
            "ollama", 1, models="/m", home="/h", settings=ServerSettings(type_kv="q5_1")
        )


def test_a_free_port_is_one() -> None:
    assert 1024 <= free_port() < 65536
