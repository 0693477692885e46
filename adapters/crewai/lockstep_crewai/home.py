"""What CrewAI keeps for itself in the user's home folder, while a session is on.

Whether this is the user's first run, which version is the newest, what the last kickoff's tasks gave (`crewai
replay`), the rows of `@persist`: small files and SQLite databases outside of the program's directory, that each run
changes. A second run finds others than the first, and takes another way: so what a recorded run finds there is in its
record, and a replay or a fork is told that, and leaves them as they are. CrewAI's own locks around these files are no
locks of the program, nor is the look at the package index a request of it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from lockstep.errors import Code
from lockstep.log.model import Value
from lockstep.session import current as sessions
from lockstep.session import exceptions, lanes, snapshot
from lockstep.session import looks as looking
from lockstep.session.lanes import Lane
from lockstep.session.looks import ABSENT, Looks

SOURCE = "crewai"  # of the looks in a record

_MARK = "_lockstep_home"

closed = False
"""Whether CrewAI runs in a command of Lockstep's own, which reads nothing there and changes nothing."""


class Shelf:
    """One place at which CrewAI keeps something.

    what   it is, in words
    asked  of the arguments of its functions: which part of it that is, "" for all of it
    own    whether it is CrewAI's own, and not something that the program has it keep
    """

    def __init__(
        self, what: str, asked: Callable[..., str] = lambda *args, **options: "", *, own: bool = True
    ) -> None:  # fmt: skip
        self.what = what
        self._asked = asked
        self._own = own

    def reads(self, plain: Callable[..., Any], nothing: Any) -> Callable[..., Any]:
        """A function that says what is kept: a replay says what it said. `nothing`: what it says where that is
        `closed`."""

        @functools.wraps(plain)
        def read(*args: Any, **options: Any) -> Any:
            lane = lanes.current()
            if lane is None:
                return copy.copy(nothing) if closed and self._own else plain(*args, **options)
            return self._look(lane, self._asked(*args, **options), functools.partial(plain, *args, **options), True)

        return read

    def writes(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """One that changes what is kept and returns nothing: a replay does nothing, or fails as that did."""

        @functools.wraps(plain)
        def write(*args: Any, **options: Any) -> Any:
            lane = lanes.current()
            if lane is None:
                return None if closed and self._own else plain(*args, **options)
            return self._look(lane, plain.__name__, functools.partial(plain, *args, **options), False)

        return write

    def _look(self, lane: Lane, which: str, real: Callable[[], Any], reads: bool) -> Any:
        looks = looking.looks(lane, SOURCE)
        place = f"{self.what} {which}".rstrip()
        number = looks.next(place)
        session = lane.session
        if not session.recording:
            state = looks.served(place, number)
            if state is not ABSENT:
                return _again(state)
            if not reads:
                return None
            if not session.goes_live():  # a fork that has come to what its parent does not have
                return _unread(lane, self.what, place, real)
        elif session.resumes and not reads:
            return None
        return _found(looks, place, number, lanes.ours(real), reads)


def _unread(lane: Lane, what: str, place: str, real: Callable[[], Any]) -> Any:
    """Replay: what the recorded program did not read. Nothing is known of it where that was interrupted."""
    session = lane.session
    if not session.past_end(lane):
        session.diverge(
            Code.READS, f"{what} is read, which the recorded program did not do here", lane=lane, kind="read",
            name=SOURCE, path=place, expected="(not read)", actual="read",
        )  # fmt: skip
    return lanes.ours(real)()


def _found(looks: Looks, place: str, number: int, real: Callable[[], Any], reads: bool) -> Any:
    """Recording: what is there, in the record if it is another thing than at the look before."""
    session = looks.lane.session
    try:
        value = real()
    except Exception as error:
        told = exceptions.encode(error)
        looks.found(place, number, repr(told), {"error": told})
        raise
    try:
        if not reads:
            looks.succeeded(place, number)
        else:
            state: Value = {"value": snapshot.to_value(value)}
            looks.found(place, number, repr(state), state)
    except Exception as error:  # of a value that cannot be stored
        session.fault(place, error)
    return value


def _again(state: Any) -> Any:
    """Replay: what was found then; a new object each time, since CrewAI changes it."""
    if "error" in state:
        raise exceptions.revive(state["error"])
    return snapshot.from_value(copy.deepcopy(state["value"])) if "value" in state else None


def install(module: ModuleType) -> None:
    """Puts them into a module of CrewAI's that has just been loaded. Once."""
    found = _MODULES.get(module.__name__)
    if found is not None and not hasattr(module, _MARK):
        setattr(module, _MARK, True)
        found(module)


def _put(shelf: Shelf, owner: Any, reads: Mapping[str, Any], writes: tuple[str, ...]) -> None:
    """Wraps these functions of a module, or methods of a class. `reads`: each with what it says where all is closed."""
    for name, nothing in reads.items():
        setattr(owner, name, shelf.reads(getattr(owner, name), nothing))
    for name in writes:
        setattr(owner, name, shelf.writes(getattr(owner, name)))


# The session in which the bus has been told, in this context, which assistant has started the program.
_told: ContextVar[Any] = ContextVar("lockstep_crewai_told", default=None)


def _environment(module: Any) -> None:
    """It is told once in a context, and in each session: a replay in the same one is told as the recording was."""
    plain = module.get_env_context

    @functools.wraps(plain)
    def get_env_context() -> None:
        session = sessions.session
        if session is not None and _told.get() is not session:
            _told.set(session)
            module._env_context_emitted.set(False)
        plain()

    module.get_env_context = get_env_context
    for name in ("crewai.crew", "crewai.flow.runtime", "crewai.agent.core"):
        if name in sys.modules:  # taken from there before a session was on
            sys.modules[name].get_env_context = get_env_context  # type: ignore[attr-defined]


_DECLINED = {"first_execution_done": True, "trace_consent": False}


def _users(module: Any) -> None:
    shelf = Shelf("the user's settings")
    _put(shelf, module, {"_load_user_data": _DECLINED}, ("_save_user_data", "update_user_data"))


def _versions(module: Any) -> None:
    shelf = Shelf("the newest version")
    _put(shelf, module, {"get_latest_version_from_pypi": None, "is_current_version_yanked": (False, "")}, ())


def _first_run(module: Any) -> None:
    users = sys.modules["crewai_core.user_data"]
    for name in ("_load_user_data", "_save_user_data", "update_user_data"):
        setattr(module, name, getattr(users, name))  # taken from there before a session was on
    _put(Shelf("the user's settings"), module, {"get_user_id": ""}, ("mark_first_execution_done",))


def _outputs(module: Any) -> None:
    shelf = Shelf("outputs of the last kickoff")
    writes = ("_initialize_db", "add", "update", "delete_all")
    _put(shelf, module.KickoffTaskOutputsSQLiteStorage, {"load": []}, writes)


def _states(module: Any) -> None:
    """Rows of `@persist`, outside of a kickoff, in which they are effects. What waits for a human in another process is
    left to the real database."""
    shelf = Shelf("state of a flow", lambda self, flow_uuid: str(flow_uuid), own=False)
    _put(shelf, module.SQLiteFlowPersistence, {"load_state": None}, ("init_db", "save_state"))


def _memory(module: Any) -> None:
    """Each flow opens a database for what it may be told to remember. A replay or fork does so where that is used, and
    then the run is not covered."""
    storage = module.LanceDBStorage
    opens = storage.__init__

    @functools.wraps(opens)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        really = functools.partial(lanes.ours(opens), self, *args, **options)
        session = sessions.session
        if not closed if session is None else session.recording and not session.resumes:
            really()
        else:
            self._lockstep_opens = really

    storage.__init__ = __init__
    for name, plain in [*vars(storage).items()]:
        if not name.startswith("_") and inspect.isfunction(plain):
            setattr(storage, name, _named(plain))


def _named(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def use(self: Any, *args: Any, **options: Any) -> Any:
        lane = lanes.current()
        if lane is not None:
            lane.session.note("memory", f"of a crew or flow: {plain.__name__}")
        opens = self.__dict__.pop("_lockstep_opens", None)
        if opens is not None:
            opens()
        return lanes.ours(plain)(self, *args, **options)

    return use


def _login(module: Any) -> None:
    """The key that a login would be stored with: made once, of random bytes that are none of the program's."""
    manager = module.TokenManager
    manager._get_or_create_key = lanes.ours(manager._get_or_create_key)
    create = manager._atomic_create_secure_file

    @functools.wraps(create)
    def _atomic_create_secure_file(self: Any, filename: str, content: bytes) -> Any:
        session = sessions.session
        if closed if session is None else session.resumes or not session.recording:
            return True  # it holds it in memory
        return create(self, filename, content)

    manager._atomic_create_secure_file = _atomic_create_secure_file


_MODULES: Mapping[str, Callable[[Any], None]] = {
    "crewai_core.token_manager": _login,
    "crewai_core.user_data": _users,
    "crewai_core.version": _versions,
    "crewai.events.listeners.tracing.utils": _first_run,
    "crewai.flow.persistence.sqlite": _states,
    "crewai.utilities.env": _environment,
    "crewai.memory.storage.lancedb_storage": _memory,
    "crewai.memory.storage.kickoff_task_outputs_storage": _outputs,
}

MODULES = tuple(_MODULES)
