"""What is told of a run's branches: where each left, what it was given, and what came of it.

Reads the heads of a branch's own events only, however long what it shares is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lockstep.debugger import ending, newest
from lockstep.errors import Code, StoreError
from lockstep.log.address import MAIN, Address
from lockstep.log.cut import unpack
from lockstep.log.model import DIVERGED, BranchInfo, Event, Kind, RunState
from lockstep.log.native import UNASKED
from lockstep.log.steps import TURN, is_native
from lockstep.log.store import ROOT, RunReader

# How a call of a branch got its answer, beside these: edited, reused, served, as its END says.
LIVE = "live"
RECORDED = "recorded"  # before the branch began
REFUSED = "refused"
DAMAGED = "damaged"


class Fork(msgspec.Struct, frozen=True):
    """A branch that left another.

    parent   where it left, as an address: `refund:7`; the branch alone where that is not known
    state    a `RunState`, `diverged` (what it was served was not the recorded run), or `damaged` with the `problem`
    edits    what was answered in another way, by address and path: `7.1:status`
    live     calls that ran for real; `reused`, `edited` and `served`: that were answered from the record, by an edit,
             and from the record past an edit
    refused  the call that was not allowed, in words
    own      of a native run, steps of its own, beside those that it shares
    latest   of a native run, whether the thread's latest checkpoint is in it
    """

    address: str
    parent: str
    state: str
    edits: tuple[str, ...] = ()
    steps: int = 0
    live: int = 0
    reused: int = 0
    edited: int = 0
    served: int = 0
    refused: tuple[str, ...] = ()
    size: int = 0
    problem: str = ""
    own: int = 0
    latest: bool = False


def forks(reader: RunReader, path: str, branch: str) -> list[Fork]:
    """The branches that come from one, each followed by those that come from it. `path`: the run as it stands in an
    address."""
    below: dict[str, list[BranchInfo]] = {}
    for info in reversed(reader.branches):
        below.setdefault(info.parent, []).append(info)
    # Also of a branch that makes no sense, a line is shown: it is said to come from main.
    lost = [info for info in reversed(reader.branches) if info.problem] if branch == MAIN else []
    waiting = [*lost, *(info for info in below.pop(branch, []) if not info.problem)]
    found = []
    while waiting:
        info = waiting.pop()
        waiting += [one for one in below.pop(info.name, []) if not one.problem]
        found.append((info.name, fork(reader, path, info)))
    latest = newest.branch(reader) if found else ""
    return [msgspec.structs.replace(one, latest=bool(latest) and name == latest) for name, one in found]


def fork(reader: RunReader, path: str, info: BranchInfo) -> Fork:
    """What is told of one branch; damage in it must not hide the others."""
    address, parent = str(Address(path, info.name)), Address(reader.info.name, info.parent)
    bare = Fork(
        address, str(parent), info.state.value, steps=info.steps, size=info.size, problem=info.problem,
        own=info.steps - info.before if is_native(reader.stored.meta) else 0,
    )  # fmt: skip
    if info.problem:
        return msgspec.structs.replace(bare, state=DAMAGED)
    try:
        return _read(reader.on(info.name), bare, info)
    except StoreError as error:
        return msgspec.structs.replace(bare, state=DAMAGED, problem=error.message)


def _read(own: RunReader, bare: Fork, info: BranchInfo) -> Fork:
    event = own.fork
    told = body(event)
    given = told.get("edits")
    counts, unended, finish = _calls(own, info)
    refused = (_refusal(finish),) if info.state is RunState.REFUSED else ()
    diverged = finish is not None and finish.what == DIVERGED
    return msgspec.structs.replace(
        bare,
        parent=bare.parent + ((event.name if event is not None else "") or _left(own, info)),
        state=DIVERGED if diverged else ending.state(own.info, ending.read(own)).value,
        edits=tuple(given) if isinstance(given, dict) else (),
        live=counts.get("", 0) + max(0, len(unended) - len(refused)),
        reused=counts.get("reused", 0),
        edited=counts.get("edited", 0),
        served=counts.get("served", 0),
        refused=refused,
    )


def _left(own: RunReader, info: BranchInfo) -> str:
    """Where a branch of a native run left, if it does not say that: after the checkpoint before its cut."""
    return f":{info.before - 1}" if is_native(own.stored.meta) and info.before else ""


def _refusal(finish: Event | None) -> str:
    """The call that was not allowed, in words."""
    end = body(finish).get("end")
    error = end.get("error") if isinstance(end, dict) else None
    message = str(error.get("message") or "") if isinstance(error, dict) else ""
    return message.removeprefix(f"{Code.REFUSED} ").partition("\n")[0]


def _calls(own: RunReader, info: BranchInfo) -> tuple[dict[str, int], set[int], Event | None]:
    """How often each way of being answered occurred among the outermost calls, the positions of those without an end,
    and the FINISH."""
    open_ = {call.pos for call in unpack(info.flying)}
    begun: set[int] = set()
    counts: dict[str, int] = {}
    finish = None
    for stream in own.own:
        if stream.process != ROOT:
            continue
        for seq, event in own.stored.heads(stream.id):
            if event.kind is Kind.BEGIN and not event.of and event.what != TURN and event.what not in UNASKED:
                begun.add(event.pos)
            elif event.kind is Kind.END and (event.of in begun or event.of in open_):
                begun.discard(event.of)
                counts[event.name] = counts.get(event.name, 0) + 1
            elif event.kind is Kind.FINISH:
                finish = msgspec.structs.replace(event, body=own.stored.body(stream.id, seq))
    return counts, begun, finish


def body(event: Event | None) -> dict[str, Any]:
    """An event's body, empty where it has none."""
    return event.body if event is not None and isinstance(event.body, dict) else {}


def answered(reader: RunReader, stream: int, begin: Event, seq: int, end: Event | None) -> str:
    """How a call of a branch got its answer, or that it was refused; "" in main, while it has none, and where nobody
    gave it one. `seq`: the number of its END."""
    if reader.fork is None:
        return ""
    if end is None:
        if reader.info.state is not RunState.REFUSED or stream != reader.main:
            return ""
        # What is refused ends the program: where other calls were in flight, too, it is not known which one it was.
        info = next(one for one in reader.branches if one.name == reader.branch)
        return REFUSED if _calls(reader, info)[1] == {begin.pos} else ""
    base = next(one.base for one in reader.branches if one.name == reader.branch)
    own = {one.id for one in reader.own}
    if stream not in own or (stream == reader.main and seq < base):
        return RECORDED
    return end.name or (LIVE if begin.what not in UNASKED else "")


def lived(reader: RunReader) -> int:
    """How many calls of a branch ran for real."""
    info = next(one for one in reader.branches if one.name == reader.branch)
    counts, unended, _ = _calls(reader, info)
    return counts.get("", 0) + len(unended)


def edits(reader: RunReader) -> Sequence[str]:
    """What was answered in another way, by address and path."""
    given = body(reader.fork).get("edits")
    return list(given) if isinstance(given, dict) else []
