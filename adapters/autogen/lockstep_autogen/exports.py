"""What `lockstep export` writes of a team's run for AutoGen itself: its messages, and its state at a step.

    lockstep export autogen/refund --format messages --output thread.json
    lockstep export autogen/refund:3 --format state --output state.json

The messages are a JSON array of AutoGen's own dumps, with their ids and times, which `lockstep_autogen.thread` gives to
a new team, or `MessageFactory().create` one by one. The state is what `team.load_state(json.load(file))` takes. Both
are made of inert data alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lockstep.errors import AddressError, Code, StoreError
from lockstep.log.checkpoints import States
from lockstep.log.model import Event, Kind, Value
from lockstep.log.timeline import Place
from lockstep.session.native.ran import CONSISTENT
from lockstep_autogen import saving
from lockstep_autogen.layout import MESSAGES, WAS


def messages(place: Place) -> bytes:
    """What was said up to a step, in order, with what speakers did on the way; of a run or branch, all of it."""
    return _json([*said(place)])


def said(place: Place) -> Iterator[dict[str, Any]]:
    """The messages, as AutoGen dumps them."""
    reader = place.timeline.reader
    states = States(reader)
    for seq, event in _steps(place):
        body: Any = reader.body(reader.main, seq)
        found = states.at(event.pos).get(MESSAGES)
        yield from _as_they_were(found if isinstance(found, list) else [], body.get(WAS))


def _as_they_were(spoken: list[Any], was: Any) -> Iterator[dict[str, Any]]:
    """Of each message first what its speaker did, then what it said. `was`: ids and times, the message's own first."""
    own = iter(was if isinstance(was, list) else ())
    for message in spoken:
        plain = {name: value for name, value in message.items() if name != "inner"}
        whole = {**plain, **_next(own)}
        yield from [{**inner, **_next(own)} for inner in message.get("inner") or ()]
        yield whole


def _next(own: Iterator[Any]) -> Mapping[str, Any]:
    found = next(own, None)
    return found if isinstance(found, Mapping) else {}


def state(place: Place) -> bytes:
    """What the team remembered after a step; of a run or branch, after its last one."""
    seq, event = last(place)
    reader = place.timeline.reader
    body: Any = reader.body(reader.main, seq)
    channels = States(reader).at(event.pos)
    if body.get(CONSISTENT, True) is not True or not saving.is_whole(channels):
        raise StoreError(
            Code.NO_FORMAT,
            f"the state was not whole at {place.address}: the team had not run yet, or somebody had not heard yet what"
            " another had said. Take another step",
        )
    return _json(saving.saved(channels))


def last(place: Place) -> tuple[int, Event]:
    """The STEP of a place, with its number; of a run or branch the last one. Raises AddressError LS206."""
    steps = _steps(place)
    if not steps:
        raise AddressError(Code.NO_ADDRESS, f"{place.address} has no step, and so no state")
    return steps[-1]


def _steps(place: Place) -> list[tuple[int, Event]]:
    """Those of the team that was run, up to the place. A step of a team inside stands for that team."""
    reader = place.timeline.reader
    found = [(seq, event) for seq, event in reader.heads(reader.main) if event.kind is Kind.STEP]
    if place.address.step is not None:
        found = found[: place.address.step + 1]
    if not found:
        return []
    whose = found[-1][1] if place.address.step is not None else found[0][1]
    return [each for each in found if each[1].lane == whose.lane]


def _json(value: Value | list[dict[str, Any]]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
