"""A session that records. Nothing of it may change, slow or stop the program."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from lockstep.log import canonical
from lockstep.log.model import Event, Kind, Value
from lockstep.session import engine, lanes, reads, sites
from lockstep.session.effects import Ignored, LiveCall
from lockstep.session.handed import Handed, step_key
from lockstep.session.lanes import Lane
from lockstep.session.pieces import Pieces
from lockstep.session.printed import Outlet, Printed
from lockstep.session.report import Report
from lockstep.session.secrets import Secrets
from lockstep.session.surface import UNKNOWN, Session, ending
from lockstep.session.writer import Finish, Writer

_monotonic_ns = time.monotonic_ns  # before the taps
ENVIRONMENT = "environ"  # the source of what was read of the environment, by variable
_SETTLE = 0.25  # seconds that a message to another process may wait for the store


class Recording(Session):
    """Every answer goes to the program and, as an event, to the writer."""

    recording = True

    def __init__(
        self, run: str, process: str, seed: bytes, writer: Writer, secrets: Secrets | None = None
    ) -> None:  # fmt: skip
        self.prepare(writer)
        Session.__init__(self, run, process, seed, secrets)
        writer.collect = self._reads

    def prepare(self, writer: Writer) -> None:
        """What a recording has beside a session."""
        self.writer = writer
        self.facts: dict[str, Value] = {}  # what a replay must know before the program runs
        self._outlets: dict[str, Outlet] = {}
        self._texts: dict[tuple[str, str, bool], Pieces] = {}
        self._digest = b""

    def emit(
        self, kind: Kind, lane: str, pos: int, what: str = "", name: str = "", of: int = 0, tick: int = -1,
        body: Value = None, hidden: bool = False, finish: Finish | None = None,
    ) -> None:  # fmt: skip
        """Stores an event. The body must be a snapshot that nobody changes any more. Never raises: taps call it from
        the middle of the program.

        hidden  its secrets are hidden already, or it can have none
        finish  makes of it what is stored, secrets hidden: on the writer's thread, in the order emitted
        """
        try:
            event = Event(kind, pos, _monotonic_ns() - self.began, lane, what, name, of, tick, b"", body)
            self.writer.put(event, finish or (None if hidden or body is None else self._hidden))
        except Exception as error:
            self.fault(f"event {kind.name}", error)

    def _hidden(self, event: Event) -> Event:
        body: Any = event.body
        environ = event.kind is Kind.READS and event.what == ENVIRONMENT and type(body) is dict
        return replace(event, body=self.secrets.environment(body) if environ else self.secrets.hide(body))

    def _reads(self) -> list[Event]:
        """What was read so far and is in no event yet, for the commit that stores what came of it: what decided
        something is there wherever a kill comes."""
        found: list[Event] = []

        def keep(kind: Kind, lane: str, pos: int, what: str, body: Value, hidden: bool) -> None:
            found.append(Event(kind, pos, _monotonic_ns() - self.began, lane, what, body=body))

        reads.flush_all(self, keep)
        return found

    def new_lane(self, name: str, parent: Lane | None, strand: Lane | None) -> Lane:
        lane = Session.new_lane(self, name, parent, strand)
        above = parent.name if parent is not None else ""
        self.emit(Kind.LANE, above, self.position(), what=lane.strand.name, name=name)
        return lane

    def open(self, kind: str) -> Any:
        lane = lanes.current()
        if lane is not None:
            return LiveCall(self, lane, kind, None)
        if lanes.collecting():
            self.collected(f"{kind} call")
        parent = lanes.inside()
        return Ignored() if parent is True else LiveCall(self, lanes.lane(), kind, parent)

    def cause(self, lane: Lane, what: str, number: int | str, tick: int = -1, body: Value = None) -> None:
        """Something outside moved the program now: a timer fired, a sleep or a timed wait ran out."""
        self.emit(Kind.CAUSE, lane.name, self.position(), what=what, name=str(number), tick=tick, body=body)

    def step(self, name: str, state: Value) -> None:
        if not lanes.collecting():
            self._step(lanes.lane(), sites.site(2), name, state)
            self.flush()

    def checkpoint(self, thread: str, name: str, state: Value, of: int = 0, *, wait: bool = True) -> int:
        lane = lanes.current()
        pos = self._step(lane, thread, name, state, thread, of) if lane is not None else 0
        if wait:
            self.flush()
        return pos

    def _step(self, lane: Lane, what: str, name: str, state: Value, thread: str = "", of: int = 0) -> int:
        pos = self.position()
        self.asked = True
        finish = partial(self._stepped, lane, thread)
        self.emit(Kind.STEP, lane.name, pos, what, name, of, body=state, finish=finish)
        return pos

    def _stepped(self, lane: Lane, thread: str, event: Event) -> Event:
        hidden: Any = self.secrets.hide([event.name, event.body])
        handed = Handed(step_key(self.secrets, thread, *hidden), event.pos)
        self.log_of(lane).append(handed)
        self.count("step")
        return replace(event, name=hidden[0], key=handed.key, body=hidden[1])

    def printing(self, channel: str) -> Callable[[bool], None] | None:
        outlet = self._outlet(channel)
        return outlet.leave if outlet.enter() else None

    def _outlet(self, channel: str) -> Outlet:
        return self._outlets.get(channel) or self._outlets.setdefault(channel, Outlet())

    def output(self, channel: str, data: str | bytes) -> None:
        try:
            effect = lanes.inside()
            if effect is True:
                return
            lane = lanes.lane()
            if effect is None:
                outlet = self._outlet(channel)
                before = outlet.wrote(lane.strand)
                if before is not None and self.beyond(channel, outlet.changes):
                    who, times = before
                    strand = lane.strand.name
                    self.emit(Kind.LOCK, strand, self.position(), what=who, name=channel, of=times)
            finish = self._printed_by_effect if effect is not None else partial(self._printed_by, lane.strand)
            of = effect.pos if effect is not None else 0
            self.emit(Kind.OUTPUT, lane.name, self.position(), channel, of=of, body=data, finish=finish)
        except Exception as error:
            self.fault("output", error)

    def feed(self, lane: Lane, channel: str, data: bytes, site: str = "") -> None:
        self.emit(Kind.OUTPUT, lane.name, self.position(), channel, body=data, finish=partial(self._printed_by, None))

    def _printed_by_effect(self, event: Event) -> Event:
        """What is printed, with its secrets hidden; what a lane prints on a channel is one text."""
        at = (event.lane, event.what, event.of != 0)
        text = self._texts.get(at)
        if text is None:
            text = self._texts[at] = Pieces(self.secrets)
        data: Any = event.body
        if isinstance(data, str):
            hidden: Value = text.hide(data.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        else:
            hidden = text.hide(data)
        return replace(event, body=hidden)

    def _printed_by(self, strand: Lane | None, event: Event) -> Event:
        """The same for what counts: what the program printed itself, or gave to a process (no strand)."""
        event = self._printed_by_effect(event)
        data: Any = event.body
        printed = self._printed.get((event.lane, event.what))
        if printed is None:
            printed = self._printed[(event.lane, event.what)] = Printed(None)
        printed.write(data)
        if strand is not None:
            self._print_whole(event.what, strand, data)
        return event

    def before_fork(self) -> None:
        self.writer.before_fork()

    def after_in_parent(self) -> None:
        self.writer.after_in_parent()

    def after_in_child(self) -> None:
        self.writer.after_in_child()

    def latched(self) -> BaseException:
        return RuntimeError("nothing diverges while recording")

    def flush(self, timeout: float = 10.0) -> bool:
        """Waits until everything recorded so far is acknowledged by the store."""
        return self.writer.flush(timeout)

    def nudge(self) -> None:
        """A read has been made that others wait for: it is stored soon, whatever this process does next."""
        board = self.board()
        if board is not None:
            board.pending(self.process, True)
            if self.writer.idle is None:
                self.writer.idle = partial(board.pending, self.process, False)
        self.writer.nudge()

    def settle(self, lane: Lane) -> None:
        """This lane is about to tell another process something, which may kill this one for it: what led to it
        is stored first. Costs nothing where nothing came from outside since the last time."""
        if reads.pending(lane) or self.writer.behind:
            self.flush(_SETTLE)

    def finish(self, exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> Report:
        if self.silence is not None:
            self.silence()
        self.writer.collect = None
        try:
            self._end(exit, error, result)
        except Exception as fault:
            self.fault("end of the run", fault)  # it has no end of its own then, and is kept as far as it came
        if not self.writer.close(30.0, len(self.faults)):
            self.fault("store", TimeoutError("the last events were not acknowledged within 30 s"))
        return self._report("record", self._digest, exit, **self.told_more())

    def state(self, failed: bool) -> str:
        """How the run ended, as its FINISH says it."""
        return "failed" if failed else "complete"

    def told_more(self) -> dict[str, Any]:
        """What the report says beside."""
        return {}

    def _end(self, exit: int | None, error: BaseException | None, result: Value) -> None:
        for lane in list(self.lanes.values()):
            reads.flush(lane)
        body: dict[str, Value] = {
            "end": ending(exit, error, result),
            "site": sites.of_exception(error) if error is not None else "",
            "open": [*sorted(self.still_open())],
        }
        what = self.state(error is not None or exit not in (0, None))
        self.emit(Kind.FINISH, self.root.name, self.position(), what, body=body, finish=self._finished)

    def _finished(self, event: Event) -> Event:
        """How the program ended, with what all that was handed out comes to."""
        body: Any = event.body
        still_open = body["open"]
        end: Any = self.secrets.hide(body["end"])
        self._digest = engine.digest(self.sums(still_open), canonical.digest(end))
        more: dict[str, Value] = {
            "end": end,
            "digest": self._digest,
            "printed": self.printed(still_open),
            "reads": {
                lane.name: dict(lane.reads)
                for lane in self.lanes.values()
                if lane.reads and lane.strand.name not in still_open
            },
            "faults": self.secrets.hide([*self.faults]),
            "notes": self.secrets.hide([[source, detail, count] for (source, detail), count in self.notes.items()]),
        }
        return replace(event, body={**body, **more})
