"""What the Fetch domain tells of requests and answers, completed by what only the Network domain knows."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from typing import Any

from lockstep_playwright.network.exchange import Head, Headers

_BODILESS = frozenset({101, 204, 205, 304})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_EVENTS = "text/event-stream"
_BEHIND = 1.0  # seconds that the Network domain's word may come behind an answer


def resource(params: dict[str, Any]) -> str:
    """What a request is for. The Fetch domain calls a preflight by what is to follow it."""
    request = params["request"]
    names = {name.lower() for name in request["headers"]} if request["method"] == "OPTIONS" else ()
    return "Preflight" if "access-control-request-method" in names else str(params.get("resourceType") or "Other")


def body(params: dict[str, Any]) -> bytes:
    """What a request sends. A file that an input of the page names is left out: nobody tells its content."""
    request = params["request"]
    entries = request.get("postDataEntries")
    if entries:
        return b"".join(b64decode(entry["bytes"]) for entry in entries if "bytes" in entry)
    return str(request.get("postData") or "").encode()


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


def is_cut_short(head: Head, body: bytes) -> bool:
    """Whether less has come than was said. The browser hands such a body out as if it were whole, and then fails it."""
    length = header(head.headers, "content-length")
    return not head.decoded and length.isdecimal() and len(body) < int(length)


class Cookies:
    """Set-Cookie lines, which only the Network domain tells: by the request's name, which the hops of a redirect share.

    It says when a request leaves, so that there will be an answer from a server, and then what that has; the latter may
    come behind the answer itself. Two sessions may both tell of one request.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Extra] = {}

    def asked(self, request: str, session: str) -> None:
        """A request leaves the browser."""
        found = self._of(request, session)
        if found is not None:
            found.expected += 1

    def told(self, params: dict[str, Any], session: str) -> None:
        """What a server answered."""
        found = self._of(params["requestId"], session)
        if found is None:
            return
        found.expected -= 1
        values = [value for name, value in params["headers"].items() if name.lower() == "set-cookie"]
        found.hops.append(
            (params.get("statusCode") or 0, tuple(line for value in values for line in value.split("\n")))
        )
        if found.awaited is not None and not found.awaited.done():
            found.awaited.set_result(None)

    async def of(self, request: str, status: int) -> tuple[str, ...]:
        """Those of the answer with this status that has come now; none of an answer from the cache."""
        found = self._known.get(request)
        if found is None:
            return ()
        if not found.hops and found.expected > 0:
            found.awaited = asyncio.get_running_loop().create_future()
            await asyncio.wait([found.awaited], timeout=_BEHIND)
        while found.hops:
            code, lines = found.hops.pop(0)
            if code in (status, 0):
                return lines
        return ()

    def forget(self, request: str) -> None:
        """That was the last answer of it."""
        self._known.pop(request, None)

    def _of(self, request: str, session: str) -> _Extra | None:
        found = self._known.setdefault(request, _Extra(session))
        return found if found.session == session else None


class _Extra:
    """Of one request: which session tells of it, how many answers are to come, and the lines of those that came."""

    __slots__ = ("awaited", "expected", "hops", "session")

    def __init__(self, session: str) -> None:
        self.session = session
        self.expected = 0
        self.hops: list[tuple[int, tuple[str, ...]]] = []
        self.awaited: asyncio.Future[None] | None = None
