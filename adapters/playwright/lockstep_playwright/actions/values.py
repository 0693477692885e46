"""Playwright's values, as they travel, as inert ones: arguments and results of actions.

A value of a page is `{"n": 1}`, `{"s": "text"}`, `{"o": [{"k", "v"}], "id"}` and so on. What is of no use without its
browser stands as `{"$": "handle", "of": preview}`; pictures and other bytes that differ from run to run, by what they
are and not by their content.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any

from lockstep.log.model import Value
from lockstep_playwright.actions.model import Given

_SPECIAL: dict[str, Value] = {
    "undefined": None, "null": None, "NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf, "-0": -0.0,
}  # fmt: skip
_DEEPEST = 64
_PICTURES = frozenset({"screenshot", "pdf", "expectScreenshot"})
_LONGEST = 64 << 10  # characters of a text in a result, of which more is cut: the page's content is in its digest

type Find = Callable[[str], Any]  # an object of the client by its guid


def plain(value: Any, depth: int = 0, known: dict[int, Value] | None = None) -> Value:
    """A serialised value of a page."""
    known = {} if known is None else known
    if not isinstance(value, Mapping) or depth > _DEEPEST:
        return None
    match value:
        case {"n": found} | {"b": found}:
            return found  # type: ignore[no-any-return]
        case {"s": str(text)}:
            return _cut(text)
        case {"v": str(name)}:
            return _SPECIAL.get(name)
        case {"d": text}:
            return {"$": "date", "at": text}
        case {"u": text}:
            return {"$": "url", "url": text}
        case {"bi": text}:
            return {"$": "bigint", "value": text}
        case {"r": {"p": pattern, "f": flags}}:
            return {"$": "regex", "pattern": pattern, "flags": flags}
        case {"e": {"n": name, "m": message}}:
            return {"$": "error", "name": name, "message": message}
        case {"ta": {"b": content}}:
            return base64.b64decode(content) if isinstance(content, str) else None
        case {"h": number}:
            return {"$": "handle", "number": number}
        case {"ref": number}:
            return known.get(number)
        case {"a": list(items)}:
            some: list[Value] = []
            known[value.get("id", 0)] = {"$": "again"}
            some += [plain(item, depth + 1, known) for item in items]
            return some
        case {"o": list(entries)}:
            known[value.get("id", 0)] = {"$": "again"}
            return {str(entry["k"]): plain(entry["v"], depth + 1, known) for entry in entries}
    return None


def argument(value: Any, find: Find) -> Value:
    """What was given to a function of the page: `{"value", "handles"}`."""
    if not isinstance(value, Mapping):
        return None
    handles = [handle(one, find) for one in value.get("handles") or ()]
    return _with(plain(value.get("value")), handles) if handles else plain(value.get("value"))


def _with(value: Value, handles: list[Value]) -> Value:
    match value:
        case {"$": "handle", "number": int(number)} if 0 <= number < len(handles):
            return handles[number]
        case dict():
            return {name: _with(each, handles) for name, each in value.items()}
        case list():
            return [_with(each, handles) for each in value]
    return value


def handle(channel: Any, find: Find) -> Value:
    """An object of the page or the client, by `{"guid": …}`."""
    guid = channel.get("guid") if isinstance(channel, Mapping) else None
    if guid is None:
        return None
    found = find(guid)
    told: dict[str, Value] = {"$": "handle", "of": of_handle(found) or str(guid).partition("@")[0]}
    number = getattr(found, "_lockstep_number", None)
    return told if number is None else {**told, "number": number}


_HEADER = {"name", "value"}


def shaped(value: Value) -> Value:
    """The value with cookies and headers written as in an exchange, so that their secrets are known by where they
    stand: `{"set-cookie": "sid=1", "domain": …}`, `{"authorization": …}`."""
    if isinstance(value, list):
        return [shaped(each) for each in value]
    if not isinstance(value, dict):
        return value
    name, text = value.get("name"), value.get("value")
    if isinstance(name, str) and isinstance(text, str):
        if value.keys() == _HEADER:
            return {name: text}
        if "domain" in value or "sameSite" in value or "httpOnly" in value or "path" in value or "url" in value:
            rest = {key: each for key, each in value.items() if key not in _HEADER}
            return {"set-cookie": f"{name}={text}", **rest}
    return {key: shaped(each) for key, each in value.items()}


def label(arguments: Mapping[str, Value]) -> str:
    """What the objects that a call gives are known by."""
    return str(arguments.get("selector") or arguments.get("expression") or arguments.get("name") or "")


def number_page(found: Any, number: int) -> None:
    """Which page of its context this is, from 1."""
    found._lockstep_number = number


def name_handle(found: Any, of: str) -> None:
    if found is not None and of:
        found._lockstep_of = of


def of_handle(found: Any) -> str:
    """What gave this object: a selector, or a function of the page. Not what it shows of itself, which comes later by
    itself."""
    return str(getattr(found, "_lockstep_of", ""))


def result(type: str, method: str, reply: Any, find: Find) -> Value:
    """What a call gave, by the reply to its message."""
    if not isinstance(reply, Mapping) or not reply:
        return None
    if method in _PICTURES:
        return {"$": "picture"}
    if method == "fetchResponseBody":
        return reply.get("binary")  # whole: a replay gives it to the program
    made = {name: _field(type, value, find) for name, value in reply.items()}
    return next(iter(made.values())) if len(made) == 1 else made


def _field(type: str, value: Any, find: Find) -> Value:
    if isinstance(value, Mapping):
        if set(value) == {"guid"}:
            return _answer(find(value["guid"])) or handle(value, find)
        if type in ("Frame", "JSHandle", "ElementHandle", "Worker", "Page") and len(value) <= 2 and _serialised(value):
            return plain(value)
        return {str(name): _field(type, each, find) for name, each in value.items()}
    if isinstance(value, list):
        return [_field(type, each, find) for each in value]
    if isinstance(value, str):
        return _cut(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _serialised(value: Mapping[str, Any]) -> bool:
    return bool(value.keys() & {"n", "b", "s", "v", "d", "u", "bi", "r", "e", "ta", "h", "ref", "a", "o"})


def give(reply: dict[str, Any], given: Given) -> None:
    """Has a reply say this, in the place of what it says."""
    if given.error is not None:
        reply.pop("result", None)
        reply["error"] = {"error": {"stack": "", **given.error}}
        return
    reply.pop("error", None)
    said = reply.get("result")
    was: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    if len(was) > 1 and isinstance(given.value, dict):
        reply["result"] = {**was, **given.value}
        return
    name = next(iter(was), "value")
    known = was.get(name)
    serialised = isinstance(known, Mapping) and _serialised(known)
    reply["result"] = {name: serialise(given.value) if serialised else given.value}


def serialise(value: Value) -> dict[str, Any]:
    """A value as one of a page."""
    match value:
        case None:
            return {"v": "null"}
        case bool():
            return {"b": value}
        case int() | float():
            return {"n": value}
        case str():
            return {"s": value}
        case list():
            return {"a": [serialise(each) for each in value], "id": 0}
        case dict():
            return {"o": [{"k": name, "v": serialise(each)} for name, each in value.items()], "id": 0}
    return {"v": "undefined"}


def _answer(found: Any) -> Value:
    """A response of the network, of which the rest is recorded where it was made."""
    told = getattr(found, "_initializer", None)
    if getattr(found, "_type", "") == "Response" and isinstance(told, Mapping):
        return {"status": told.get("status"), "url": told.get("url")}
    return None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
