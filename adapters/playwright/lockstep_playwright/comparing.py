"""What a replayed action is compared by: what was asked, and then what came of it. Plain functions over records.

An error counts by its kind and its first line: what follows tells how long was waited for what. A page counts where its
document had been parsed in both runs, and nothing else was done to it at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lockstep.errors import Code
from lockstep.log.model import Value
from lockstep.session import difference
from lockstep_playwright import volatile
from lockstep_playwright.actions.methods import HIDDEN
from lockstep_playwright.recorded import RecordedAction
from lockstep_playwright.serving import missed

_URL = "url"  # the argument that says where


class Found(msgspec.Struct, frozen=True):
    """The first thing that differs. `path`: what of the action; `expected` and `actual`: in a line each; `hint`: a rule
    that would let it differ."""

    code: Code
    reason: str
    path: str = ""
    expected: str = ""
    actual: str = ""
    hint: str = ""


type Same = Callable[[str, str], bool]


def asked(
    recorded: RecordedAction, api: str, name: str, arguments: Value, frame: str = "", same: Same = str.__eq__
) -> Found | None:
    """Whether another action begins than was recorded. `arguments` with their secrets hidden. `same`: whether two
    addresses are the same one."""
    said = recorded.said
    if said.get("api") != api:
        return Found(Code.REQUEST, "another action than recorded", "", _called(recorded.name, said), f"{name} ({api})")
    told = said.get("arguments")
    first = difference.first(told, _led(told, _typed(told, arguments), same))
    if first is not None:
        path, was, now = first
        reason, hint = "the action was told something else than recorded", ""
        if path == _URL and isinstance(told, dict) and isinstance(arguments, dict):
            hint = _rule(str(told[_URL]), str(arguments.get(_URL)))
        return Found(Code.REQUEST, reason, path, was, now, hint)
    if str(said.get("frame") or "") != frame:
        was, now = str(said.get("frame") or "(the page)"), frame or "(the page)"
        return Found(Code.REQUEST, "the action is of another frame than recorded", "frame", was, now)
    return None


def _typed(recorded: Value, now: Value) -> Value:
    """The arguments, without what was typed into a field of which the page said only then that it is for passwords."""
    if not isinstance(recorded, dict) or not isinstance(now, dict) or HIDDEN not in recorded.values():
        return now
    return {name: HIDDEN if recorded.get(name) == HIDDEN else value for name, value in now.items()}


def _led(recorded: Value, now: Value, same: Same) -> Value:
    """What an action was told, or gave, with the recorded address where it is that one."""
    if not isinstance(recorded, dict) or not isinstance(now, dict):
        return now
    was, is_ = recorded.get(_URL), now.get(_URL)
    is_same = isinstance(was, str) and isinstance(is_, str) and same(was, is_)
    return {**now, _URL: was} if is_same else now


def _rule(was: str, is_: str) -> str:
    """The rule that would let an address be another one, in the one value that is."""
    found = volatile.differing(volatile.of_url(was), volatile.of_url(is_))
    return missed.hint("GET", is_, *found[0]) if len(found) == 1 else ""


def _called(name: str, said: Mapping[str, Any]) -> str:
    return f"{name} ({said.get('api')})"


def outcome(
    recorded: Mapping[str, Any], now: Mapping[str, Any], later: Sequence[Mapping[str, Any]] = (),
    same: Same = str.__eq__,
) -> Found | None:  # fmt: skip
    """What came of an action, both as their records say it, with secrets hidden. `later`: what followed on its page:
    one that is further on already, by a timer or a worker of its own, is in another order and no other page. `same`:
    see `asked`."""
    was, is_ = recorded["action"], now["action"]
    if ("error" in was) != ("error" in is_):
        if "error" in was:
            return Found(Code.STATE, "the action failed when it was recorded", "error", _failed(was["error"]), "(none)")
        return Found(Code.STATE, "the action fails, which it did not", "error", "(none)", _failed(is_["error"]))
    if "error" in was:
        if _failed(was["error"]) != _failed(is_["error"]):
            return Found(
                Code.STATE, "the action fails in another way", "error", _failed(was["error"]), _failed(is_["error"])
            )
        return _page(recorded, now, later, same)
    first = difference.first(was.get("result"), _led(was.get("result"), is_.get("result"), same))
    if first is not None:
        path, expected, actual = first
        place = f"result{_joined(path)}"
        if _whole(was.get("result")) == _whole(is_.get("result")):
            return Found(Code.ORDER, "the same text came in other pieces", place, expected, actual)
        return Found(Code.STATE, "the action gave something else", place, expected, actual)
    return _page(recorded, now, later, same)


def _whole(value: Value) -> Value:
    """A value in which lists of texts are one text each: how a page gets a stream apart is a race of its own."""
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(each, str) for each in value):
            return "".join(map(str, value))
        return [_whole(each) for each in value]
    return value


def _joined(path: str) -> str:
    return path if not path or path.startswith("[") else f".{path}"


def _failed(error: Any) -> str:
    """An error's kind and first line."""
    if not isinstance(error, Mapping):
        return str(error)
    message = str(error.get("message") or "").strip()
    return f"{error.get('name')}: {message.splitlines()[0] if message else ''}"


def _page(
    recorded: Mapping[str, Any], now: Mapping[str, Any], later: Sequence[Mapping[str, Any]], same: Same
) -> Found | None:
    if recorded["url"][1] != now["url"][1] and not same(str(recorded["url"][1]), str(now["url"][1])):
        return Found(Code.STATE, "the page is at another address", "url", recorded["url"][1], now["url"][1])
    if not _counts(recorded) or not _counts(now):
        return None
    for what, reason in (("dom", "the page is another one"), ("storage", "what the page has stored is another thing")):
        was, is_ = recorded[what][1], now[what][1]
        if was and is_ and was != is_:
            if any(is_ in record[what] for record in later):
                return Found(Code.ORDER, f"{reason}: as it was recorded later", what, was, is_)
            return Found(Code.STATE, reason, what, was, is_)
    return None


def placed(found: Found, was: str, is_: str) -> Found:
    """Of a page that is another one: the first line of its document that differs, where both are known as texts."""
    if found.path != "dom" or not was or not is_:
        return found
    lines = was.splitlines(), is_.splitlines()
    at = next((at for at, pair in enumerate(zip(*lines, strict=False)) if pair[0] != pair[1]), min(map(len, lines)))
    expected, actual = (each[at] if at < len(each) else "(the end)" for each in lines)
    return msgspec.structs.replace(found, path=f"page[{at}]", expected=expected, actual=actual)


def _counts(record: Mapping[str, Any]) -> bool:
    return record.get("settled") is not False and not record["action"].get("beside")
