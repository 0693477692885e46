"""Recorded states and messages in new teams.

await lockstep_autogen.load("autogen/refund:3", team)              # it remembers what the recorded one did
await team.run(task="go on")

await team.run(task=lockstep_autogen.thread("autogen/refund"))     # or only hears what was said
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import msgspec
from autogen_agentchat.messages import BaseChatMessage, MessageFactory

from lockstep.errors import AddressError, Code, TargetError
from lockstep.log import checkpoints
from lockstep.log.meta import keeper
from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep.log.timeline import Place, resolve
from lockstep.session.native.kept import recalled
from lockstep.session.native.ran import CONSISTENT
from lockstep_autogen import exports, restoring
from lockstep_autogen.adapter import adapter

log = logging.getLogger("lockstep")


async def load[T](address: str, team: T, *, store: str | os.PathLike[str] | None = None) -> T:
    """Gives a team (or agent) what a recorded one remembered, as `team.load_state` would, and with what that leaves
    out: its conditions go on counting where they were. Then run it: without a task it goes on where the recorded one
    went on, with a task it hears that. Returns the team.

    address  a step, as `autogen/refund:3`, or a run or branch: its last step
    store    its path; found as ever if not told

    Raises AddressError; and TargetError LS411 where the state says too little, LS402 where it is another team's.
    """
    target: Any = team
    if not hasattr(target, "load_state") or not hasattr(target, "run"):
        raise TargetError(Code.BAD_TARGET, f"load takes a team or an agent, not a {type(team).__name__}")
    with open_store(os.fspath(store) if store is not None else None) as opened:
        place = _place(resolve(opened, address))
        if place.effect is not None:
            raise AddressError(Code.NO_ADDRESS, f"{address} is a call: what a team remembers is that of a step")
        seq, step = exports.last(place)
        reader = place.timeline.reader
        body: Any = reader.body(reader.main, seq)
        reveal: Any = recalled(opened.path, reader.meta)[0].reveal
        channels: Mapping[str, Value] = reveal(dict(checkpoints.States(reader).at(step.pos)))
    whole = body.get(CONSISTENT, True) is True
    why = restoring.refusal(target, channels, consistent=whole, finished=True)
    if why:
        raise TargetError(Code.UNSUPPORTED, f"the state of {address} says too little to load it: {why}")
    await restoring.as_turn(target, channels)
    if waits := restoring.waits(target, channels):
        log.warning("%s", waits)
    return team


def thread(
    source: str, *, team: Any = None, store: str | os.PathLike[str] | None = None
) -> list[BaseChatMessage]:  # fmt: skip
    """The messages of a recorded run, for `team.run(task=…)` of another team, with what agents did on the way left out.

    source  an address, or a file that `lockstep export --format messages` wrote
    team    the one that will hear them, where they have types of its own
    store   its path; found as ever if not told

    Raises AddressError; and TargetError LS402 for a message that the team does not know.
    """
    if os.path.exists(source):
        with open(source, "rb") as file:
            dumped: list[Any] = msgspec.json.decode(file.read())
    else:
        with open_store(os.fspath(store) if store is not None else None) as opened:
            place = _place(resolve(opened, source))
            reveal: Any = recalled(opened.path, place.timeline.reader.meta)[0].reveal
            dumped = [reveal(each) for each in exports.said(place)]
    known = getattr(team, "_message_factory", None)
    factory = known if isinstance(known, MessageFactory) else MessageFactory()
    made = [_message(factory, each) for each in dumped]
    return [each for each in made if isinstance(each, BaseChatMessage)]


def _message(factory: MessageFactory, dumped: Any) -> Any:
    try:
        return factory.create(dumped)
    except ValueError as error:
        kind = dumped.get("type") if isinstance(dumped, dict) else dumped
        raise TargetError(
            Code.BAD_TARGET, f"a {kind} is none of the messages that are known here: give thread(…, team=) ({error})"
        ) from error


def _place(place: Place) -> Place:
    if keeper(place.timeline.reader.meta) != adapter.name:
        raise AddressError(Code.NO_ADDRESS, f"{place.address} is no run of {adapter.title}'s own")
    return place
