"""`python -m llamasweep.drivers JOB`: do one job (see engines.driven) and exit with 0, or say one failure and exit with 1."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from llamasweep.drivers.batched_bench import measure_batched
from llamasweep.drivers.failing import as_failure
from llamasweep.drivers.ollama import measure_ollama
from llamasweep.drivers.ollama_server import serving
from llamasweep.drivers.own_server import own_server
from llamasweep.drivers.requests import Asking, measure_cells
from llamasweep.engines.base import Failure
from llamasweep.engines.driven import Job, failure_line, read_job
from llamasweep.engines.http_exchange import parse_base_url
from llamasweep.engines.llama_batched_bench import BATCHED_BENCH
from llamasweep.engines.openai_client import detect_dialect, key_from_environment
from llamasweep.errors import LlamasweepError


def main(argv: list[str]) -> int:
    """The exit code."""
    try:
        _do(read_job(argv[1:]))
    except (LlamasweepError, OSError, ValueError) as problem:
        _say(as_failure(problem))
        return 1
    return 0


def _do(job: Job) -> None:
    if job.engine == "ollama":
        with serving(job, _print_line) as found:
            measure_ollama(found, job, print_row=_print_row, print_line=_print_line)
        return
    if job.engine == BATCHED_BENCH:
        measure_batched(job, print_row=_print_row, print_line=_print_line)
        return
    with ExitStack() as stack:
        key = key_from_environment(job.key_variable)
        if job.server_argv:
            address = stack.enter_context(own_server(job.server_argv, _print_line))
        elif job.base_url is not None:
            address = parse_base_url(job.base_url, key=key)
        else:
            raise ValueError("the job names no server")
        asking = Asking(address=address, model=job.model, dialect=detect_dialect(address), job=job)
        measure_cells(asking, print_row=_print_row, print_line=_print_line)


def _print_row(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _print_line(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _say(failure: Failure) -> None:
    _print_line(failure_line(failure))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
