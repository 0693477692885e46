"""HTTP clients: each is cut where it hands bytes to a connection, so that the client's behaviour stays its own."""

from __future__ import annotations

from typing import Any

from lockstep.log.model import Value
from lockstep.taps.http import aiohttp, httpclient, httpcore

_CLIENTS = (httpcore, httpclient, aiohttp)


def install() -> None:
    """Installs the tap of each client, now or when the client is imported."""
    for client in _CLIENTS:
        client.install()


def start(session: Any, facts: Value = None) -> Value:
    """Starts every client's tap. A replay needs no facts of them."""
    for client in _CLIENTS:
        client.seams.start(session)
    return None


def check(session: Any) -> None:
    """Names what was taken off during the session."""
    for client in _CLIENTS:
        client.seams.check(session)


def stop(session: Any) -> None:
    """Makes every client's tap inert again."""
    httpclient.stop()
    aiohttp.stop()
