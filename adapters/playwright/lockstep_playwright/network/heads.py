"""What the Fetch domain tells of requests and answers, completed by what only the Network domain knows."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from lockstep_playwright.cdp.transport import CdpError, Transport
from lockstep_playwright.network.exchange import Head, Headers

_BODILESS = frozenset({101, 204, 205, 304})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_EVENTS = "text/event-stream"
_MOST_KEPT = 1000


def resource(params: dict[str, Any]) -> str:
    """What a request is for. The Fetch domain calls a preflight by what is to follow it."""
    request = params["request"]
    names = {name.lower() for name in request["headers"]} if request["method"] == "OPTIONS" else ()
    return "Preflight" if "access-control-request-method" in names else str(params.get("resourceType") or "Other")


async def body(transport: Transport, params: dict[str, Any], session: str) -> bytes:
    """What a request sends. Of a file the Fetch domain has the place only, the Network domain nothing or all."""
    request = params["request"]
    entries = request.get("postDataEntries") or ()
    if entries and all("bytes" in entry for entry in entries):
        return b"".join(b64decode(entry["bytes"]) for entry in entries)
    if not request.get("hasPostData") and not entries:
        return b""
    network = params.get("networkId")
    if session and network:
        try:
            found = await transport.send("Network.getRequestPostData", {"requestId": network}, session)
            return b64decode(found["postData"]) if found.get("base64Encoded") else str(found["postData"]).encode()
        except CdpError:
            pass  # it has none of it either: what the request itself tells is all there is
    known = b"".join(b64decode(entry["bytes"]) for entry in entries if "bytes" in entry)
    return known or str(request.get("postData") or "").encode()


def head(params: dict[str, Any], cookies: tuple[str, ...]) -> Head:
    """How an answer begins; `cookies` are its Set-Cookie lines, which the Fetch domain leaves out."""
    found: list[tuple[str, str]] = []
    decoded = ""
    for pair in params.get("responseHeaders") or ():
        name, value = pair["name"], pair["value"]
        if name.lower() == "content-encoding":
            decoded = value
        elif name.lower() != "set-cookie":
            found.append((name, value))
    found += [("set-cookie", line) for line in cookies]
    return Head(
        status=params["responseStatusCode"], reason=params.get("responseStatusText") or "", headers=tuple(found),
        decoded=decoded,
    )  # fmt: skip


def header(headers: Headers, name: str) -> str:
    """The first value of a header, "" for none."""
    return next((value for key, value in headers if key.lower() == name), "")


def has_body(method: str, head: Head) -> bool:
    """Whether the browser hands out a body: of a redirect that it follows it does not."""
    followed = head.status in _REDIRECTS and header(head.headers, "location")
    return method != "HEAD" and head.status not in _BODILESS and not followed


def is_endless(head: Head) -> bool:
    """Whether nobody can wait for the end."""
    return header(head.headers, "content-type").partition(";")[0].strip().lower() == _EVENTS


def is_open_ended(head: Head) -> bool:
    """Whether an answer does not say how long it is, so that it may be one that comes piece by piece."""
    return is_endless(head) or not header(head.headers, "content-length")


class Cookies:
    """Set-Cookie lines, as the Network domain tells them ahead of each answer: by the request's name, which the hops of
    a redirect share. Two sessions may both tell of one answer."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[str, list[tuple[int, tuple[str, ...]]]]] = {}

    def told(self, params: dict[str, Any], session: str) -> None:
        by, hops = self._told.setdefault(params["requestId"], (session, []))
        if by == session:
            lines = [value for name, value in params["headers"].items() if name.lower() == "set-cookie"]
            found = tuple(line for value in lines for line in value.split("\n"))
            hops.append((params.get("statusCode") or 0, found))
        while len(self._told) > _MOST_KEPT:
            self._told.pop(next(iter(self._told)))

    def of(self, request: str, status: int) -> tuple[str, ...]:
        """Those of the answer with this status that has come now; none of an answer from the cache."""
        _, hops = self._told.get(request, ("", []))
        while hops:
            code, lines = hops.pop(0)
            if code in (status, 0):
                return lines
        return ()

    def forget(self, request: str) -> None:
        """That was the last answer of it."""
        self._told.pop(request, None)
