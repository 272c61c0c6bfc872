"""What the streaming client itself costs and adds, at 1 and 64 streams, against the test server of known timing.

Lateness is the client's time of a token minus the server's time just before it sent it, on one clock: all that a figure
of latency is too high by. Server and client share the machine, so this is an upper bound for a server elsewhere.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from benchmarks.bare import emit
from tests.fakes.timed_server import Served, TimedServer, timed_server

from llamasweep.engines.http_exchange import parse_base_url
from llamasweep.engines.openai_client import Answer, Completion, complete_at_once
from llamasweep.results.latency import spread

STREAMS = (1, 64)
GAP_S = {1: 0.01, 64: 0.05}
"""Between tokens of a stream: 100 tokens a second for one user, 20 for each of 64, 1,280 in all."""
TTFT_S = 0.5
WARM_UP_TOKENS = 8


def measure(server: TimedServer, n_streams: int, n_tokens: int) -> dict[str, Any]:
    """One round of streams at once. The number at the start of a prompt finds the server's record of it."""
    server.take_log()
    requests, address = (
        [],
        parse_base_url(server.base_url(n_tokens=n_tokens, ttft_s=TTFT_S, gap_s=GAP_S[n_streams])),
    )
    for index in range(n_streams):
        requests.append(Completion(model="m", prompt=f"{index} " + "x" * 2000, n_gen=n_tokens))
    cpu_s, wall_s = time.process_time(), time.monotonic()
    outcomes = complete_at_once(address, requests)
    cpu_s, wall_s = time.process_time() - cpu_s, time.monotonic() - wall_s
    answers = [one for one in outcomes if isinstance(one, Answer)]
    assert len(answers) == n_streams, outcomes
    truth = {_index(one): one for one in server.take_log()}
    late_ms = [
        (seen - sent) / 1e6
        for index, answer in enumerate(answers)
        for seen, sent in zip(answer.timing.event_ns, truth[index].sent_ns, strict=True)
    ]
    figures = spread(late_ms)
    return {
        "n_streams": n_streams,
        "n_tokens": len(late_ms),
        "tokens_per_s": len(late_ms) / wall_s,
        "cpu_us_per_token": cpu_s / len(late_ms) * 1e6,
        "cpu_share_of_one_core": cpu_s / wall_s,
        "lateness_median_ms": figures.median,
        "lateness_p95_ms": figures.p95,
        "lateness_p99_ms": figures.p99,
    }


def _index(served: Served) -> int:
    return int(served.body["messages"][0]["content"].split()[0])


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tokens", type=int, default=200, help="of each stream")
    chosen = options.parse_args()
    with timed_server() as server:
        measure(server, 1, WARM_UP_TOKENS)
        rounds = [measure(server, n, chosen.tokens) for n in STREAMS]
    emit("client_overhead", {"rounds": rounds, "lateness_median_aim_below_ms": 1.0})


if __name__ == "__main__":
    main()
