"""Whether a crew, agent or flow is the recorded one: by what is in it (`wrapping.members`).

A replay is of the same crew. In a fork, tasks that begin after its cut may be others: what came before is served all
the same, and compared. What the branch was made of is said in its FORK event ("members"), so that its own replay is of
that crew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from lockstep.errors import Code, TargetError
from lockstep.log.address import quote
from lockstep.log.model import Kind, Value
from lockstep.session.native.ran import Recorded
from lockstep_crewai import wrapping
from lockstep_crewai.wrapping import Root

MEMBERS = "members"  # of a run's meta, and of a branch's FORK event where it was made of another crew
_A = {wrapping.CREW: "a crew", wrapping.FLOW: "a flow", wrapping.AGENT: "an agent"}


class Fit(msgspec.Struct, frozen=True):
    """How what was made fits what was recorded. `changed`: the tasks that are others, in words; `members`: what is in
    it, None where that is what is recorded."""

    changed: tuple[str, ...] = ()
    members: list[Value] | None = None


def of_run(recorded: Recorded) -> Mapping[str, Any]:
    """What a run says of what was recorded."""
    told = recorded.meta.get("native")
    return told if isinstance(told, Mapping) else {}


def fit(root: Root, recorded: Recorded, name: str, until: int | None) -> Fit:
    """Compares. `name`: of the factory; `until`: the position up to which a fork's past lies, None where nothing may be
    another. Raises TargetError LS402 where the recorded run is one of something else, with the first task that
    differs."""
    kind = of_run(recorded).get("kind")
    if isinstance(kind, str) and kind != root.kind:
        raise TargetError(
            Code.BAD_TARGET, f"{name} made {_A[root.kind]}, and the recorded run is one of {_A.get(kind, kind)}"
        )
    was = _recorded(recorded)
    if was is None or root.kind == wrapping.FLOW:
        return Fit()  # what a flow has and never runs makes no difference, and what it runs is told as it does
    now = wrapping.members(root.target)
    begun = _begun(recorded, until) if until is not None and root.kind == wrapping.CREW else None
    changed: list[str] = []
    for number, (before, after) in enumerate(zip_longest(was, now), 1):
        if before == after:
            continue
        said = _differs(root, number, before, after)
        if begun is None or _lane(was, number) in begun:
            rule = "" if begun is None else ". In a fork, only tasks that begin after its cut may be others"
            raise TargetError(Code.BAD_TARGET, f"{name} made another {root.kind} than the recorded one: {said}{rule}")
        changed.append(said)
    return Fit(tuple(changed), now) if changed else Fit()


def _recorded(recorded: Recorded) -> list[Value] | None:
    for seq, event in reversed(recorded.record.heads):
        if event.kind is Kind.FORK:
            told = recorded.record.field(seq, MEMBERS)
            if isinstance(told, list):
                return told
    found = of_run(recorded).get(MEMBERS)
    return found if isinstance(found, list) else None


def _begun(recorded: Recorded, until: int) -> frozenset[str]:
    """The names in lanes, below that of the crew itself, in which something had been done by a position."""
    return frozenset(_names(recorded, until))


def _names(recorded: Recorded, until: int) -> Iterator[str]:
    for _, event in recorded.record.heads:
        if event.pos > until:
            continue
        if event.kind is Kind.STEP:
            yield from f"{event.lane}/{event.name}".split("/")[1:]
        elif event.kind is Kind.BEGIN:
            yield from event.lane.split("/")[1:]


def _lane(members: Sequence[Value], number: int) -> str:
    """What the lane of a task is called in its crew's; of one that the recorded crew has not, nothing."""
    if number > len(members):
        return ""
    names = [_parts(member)[0] for member in members[:number]]
    count = names.count(names[-1])
    return quote(names[-1]) + (f"~{count}" if count > 1 else "")


def _differs(root: Root, number: int, before: Value, after: Value) -> str:
    where = f"task {number}" if root.kind == wrapping.CREW else "it"
    if before is None or after is None:
        said = "is not there any more" if after is None else "was not there"
        return f"{where}, {_called(before or after)}, {said}"
    if _parts(before)[:2] == _parts(after)[:2]:
        return f"{where}, {_called(after)}, is told something else"
    return f"{where} is {_called(after)}, and was {_called(before)}"


def _parts(member: Value) -> list[str]:
    return [str(part) for part in member] if isinstance(member, Sequence) else ["", "", ""]


def _called(member: Value) -> str:
    name, who, _ = _parts(member)
    return f"{name} (of {who})" if who else name
