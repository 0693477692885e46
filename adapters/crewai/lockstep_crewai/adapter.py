"""What Lockstep knows of CrewAI before anything of it is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.adapter.late import Later
from lockstep.adapter.native import Native
from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep_crewai import attached

_WRAPPED = frozenset({"Crew", "Agent", "BaseAgent", "LiteAgent", "Flow"})


def is_live(target: Any) -> bool:
    """Whether it is a crew, agent or flow itself: told by where its class comes from, without importing that."""
    return _is_of_crewai(type(target))


def _is_of_crewai(cls: type) -> bool:
    return any(each.__module__.partition(".")[0] == "crewai" and each.__name__ in _WRAPPED for each in cls.__mro__)


def _is_factory(target: Any) -> bool:
    # A live one too: what is wrong with it is then said, in place of "this is no target of any adapter". Of classes
    # only CrewAI's, as that of a flow: another one is a target of whoever knows it.
    if isinstance(target, type):
        return _is_of_crewai(target)
    return is_live(target) or callable(target)


def _program(target: Any, given: Value) -> Callable[[], Any]:
    raise TargetError(
        Code.BAD_TARGET, "a function that makes a crew is the target of a crew's own run, as in crewai/research"
    )


def factory(target: Any) -> Callable[[], Any]:
    """The factory that a target is: a function, or the class of a flow. Raises TargetError LS402 with the reason."""
    if is_live(target):
        raise TargetError(
            Code.BAD_TARGET,
            "a crew, agent or flow remembers what it has done: give the function that makes it, as in"
            " lockstep.replay(run, make_crew), or --target module:make_crew",
        )
    if not callable(target):
        raise TargetError(
            Code.BAD_TARGET, f"the target is a function that makes a fresh crew, agent or flow, not {target!r}"
        )
    found: Callable[[], Any] = target
    return found


def _begins() -> None:
    from lockstep_crewai import early

    early.begin()


adapter = Adapter(
    name="crewai",
    title="CrewAI",
    distribution="crewai",
    extra="crewai",
    modules=attached.MODULES,
    instrument=attached.attach,
    in_code=True,
    tested=Versions("1.15.3", "1.15.30"),
    begins=_begins,
    steps=Steps(kind="task", what="each task of a crew and method of a flow, with its output and the flow's state"),
    # CrewAI's own checkpoints are of a state that goes on changing while they are written (see `docs/crewai.md`).
    restore=Way(exact=False, reason="a crew cannot be put into the middle of its work: it is done again, and answered"),
    re_execute=Way(exact=True),
    target=Target(
        what="factory of a crew, agent or flow, or module:make_crew", inputs="recorded, per kickoff",
        accepts=_is_factory, program=_program,
    ),
    subject="lockstep_crewai.subject:subject",
    native=Native(
        prepare=Later("lockstep_crewai.attached:quiet"),
        replay=Later("lockstep_crewai.replaying:replay"), areplay=Later("lockstep_crewai.replaying:areplay"),
        fork=Later("lockstep_crewai.forking:fork"), afork=Later("lockstep_crewai.forking:afork"),
    ),
)  # fmt: skip
