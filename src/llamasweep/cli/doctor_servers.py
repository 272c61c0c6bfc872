"""What doctor tells of servers: Ollama's program, server, models and environment, and what lies beside the llama-bench of each
build: llama-server, and llama-batched-bench, which does without one."""

from __future__ import annotations

import os
from typing import Any


def find_servers(engines: list[dict[str, Any]]) -> dict[str, Any]:
    """Plain JSON values. engines: builds as doctor lists them.

    programs_absent: program that no build has -> how it is added.
    """
    from llamasweep.builds.server import BATCHED_BENCH, SERVER
    from llamasweep.run.secrets import hide_in_environment

    named = {name: value for name, value in os.environ.items() if name.startswith("OLLAMA_")}
    programs = {program: _beside(engines, program) for program in (SERVER, BATCHED_BENCH)}
    by_default = sorted(engines, key=lambda engine: not engine["is_default"])
    number = next((engine["number"] for engine in by_default if engine["number"]), "VERSION")
    return {
        "ollama": {
            "program": _program(),
            "server": _server(),
            "environment": hide_in_environment(sorted(named.items())),
        },
        "llama_server": programs[SERVER],
        "llama_batched_bench": programs[BATCHED_BENCH],
        "programs_absent": {
            program: f"`llamasweep builds install {number} --with {program}` adds it"
            for program, paths in programs.items()
            if not paths
        },
    }


def _beside(engines: list[dict[str, Any]], program: str) -> dict[str, str]:
    """Label of a build -> path of that program."""
    from pathlib import Path

    paths = ((engine["label"], Path(engine["path"]).with_name(program)) for engine in engines)
    return {label: str(path) for label, path in paths if path.is_file()}


def _program() -> dict[str, Any]:
    from llamasweep.builds.ollama import find_ollama, program_version
    from llamasweep.errors import LlamasweepError

    try:
        path = find_ollama()
        return {"path": str(path), "version": program_version(path), "reason": None}
    except LlamasweepError as problem:
        return {"path": None, "version": None, "reason": problem.message}


def _server() -> dict[str, Any]:
    """is_named: whether OLLAMA_HOST gave the address."""
    from llamasweep.engines.http_exchange import RequestError
    from llamasweep.engines.ollama_api import OllamaServer
    from llamasweep.engines.ollama_host import VARIABLE, ollama_address
    from llamasweep.errors import UsageError

    found: dict[str, Any] = {
        "url": None,
        "is_named": bool(os.environ.get(VARIABLE, "").strip()),
        "version": None,
        "models": [],
        "reason": None,
    }
    try:
        address = ollama_address(os.environ)
        found["url"] = address.url
        server = OllamaServer(address)
        found["version"] = server.version()
        found["models"] = [str(row["name"]) for row in server.models()]
    except (RequestError, UsageError) as problem:
        found["reason"] = problem.message
    return found


def server_lines(servers: dict[str, Any]) -> list[tuple[str, str]]:
    """[(mark, line)] as doctor shows them."""
    program, server = servers["ollama"]["program"], servers["ollama"]["server"]
    lines = [
        ("-", program["reason"])
        if program["path"] is None
        else ("+", f"Ollama {program['version']}: {program['path']}")
    ]
    where = f"{server['url']}{' (OLLAMA_HOST)' if server['is_named'] else ''}"
    if server["version"] is None:
        asked = "" if server["url"] is None else f" at {where}"
        reason = server["reason"].removeprefix(f"{server['url']} ")
        lines.append(("-", f"no server of Ollama answers{asked}: {reason}"))
    else:
        n_models = len(server["models"])
        lines.append(("+", f"Ollama {server['version']} answers at {where}, models: {n_models}"))
    lines += [("+", f"{name}={value}") for name, value in servers["ollama"]["environment"].items()]
    for key in ("llama_server", "llama_batched_bench"):
        program = key.replace("_", "-")
        lines += [("+", f"{program} of {label}: {path}") for label, path in servers[key].items()]
    lines += [
        ("-", f"no build has a {program} beside its llama-bench; {hint}")
        for program, hint in servers["programs_absent"].items()
    ]
    return lines
