"""What Lockstep knows of AutoGen before anything of it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.adapter.late import Later
from lockstep.adapter.native import Native
from lockstep.errors import Code, TargetError
from lockstep.log.model import Value


def _is_live(target: Any) -> bool:
    """Whether it is a team or an agent itself: told by where its class comes from, without importing that."""
    return any(
        cls.__module__.startswith("autogen_agentchat.base") and cls.__name__ in ("Team", "ChatAgent")
        for cls in type(target).__mro__
    )


def _is_factory(target: Any) -> bool:
    # A live one too: what is wrong with it is then said, in place of "this is no target of any adapter".
    return _is_live(target) or (callable(target) and not isinstance(target, type))


def _program(target: Any, given: Value) -> Callable[[], Any]:
    raise TargetError(
        Code.BAD_TARGET, "a function that makes a team is the target of a team's own run, as in autogen/refund"
    )


def factory(target: Any) -> Callable[[], Any]:
    """The factory that a target is. Raises TargetError LS402 with the reason."""
    if _is_live(target):
        raise TargetError(
            Code.BAD_TARGET,
            "a team can only be run once from its beginning: give the function that makes it, as in"
            " lockstep.replay(run, make_team), or --target module:make_team",
        )
    if not callable(target) or isinstance(target, type):
        raise TargetError(Code.BAD_TARGET, f"the target is a function that makes a fresh team or agent, not {target!r}")
    found: Callable[[], Any] = target
    return found


adapter = Adapter(
    name="autogen",
    title="AutoGen",
    distribution="autogen-agentchat",
    extra="autogen",
    modules=("autogen_agentchat", "autogen_core"),
    tested=Versions("0.7", "0.7.5"),
    steps=Steps(kind="message", what="each message of a team, with the state after it"),
    restore=Way(exact=True),
    re_execute=Way(exact=True),
    target=Target(
        what="factory of a team or agent, or module:make_team", inputs="recorded, per turn", accepts=_is_factory,
        program=_program,
    ),
    subject="lockstep_autogen.subject:subject",
    exports={"messages": Later("lockstep_autogen.exports:messages"), "state": Later("lockstep_autogen.exports:state")},
    native=Native(
        replay=Later("lockstep_autogen.replaying:replay"), areplay=Later("lockstep_autogen.replaying:areplay"),
        fork=Later("lockstep_autogen.forking:fork"), afork=Later("lockstep_autogen.forking:afork"),
        own={
            "stop": "in a fork, the number of the step or the name of the agent after which the team is stopped",
            "by": '"code": in a fork the team does again what came before; "state": it is given what it remembered',
        },
    ),
)  # fmt: skip
