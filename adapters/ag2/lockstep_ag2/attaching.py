"""Attaching: one line that has an agent recorded, and what finds the agents that nobody attached.

An agent that runs inside of an attached one's turn (as a tool, as a subtask, or called by hand) is part of that turn,
and with a session on every agent is part of the session's run. So what opens a turn of an agent, `Agent._turn_scope`,
is wrapped, and gives each agent the middleware that needs it. That is the only seam of AG2's that is none of its public
ones.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import TYPE_CHECKING, Any

from ag2.agent import Agent
from ag2.middleware import Middleware
from ag2.utils import AGENT_CONTEXT_DEPENDENCY_KEY

from lockstep.errors import AdapterError, Code, TargetError
from lockstep.log import untapped
from lockstep.session import current as sessions
from lockstep_ag2 import calls, strands
from lockstep_ag2.adapter import adapter, is_agent

if TYPE_CHECKING:
    from lockstep_ag2.recording import Owner

_SCOPE = "_turn_scope"
_owners: weakref.WeakKeyDictionary[Any, Owner] = weakref.WeakKeyDictionary()
_seen: weakref.WeakSet[Any] = weakref.WeakSet()  # agents that have the middleware
_watching = False
_lock = untapped.allocate_lock()


def attach[A](agent: A, *, run: str | None = None, store: str | None = None) -> A:
    """Has an agent recorded, before it is asked for the first time; returns it.

    Each conversation (stream) of the agent is a run of its own, `ag2/<agent's name>`, and each `ask` or `run` a turn of
    it. With a session on (`lockstep record`) it is a lane of the session's run instead. Agents that are tools or
    subtasks of this one are part of its turns.

    run    name of the run in the place of the agent's; of the next conversation `<run>-2`
    store  path of the store; found or made as ever if it is not given

    Raises TargetError LS402 for what is no agent, and for one that is attached already; AdapterError LS410 for a
    version of AG2 that lacks what is needed.
    """
    found: Any = agent
    if not is_agent(found):
        raise TargetError(Code.BAD_TARGET, _no_agent(found))
    if found in _owners or found in _seen:
        raise TargetError(Code.BAD_TARGET, f"the agent {found.name!r} is attached already")
    watch()
    owner(found, run, store)
    _give(found, Middleware(_middleware(), run=run, store=store))
    return agent


def _no_agent(found: Any) -> str:
    classic = any(cls.__name__ == "ConversableAgent" for cls in type(found).__mro__)
    if classic:
        return (
            "a ConversableAgent is of AG2's classic API (import autogen), which comes later: record such a program"
            " with lockstep record, which needs no attach"
        )
    return f"attach wants an agent of AG2 1.x (ag2.Agent), not a {type(found).__name__}"


def owner(agent: Any, run: str | None = None, store: str | None = None) -> Owner:
    """Who records an agent."""
    from lockstep_ag2.recording import Owner

    found = _owners.get(agent)
    if found is None:
        found = _owners[agent] = Owner(str(getattr(agent, "name", "agent")), run, store)
        _seen.add(agent)
    return found


def agent_of(context: Any) -> Any:
    """The agent whose turn a context is of."""
    return context.dependencies.get(AGENT_CONTEXT_DEPENDENCY_KEY)


def watch() -> None:
    """Every agent takes part from now on in what is recorded or replayed around it. For as long as the process lives.

    Raises AdapterError LS410.
    """
    global _watching
    with _lock:
        if _watching:
            return
        plain = getattr(Agent, _SCOPE, None)
        if plain is None or not hasattr(Agent, "insert_middleware"):
            raise AdapterError(
                Code.UNFIT_FRAMEWORK,
                f"this version of AG2 has no Agent.{_SCOPE}: the adapter was tested with {adapter.tested.oldest} to "
                f"{adapter.tested.newest}",
            )
        agents: Any = Agent
        setattr(agents, _SCOPE, _adopting(plain))
        _watching = True


def _adopting(plain: Any) -> Any:
    @functools.wraps(plain)
    def _turn_scope(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self not in _seen and (sessions.session is not None or strands.running() is not None or _prepared()):
            try:
                _give(self, Middleware(_middleware(), adopted=True))
            except Exception as error:
                calls.fault("an agent that takes part", error)
        return plain(self, *args, **kwargs)

    return _turn_scope


def _prepared() -> bool:
    return strands.prepared.get() is not None


def _give(agent: Any, middleware: Any) -> None:
    agent.insert_middleware(middleware)
    _seen.add(agent)


def _middleware() -> Any:
    from lockstep_ag2.middleware import LockstepMiddleware

    return LockstepMiddleware


async def made(target: Any) -> Any:
    """The agent that a factory makes. Raises TargetError LS402 where it is none."""
    if is_agent(target):
        raise TargetError(
            Code.BAD_TARGET,
            f"the target is the agent {target.name!r} itself, whose tools and middleware may hold what an earlier run "
            "left in them: give a function without arguments that makes a fresh one",
        )
    try:
        found = target()
    except TypeError as error:
        if _wants_arguments(target):
            raise TargetError(
                Code.BAD_TARGET, f"the target is called without arguments, and {_name(target)} wants some: {error}"
            ) from error
        raise
    if inspect.isawaitable(found):
        found = await found
    if not is_agent(found):
        raise TargetError(
            Code.BAD_TARGET,
            f"the target is to make an agent of AG2's, and {_name(target)} made a {type(found).__name__}",
        )
    watch()
    return found


def _wants_arguments(target: Any) -> bool:
    try:
        inspect.signature(target).bind()
    except TypeError:
        return True
    except ValueError:
        return False
    return False


def _name(target: Any) -> str:
    return str(getattr(target, "__qualname__", type(target).__name__))
