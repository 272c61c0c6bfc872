"""What llama-server is started with to use a setting that was measured. Words only; nothing is started."""

from __future__ import annotations

import ntpath
import posixpath
import re
from dataclasses import dataclass

from llamasweep.results.contenders import Contender
from llamasweep.results.server_flags import OLDEST_READ_BUILD, SPELLED, spelled

NO_SERVER_PATH = "llama-server"
"""Stands in a command where the program's place is not known."""
_BESIDE_SERVER = ("llama-bench", "llama-batched-bench")

_OF_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerCommand:
    """argv: with paths as recorded, a leading ~ is the home folder. notes: what it does not say, in sentences."""

    argv: tuple[str, ...]
    notes: tuple[str, ...]


def server_command(
    setting: Contender,
    *,
    server_path: str,
    model_path: str,
    n_context: int,
    n_threads_batch: int | None = None,
) -> ServerCommand:
    """The command for one setting. n_context: tokens that the cache holds for each of
    its streams. n_threads_batch: for prompts, None as for
    generation."""
    n_streams = setting.load.n_streams
    argv = [server_path, "-m", model_path, "-c", str(n_context * n_streams), "-np", str(n_streams)]
    if setting.n_threads is not None:
        argv += ["-t", str(setting.n_threads)]
    if n_threads_batch is not None and n_threads_batch != setting.n_threads:
        argv += ["-tb", str(n_threads_batch)]
    for name, value in setting.settings:
        argv += spelled(name, value, setting.build_number)
    unknown = [name for name, _ in setting.settings if name not in (*SPELLED, "num_ctx")]
    notes = [f"llama-server has no flag for {', '.join(unknown)}."] if unknown else []
    number = setting.build_number
    if number is None or number < OLDEST_READ_BUILD:
        notes.append(
            f"The flags are those of b{OLDEST_READ_BUILD} and later; compare with this build's "
            "llama-server --help."
        )
    return ServerCommand(argv=tuple(argv), notes=tuple(notes))


def server_beside(bench_path: str | None) -> str:
    """llama-server in the folder of llama-bench, as it is where it was measured itself, or by its name alone where that
    path is not known.

    A unified binary (`llama bench`) has the server as a verb of its own; then too the name alone is given.
    """
    if not bench_path:
        return NO_SERVER_PATH
    is_windows = _OF_WINDOWS.match(bench_path) is not None
    name = ntpath.basename(bench_path) if is_windows else posixpath.basename(bench_path)
    if name.startswith("llama-server"):
        return bench_path
    program = next((one for one in _BESIDE_SERVER if name.startswith(one)), None)
    if program is None:
        return NO_SERVER_PATH
    folder = bench_path[: len(bench_path) - len(name)]
    return folder + name.replace(program, "llama-server", 1)
