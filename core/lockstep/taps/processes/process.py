"""One started process: the effect, as the seams around it see it. One kind records, the other is served.

Several strands may each take a part of what a process gives (one reads its output, one its errors, one waits for
its end), so each piece is recorded in the lane of the strand that took it, and handed out to that strand again.
"""

from __future__ import annotations

import _thread
import os
from collections import deque
from collections.abc import Iterable
from typing import Any, NoReturn

from lockstep.errors import Code
from lockstep.log import untapped
from lockstep.log.model import Kind, Status, Value
from lockstep.session import current, lanes
from lockstep.session.lanes import Lane
from lockstep.session.tape import PROCESS, STARTED
from lockstep.taps.processes.files import Written
from lockstep.taps.processes.languages import Language

_waitpid = os.waitpid  # before the taps

KIND = PROCESS
STDIN = "stdin"
EXIT = "exit"  # the channel of its status
_LOOK = 0.0005  # seconds between two looks at what another strand does


class Process:
    """What both kinds share.

    lane   of the process: its name is what a Python that is followed records under
    pid    the system's, of the real process or of what stands in its place
    files  the files that its output goes to
    spoken the language that the program speaks to it, None where nobody knows one
    """

    live: bool

    def __init__(
        self, session: Any, call: Any, lane: Lane, files: list[Written], spoken: Language | None = None
    ) -> None:
        self.session = session
        self.call = call
        self.lane = lane
        self.pid = 0
        self.files = files
        self._spoken = spoken
        self._reads = spoken.reader() if spoken is not None else None
        self.signalled = False
        self.sources: dict[str, Any] = {}  # of its readiness, by name (`lockstep.taps.processes.loops`)

    @property
    def name(self) -> str:
        return self.lane.name

    def on(self) -> bool:
        """Whether the session that it belongs to is the present one, and this is not the garbage collector's doing."""
        return current.session is self.session and lanes.COLLECTING.get() is None

    def feed(self, data: bytes) -> None:
        """The program gives this to its stdin."""
        if self._spoken is None or self._reads is None:
            self.session.feed(self.lane, STDIN, data)
        elif read := self._reads(data):
            self.session.feed(self.lane, STDIN, read, self._spoken.site())

    def number(self, what: str) -> str:
        """The name of the running strand's next operation of that kind on this process."""
        return f"{self.name}#{lanes.lane().ordinal(f'{what} {self.name}')}"


class Live(Process):
    """One that runs, and is recorded."""

    live = True

    def __init__(
        self, session: Any, call: Any, lane: Lane, files: list[Written], spoken: Language | None = None
    ) -> None:
        super().__init__(session, call, lane, files, spoken)
        self._lock = _thread.RLock()  # what is handed out is digested in the order in which it is recorded
        self._status: int | None = None
        self._open: dict[str, Any] = {}  # pipes of which more may come, by channel

    def opened(self, pipes: Iterable[Any]) -> None:
        """It has started, and these are the pipes that it writes to."""
        self._open.update((pipe.channel, pipe) for pipe in pipes)

    def part(self, channel: str, data: bytes) -> None:
        """A piece of its output reached the running strand now; b"" is the end."""
        self.session.writer.ease()
        with self._lock:
            self.call.part(data, channel, lanes.lane())
            if not data:
                self._open.pop(channel, None)
                self._end()

    def _end(self) -> None:
        self._open = {channel: pipe for channel, pipe in self._open.items() if not pipe.closed}
        if self._status is not None and not self._open:
            self.call.end(Status.OK, None, lanes.lane())

    def fed(self, data: bytes) -> None:
        """The program wrote this to its stdin."""
        self.feed(data)

    def cause(self, what: str, name: str, body: Value = None) -> None:
        """Something else came of an operation on it."""
        self.session.cause(lanes.lane(), what, name, body=body)

    def ended(self, status: int) -> None:
        """The running strand has learned that it ended, before any other."""
        with self._lock:
            if self._status is not None:
                return
            self._status = os.waitstatus_to_exitcode(status)
            lane = lanes.lane()
            try:
                for written in self.files:
                    for piece in written.take():
                        self.call.part(piece, written.channel, lane)
            except OSError as error:
                self.session.fault(f"file that {self.call.name} wrote", error)
            self.call.part({"status": self._status}, EXIT, lane)
            self._end()


def begun(call: Any) -> bool:
    """Replay: whether the recorded program got past starting this one. It did not where it was killed, or refused."""
    recorded = call.recorded
    return recorded is not None and (recorded.started or bool(recorded.pieces))


def follows(session: Any, lane: Lane) -> bool:
    """Whether the process that runs as this lane is started for real, to replay a stream of its own. Past a fork's
    served part none is: that would be live."""
    return not session.recording and lane.name in session.processes


class Served(Process):
    """One that is recorded. `followed`: it runs for real and replays its own stream.

    Past a fork's served part (its session records then) it has ended before it begins: what is recorded of it is
    there to be taken, by any strand, and nothing else comes of an operation on it.
    """

    live = False

    def __init__(
        self, session: Any, call: Any, lane: Lane, files: list[Written], followed: bool,
        spoken: Language | None = None,
    ) -> None:  # fmt: skip
        super().__init__(session, call, lane, files, spoken)
        self.followed = followed
        self._parts: dict[tuple[str, str], deque[Any]] = {}
        self._exit: Any = None
        self._end: Any = None
        self._left = 0
        for piece in call.recorded.pieces:
            event = piece[1]
            if event.kind is not Kind.PART:
                self._end = piece
                continue
            self._left += 1
            if event.what == EXIT:
                self._exit = piece
            else:
                self._parts.setdefault((event.what, event.lane), deque()).append(piece)
        self._reaped: int | None = None
        self._told: int | None = None  # its status, once a strand has taken it
        self.stdin: Any = None  # the pipe to it

    @property
    def status(self) -> int | None:
        """Its recorded exit status, None if the program never learned it."""
        return None if self._exit is None else self.session.tape.body(self._exit[0])["status"]

    def _hand(self, piece: Any) -> Any:
        value = self.call.hand(piece).value
        self._left -= 1
        if not self._left and self._end is not None:
            self.call.hand(self._end)
        return value

    def cause(self, what: str, name: str) -> tuple[bool, Value]:
        """Whether something else came of this operation, and what: when its turn comes."""
        session = self.session
        if session.stopped:
            session.raise_latched()
        if session.recording:
            if what == STARTED:
                session.cause(lanes.lane(), what, name, body=self.pid)
            return False, None
        slot = session.cause(lanes.lane(), what, name)
        if slot is None:
            return False, None
        session.wait(slot)
        return True, session.tape.body(slot.seq)

    def at(self, what: str, name: str) -> int | None:
        """The place of something else that came of the running strand's operation of that name, if it did."""
        if self.session.recording:
            return None
        slot = self.session.cause(lanes.lane(), what, name)
        return None if slot is None else slot.index

    def coming(self, what: str) -> int | None:
        """The place of what came of the running strand's next operation of that kind, None if nothing did."""
        number = lanes.lane().counts.get(f"{what} {self.name}", 0) + 1
        return self.at(what, f"{self.name}#{number}")

    def due(self, channels: tuple[str, ...]) -> tuple[int, str] | None:
        """Place and channel of the next piece for the running strand."""
        if self.session.recording:
            return next(((0, channel) for channel in channels if self._pieces(channel)), None)
        lane = lanes.lane().name
        found = [
            (parts[0][2].index, channel)
            for channel in channels
            if (parts := self._parts.get((channel, lane))) and parts[0][2] is not None
        ]
        return min(found, default=None)

    def next(self, channel: str) -> bytes:
        """The next piece of its output for the running strand, b"" at the end."""
        if self.session.stopped:
            self.session.raise_latched()
        parts = self._pieces(channel)
        if not parts and self.session.goes_live():
            parts = self._pieces(channel)
        if not parts:
            self.nothing(f"{channel} of {self.call.name}")
        data: bytes = self._hand(parts.popleft())
        return data

    def _pieces(self, channel: str) -> deque[Any]:
        """What is left of a channel for the running strand."""
        own = self._parts.get((channel, lanes.lane().name)) or deque()
        if own or not self.session.recording:
            return own
        return next((parts for (of, _), parts in self._parts.items() if of == channel and parts), own)

    def fed(self, data: bytes) -> None:
        """The program writes this to its stdin."""
        if self.session.stopped:
            self.session.raise_latched()
        self.feed(data)

    def unfed(self) -> str | None:
        """What the recorded program wrote to its stdin next, None if nothing."""
        if self.session.recording:
            return None
        left: str | None = self.session.unfed(self.lane, STDIN)
        return left

    def ended(self) -> int:
        """Its exit status, where the running strand learned it, or after the one that did."""
        session, gate = self.session, self.session.gate
        if session.stopped:
            session.raise_latched()
        if self._exit is None:
            self.nothing(f"the end of {self.call.name}")
        if session.recording:
            return self._hand_exit() if self._told is None else self._told
        _, event, slot = self._exit
        if slot is None and session.goes_live():
            return self.ended()
        if not gate.done(slot):
            if event.lane == lanes.lane().name:
                return self._hand_exit()
            while not gate.done(slot) and not session.stopped:
                with session.standstill.blocking():
                    untapped.sleep(_LOOK)
            if session.stopped:
                session.raise_latched()
        assert self.status is not None
        return self.status

    def _hand_exit(self) -> int:
        left = self.unfed() if self.stdin is not None and self.stdin.closed else None
        if left is not None:
            self.differs("the process was given less stdin than recorded", left, "(closed)")
        found = self._reap()
        for written in self.files:
            written.put(self._rest(written.channel), self.followed, self.differs)
        status: int = self._hand(self._exit)["status"]
        self._told = status
        if self.followed and found != status and not self.signalled:
            self.differs("another exit status than recorded", str(status), str(found))
        return status

    def _rest(self, channel: str) -> bytes:
        parts = self._pieces(channel)
        pieces = []
        while parts:
            pieces.append(self._hand(parts.popleft()))
        return b"".join(pieces)

    def over(self, status: int) -> None:
        """It was waited for already."""
        self._reaped = status

    def _reap(self) -> int:
        """Takes the status of the real process, which is over or about to be."""
        if self._reaped is None:
            try:
                with self.session.standstill.blocking():
                    _, status = _waitpid(self.pid, 0)
                self._reaped = os.waitstatus_to_exitcode(status)
            except ChildProcessError:
                self._reaped = 0  # SIGCHLD is ignored: nobody is told
        return self._reaped

    def differs(self, reason: str, expected: str, actual: str) -> NoReturn:
        """What the followed process does is not what was recorded of it."""
        self.session.diverge(Code.OUTPUT, reason, call=self.call, expected=expected, actual=actual)
        raise AssertionError("unreachable")

    def nothing(self, what: str) -> NoReturn:
        """The record has nothing more of this for the running strand."""
        session, lane = self.session, lanes.lane()
        live = session.recording or session.goes_live()
        if not live and (session.interrupted or lane.strand is not session.root):
            session.never(lane, what)
        session.diverge(Code.PAST_END, f"the recorded program did not take this ({what})", call=self.call)
        raise AssertionError("unreachable")
