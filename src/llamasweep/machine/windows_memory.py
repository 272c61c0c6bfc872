"""Memory modules from Windows' management interface (`Win32_PhysicalMemory`).

PowerShell is started with a fixed list of arguments. It takes a second or two, so only a
calibration asks.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from llamasweep.machine.firmware_tables import MEMORY_TYPES

_TIMEOUT_S = 30.0
_MAX_ANSWER = 2**20
_COLUMNS = (
    "Capacity",
    "ConfiguredClockSpeed",
    "Speed",
    "DataWidth",
    "SMBIOSMemoryType",
    "DeviceLocator",
    "BankLabel",
)
_KEYS = {
    "Capacity": "SIZE",
    "ConfiguredClockSpeed": "CONFIGURED_SPEED_MTS",
    "Speed": "SPEED_MTS",
    "DataWidth": "DATA_WIDTH",
    "DeviceLocator": "LOCATOR",
    "BankLabel": "BANK_LOCATOR",
}

Ask = Callable[[Sequence[str]], str]
"""argv -> what the program printed; raises OSError or a SubprocessError."""


def memory_modules(ask: Ask | None = None) -> list[dict[str, str]]:
    """The modules with the keys of udev's database; [] where Windows does not answer.

    ask: a stand-in for starting PowerShell.
    """
    try:
        rows = json.loads((ask or _powershell)(_argv())[:_MAX_ANSWER])
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    if isinstance(rows, dict):  # one module is not in a list
        rows = [rows]
    if not isinstance(rows, list):
        return []
    return [_module(row) for row in rows[:256] if isinstance(row, dict)]


def _argv() -> list[str]:
    system = os.environ.get("SYSTEMROOT", "C:\\Windows")
    program = Path(system) / "System32" / "WindowsPowerShell" / "v1.0" / "powershell.exe"
    query = (
        f"Get-CimInstance Win32_PhysicalMemory | Select-Object {','.join(_COLUMNS)} | "
        "ConvertTo-Json -Compress"
    )
    return [str(program), "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", query]


def _powershell(argv: Sequence[str]) -> str:
    done = subprocess.run(
        list(argv),
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=_TIMEOUT_S,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout


def _module(row: dict[str, Any]) -> dict[str, str]:
    module = {
        key: str(row[column]).strip()
        for column, key in _KEYS.items()
        if isinstance(row.get(column), int | str)
    }
    code = row.get("SMBIOSMemoryType")
    module["TYPE"] = MEMORY_TYPES.get(code, "") if isinstance(code, int) else ""
    return module
