"""What doctor tells of servers: Ollama's program, server, models and environment, and the llama-server of each build."""

from __future__ import annotations

import os
from typing import Any


def find_servers(engines: list[dict[str, Any]]) -> dict[str, Any]:
    """Plain JSON values. engines: builds as doctor lists them."""
    from pathlib import Path

    from llamasweep.builds.server import SERVER
    from llamasweep.run.secrets import hide_in_environment

    named = {name: value for name, value in os.environ.items() if name.startswith("OLLAMA_")}
    programs = ((engine["label"], Path(engine["path"]).with_name(SERVER)) for engine in engines)
    return {
        "ollama": {
            "program": _program(),
            "server": _server(),
            "environment": hide_in_environment(sorted(named.items())),
        },
        "llama_server": {label: str(path) for label, path in programs if path.is_file()},
    }


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
    lines += [
        ("+", f"llama-server of {label}: {path}") for label, path in servers["llama_server"].items()
    ]
    if not servers["llama_server"]:
        lines.append(("-", "no build has a llama-server beside its llama-bench"))
    return lines
