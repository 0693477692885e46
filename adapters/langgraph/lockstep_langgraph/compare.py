"""Whether what a replay puts is what was put when it was recorded, and where the first difference is.

Compared is what a checkpoint holds and what a task wrote. Versions, times and the order in which sets and maps were
iterated say nothing of the program; ids of checkpoints, tasks and messages are the recorded ones in a replay, so that
they are compared with the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from operator import itemgetter
from typing import Any

from lockstep.log import canonical
from lockstep.log.model import Status, Value
from lockstep.session import difference, exceptions, snapshot
from lockstep.session.snapshot import TAG
from lockstep_langgraph import messages
from lockstep_langgraph.cells import Cell, Listed
from lockstep_langgraph.entries import Entry
from lockstep_langgraph.values import Codec

ABSENT = "(absent)"
ERROR = "__error__"

type Found = tuple[str, str, str]  # the place, what was recorded there, what is there now
type Opened = Callable[[Value], Value]  # a value without what only its serializer reads

_ROUTING = ("branch:", "__")  # channels that are LangGraph's own: what a node has made is told first
_EDGE = "branch:to:"
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_TOLD = ("module", "name", "args")  # of an encoded exception: the rest is where it was raised and what it held


def states(recorded: Entry, now: Entry, opened: Opened) -> Found | None:
    """The first place where two checkpoints hold something else: a channel, and what is in it."""
    for name in sorted({*recorded.cells, *now.cells}, key=lambda name: (name.startswith(_ROUTING), name)):
        before, after = recorded.cells.get(name), now.cells.get(name)
        if before is None or after is None:
            told = before if after is None else after
            shown = difference.shown(value_of(told)) if told is not None else ABSENT
            return (name, ABSENT, shown) if before is None else (name, shown, ABSENT)
        found = _cells(before, after, name, opened)
        if found is not None:
            return found
    return None


def values(recorded: Value, now: Value, path: str = "") -> Found | None:
    """The first place where two values differ, but for the order of what has none."""
    return difference.first(_said(snapshot.to_key(recorded)), _said(snapshot.to_key(now)), path)


def _cells(recorded: Cell, now: Cell, path: str, opened: Opened) -> Found | None:
    if recorded.digest == now.digest:
        return None
    if not (isinstance(recorded, Listed) and isinstance(now, Listed)):
        return values(opened(value_of(recorded)), opened(value_of(now)), path)
    before, after = recorded.items, now.items
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        if old is not new and old.digest != new.digest:
            found = values(opened(old.value), opened(new.value), f"{path}[{number}]")
            if found is not None:
                return found
    if len(before) == len(after):
        return None
    place = f"{path}[{min(len(before), len(after))}]"
    if len(before) > len(after):
        return place, difference.shown(before[len(after)].value), ABSENT
    return place, ABSENT, difference.shown(after[len(before)].value)


def _said(value: Value) -> Value:
    """Without what a message has in any case: whether it was given or not tells two equal messages apart."""
    if isinstance(value, list):
        return [_said(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(TAG) != messages.TAG:
        return {name: _said(item) for name, item in value.items()}
    return {
        name: _said(item)
        for name, item in value.items()
        if name != "$set" and not (item is None or item is False or item in ([], {}, "success"))
    }


def value_of(cell: Cell) -> Value:
    return [item.value for item in cell.items] if isinstance(cell, Listed) else cell.item.value


def writes(
    recorded: Mapping[int, tuple[str, Value]], now: Mapping[int, tuple[str, Value]], opened: Opened
) -> Found | None:
    """The same for what a task wrote: each channel and value, in its order."""
    for before, after in zip_longest(_in_order(recorded), _in_order(now)):
        if before is None or after is None:
            channel, value = before or after or ("", None)
            shown = difference.shown(value)
            return (channel, ABSENT, shown) if before is None else (channel, shown, ABSENT)
        if before[0] != after[0]:
            return "", before[0], after[0]
        found = values(_raised(before[0], opened(before[1])), _raised(after[0], opened(after[1])), before[0])
        if found is not None:
            return found
    return None


def _in_order(writes: Mapping[int, tuple[str, Value]]) -> list[tuple[str, Value]]:
    """By their numbers; but nodes to go to, which LangGraph keeps in a set, by their names: another process has another
    hash seed."""
    told = [writes[index] for index in sorted(writes)]
    edges = sorted((write for write in told if write[0].startswith(_EDGE)), key=itemgetter(0))
    return [write for write in told if not write[0].startswith(_EDGE)] + edges


def opening(codec: Codec) -> Opened:
    """What a saver's values are to be compared by: what they are, where a serializer of the program's own made bytes of
    them. A cipher gives others each time."""
    if codec.typed is None:
        return lambda value: value
    plain = Codec()

    def opened(value: Value) -> Value:
        if isinstance(value, list):
            return [opened(item) for item in value]
        return plain.dump(codec.load(value)) if isinstance(value, dict) and value.get(TAG) == "typed" else value

    return opened


def cancelled(writes: Mapping[int, tuple[str, Value]]) -> bool:
    """Whether a task was ended since another failed."""
    for channel, value in writes.values():
        form = value.get("$value") if channel == ERROR and isinstance(value, dict) else None
        if isinstance(form, dict) and form.get("name") == "CancelledError":
            return True
    return False


def endings(status: str, recorded: Value, now: str, given: Any, opened: Opened) -> Found | None:
    """The same for how a turn ended. `given`: what it gave now, as data, or the exception that ended it."""
    if status != now:
        return "", _told(status, recorded), _told(now, given)
    if status == Status.ERROR:
        before, after = _brief(recorded), _brief(exceptions.encode(given))
        return difference.first(before, after) if before != after else None
    return values(_waits(recorded, opened), _waits(given, opened)) if status == Status.OK else None


def _waits(told: Value, opened: Opened) -> Value:
    """What a turn gave, with what it waits for in an order that says nothing."""
    waits = told.get("interrupts") if isinstance(told, dict) else None
    if not isinstance(waits, list) or not isinstance(told, dict):
        return told
    return {**told, "interrupts": sorted(map(opened, waits), key=canonical.canonical)}


def _brief(form: Value) -> Value:
    if not isinstance(form, dict):
        return form
    return {name: _plain(form[name]) for name in _TOLD if name in form}


def _plain(value: Value) -> Value:
    """Without the addresses of objects, which are others in each process."""
    if isinstance(value, str):
        return _ADDRESS.sub("0x…", value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {name: _plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def _raised(channel: str, value: Value) -> Value:
    form = value.get("$value") if channel == ERROR and isinstance(value, dict) else None
    return _brief(form) if isinstance(form, dict) else value


def _told(status: str, given: Any) -> str:
    if status != Status.ERROR:
        return {Status.OK: "returned", Status.CLOSED: "was left", Status.CANCELLED: "was cancelled"}.get(
            Status(status), status
        )
    if isinstance(given, BaseException):
        return f"raised {type(given).__qualname__}: {difference.cut(str(given))}"
    name = given.get("name") if isinstance(given, dict) else ""
    return f"raised {name}: {difference.cut(', '.join(_texts(given)))}"


def _texts(form: Value) -> Iterator[str]:
    args = form.get("args") if isinstance(form, dict) else None
    for each in args if isinstance(args, list) else ():
        yield str(each)
