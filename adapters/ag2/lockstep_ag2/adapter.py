"""What Lockstep knows of AG2 before anything of it is imported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.adapter.late import Later
from lockstep.adapter.native import Native
from lockstep.errors import Code, TargetError
from lockstep.log.model import Value

_AGENTS = "ag2.agent"
_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, functools.partial)
FACTORY = "function without arguments that makes a fresh agent"
BY = "by"  # the keyword of `lockstep.fork`: how a fork goes on


def is_agent(target: Any) -> bool:
    """Whether it is an agent, told without importing AG2."""
    return any(cls.__module__ == _AGENTS and cls.__name__ == "Agent" for cls in type(target).__mro__)


def _accepts(target: Any) -> bool:
    # An agent itself too: what is wrong with it is said where one is made. Of other objects that can be called, nobody
    # could tell whether they are somebody else's target.
    return isinstance(target, _FUNCTIONS) or is_agent(target)


def _program(target: Any, given: Value) -> Callable[[], Any]:
    raise TargetError(
        Code.BAD_TARGET, "a factory of agents is the target of a conversation's own run, as in ag2/refund"
    )


def _attach(module: ModuleType) -> None:
    """In a program that is recorded or replayed: once it has loaded what runs agents."""
    if module.__name__ == _AGENTS:
        from lockstep_ag2 import attaching

        attaching.watch()


adapter = Adapter(
    name="ag2",
    title="AG2",
    distribution="ag2",
    extra="ag2",
    modules=("ag2", _AGENTS),
    instrument=_attach,
    in_code=True,
    tested=Versions("1.2", "1.2.1"),
    steps=Steps(kind="message", what="each answer of the model, and what is said between two of them"),
    restore=Way(exact=True, refuses=Later("lockstep_ag2.planning:why_not_restored")),
    re_execute=Way(exact=True),
    target=Target(what=FACTORY, inputs="recorded, per turn", accepts=_accepts, program=_program),
    subject="lockstep_ag2.subject:subject",
    native=Native(
        replay=Later("lockstep_ag2.replaying:replay"),
        areplay=Later("lockstep_ag2.replaying:areplay"),
        fork=Later("lockstep_ag2.forking:fork"),
        afork=Later("lockstep_ag2.forking:afork"),
        own={BY: '"code": in a fork the agent does again what came before; "state": it is given its history'},
    ),
)
