"""The message hook of autogen-core: for a program with a runtime of its own.

    handler = LockstepInterventionHandler("desk")
    runtime = SingleThreadedAgentRuntime(intervention_handlers=[handler, *others])

Put it first: of several handlers each gets the original message, and the last one's answer is what counts, so that one
in the last place would undo what the others make of it.
"""

from __future__ import annotations

import os
import warnings
import weakref
from typing import Any

from autogen_core import DefaultInterventionHandler

from lockstep.log.address import quote
from lockstep.log.model import Status, Value
from lockstep.session import current as sessions
from lockstep.session.native import Journal, new
from lockstep.session.native.faults import Faults
from lockstep_autogen import canonical, layout
from lockstep_autogen.adapter import adapter
from lockstep_autogen.recording import DISTRIBUTIONS

_ENTRY = "messages"


class LockstepInterventionHandler(DefaultInterventionHandler):  # type: ignore[misc]
    """Makes a step of each message that a runtime handles: what is sent, published and responded, as it was before any
    handler changed it. It changes, drops and raises nothing.

    While a session is on (`lockstep record`), these are steps of its run; else they are the run `autogen/<name>`, which
    can be looked at, compared and verified, and is replayed with its program under a session.
    """

    def __init__(self, name: str = "runtime", *, store: str | os.PathLike[str] | None = None) -> None:
        """name   what its lane is called, and its run
        store  path of the store of that; found as ever if not told
        """
        self.name = name
        self.lane = quote(name)
        self._writing = _Writing(name, store)
        weakref.finalize(self, self._writing.end)
        # AutoGen warns whenever a runtime has handlers and a message has no response, whatever they return.
        warnings.filterwarnings(
            "ignore", r"Intervention handler on_response returned None", RuntimeWarning, r"autogen_core\."
        )

    async def on_send(self, message: Any, *, message_context: Any, recipient: Any) -> Any:
        self._note("send", message, message_context.sender, recipient)
        return message

    async def on_publish(self, message: Any, *, message_context: Any) -> Any:
        self._note("publish", message, message_context.sender, message_context.topic_id)
        return message

    async def on_response(self, message: Any, *, sender: Any, recipient: Any) -> Any:
        if message is not None:
            self._note("response", message, sender, recipient)
        return message

    def close(self) -> None:
        """No more messages come: its run is complete. Done by itself when the process ends."""
        self._writing.end()

    def _note(self, kind: str, message: Any, sender: Any, to: Any) -> None:
        writing = self._writing
        try:
            source = str(sender) if sender is not None else "user"
            said: dict[str, Value] = {
                "source": source, "type": type(message).__name__, "kind": kind, "to": str(to),
                "content": canonical.state(canonical.inert(message)),
            }  # fmt: skip
            channels: dict[str, Value] = {layout.MESSAGES: [said]}
            session = sessions.session
            if session is not None:
                writing.in_session(session, self.lane, source, channels)
            else:
                writing.write(self.lane, source, channels)
        except Exception as error:
            writing.fault("a message", error)


class _Writing:
    """Where the messages go."""

    def __init__(self, name: str, store: str | os.PathLike[str] | None) -> None:
        self._name = name
        self._store = store
        self._journal: Journal | None = None
        self._turn: Any = None
        self._before: tuple[int, bytes] = 0, b""
        self._session: Any = None
        self._faults = Faults()

    def write(self, lane: str, source: str, channels: dict[str, Value]) -> None:
        journal = self._journal
        if journal is None:
            about: dict[str, Value] = {"class": "SingleThreadedAgentRuntime", "unseen": []}
            journal = self._journal = new.journal(self._store, adapter.name, self._name, about, DISTRIBUTIONS)
        if self._turn is None:
            self._turn = journal.begin_turn(_ENTRY, {})
        of, key = self._before
        body: Any = journal.hide(layout.body_of(None, channels, (), consistent=True))
        key = layout.key_of(key, layout.MESSAGE, source, body)
        self._before = journal.step(lane, source, layout.MESSAGE, body, key, of), key

    def in_session(self, session: Any, lane: str, source: str, channels: dict[str, Value]) -> None:
        if self._session is not session:
            self._session, self._before = session, (0, b"")
        body = layout.body_of(None, channels, (), consistent=True)
        told = {name: value for name, value in body.items() if name != layout.WAS}
        pos = session.checkpoint(f"{adapter.name}/{lane}", source, {**told, "source": layout.MESSAGE}, self._before[0])
        self._before = pos, b""

    def end(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            try:
                turn.end(Status.OK)
            except Exception as error:
                self.fault("the end of a run", error)

    def fault(self, where: str, error: BaseException) -> None:
        self._faults.note(where, error, self._journal)
