"""What requests to a server took, as columns of an attempt: TTFT, TPOT, gaps and E2E at the client, and the server's own rates.

The arithmetic is `results.latency`'s. Times are in seconds, as in every column.
"""

from __future__ import annotations

from dataclasses import dataclass

from llamasweep.results.declared import column


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestTimes:
    """Of all timed requests of one cell, all streams and repetitions together; None where nobody told."""

    n_requests: int | None = column("requests that were timed", unit="count")
    ttft_median_s: float | None = column(
        "send to the first token with content, median of the requests", unit="s"
    )
    ttft_p95_s: float | None = column(
        "send to the first token with content, 95th percentile of the requests", unit="s"
    )
    ttft_p99_s: float | None = column(
        "send to the first token with content, 99th percentile of the requests", unit="s"
    )
    tpot_median_s: float | None = column(
        "(E2E - TTFT) / (tokens - 1), median of the requests", unit="s"
    )
    tpot_p95_s: float | None = column(
        "(E2E - TTFT) / (tokens - 1), 95th percentile of the requests", unit="s"
    )
    tpot_p99_s: float | None = column(
        "(E2E - TTFT) / (tokens - 1), 99th percentile of the requests", unit="s"
    )
    itl_median_s: float | None = column(
        "gap between two events with content, median over all requests", unit="s"
    )
    itl_p95_s: float | None = column(
        "gap between two events with content, 95th percentile over all requests", unit="s"
    )
    itl_p99_s: float | None = column(
        "gap between two events with content, 99th percentile over all requests", unit="s"
    )
    e2e_median_s: float | None = column(
        "send to the last token with content, median of the requests", unit="s"
    )
    e2e_p95_s: float | None = column(
        "send to the last token with content, 95th percentile of the requests", unit="s"
    )
    e2e_p99_s: float | None = column(
        "send to the last token with content, 99th percentile of the requests", unit="s"
    )
    user_median_tps: float | None = column(
        "decode rate that one stream saw, 1 / TPOT, median of the requests", unit="tps"
    )
    server_pp_tps: float | None = column(
        "prefill rate by the server's own clock, median of the requests", unit="tps"
    )
    server_tg_tps: float | None = column(
        "decode rate by the server's own clock, without the first token, median", unit="tps"
    )
    n_prompt_counted: int | None = column(
        "tokens of the prompt as the server counts them, median", unit="count"
    )
    n_cached_tokens: int | None = column(
        "prompt tokens that came from a cache, most in one request", unit="count"
    )
    n_requests_counted_here: int | None = column(
        "requests whose tokens were counted by us because the server did not tell", unit="count"
    )
    load_cold_s: float | None = column(
        "a load into a new runner of Ollama, wall time of the request", unit="s"
    )
    load_warm_s: float | None = column(
        "the same request to the loaded model, wall time of the request", unit="s"
    )
    same_weights_tps: float | None = column(
        "llama-bench on the server's own file with the same settings, median", unit="tps"
    )
    same_weights_min_tps: float | None = column(
        "llama-bench on the server's own file, its slowest repetition", unit="tps"
    )
    same_weights_max_tps: float | None = column(
        "llama-bench on the server's own file, its fastest repetition", unit="tps"
    )
    same_weights_build: str | None = column("build of that llama-bench")
    same_weights_settings: str | None = column("flags of that llama-bench")
    request_mode: str | None = column("how Ollama was asked: verbose or api; raw or own template")
    server_version: str | None = column("as the server calls itself")
    server_build: str | None = column("build of llama.cpp in the server, as its log tells")
    server_model_digest: str | None = column("digest of the model's manifest, as Ollama tells")
    server_context_tokens: int | None = column(
        "window of one slot that the server says it allocated", unit="count"
    )
    server_size_bytes: int | None = column(
        "memory of the loaded model, as the server tells", unit="bytes"
    )
    server_vram_bytes: int | None = column("its share on GPUs, as the server tells", unit="bytes")
