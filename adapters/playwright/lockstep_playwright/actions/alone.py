"""Requests that the program makes without the browser (`context.request`, `route.fetch`): answered from what is
recorded of them, since they leave past all that stands before the browser's network.

Plain functions. What their redirects set as cookies on the way is not recorded; what the last answer sets is.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from lockstep.log import untapped
from lockstep_playwright.actions.model import Given
from lockstep_playwright.serving import cookies as lines


def reply(method: str, given: Given) -> dict[str, Any]:
    """The reply to a message, as the driver would give it."""
    if given.error is not None:
        return {"error": {"error": {"stack": "", **given.error}}}
    if method != "fetch":
        return {"result": {"binary": given.value} if given.value is not None else {}}
    told: Any = given.value
    return {
        "result": {"response": {**told, "headers": [{"name": name, "value": value} for name, value in _headers(told)]}}
    }


def cookies(given: Given) -> list[dict[str, Any]]:
    """The cookies that an answer sets, as `addCookies` of the driver takes them."""
    told: Any = given.value
    if not isinstance(told, dict) or "url" not in told:
        return []
    url, now = str(told["url"]), untapped.time_ns() / 1e9
    said = (value for name, value in _headers(told) if name.lower() == "set-cookie")
    found = [lines.read(line, url, now) for value in said for line in value.split("\n")]
    return [_placed(cookie) for cookie in found if cookie is not None]


def _placed(cookie: dict[str, Any]) -> dict[str, Any]:
    parts = urlsplit(cookie.pop("url"))
    return {"domain": parts.hostname or "", "path": parts.path.rpartition("/")[0] or "/", **cookie}


def _headers(told: dict[str, Any]) -> list[tuple[str, str]]:
    """Header lines, each of which stands as `{name: value}`."""
    return [(str(name), str(value)) for line in told.get("headers") or () for name, value in line.items()]
