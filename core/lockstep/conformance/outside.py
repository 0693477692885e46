"""What the tools of a scenario do: they reach the world past every tap, so that it sees each call that is really made.

A tool of a framework under test is a function that returns `use(url, name, argument)`, or awaits `ause`.
"""

from __future__ import annotations

import http.client
import os
import signal
import threading
from typing import Any
from urllib.parse import urlsplit

import msgspec

from lockstep.session import lanes


class ToolFailed(Exception):
    """The tool did not work this time."""


class Opaque:
    """What some tools return: an object that is no data, and nothing that a record could hold."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._held = threading.Lock()

    def __str__(self) -> str:
        return self._text


def use(url: str, name: str, argument: str) -> Any:
    """Calls a tool of the world. Raises ToolFailed where that says so."""
    told = lanes.ours(_ask)(url, name, argument)
    if told.get("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if "error" in told:
        raise ToolFailed(told["error"])
    return Opaque(told["answer"]) if told.get("object") else told["answer"]


async def ause(url: str, name: str, argument: str) -> Any:
    """As `use`, for tools that are coroutines."""
    import asyncio

    return await asyncio.to_thread(use, url, name, argument)


def _ask(url: str, name: str, argument: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    try:
        body = msgspec.json.encode({"argument": argument})
        connection.request("POST", f"/tools/{name}", body, {"content-type": "application/json"})
        return msgspec.json.decode(connection.getresponse().read(), type=dict[str, Any])
    finally:
        connection.close()
