"""What the benchmarks share: how to find engine, model and command line, run them bare, and judge a ratio.

The engine is the one that `llamasweep builds` would use, or `--engine PATH`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamasweep.builds.registry import Registry
from llamasweep.gguf.synth import cached_model

LLAMASWEEP = str(Path(sys.executable).with_name("llamasweep"))
CONFIDENCE = 0.95


def parser(description: str | None, *, minutes: float) -> argparse.ArgumentParser:
    """Options that every benchmark with an engine has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--minutes", type=float, default=minutes, help="upper bound of the time")
    options.add_argument(
        "--engine", type=Path, help="llama-bench to use; left out: the default build"
    )
    return options


def engine(chosen: Path | None) -> Path:
    """Path of the llama-bench to measure with."""
    registry = Registry()
    return Path((registry.get(str(chosen)) if chosen else registry.default()).path)


def model(shape: str, quant: str) -> Path:
    """A generated model from the user's cache."""
    return cached_model(shape, quant)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """A process that ended well. wall_s: from start to end."""

    stdout: str
    wall_s: float


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> Finished:
    """Run to the end. Raises SystemExit with the process's own words if it fails."""
    began = time.perf_counter()
    done = subprocess.run(
        list(argv),
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "GGML_NO_BACKTRACE": "1", **(env or {})},
        check=False,
    )
    wall_s = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(
            f"{argv[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}{done.stdout[-500:]}"
        )
    return Finished(stdout=done.stdout, wall_s=wall_s)


def rows(stdout: str) -> list[dict[str, Any]]:
    """The result lines of a llama-bench run with `-o jsonl`."""
    return [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]


def median_tps(row: Mapping[str, Any]) -> float:
    """Median rate of a row's repetitions, without the first, which is seldom level."""
    n_tokens = row["n_prompt"] + row["n_gen"]
    return float(statistics.median(1e9 * n_tokens / ns for ns in row["samples_ns"][1:]))


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of its own, so that nothing of the user's is touched."""
    with tempfile.TemporaryDirectory(prefix="llamasweep-bench-") as folder:
        yield Path(folder)


def write_sweep(folder: Path, document: Mapping[str, Any]) -> Path:
    """A sweep file; JSON is YAML."""
    path = folder / "sweep.yaml"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """Geometric mean of paired ratios with its interval; half_width_fraction is None below three pairs."""

    ratio: float
    low: float | None
    high: float | None
    half_width_fraction: float | None
    n_pairs: int


def paired_ratio(log_ratios: Sequence[float]) -> Ratio:
    """Student's t interval of the mean log ratio, at 95 %, taken back from logarithms."""
    n = len(log_ratios)
    mean = statistics.fmean(log_ratios)
    if n < 3:
        return Ratio(ratio=math.exp(mean), low=None, high=None, half_width_fraction=None, n_pairs=n)
    half = student_quantile(n - 1) * statistics.stdev(log_ratios) / math.sqrt(n)
    return Ratio(
        ratio=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(mean + half),
        half_width_fraction=math.expm1(half),
        n_pairs=n,
    )


def student_quantile(n_degrees: int) -> float:
    """Two-sided 95 % quantile of Student's t, by the expansion around the normal quantile.

    Abramowitz and Stegun 26.7.5, four terms: within 1 % from 3 degrees on, exact in the limit; 1 and 2 degrees in
    closed form.
    """
    if n_degrees == 1:
        return math.tan(math.pi * CONFIDENCE / 2)
    if n_degrees == 2:
        tail = CONFIDENCE * CONFIDENCE
        return math.sqrt(2 * tail / (1 - tail))
    z = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / n_degrees ** (k + 1) for k, term in enumerate(terms)))


def tell(sentence: str) -> None:
    """How far a long benchmark is, on stderr."""
    print(f"  {sentence}", file=sys.stderr, flush=True)


def emit(name: str, figures: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps({"benchmark": name, **figures}))
