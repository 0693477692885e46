"""Cookies of an answer that comes in pieces: it has an address of ours, so the browser cannot keep them for its own.

Read as RFC 6265, section 5.2 says.
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from lockstep_playwright.cdp.transport import CdpError, Transport
from lockstep_playwright.network.exchange import Head
from lockstep_playwright.targets import Targets

_LINE = "set-cookie"
_SAME_SITE = {"strict": "Strict", "lax": "Lax", "none": "None"}


def told(head: Head, url: str, now: float) -> list[dict[str, Any]]:
    """The cookies that an answer to this address sets, as DevTools take them. `now`: seconds since the epoch."""
    lines = (value for name, value in head.headers if name.lower() == _LINE)
    return [cookie for cookie in (read(line, url, now) for line in lines) if cookie is not None]


def read(line: str, url: str, now: float) -> dict[str, Any] | None:
    """One line; None for what is no cookie."""
    pair, *attributes = line.split(";")
    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        return None
    cookie: dict[str, Any] = {"name": name.strip(), "value": value.strip(), "url": url}
    known = {key.strip().lower(): said.strip() for key, _, said in (each.partition("=") for each in attributes)}
    if known.get("domain"):
        cookie["domain"] = "." + known["domain"].lstrip(".").lower()
    if known.get("path", "").startswith("/"):
        cookie["path"] = known["path"]
    if "secure" in known:
        cookie["secure"] = True
    if "httponly" in known:
        cookie["httpOnly"] = True
    if known.get("samesite", "").lower() in _SAME_SITE:
        cookie["sameSite"] = _SAME_SITE[known["samesite"].lower()]
    until = _until(known, now)
    return cookie if until is None else {**cookie, "expires": until}


def _until(known: dict[str, str], now: float) -> float | None:
    """When it expires, None at the end of the session. An age goes first."""
    age = known.get("max-age", "")
    if age.lstrip("-").isdigit():
        return max(1.0, now + int(age))
    try:
        found = parsedate_to_datetime(known["expires"].replace("-", " "))
    except (KeyError, ValueError):
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


class Jar:
    """The cookies of one browser context."""

    def __init__(self, transport: Transport, targets: Targets) -> None:
        self._transport = transport
        self._targets = targets

    async def put(self, cookies: list[dict[str, Any]]) -> None:
        """Raises CdpError."""
        of = next((target.context for target in self._targets.targets.values() if target.context), "")
        try:
            await self._transport.send(
                "Storage.setCookies", {"cookies": cookies, **({"browserContextId": of} if of else {})}
            )
        except CdpError as error:
            if not error.gone:
                raise
