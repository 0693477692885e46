"""How a browser's run stands in the log: names, lanes, bodies and keys, for all who write it and all who read it.

A run is one browser context, its only turn the time from the tap to the context's end, a step one action.

    turn      BEGIN what="turn", name="context"; `turn_request`. END when the context closes
    exchange  a call of kind "http" in the lane of who asked: one for each hop. Its pieces: {"status", "headers"}, then
              the body, whole or in chunks; END ok, or error with {"error": "net::ERR_…"}
    socket    a call of kind "websocket": frames {"from": "page" | "server", "text" | "base64"}; its end {"code", …}
    read      a call of kind "browser" in `page_lane(n)/read`: what the agent looked at, and what it was told
    step      STEP what="action" ("input" of the first), lane of its page, name = `click "#buy"`, key = `step_key`;
              `step_record`. Where it was over: what came later is not in the digests behind it
    began     CAUSE what="action", name = the number of the action that begins here: answers that came later are not
              handed out before
    picture   WRITES what="attachment", name "aria" or "screenshot", of the step

A step of a page closes over its calls, one in lane `main` over all that is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.log import canonical
from lockstep.log.checkpoints import CHANNELS, WHOLE
from lockstep.log.model import Value
from lockstep.log.native import LOOK

LANE = "main"  # of the context, and of actions that are no page's
READ = "read"  # what follows the lane of a page, of what is only looked at
BEGAN = "action"  # `what` of the CAUSE event where an action begins; name: its number
MARK = "step"  # the api of a step that was marked by hand

CONTEXT = "context"  # the name of the turn
INPUT, ACTION = "input", "action"  # `what` of steps
HTTP, SOCKET, BROWSER = "http", "websocket", LOOK  # kinds of calls
ATTACHMENT = "attachment"

# How the browser was reached.
ANY = "any"  # the api of a run whose actions are another client's

OWN_SOCKET, SESSIONS = "socket", "sessions"

_PREFIX = "playwright/"
_LONGEST = 150  # characters of a run's name


def run_name(name: str, number: int = 1) -> str:
    """What a run is called; from 2 on where earlier ones have the name."""
    said = "".join(map(_printable, name.replace("%", "%25")))[:_LONGEST]
    return f"{_PREFIX}{said}" if number == 1 else f"{_PREFIX}{said}-{number}"


def _printable(character: str) -> str:
    if character.isprintable() and character not in "@:/ ":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def meta(
    run: str, browser: Mapping[str, Value], backend: str, shim: Mapping[str, Value], versions: Mapping[str, Value]
) -> dict[str, Value]:  # fmt: skip
    """The meta of a new run.

    browser  version, headless, user_agent, viewport, locale, timezone and the context's `options` as they were given
    backend  OWN_SOCKET or SESSIONS
    shim     mode, seed and start (ms since the epoch) of the pages' clock and random numbers
    """
    return {
        "adapter": "playwright", "steps": "checkpoints", "native": {"run": run}, "browser": dict(browser),
        "backend": backend, "shim": dict(shim), "versions": dict(versions),
    }  # fmt: skip


def native(meta: Value) -> Mapping[str, Any]:
    """What a run's meta says of its browser's run; {} of any other run."""
    if isinstance(meta, Mapping) and meta.get("adapter") == "playwright":
        found = meta.get("native")
        return found if isinstance(found, Mapping) else {}
    return {}


def turn_request(options: Value, state: Any, pages: int, api: str, blank: int = 0) -> dict[str, Value]:
    """What a turn is begun with.

    options  of the context, with their secrets, which the journal hides
    state    its storage state: cookies and storages that it had already
    pages    how many had loaded when the tap came, of which nothing earlier is known; `blank`: how many there were
    api      "sync" or "async"
    """
    cookies: list[Value] = [_cookie_line(each) for each in state.get("cookies") or ()]
    # "jar": of what is called "cookies" the whole would be hidden, with the places that the cookies are for.
    told: dict[str, Value] = {"jar": cookies, "origins": state.get("origins") or []}
    return {"options": options, "state": told, "pages": pages, "blank": blank, "api": api}


def storage_state(request: Mapping[str, Any]) -> dict[str, Any]:
    """The storage state in what a turn was begun with, as Playwright has it."""
    told = request.get("state") or {}
    cookies = [_cookie(each) for each in told.get("jar") or ()]
    return {"cookies": cookies, "origins": list(told.get("origins") or ())}


# A cookie's value is hidden as in a header: whatever it is called.
_LINE = "set-cookie"


def _cookie_line(cookie: Mapping[str, Any]) -> dict[str, Value]:
    rest = {name: value for name, value in cookie.items() if name not in ("name", "value")}
    return {_LINE: f"{cookie['name']}={cookie['value']}", **rest}


def _cookie(told: Mapping[str, Any]) -> dict[str, Any]:
    name, _, value = str(told[_LINE]).partition("=")
    return {"name": name, "value": value, **{key: each for key, each in told.items() if key != _LINE}}


def page_lane(number: int) -> str:
    """The lane of the actions on a page; pages are numbered from 1 as they were made, popups among them."""
    return f"{LANE}/page-{number}"


def read_lane(lane: str) -> str:
    """The lane of what is looked at on a page."""
    return f"{lane}/{READ}"


def action_lane(page: int) -> str:
    """The lane of an action, by the number of its page, 0 for the context's own."""
    return page_lane(page) if page else LANE


# Steps.


def step_record(
    api: str, arguments: Value, *, number: int, result: Value = None, error: Value = None, source: str = "",
    frame: str = "", url: tuple[str, str] = ("", ""), dom: tuple[str, str] = ("", ""),
    storage: tuple[str, str] = ("", ""), settled: bool = True, beside: int = 0, seconds: float = 0.0,
) -> dict[str, Value]:  # fmt: skip
    """The body of an action's STEP.

    api      what was called, as "Page.click"; `arguments` by name, with what was typed into secret fields redacted
    number   of the action in its run, from 1: its beginning is a CAUSE event of that name
    result   what it returned, `error` what it raised: {"name", "message"}; None where it did not
    source   "file:line in function" of the user's code; `frame`: where on the page, "" for the main frame
    url, dom, storage   before and after: addresses, and digests in hex ("" where there was none to take)
    settled  whether the document had been parsed by then; `beside`: how many other actions were on
    """
    action: dict[str, Value] = {"api": api, "arguments": arguments}
    if error is not None:
        action["error"] = error
    else:
        action["result"] = result
    if source:
        action["source"] = source
    if frame:
        action["frame"] = frame
    if beside:
        action["beside"] = beside
    return {
        CHANNELS: {}, WHOLE: True, "action": action, "number": number, "url": [*url], "dom": [*dom],
        "storage": [*storage], "settled": settled, "seconds": seconds,
    }  # fmt: skip


def record_key(record: Mapping[str, Any]) -> bytes:
    """The key of a step, by its record with its secrets hidden: what was done, what came of it, and what the page was
    then."""
    action = record["action"]
    outcome = {name: action[name] for name in ("result", "error") if name in action}
    return canonical.digest([action["api"], action["arguments"], outcome, record["dom"][1:], record["storage"][1:]])


def input_record(browser: Mapping[str, Value]) -> dict[str, Value]:
    """The body of step 0: the context as it was made."""
    return {CHANNELS: {}, WHOLE: True, "browser": dict(browser)}


def input_key(record: Mapping[str, Any]) -> bytes:
    """The key of step 0: what was asked of the context."""
    return canonical.digest(record["browser"].get("options"))
