"""What the tap knows of an http.client connection: the exchange under way on it, and where it leads."""

from __future__ import annotations

from typing import Any

_SLOT = "_lockstep_exchange"


class _Connecting:
    """Marks a connection that is being made: what is sent meanwhile goes to a proxy."""


CONNECTING: Any = _Connecting()


def exchange_of(connection: Any) -> Any:
    """The exchange under way, CONNECTING, or None."""
    return vars(connection).get(_SLOT)


def put(connection: Any, exchange: Any) -> None:
    vars(connection)[_SLOT] = exchange


def forget(connection: Any) -> None:
    vars(connection).pop(_SLOT, None)


def origin(connection: Any) -> tuple[str, str, int | None]:
    """Scheme, host and port that a connection leads to, through its tunnel if it has one."""
    scheme = "https" if connection.default_port == 443 else "http"
    tunnel = getattr(connection, "_tunnel_host", None)
    if tunnel:
        return scheme, tunnel, getattr(connection, "_tunnel_port", None)
    return scheme, connection.host, connection.port
