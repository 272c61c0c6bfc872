"""Where a server of Ollama is looked for: OLLAMA_HOST as Ollama's own command line reads it, else its default address. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from llamasweep.engines import ollama_api
from llamasweep.engines.http_exchange import ServerAddress, parse_base_url
from llamasweep.errors import UsageError

VARIABLE = "OLLAMA_HOST"
_PORTS = {"http": "80", "https": "443"}
_OWN_PORT = "11434"
_PARTS = re.compile(r"\[([^\[\]]*)\]:([^:]*)|([^:\[\]]*):([^:]*)")


def ollama_address(environment: Mapping[str, str]) -> ServerAddress:
    """The address that `ollama list` would ask in this environment.

    As envconfig.ConnectableHost of Ollama v0.32.15: host, host:port and a scheme are taken, quotes around it are not part of it,
    the port is 11434 without a scheme, a port that is none is the default one, and an address that a server binds to for all
    interfaces is that of the loopback. Raises UsageError where the variable holds no address.
    """
    said = environment.get(VARIABLE, "").strip().strip("\"'").strip()
    if not said:
        return parse_base_url(ollama_api.DEFAULT_BASE_URL)
    scheme, separator, rest = said.partition("://")
    if not separator:
        scheme, rest = "http", said
    place, _, path = rest.partition("/")
    host, port = _host_and_port(place, _PORTS.get(scheme, _OWN_PORT) if separator else _OWN_PORT)
    try:
        return parse_base_url(f"{scheme}://{host}:{port}/{path}")
    except UsageError as problem:
        raise UsageError(f"{VARIABLE}: {problem.message}") from None


def _host_and_port(place: str, default_port: str) -> tuple[str, str]:
    match = _PARTS.fullmatch(place)
    if match is None:
        host, port = place.strip("[]"), default_port
    else:
        host, port = (match[1], match[2]) if match[3] is None else (match[3], match[4])
    if not port.isdecimal() or not 0 < int(port) <= 65535:
        port = default_port
    return _connectable(host), port


def _connectable(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host or "127.0.0.1"
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return str(address) if address.version == 4 else f"[{address}]"
