"""Starts one engine as its own last words: limits itself, ties its life to the runner's, then becomes the engine.

Run as a script by `process.py` (`python -I -S launch.py OPTIONS -- ARGV…`), standard library only. On Linux the kernel
ends the engine when the runner dies (PR_SET_PDEATHSIG) and this process is replaced by the engine; elsewhere it stays as a
guardian that ends the engine when the pipe from the runner closes.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1
EXIT_NOT_STARTED = 127


def main() -> None:
    """OPTIONS is JSON: address_space_bytes (int or null), parent_pid, guard (bool)."""
    split = sys.argv.index("--")
    options = json.loads(sys.argv[1])
    argv = sys.argv[split + 1 :]
    if options["address_space_bytes"] is not None:
        import resource  # noqa: PLC0415  (not on Windows)

        limit = options["address_space_bytes"]
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        if options["guard"]:
            sys.exit(_guard(argv))
        _tie_to_parent(options["parent_pid"])
        os.execv(argv[0], argv)  # noqa: S606  (no shell is the point)
    except OSError as problem:
        sys.stderr.write(f"llamasweep: cannot start {argv[0]!r}: {problem.strerror}\n")
        sys.exit(EXIT_NOT_STARTED)


def _tie_to_parent(parent_pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        sys.exit(EXIT_NOT_STARTED)  # the runner died between fork and here
    _prefer_for_oom_kill()


def _prefer_for_oom_kill() -> None:
    """Should memory run out, the kernel takes the engine and not the user's session."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:
        return


def _guard(argv: list[str]) -> int:
    """Run the engine as a child; stdin is a pipe whose end means that the runner is gone."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)

    def watch() -> None:
        while os.read(0, 1):
            pass
        child.kill()

    threading.Thread(target=watch, daemon=True).start()
    code = child.wait()
    if code < 0:  # end by the same signal, so that the runner sees the true reason
        if -code not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    main()
