"""A page in headless Chromium, driven over its debugging port with the standard library alone.

Knows how to open, evaluate, press keys and wait for events; keeps what the page said on its console and what it asked for.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 60.0
_SPOKEN = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")


def program() -> str | None:
    """Chromium, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Tab:
    """One page. events: everything that the browser told so far and nobody waited for."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname, address.port), TIMEOUT_S)
        self._stream = self._socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while self._stream.readline() not in (b"\r\n", b""):
            pass
        self._number = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def open(
        self, path: Path, *, fragment: str = "", width: int = 1400, theme: str = "light"
    ) -> None:
        """Navigate and wait until it has loaded."""
        self.events.clear()
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        # A picture beyond the viewport is laid out without scroll bars, and would be cut by their width.
        self.send("Emulation.setScrollbarsHidden", hidden=True)
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.send("Emulation.setEmulatedMedia", features=[feature])
        self.send("Page.navigate", url="about:blank")
        self.wait_for("Page.loadEventFired")
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri() + fragment)
        self.wait_for("Page.loadEventFired")

    def said(self) -> list[str]:
        """Console messages, warnings and exceptions."""
        return [json.dumps(event["params"]) for event in self.events if event["method"] in _SPOKEN]

    def requested(self) -> list[str]:
        """Every address that was asked for."""
        asked = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [str(event["params"]["request"]["url"]) for event in asked]

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page. Raises AssertionError where it throws."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """The whole page as PNG."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], 16000.0),
            "scale": 1,
        }
        answer = self.send(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        return base64.b64decode(answer["data"])

    def press(self, key: str) -> None:
        """A key as from the keyboard."""
        text = {"Enter": "\r", " ": " "}.get(key)
        code = {"Enter": 13, "Tab": 9, "ArrowDown": 40, " ": 32}[key]
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send(
            "Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {})
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer."""
        self._number += 1
        number = self._number
        self._write(json.dumps({"id": number, "method": method, "params": params}).encode())
        while True:
            message = self._read()
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    def wait_for(self, method: str, **wanted: str) -> None:
        """Until the browser tells this event with these parameters."""
        while not any(_is_wanted(event, method, wanted) for event in self.events):
            self.events.append(self._read())

    def _write(self, payload: bytes) -> None:
        mask = os.urandom(4)
        length = len(payload)
        head = struct.pack("!BB", 0x81, 0x80 | length) if length < 126 else b""
        head = head or (
            struct.pack("!BBH", 0x81, 0xFE, length)
            if length < 65536
            else struct.pack("!BBQ", 0x81, 0xFF, length)
        )
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
        self._socket.sendall(head + mask + masked)

    def _read(self) -> dict[str, Any]:
        whole, is_last = b"", False
        while not is_last:
            first, second = self._stream.read(2)
            is_last, length = bool(first & 0x80), second & 0x7F
            if length >= 126:
                length = int.from_bytes(self._stream.read(2 if length == 126 else 8))
            whole += self._stream.read(length)
        return dict(json.loads(whole))

    def close(self) -> None:
        """Drop the connection."""
        self._stream.close()
        self._socket.close()


def _is_wanted(event: dict[str, Any], method: str, wanted: dict[str, str]) -> bool:
    return event["method"] == method and all(
        event["params"].get(name) == value for name, value in wanted.items()
    )


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A fresh browser with one tab, ended afterwards."""
    found = program()
    assert found is not None
    argv = [found, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    argv += [f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "DevTools listening on" in line)
        port = urlsplit(line.split()[-1]).port
        with build_opener(ProxyHandler({})).open(
            f"http://127.0.0.1:{port}/json", timeout=TIMEOUT_S
        ) as answer:
            tabs = json.load(answer)
        tab = Tab(next(one["webSocketDebuggerUrl"] for one in tabs if one["type"] == "page"))
        yield tab
        tab.close()
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
