"""Which of a browser's contexts is the one that Playwright calls by a name of its own.

Its pages tell. Of one that has none yet, a cookie does: it is put there for a moment, and looked for.
"""

from __future__ import annotations

from typing import Any

from lockstep_playwright.cdp.transport import Transport

_MARK = "__lockstep_mark"
_PLACE = "http://lockstep.invalid/"


async def contexts(transport: Transport) -> list[str]:
    """All contexts that somebody made. The browser's own, of a persistent context, is none of them."""
    found = await transport.send("Target.getBrowserContexts")
    return list(found["browserContextIds"])


async def named(transport: Transport, context: Any) -> str:
    """The browser's name of a context, "" for its own. `context`: what is beneath the API's, so in Playwright's loop.
    Raises CdpError, and playwright's Error."""
    names = await contexts(transport)
    if len(names) == 1:
        targets = (await transport.send("Target.getTargets"))["targetInfos"]
        if all(each["type"] != "page" or each.get("browserContextId") == names[0] for each in targets):
            return names[0]
    await context.add_cookies([{"name": _MARK, "value": "1", "url": _PLACE}])
    try:
        for name in names:
            cookies = (await transport.send("Storage.getCookies", {"browserContextId": name}))["cookies"]
            if any(cookie["name"] == _MARK for cookie in cookies):
                return name
        return ""
    finally:
        await context.clear_cookies(_MARK, None, None)
