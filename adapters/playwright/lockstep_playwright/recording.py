"""What a tapped context becomes in the log: one turn, a step for each action, a call for each read.

    recorder = Recorder(journal, browser)
    recorder.start(request)
    watch = Watch(context, recorder)          # tells it of actions, in Playwright's loop
    recorder.finish("ok")

Exchanges are written by `lockstep_playwright.network`, to the same journal. A fault of ours never reaches the program:
the run is then called incomplete.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.log.model import Kind, Status, Value
from lockstep.session.native import faults as told
from lockstep.session.native.calls import Calls
from lockstep.session.native.journal import Journal
from lockstep.session.native.told import Place
from lockstep.session.policy import Declared
from lockstep_playwright import layout
from lockstep_playwright.actions import Action, Done, Given

LOOKS = Declared("read", "by what it is")


class Recorder:
    """Writes one context's run. Is `lockstep_playwright.actions.Told`.

    journal  where it is written to
    calls    who answers what the agent looks at: the journal itself, or a fork
    faults   what went wrong, in words
    last     position of the step that was made last
    """

    def __init__(self, journal: Journal, calls: Calls | None = None) -> None:
        self.journal = journal
        self.calls: Calls = calls or journal
        self.faults: list[str] = []
        self.over = False
        self.last = 0
        self._turn: Any = None
        self._reads: dict[int, Any] = {}  # by number of the action
        self._places: dict[int, Place] = {}  # likewise, where their steps close
        self._steps: dict[int, int] = {}  # likewise, of those whose attachments may follow

    # The turn.

    def start(self, browser: Mapping[str, Value], request: Value) -> None:
        """The context begins: step 0. Raises StoreError."""
        self._turn = self.journal.begin_turn(layout.CONTEXT, self.journal.hide(request))
        record: Any = self.journal.hide(layout.input_record(browser))
        self.last = self.journal.step(layout.LANE, "new context", layout.INPUT, record, layout.input_key(record))

    def goes_on(self, last: int) -> None:
        """A branch goes on behind the step at a position."""
        self._turn = self.journal.begin_turn(layout.CONTEXT, {"goes_on": True})
        self.last = last

    def finish(self, status: str, value: Any = None, state: Any = None) -> None:
        """The context is closed, or was left: nothing more is written. `value`: see `Turn.end`."""
        if self.over:
            return
        self.over = True
        faults = [*self.faults, *self.journal.faults]
        if faults:
            try:
                told.store(self.journal, layout.LANE, faults)
            except Exception as error:
                self.fault("what could not be recorded", error)
        if self._turn is not None:
            self._turn.end(status, value, state)

    def close(self) -> None:
        """Stores what was told, and lets go of the store. What went wrong is told here, where nobody else will: a
        program that is not to notice it has no report of its own."""
        self.journal.close()
        faults = dict.fromkeys([*self.faults, *self.journal.faults])
        if faults:
            import logging

            log = logging.getLogger("lockstep")
            for fault in faults:
                log.warning("lockstep could not record all of %s: %s", self.journal.run, fault)

    # Actions (`Told`).

    def begin(self, action: Action) -> None:
        """See `Told`."""
        if self.over:
            return
        if action.kind == "read":
            lane = layout.read_lane(layout.action_lane(action.page))
            call = self._reads[action.number] = self.calls.call(lane, layout.BROWSER)
            request: Value = {"api": action.api, "arguments": action.arguments}
            call.ask(action.name, request, request, declared=LOOKS)
        else:
            self.began(action)

    def began(self, action: Action) -> None:
        """Where an action begins."""
        journal, lane = self.journal, layout.action_lane(action.page)
        journal.emit(Kind.CAUSE, lane, journal.position(), layout.BEGAN, str(action.number), body={"name": action.name})

    def closing(self, action: Action) -> None:
        """See `Told`: its step closes here, whatever comes while its page is looked at."""
        if not self.over:
            self._places[action.number] = self.journal.keep_place()

    def seen(self, action: Action) -> None:
        """See `Told`."""

    def end(self, action: Action, done: Done) -> None:
        """See `Told`."""
        if self.over:
            return
        if action.kind == "read":
            call = self._reads.pop(action.number, None)
            if call is not None:
                answered(call, done)
            return
        self.stepped(action, record_of(action, done))

    def stepped(self, action: Action, record: dict[str, Value]) -> None:
        """Writes the step of an action. Raises StoreError."""
        hidden: Any = self.journal.hide(record)
        lane, key = layout.action_lane(action.page), layout.record_key(hidden)
        place = self._places.pop(action.number, None)
        self.last = self.journal.step(lane, action.name, layout.ACTION, hidden, key, self.last, place)
        self._steps[action.number] = self.last

    def mark(self, name: str) -> None:
        """A step by hand. Raises StoreError."""
        record = layout.step_record(layout.MARK, {"name": name}, number=0)
        hidden: Any = self.journal.hide(record)
        self.last = self.journal.step(
            layout.LANE, name, layout.ACTION, hidden, layout.record_key(hidden), self.last
        )  # fmt: skip

    def attach(self, action: Action, name: str, content: str | bytes) -> None:
        """See `Told`."""
        step = self._steps.get(action.number)
        if step is None or self.over:
            return
        lane, pos = layout.action_lane(action.page), self.journal.position()
        picture = isinstance(content, bytes)
        self.journal.emit(
            Kind.WRITES, lane, pos, layout.ATTACHMENT, name, step, body={"content": content}, hidden=picture
        )

    def hide(self, value: Value) -> Value:
        return self.journal.hide(value)

    def secret(self, value: str) -> None:
        """See `Told`."""
        self.journal.secrets.stand(value.encode("utf-8", "surrogatepass"), "password")

    def given(self, action: Action) -> Given | None:
        return None

    def served(self, action: Action) -> Given | None:
        return None

    def expected(self, action: Action) -> tuple[str, str] | None:
        return None

    def fault(self, where: str, error: BaseException) -> None:
        """An error of our own: the program goes on, and the run is called incomplete."""
        told.add(self.faults, told.worded(where, error))


def record_of(action: Action, done: Done) -> dict[str, Value]:
    """The record of an action's step."""
    error: Value = {**done.error} if done.error is not None else None
    return layout.step_record(
        action.api, action.arguments, number=action.number, result=done.result, error=error, source=action.site,
        frame=action.frame, url=done.url, dom=done.dom, storage=done.storage, settled=done.settled,
        beside=len(action.beside), seconds=done.seconds,
    )  # fmt: skip


def answered(call: Any, done: Done) -> None:
    """A read ended, for whoever records it."""
    if done.error is None:
        call.end(Status.OK, done.result)
    else:
        call.end(Status.ERROR, raised(done.error))


def raised(error: Mapping[str, Value]) -> Exception:
    """An exception as Playwright raised it, by what is recorded of it."""
    from playwright.async_api import Error, TimeoutError

    name, message = str(error.get("name") or ""), str(error.get("message") or "")
    if name == "AssertionError":
        return AssertionError(message)
    return TimeoutError(message) if name == "TimeoutError" else Error(message)
