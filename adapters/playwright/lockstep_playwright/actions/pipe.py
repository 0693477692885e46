"""What Playwright's client and its driver say to each other, seen where it passes: messages, in both APIs and in every
version alike.

    pipe = Pipe.of(context._impl_obj)
    pipe.watch(guid_of_context, watcher)      # a `Watcher` is asked of each call on an object of that context
    pipe.ask(guid, "newCDPSession", {...}, then)     # a message of our own, of which the client knows nothing

The client's own functions stay as they are: no frame of ours is on the way of an error or a result, no task is added,
and a message that is not held back leaves in the step in which it was sent.

Tried with playwright 1.60 to 1.65. Since 1.65 a message does not name the call that it is of; the client tells its
listeners (`client_instrumentation`), before it and behind the last message of the call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import msgspec

from lockstep.errors import AdapterError, Code

TESTED = "playwright 1.60 to 1.65.2"

_BODY = "fetchResponseBody"
_GONE = 5.0  # seconds in which a driver that is there has answered
_ATTRIBUTE = "_lockstep_pipe"

type Message = dict[str, Any]
type Then = Callable[[dict[str, Any] | None, str], None]  # the result, or None and why there is none


class Sent(msgspec.Struct, frozen=True):
    """A call's message that is about to leave.

    api     what the user called, as "Page.click"
    frames  of the user's code, the innermost first: {"file", "line", "function"}
    zone    1.65: the client's own object for the call, told again when it ends. None: it ends with the reply
    """

    object: Any
    message: Message
    api: str
    frames: list[dict[str, Any]]
    zone: Any = None

    @property
    def id(self) -> Any:
        return self.message["id"]


class Watcher(Protocol):
    """Who watches one context. What it raises of itself ends the user's call."""

    def sending(self, sent: Sent) -> bool:
        """A call's first message. False: it is held back, and goes with `Pipe.forward`."""
        ...

    def passing(self, object: Any, message: Message) -> bool:
        """Any other message of an object of the context; likewise."""
        ...

    def replied(self, id: Any, reply: Message) -> None:
        """The reply to a message of a call, before the client hears of it."""
        ...

    def ended(self, zone: Any) -> None:
        """A call of 1.65 is over; nothing of the user's code has run since."""
        ...

    def happened(self, object: Any, method: str, params: Message) -> None:
        """The browser told something of an object, which the client knows by now."""
        ...

    def drained(self, then: Callable[[], object]) -> None:
        """The browser is about to close: `then` is called once all that has ended is told."""
        ...


class Pipe:
    """One for each connection. Used in the connection's loop only."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.loop = connection._loop
        self.fault: Callable[[str, BaseException], object] = _unheard
        self._watchers: dict[str, list[Watcher]] = {}  # by context: a session's and a tap's may be on one
        self._left: dict[int, tuple[Any, Message, Sent | None, list[Watcher]]] = {}  # held: who has not seen it yet
        self._asked: dict[str, Then] = {}
        self._closing: set[Any] = set()
        self._numbers = itertools.count(1)
        self._theirs: dict[Any, list[Watcher]] = {}  # by the number of a call's message
        self._zone: tuple[Any, Message] | None = None  # 1.65: of the message that comes next
        self._zones: dict[int, tuple[Any, list[Watcher]]] = {}
        self._dispatch: Callable[[Message], None] = connection.dispatch
        connection.dispatch = self._received
        if hasattr(connection, "_instrumentation"):
            self._send: Callable[[Message], None] = connection.onmessage
            connection.onmessage = self._sends
            connection._instrumentation.add_listener(self)
            self._describe = self._by_zone
        else:
            self._send = connection._transport.send
            connection._transport.send = self._sends
            self._describe = self._by_metadata
        transport = _transport_of(connection, self._send)
        if transport is not None:
            # Before the driver is stopped, as where a `with` block of all of Playwright ends.
            transport.request_stop = partial(self._when_drained, transport.request_stop)

    @classmethod
    def of(cls, implementation: Any) -> Pipe:
        """The one of this object's connection. Raises AdapterError where there is no seam for it."""
        connection = implementation._connection
        found = connection.__dict__.get(_ATTRIBUTE)
        if found is None:
            newer = hasattr(connection, "_instrumentation") and hasattr(connection, "onmessage")
            older = hasattr(getattr(connection, "_transport", None), "send") and hasattr(connection, "_api_zone")
            if not callable(getattr(connection, "dispatch", None)) or not (newer or older):
                raise AdapterError(
                    Code.UNFIT_FRAMEWORK,
                    f"the connection of this version of Playwright is not one that actions can be seen on. "
                    f"Tried with {TESTED}",
                )
            found = cls(connection)
            setattr(connection, _ATTRIBUTE, found)
        made: Pipe = found
        return made

    def watch(self, guid: str, watcher: Watcher) -> None:
        """Who watches a context already sees each call first."""
        self._watchers.setdefault(guid, []).append(watcher)

    def unwatch(self, guid: str, watcher: Watcher) -> None:
        left = [each for each in self._watchers.pop(guid, []) if each is not watcher]
        if left:
            self._watchers[guid] = left

    def closes(self, task: Any) -> None:
        """The browser is not closed, nor the driver stopped, before this task is done: what it still waits for from
        them would come to nobody, which the client complains of."""
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # Messages of our own.

    def ask(self, guid: str, method: str, params: Message, then: Then) -> None:
        """Sends a message, in order with the client's. `then` is called once, with the result or why there is none."""
        number = f"lockstep@{next(self._numbers)}"
        self._asked[number] = then
        about = {"wallTime": 0, "internal": True, "timeout": 0, "apiName": ""}
        try:
            self._send({"id": number, "guid": guid, "method": method, "params": params, "metadata": about})
        except Exception as error:
            self._asked.pop(number, None)
            then(None, str(error))

    def forward(self, message: Message) -> None:
        """Sends what was held back, unless another watcher holds it."""
        object, _, sent, left = self._left.pop(id(message), (None, message, None, []))
        try:
            if self._goes(left, object, message, sent):
                self._send(message)
        except BaseException as error:
            self.fail(message.get("id"), error)

    def answer(self, message: Message, reply: Message) -> None:
        """Has the caller of a message that is held back get this: it never leaves."""

        def came() -> None:
            self._left.pop(id(message), None)
            self._received({"id": message["id"], **reply})

        self.loop.call_soon(came)

    def fail(self, id: Any, error: BaseException) -> None:
        """Has the caller of a message that was held back get this."""
        self._theirs.pop(id, None)
        callback = self.connection._callbacks.pop(id, None)
        if callback is not None and not callback.future.done():
            callback.future.set_exception(error)

    def object(self, guid: str) -> Any:
        return self.connection._objects.get(guid)

    # What passes.

    def _sends(self, message: Message) -> None:
        zone, self._zone = self._zone, None
        object = self.connection._objects.get(message.get("guid"))
        watchers = self._watchers_of(object)
        if watchers:
            sent = self._described(object, message, zone)
            if sent is not None:
                self._theirs[sent.id] = watchers
                if sent.zone is not None:
                    self._zones[id(sent.zone)] = sent.zone, watchers
            if not self._goes(watchers, object, message, sent):
                return
        ours = self._watchers or self._closing
        if ours and message.get("method") == "close" and object is not None and object._type == "Browser":
            self._when_drained(partial(self._send, message))  # no context is told that it closes before that
            return
        self._send(message)

    def _when_drained(self, then: Callable[[], Any]) -> None:
        """Calls it once every watcher has told what has ended."""
        left = [watcher for watchers in self._watchers.values() for watcher in watchers]

        def next() -> None:
            if left:
                left.pop().drained(next)
            elif self._closing:
                self._when_closed(then)
            else:
                then()

        next()

    def _when_closed(self, then: Callable[[], Any]) -> None:
        """Calls it once the connections are closed that are being, or after a moment: a driver may be gone."""
        once, left = [then], set(self._closing)

        def go() -> None:
            if once:
                once.pop()()

        def done(task: Any) -> None:
            left.discard(task)
            if not left:
                go()

        for task in tuple(left):
            task.add_done_callback(done)
        self.loop.call_later(_GONE, go)

    def _goes(self, watchers: list[Watcher], object: Any, message: Message, sent: Sent | None) -> bool:
        for at, watcher in enumerate(watchers):
            try:
                goes = watcher.sending(sent) if sent is not None else watcher.passing(object, message)
            except Exception as error:
                self.fault("an action", error)
                continue
            if not goes:
                # With the message itself, so that its identity is no other's meanwhile.
                self._left[id(message)] = object, message, sent, watchers[at + 1 :]
                return False
        return True

    def _described(self, object: Any, message: Message, zone: Any) -> Sent | None:
        try:
            if "id" not in message:
                return None
            if message["method"] == _BODY:  # the client calls it one of its own, whatever the user called
                return Sent(object, message, "APIResponse.body", [])
            return self._describe(object, message, zone)
        except Exception as error:
            self.fault("an action", error)
            return None

    def _by_zone(self, object: Any, message: Message, zone: Any) -> Sent | None:
        if zone is None or zone[1] != message["method"] or message["metadata"].get("internal"):
            return None
        return Sent(object, message, zone[0].api_name, zone[0].frames, zone[0])

    def _by_metadata(self, object: Any, message: Message, zone: Any) -> Sent | None:
        name = message["metadata"].get("apiName")
        if not name or message["metadata"].get("internal"):
            return None
        told = self.connection._api_zone.get() or {}
        return Sent(object, message, name, told.get("frames") or [])

    def _watchers_of(self, object: Any) -> list[Watcher]:
        at = object
        while at is not None:
            if at._type == "BrowserContext":
                return self._watchers.get(at._guid) or []
            at = at._parent
        return []

    def _received(self, message: Message) -> None:
        number = message.get("id")
        if number is None:
            self._dispatch(message)
            self._happened(message)
            return
        then = self._asked.pop(number, None) if isinstance(number, str) else None
        if then is not None:
            try:
                error = message.get("error")
                if error and not message.get("result"):
                    then(None, str((error.get("error") or error).get("message")))
                else:
                    then(message.get("result") or {}, "")
            except Exception as error:
                self.fault("what the browser answered", error)
            return
        for watcher in self._theirs.pop(number, ()):
            try:
                watcher.replied(number, message)
            except Exception as error:
                self.fault("the end of an action", error)
        self._dispatch(message)

    def _happened(self, message: Message) -> None:
        if not self._watchers:
            return
        object = self.connection._objects.get(message.get("guid"))
        for watcher in self._watchers_of(object):
            try:
                watcher.happened(object, message.get("method") or "", message.get("params") or {})
            except Exception as error:
                self.fault("what the browser told", error)

    # 1.65: told by the client.

    def on_api_call_begin(self, zone: Any, channel: Message) -> None:
        self._zone = zone, channel["method"]

    def on_api_call_end(self, zone: Any) -> None:
        for watcher in self._zones.pop(id(zone), (None, ()))[1]:
            try:
                watcher.ended(zone)
            except Exception as error:
                self.fault("the end of an action", error)


def _transport_of(connection: Any, send: Callable[[Message], None]) -> Any:
    """What carries the messages; None where there is no seam for it. Since 1.65 only the function that the connection
    sends them with knows it."""
    cells = getattr(send, "__closure__", None) or ()
    known = [getattr(connection, "_transport", None), *(cell.cell_contents for cell in cells)]
    return next((each for each in known if callable(getattr(each, "request_stop", None))), None)


def _unheard(where: str, error: BaseException) -> None:
    return None
