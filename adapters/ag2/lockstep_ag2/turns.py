"""A turn of an agent, from a question to its answer: who records it, and in which strand it runs.

An agent whose turn begins inside of another's is part of that. Else, with a session on, it is a lane of the session's
run; else, of an attached agent, a turn of a run of its own.
"""

from __future__ import annotations

from asyncio.exceptions import CancelledError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ag2.events import ModelRequest, ModelResponse, ToolResultsEvent

from lockstep.errors import Stop
from lockstep.session import current as sessions
from lockstep.session.lanes import NATIVE, ours
from lockstep_ag2 import calls, insession, strands
from lockstep_ag2.strands import Strand, Turn


async def driven(owner: Any, agent: Any, call_next: Any, event: Any, context: Any) -> Any:
    """Drives a turn."""
    name = str(getattr(agent, "name", "agent"))
    around = strands.running()
    if around is not None:
        try:
            with strands.on(around.of_agent(agent, name, _told(event))), _listening(context, None):
                return await call_next(event, context)
        except BaseException as error:
            _stop(around.turn, error)
            raise
    turn: Any = strands.prepared.get()
    if turn is not None:
        strands.prepared.set(None)
        turn.begin(agent, event, context)
    elif sessions.session is not None:
        turn = insession.begun(agent, name, event, context)
    elif owner is not None:
        turn = owner.begun(agent, event, context, await _history(event, context))
    if turn is None:
        return await call_next(event, context)
    return await _run(turn, agent, call_next, event, context)


async def _history(event: Any, context: Any) -> list[Any]:
    """What a turn goes on from that is no question of its own: `Agent.resume`."""
    return [] if isinstance(event, ModelRequest) else list(await context.stream.history.get_events())


async def _run(turn: Any, agent: Any, call_next: Any, event: Any, context: Any) -> Any:
    strand = Strand(turn, strands.ROOT, agent)
    native = NATIVE.set(turn.native) if turn.native else None
    try:
        with strands.on(strand), _listening(context, turn):
            result = await call_next(event, context)
            if turn.compacted:
                await turn.cut(_COMPACTED, list(await context.stream.history.get_events()), context)
    except BaseException as error:
        turn.failed(error)
        _stop(turn, error)
        raise
    else:
        turn.done(result)
    finally:
        if native is not None:
            _reset(native)
    return result


def _told(event: Any) -> str:
    """The texts of a question."""
    return "\n".join(str(part.content) for part in getattr(event, "parts", ()) if hasattr(part, "content"))


def _stop(turn: Turn, error: BaseException) -> None:
    """A turn that a replay or fork has stopped is cancelled: what AG2 has begun for it is then undone. It takes nothing
    else for the end of a turn, and leaves generators open."""
    if isinstance(error, Stop) and (stopped := turn.stopped()) is not None:
        raise CancelledError from stopped


def _reset(token: Any) -> None:
    try:
        NATIVE.reset(token)
    except ValueError:
        return  # a coroutine that was dropped half way is closed in another context


_COMPACTED = "compaction"


class _Listener:
    """What is subscribed to a stream while a turn is on."""

    def __init__(self, context: Any, turn: Turn | None) -> None:
        self._context = context
        self._turn = turn
        self._events: list[Any] = []

    async def __call__(self, event: Any) -> None:
        if isinstance(event, ModelResponse):
            strand = strands.running()
            if strand is not None:
                strand.batch = [(call.id, call.name) for call in event.tool_calls.calls]
        if self._turn is not None:
            try:
                await self._cut(self._turn, event)
            except Exception as error:
                self._turn.fault("a step", error)

    async def _cut(self, turn: Any, event: Any) -> None:
        turn.heard(event)
        if isinstance(event, ModelResponse):
            await turn.cut(turn.speaker, turn.events, self._context)


@contextmanager
def _listening(context: Any, turn: Turn | None) -> Iterator[None]:
    """Hears what is sent on the context's stream, and what is put into its inbox."""
    stream = context.stream
    listener = _Listener(context, turn)

    async def hear(event):  # type: ignore[no-untyped-def]
        await listener(event)

    try:
        number = ours(stream.subscribe)(hear)  # it draws an id
    except Exception as error:
        calls.fault("what is sent on a stream", error)
        yield
        return
    plain, sending = stream.enqueue, stream.send

    def enqueue(*content: Any) -> None:
        before = len(stream.pending_messages)
        plain(*content)
        for request in stream.pending_messages[before:]:
            calls.enqueued(stream.id, request.parts)

    async def send(event: Any, context: Any) -> None:
        if turn is not None and isinstance(event, (ModelResponse, ToolResultsEvent)):
            await turn.follows(event)
        told_of = strands.telling.get()
        if told_of is None or told_of[1] != stream.id:
            await sending(event, context)
            return
        # It is told of before anybody hears it, and done again at that place: those who hear it are the program, and
        # wait for threads.
        calls.heard(stream.id, event)
        with told_of[0].program():
            await sending(event, context)

    own = getattr(stream, "__dict__", None)
    if own is not None:
        own |= {"enqueue": enqueue, "send": send}
    else:
        calls.fault("what is sent on a stream", TypeError(f"a {type(stream).__name__} takes no attribute"))
    try:
        yield
    finally:
        stream.unsubscribe(number)
        if own is not None and own.get("send") is send:
            del own["enqueue"], own["send"]


async def asking(events: Sequence[Any], context: Any) -> None:
    """A model is about to be asked with a history: what that has got since the last step is a step of its own."""
    strand = strands.running()
    if strand is None or strand.lane != strands.ROOT:
        return
    turn: Any = strand.turn
    try:
        await turn.asking(list(events), context)
    except Exception as error:
        turn.fault("a step", error)
