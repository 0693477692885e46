"""The calls of a graph: who answers one, and whose code makes it.

With a session on, it does. Else the turn does that the running code is part of, each call in the lane of its task. In
neither, a call goes straight through.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import current as sessions
from lockstep.session import exceptions, sites, snapshot
from lockstep.session.asides import aside, told
from lockstep.session.call import Call, Piece, status_of
from lockstep.session.call import failed as ended
from lockstep.session.lanes import INSIDE, leave, ours
from lockstep_langgraph import lanes, responses, turns

# The task that is running, or what of it was sent to another thread.
_strand: ContextVar[_Strand | None] = ContextVar("lockstep_langgraph_strand", default=None)

_RESPONSE = "response"

# The call whose own code is running: what that calls in turn is its child, and does not happen where it is served.
within: ContextVar[Call | None] = ContextVar("lockstep_langgraph_call", default=None)

# The one that is asked of the outside for all of these: what is told meanwhile is told again with it.
outermost: ContextVar[Call | None] = ContextVar("lockstep_langgraph_outermost", default=None)

sites.pass_over(os.path.dirname(__file__))


_replays: list[Any] = []  # those of the turns whose tasks are running


def on(kind: str) -> bool:
    """Whether anybody answers calls of this kind here. In a replay, a call that a node makes on a thread without the
    graph's context would be made for real: that stops it."""
    if sessions.session is not None or turns.running() is not None:
        return True
    if _replays:
        reason = (
            f"a {kind} was called outside of its task's context, on a thread that a node has started: such a call is"
            " not recorded. Start it with contextvars.copy_context().run, or by an executor of LangChain's"
        )
        _replays[-1].stops(Code.NOT_COVERED, reason, kind, kind, sites.site(2))
    return False


class _Strand:
    """lane   of its task
    part   what of it this is: "" for the task itself, ">2" for the third work that it sent to other threads
    """

    __slots__ = ("called", "lane", "part", "sent")

    def __init__(self, lane: str, part: str = "") -> None:
        self.lane = lane
        self.part = part
        self.sent = itertools.count()
        self.called = itertools.count()


def lane() -> str:
    """The lane of the running code."""
    config = var_child_runnable_config.get()
    strand = _strand.get()
    if strand is None:
        return lanes.of_config(config) if config else lanes.ROOT
    # Between the parts of a task (its node, its edges) no config is set, or that of a node around its graph.
    found = lanes.of_config(config) if config else strand.lane
    if strand.lane.startswith((f"{found}/", f"{found}~", f"{found}>")):
        found = strand.lane
    return found + strand.part if found == strand.lane else found


@contextmanager
def in_task(config: Any) -> Iterator[None]:
    """What runs in this block is the task of this config."""
    token = _strand.set(_Strand(lanes.of_config(config)))
    replay = getattr(turns.running(), "replay", None)
    if replay is not None:
        _replays.append(replay)
    try:
        yield
    finally:
        if replay is not None:
            _replays.remove(replay)
        with suppress(ValueError):  # a coroutine that was dropped half way is closed in another context
            _strand.reset(token)


def sent(count: int = 1) -> list[_Strand | None]:
    """The strands of `count` pieces of work that are sent to other threads now: calls that are the same in two of
    them must not take each other's answers, whichever is made first."""
    strand = _strand.get()
    if strand is None:
        return [None] * count
    return [_Strand(strand.lane, f"{strand.part}>{next(strand.sent)}") for _ in range(count)]


def called() -> _Strand | None:
    """The strand of one of the tools that a node calls at once: most call one, whose calls are in the lane of the
    task."""
    strand = _strand.get()
    if strand is None:
        return None
    number = next(strand.called)
    return _Strand(strand.lane, f"{strand.part}>{number}" if number else strand.part)


async def await_as[T](strand: _Strand, awaitable: Awaitable[T]) -> T:
    """Awaits it as this strand, in an asyncio task of its own."""
    token = _strand.set(strand)
    try:
        return await awaitable
    finally:
        with suppress(ValueError):
            _strand.reset(token)


def run_as[T](strand: _Strand | None, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Calls it as this strand, on a thread with a context of its own."""
    if strand is not None:
        _strand.set(strand)
    return function(*args, **kwargs)


def opened(kind: str) -> Call | None:
    """Begins a call of the running code; None where nobody answers it. Raises Divergence and the like."""
    session = sessions.session
    if session is not None:
        call: Call = session.open(kind)
        return call
    turn = turns.running()
    if turn is None:
        return None
    try:
        answers = turn.calls
        return answers.call(lane(), kind, within.get()) if answers is not None else None
    except Exception as error:
        turn.keeper.fault(f"a {kind} call", error)
        return None


def fault(where: str, error: BaseException) -> None:
    """Something of ours went wrong with a call that runs for real: the program is not to notice."""
    session, turn = sessions.session, turns.running()
    if session is not None:
        session.fault(where, error)
    elif turn is not None:
        turn.keeper.fault(where, error)


class Running:
    """What runs in this block belongs to the call. Can be entered again and again."""

    __slots__ = ("_call", "_inside", "_outermost", "_token")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._inside: Any = None
        self._token: Token[Call | None] | None = None
        self._outermost: Token[Call | None] | None = None

    def __enter__(self) -> None:
        self._token = within.set(self._call)
        self._outermost = outermost.set(self._call) if outermost.get() is None else None
        self._inside = self._call.inside()
        self._inside.__enter__()

    def __exit__(self, *error: object) -> None:
        self._inside.__exit__(*error)
        if self._token is not None:
            _left(within, self._token)
        if self._outermost is not None:
            _left(outermost, self._outermost)


class Program:
    """The reverse: what runs in this block is the program's own, called back by what a call runs."""

    __slots__ = ("_call", "_program", "_token")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._program: Any = None
        self._token: Token[Call | None] | None = None

    def __enter__(self) -> None:
        self._token = within.set(None)
        self._program = self._call.program()
        self._program.__enter__()

    def __exit__(self, *error: object) -> None:
        self._program.__exit__(*error)
        if self._token is not None:
            _left(within, self._token)


@contextmanager
def unseen() -> Iterator[None]:
    """What runs in this block is no doing of the program's."""
    token = INSIDE.set(INSIDE.get() or True)
    try:
        yield
    finally:
        leave(token)


def _left(var: ContextVar[Call | None], token: Token[Call | None]) -> None:
    try:  # noqa: SIM105 - passed for each chunk of an answer
        var.reset(token)
    except ValueError:
        pass  # a coroutine that was dropped half way is closed in another context


def failed(call: Call, error: BaseException) -> None:
    """What a call ran has raised."""
    if status_of(error) is Status.ERROR:
        try:
            if (response := responses.of(error)) is not None:
                call.part(aside(_RESPONSE, response))
        except Exception as fault:
            session: Any = call
            session.session.fault("the response in an exception", fault)
    ended(call, error)


def taken(call: Any) -> Iterator[Piece]:
    """What was recorded of a call, piece by piece, the end with its value too; raises what it raised."""
    response: Value = None
    while (piece := call.take()).status is None:
        response = told(piece.value, _RESPONSE) or response
        yield piece
    if piece.status is Status.ERROR:
        raise _revived(call, piece, response)
    if piece.status is Status.CLOSED:
        past_end(call)
    yield piece


async def ataken(call: Any) -> AsyncIterator[Piece]:
    """The same for tasks."""
    response: Value = None
    while (piece := await call.atake()).status is None:
        response = told(piece.value, _RESPONSE) or response
        yield piece
    if piece.status is Status.ERROR:
        raise _revived(call, piece, response)
    if piece.status is Status.CLOSED:
        await dropped(call)
        past_end(call)
    yield piece


def _revived(call: Any, piece: Piece, response: Value) -> BaseException:
    live = ours(responses.made)(response) if response is not None else None  # requests' looks at the clock
    return exceptions.revive(piece.value, call, live)


def past_end(call: Any) -> None:
    """The program reads on where the recorded one did not."""
    call.session.diverge(Code.PAST_END, "the recorded program read no further", call=call)


class Peeked:
    """A served call of which the first piece has been taken already, and is handed out again."""

    def __init__(self, call: Any, piece: Piece) -> None:
        self._call = call
        self._piece: Piece | None = piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def take(self) -> Piece:
        piece, self._piece = self._piece, None
        return piece if piece is not None else self._call.take()

    async def atake(self) -> Piece:
        piece, self._piece = self._piece, None
        return piece if piece is not None else await self._call.atake()


async def dropped(call: Any) -> None:
    """The recorded task got no answer before it was dropped: neither does this one."""
    from lockstep.session import suspend, ticks

    here = ticks.here()
    if here is not None:
        await suspend.forever(call, here)


def inert(value: Any, depth: int = 0) -> Value:
    """Data of anything that a request may hold: what is no data counts by its class, and never by its address."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value if type(value) in (type(None), bool, int, float, str, bytes) else _scalar(value)
    if depth < 40:
        if isinstance(value, (list, tuple)):
            return [inert(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {str(name): inert(item, depth + 1) for name, item in value.items()}
        if isinstance(value, type):
            return _class(value)
    try:
        return snapshot.to_key(snapshot.to_value(value))
    except LockstepError:
        return snapshot.by_class(value)


def _scalar(value: Any) -> Value:
    plain: Any
    for plain in (int, float, str, bytes):
        if isinstance(value, plain):
            found: Value = plain(value)
            return found
    return None


def _class(value: Any) -> Value:
    named: dict[str, Value] = {"$": "class", "$class": f"{value.__module__}:{value.__qualname__}"}
    schema = getattr(value, "model_json_schema", None)
    if schema is not None:
        try:
            named["schema"] = inert(schema())
        except Exception:
            return named  # it has no schema: an argument of a type that JSON has no word for
    return named
