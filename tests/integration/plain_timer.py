"""An independent timer of streamed chat completions, standard library only: what `feel` is held against."""

from __future__ import annotations

import json
import random
import statistics
import time
import urllib.request


def time_answers(
    base_url: str, model: str, words: int, n_gen: int, n_runs: int
) -> dict[str, list[float]]:
    """Seconds to the first token, seconds per further token and of the whole, of each run after one thrown away."""
    found: dict[str, list[float]] = {"ttft": [], "tpot": [], "e2e": []}
    for run in range(n_runs + 1):
        prompt = f"{random.randrange(10**8):08d} " + "word " * words
        body = {
            "model": model,
            "stream": True,
            "max_tokens": n_gen,
            "temperature": 0,
            "ignore_eos": True,
        }
        body |= {
            "messages": [{"role": "user", "content": prompt}],
            "stream_options": {"include_usage": True},
        }
        url, head = f"{base_url}/v1/chat/completions", {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), head)  # noqa: S310  (a server of the test)
        times, n_tokens, start = [], 0, time.perf_counter()
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            for line in answer:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                n_tokens = (event.get("usage") or {}).get("completion_tokens", n_tokens)
                if event["choices"] and event["choices"][0]["delta"].get("content"):
                    times.append(time.perf_counter() - start)
        if run > 0:
            found["ttft"].append(times[0])
            found["tpot"].append((times[-1] - times[0]) / (n_tokens - 1))
            found["e2e"].append(times[-1])
    return found


def median_and_p95(values: list[float]) -> tuple[float, float]:
    """Both in the values' unit; p95 between the nearest two."""
    return statistics.median(values), statistics.quantiles(values, n=20, method="inclusive")[18]
