"""One append to a workflow's branch, while it is put together: its events in order, and what becomes of them then.

What payloads hold may be written only once a codec has encoded it (`wording`), and secrets are hidden in what is
written; so an event is finished when all of the append is known.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from lockstep.log.model import Event, Kind, Status, Value
from lockstep.session.handed import Handed
from lockstep.session.native.journal import Journal
from lockstep.session.policy import classify
from lockstep_temporal import layout
from lockstep_temporal.commands import Answered, Command
from lockstep_temporal.opened import Open
from lockstep_temporal.wording import Asked, Written

type Finish = Callable[[Event], Event]


class Batch:
    """Events that are appended together."""

    def __init__(self, journal: Journal, written: Written) -> None:
        self.written = written
        self._journal = journal
        self._events: list[tuple[Event, Finish]] = []

    def add(
        self, kind: Kind, what: str, name: str = "", *, of: int = 0, body: Value = None, finish: Finish | None = None
    ) -> int:  # fmt: skip
        """An event; its provisional position."""
        journal = self._journal
        pos = journal.position()
        event = Event(kind, pos, journal.now(), layout.LANE, what, name, of, -1, b"", body)
        self._events.append((event, finish or self._hidden))
        return pos

    def begin(self, command: Command, asked: Asked, waits: Open) -> None:
        """A command that waits for its answer."""

        def finish(event: Event) -> Event:
            secrets = self._journal.secrets
            name, request, key = secrets.asked(asked.kind, asked.name, asked.request, asked.matched)
            waits.name, waits.key = name, key
            declared = classify(asked.kind, name, request, asked.declared, self._journal.effect_rules)
            return replace(event, name=name, key=key, body=layout.begun(command, request, declared))

        waits.pos = self.add(Kind.BEGIN, asked.kind, asked.name, finish=finish)

    def end(self, waits: Open, status: str, body: Value) -> None:
        """The answer to one."""

        def finish(event: Event) -> Event:
            return self._ended(event, Handed(waits.key, waits.pos))

        self.add(Kind.END, status, of=waits.pos, body=body, finish=finish)

    def came(self, job: Answered) -> None:
        """A signal, an update or a request to cancel: asked and answered at once."""
        request: dict[str, Value] = {}
        name, _, key = self._journal.secrets.asked(job.kind, job.name, request, request)
        waits = Open(job.kind, name, key=key)
        body: Value = {"request": request, "class": "read"}
        waits.pos = self.add(Kind.BEGIN, job.kind, name, body=body, finish=lambda event: replace(event, key=key))
        self.end(waits, Status.OK, job.value)

    def step(self, what: str, name: str, parent: int, body: Value, normal: Value) -> int:
        """The STEP. `normal`: what its key is made of."""

        def finish(event: Event) -> Event:
            hide = self._journal.hide
            return replace(event, name=str(hide(name)), key=layout.step_key(hide(normal)), body=hide(body))

        return self.add(Kind.STEP, what, name, of=parent, finish=finish)

    def tell(self) -> None:
        """Has them stored with what comes next, and soon: they need not be durable by themselves."""
        self.written.finish()
        for event, finish in self._events:
            self._journal.emit(
                event.kind, event.lane, event.pos, event.what, event.name, event.of, body=event.body, finish=finish
            )
        self._events = []

    def append(self, faults: int) -> tuple[Event, ...]:
        """Stores them. Raises StoreError."""
        self.written.finish()
        if not self._events:
            return ()
        return self._journal.append([finish(event) for event, finish in self._events], faults)

    def _hidden(self, event: Event) -> Event:
        return replace(event, body=self._journal.hide(event.body))

    def _ended(self, event: Event, handed: Handed) -> Event:
        """With its secrets hidden, and the digest of what the workflow got."""
        body = self._journal.hide(event.body)
        handed.end(event.what, body if event.what != Status.CANCELLED else None)
        return replace(event, body=body, key=handed.digest())
