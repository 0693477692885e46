"""Cookies that an answer has set, by what the browser keeps: where no session tells of its Set-Cookie lines.

So of the first document of a popup, over Playwright's connection: its requests are held before there is a session.
"""

from __future__ import annotations

from email.utils import formatdate
from typing import Any

from lockstep_playwright.cdp.transport import CdpError, Transport

type Jar = dict[tuple[str, str, str], dict[str, Any]]


async def kept(transport: Transport, context: str) -> Jar:
    """The cookies of a browser context, by name, domain and path; none where it is gone."""
    try:
        found = await transport.send("Storage.getCookies", {"browserContextId": context} if context else {})
    except CdpError as error:
        if error.gone:
            return {}
        raise
    return {(each["name"], each["domain"], each["path"]): each for each in found["cookies"]}


def lines(before: Jar, after: Jar) -> tuple[str, ...]:
    """The Set-Cookie lines that make one of the other, as far as they add to it."""
    return tuple(_line(cookie) for key, cookie in after.items() if before.get(key) != cookie)


def _line(cookie: dict[str, Any]) -> str:
    said = [f"{cookie['name']}={cookie['value']}", f"Path={cookie['path']}"]
    if cookie["domain"].startswith("."):  # others are of the one host that has set them
        said.append(f"Domain={cookie['domain']}")
    if not cookie.get("session", True):
        said.append(f"Expires={formatdate(cookie['expires'], usegmt=True)}")
    said += [word for word, name in (("Secure", "secure"), ("HttpOnly", "httpOnly")) if cookie.get(name)]
    if cookie.get("sameSite"):
        said.append(f"SameSite={cookie['sameSite']}")
    return "; ".join(said)
