"""What a flow or crew keeps outside of itself: rows of `@persist`, native checkpoints, outputs of its last kickoff.

A state that a flow loads is what it goes on from, so it is recorded, and a replay loads what was loaded then. One that
it saves is compared with the one that it saved, and saved nowhere in a replay: the row is of the recorded run, and may
have been another's since. In a fork it is saved past the cut, with no word of the user's: it is the flow's own, under
an id of its own. What `crewai replay` would go on from stays what the last real kickoff has left.

Where a native checkpoint lies is kept beside the step that it was made after. It is nothing to go on from: CrewAI makes
it on another thread, of a state that goes on changing. None is made in a replay or fork.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import wraps
from typing import Any

from crewai.events.event_bus import crewai_event_bus
from crewai.flow.persistence.base import FlowPersistence
from crewai.state import checkpoint_listener
from crewai.state.provider.core import BaseProvider
from crewai.utilities.task_output_storage_handler import TaskOutputStorageHandler

from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep.session.native.answers import Question
from lockstep.session.policy import Declared
from lockstep_crewai import asking, classes, current
from lockstep_crewai.asking import Leaf
from lockstep_crewai.canonical import kept_state
from lockstep_crewai.layout import CHECKPOINT, STATE

_OWN = Declared("read", "a flow's own state, under an id of its own")
# What the last kickoff left is being changed: that CrewAI looks at it then is a part of that.
_changing: ContextVar[bool] = ContextVar("lockstep_crewai_changing", default=False)
_NOTHING = Leaf(lambda nothing: None, lambda value: None)


def install() -> None:
    """Has what is kept ask who keeps it. Call it before each run: a store of the user's may be newer."""
    for cls in classes.family(FlowPersistence):
        classes.wrap(cls, "load_state", _loading)
        classes.wrap(cls, "save_state", _saving)
        classes.wrap(cls, "save_pending_feedback", _pausing)
        classes.wrap(cls, "clear_pending_feedback", _clearing)
    for cls in classes.family(BaseProvider):
        classes.wrap(cls, "checkpoint", _checkpointing)
    classes.wrap_function(checkpoint_listener, "_should_checkpoint", _deciding)
    classes.wrap(TaskOutputStorageHandler, "load", _looking)
    for name in ("update", "add", "reset"):
        classes.wrap(TaskOutputStorageHandler, name, _leaving)


def _loading(plain: Any) -> Any:
    @wraps(plain)
    def load_state(self: Any, flow_uuid: str) -> Any:
        place = current.place()
        if place is None:
            return plain(self, flow_uuid)
        asked: dict[str, Value] = {"flow": str(flow_uuid)}
        return asking.outside(
            place, STATE, lambda: Question("load_state", asked, asked, _OWN), lambda: plain(self, flow_uuid),
            Leaf(snapshot.to_value, snapshot.from_value),
        )  # fmt: skip

    return load_state


def _saving(plain: Any) -> Any:
    @wraps(plain)
    def save_state(self: Any, flow_uuid: str, method_name: str, state_data: Any) -> Any:
        return _kept(
            "save_state", {"method": str(method_name), "state": kept_state(state_data)},
            lambda: plain(self, flow_uuid, method_name, state_data),
        )  # fmt: skip

    return save_state


def _pausing(plain: Any) -> Any:
    @wraps(plain)
    def save_pending_feedback(self: Any, flow_uuid: str, context: Any, state_data: Any) -> Any:
        asked: dict[str, Value] = {
            "method": str(context.method_name), "message": str(context.message), "state": kept_state(state_data),
        }  # fmt: skip
        return _kept("save_pending_feedback", asked, lambda: plain(self, flow_uuid, context, state_data))

    return save_pending_feedback


def _clearing(plain: Any) -> Any:
    @wraps(plain)
    def clear_pending_feedback(self: Any, flow_uuid: str) -> Any:
        return _kept("clear_pending_feedback", {}, lambda: plain(self, flow_uuid))

    return clear_pending_feedback


def _kept(name: str, asked: dict[str, Value], really: Any) -> Any:
    place = current.place()
    if place is None:
        return really()
    return asking.outside(place, STATE, lambda: Question(name, asked, asked, _OWN), really, _NOTHING)


def _looking(plain: Any) -> Any:
    """What the last kickoff left, from which `Crew.replay` goes on."""

    @wraps(plain)
    def load(self: Any) -> Any:
        place = current.place()
        if place is None or _changing.get():
            return plain(self)
        return asking.outside(
            place, STATE, lambda: Question("load_outputs", {}, {}, _OWN), lambda: plain(self),
            Leaf(snapshot.to_value, snapshot.from_value),
        )  # fmt: skip

    return load


def _leaving(plain: Any) -> Any:
    @wraps(plain)
    def change(self: Any, *args: Any, **options: Any) -> Any:
        place = current.place()
        if place is not None and place.root.seams.again:
            return None
        token = _changing.set(True)
        try:
            return plain(self, *args, **options)
        finally:
            _changing.reset(token)

    return change


def _deciding(plain: Any) -> Any:
    @wraps(plain)
    def should_checkpoint(source: Any, event: Any) -> Any:
        place = current.place()
        return None if place is not None and place.root.seams.again else plain(source, event)

    return should_checkpoint


def settle() -> None:
    """Returns once native checkpoints of what has been told so far are made. CrewAI makes them on threads of its own,
    and waits for all but the one that it makes when a crew is done."""
    if checkpoint_listener._handlers_registered:
        crewai_event_bus.flush()


def _checkpointing(plain: Any) -> Any:
    @wraps(plain)
    def checkpoint(self: Any, data: str, location: str, **options: Any) -> Any:
        made = plain(self, data, location, **options)
        here = current.scope.get()
        if here is not None:
            about: dict[str, Value] = {
                "id": str(self.extract_id(made)), "location": str(made), "branch": str(options.get("branch", "main")),
            }  # fmt: skip
            here.root.seams.told.attached(here.steps, CHECKPOINT, about)
        return made

    return checkpoint
