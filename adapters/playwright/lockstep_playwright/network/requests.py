"""A browser's request as a call of a run: how it is called, what is stored of it, and what must match in a replay.

What matters to the server is what a page chose: method, URL, body, and the few headers that say what is wanted. All
others are the browser's own, or of the origin and cookies that it has anyway; they are stored and not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lockstep.log.model import Value
from lockstep.session.call import Asked as Told
from lockstep.session.policy import NO_RULES, Declared, judge
from lockstep.taps.http import request as core
from lockstep_playwright.layout import HTTP, SOCKET
from lockstep_playwright.network.exchange import Asked

_WANTED = frozenset({"range", "content-type", "access-control-request-method"})
_EVENTS = "text/event-stream"
# The address of an object in memory: a new one each time it is made.
_BLOB = re.compile(rb"(blob:(?:https?://[^/\s\"']+|null)/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Request(Told, frozen=True):
    """A request, with what it shows of its effect beside its method; None where that is nothing."""

    declared: Declared | None = None


def told(asked: Asked) -> Request:
    """What `Call.ask` wants to know of a request."""
    found, key = _matched(asked.method, asked.url, asked.headers, asked.body)
    headers: list[Value] = [[name, value] for name, value in asked.headers]
    request: dict[str, Value] = {
        "method": asked.method, "url": asked.url, "headers": headers, "body": asked.body, "for": asked.resource,
    }  # fmt: skip
    # A page may ask a model by itself. That is a POST like any other, but for what it says.
    declared = judge(found.kind, found.name, request, None, NO_RULES) if found.kind != HTTP else None
    return Request(found.name, HTTP, request, key, declared)


def key_of(kind: str, request: Any) -> Any:
    """What must match of a request as it is stored, made anew: as `told`, or `socket`, has it."""
    if kind == SOCKET:
        return request
    headers = [(str(name), str(value)) for name, value in request["headers"]]
    return _matched(request["method"], request["url"], headers, request["body"])[1]


def _matched(method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes) -> tuple[Told, dict[str, Value]]:
    found = core.asked(method, url, [pair for pair in headers if _is_wanted(*pair)], body)
    matched: Any = found.key
    return found, {**matched, "body": _renamed(matched["body"])}


def is_icon(asked: Asked) -> bool:
    """Whether the browser itself looks for a page's icon: it does so once, and remembers, so that one run of a page has
    such a request and the next one has not."""
    accepts = next((value for name, value in asked.headers if name.lower() == "accept"), "")
    return asked.resource == "Other" and accepts.startswith("image/")


def is_of_events(asked: Asked) -> bool:
    """Whether it opens a stream of events: when one ends, the browser asks for the next, by a clock of its own."""
    return any(_is_of_events(*pair) for pair in asked.headers)


def socket(url: str, protocols: tuple[str, ...]) -> Request:
    """The same of a WebSocket."""
    request: dict[str, Value] = {"url": url, "protocols": list(protocols)}
    return Request(url, SOCKET, request, request)


def _is_wanted(name: str, value: str) -> bool:
    lower = name.lower()
    return lower in _WANTED or _is_of_events(name, value)


def _is_of_events(name: str, value: str) -> bool:
    return name.lower() == "accept" and value.strip() == _EVENTS


def _renamed(body: bytes) -> bytes:
    """The body with its objects numbered as they come in it."""
    if b"blob:" not in body:
        return body
    numbers: dict[bytes, int] = {}

    def number(found: re.Match[bytes]) -> bytes:
        return found[1] + b"%d" % numbers.setdefault(found[0], len(numbers) + 1)

    return _BLOB.sub(number, body)
