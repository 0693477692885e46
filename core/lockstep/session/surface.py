"""What every tap and adapter sees of a session, whether it records or replays.

Only one is active in a process (`lockstep.session.current.session`). `Recording` and `Replaying`
differ in who answers.
"""

from __future__ import annotations

import _thread
import itertools
import os
import re
import time
from collections.abc import Callable, Collection
from typing import Any, NoReturn

from lockstep.errors import Code, Stop
from lockstep.log.model import Value
from lockstep.session import coverage, engine, sites
from lockstep.session.board import Board
from lockstep.session.gate import Gate
from lockstep.session.handed import Handed
from lockstep.session.lanes import Lane
from lockstep.session.policy import NO_RULES, EffectRules
from lockstep.session.printed import Printed, Whole
from lockstep.session.report import Report
from lockstep.session.secrets import Secrets

_monotonic_ns = time.monotonic_ns  # before the taps

# A session's result that nobody knows: a block's, or one that is no data.
UNKNOWN: Any = object()

COLLECTOR = "garbage collector"  # a source of what is not covered
_MOST_NOTES = 500  # a program may dial a million addresses

# Kinds that close a step of their own where nothing else marks steps.
_CLOSES_STEP = ("model", "tool", "http", "step")


class Session:
    """What both kinds share: lanes, calls, output, counts, digest and the end.

    seed       32 bytes, from which every lane's random draws are derived
    process    the lane that this process runs as: "main" for a run's first
    processes  replay: those of all processes that the recording followed
    meeting    the directory in which the processes of the run meet, "" where there is none yet
    faults     errors of our own
    """

    recording: bool
    interrupted = False
    stopped = False
    store = ""  # path of the store
    effect_rules: EffectRules = NO_RULES
    branch = "main"  # the branch that is recorded or replayed
    gate: Gate | None = None
    resumes = False  # whether it is a fork
    in_code = False  # whether it began in the middle of a program, which has loaded some of its libraries by then

    def __init__(self, run: str, process: str, seed: bytes, secrets: Secrets | None = None) -> None:
        self.run = run
        self.secrets = secrets if secrets is not None else Secrets()
        self.seed = seed
        self.process = process
        self.processes: frozenset[str] = frozenset()
        self.meeting = ""
        self.meets: Callable[[], str] | None = None  # makes that place
        self.store = ""  # its path
        self.pid = os.getpid()
        self.began = _monotonic_ns()
        self._board: Board | None = None
        self._apart = False  # the processes of the run cannot share anything
        self.adapters: dict[str, Any] = {}  # what each of them keeps for the length of the session
        self.faults: list[str] = []
        self.notes: dict[tuple[str, str], int] = {}
        self.watched: dict[str, str] = {}  # clients that could have gone live: what became of that
        self.elsewhere: dict[str, str] = {}  # clients whose work an adapter keeps in other runs: how that is said
        self.told: dict[str, int] = {}  # names of variables and host facts that the program asked for, by source
        self.differs: dict[str, str] = {}  # replay: what is another here, and may explain a difference
        self.counts: dict[str, int] = {}
        self.on_stop: Callable[[], None] | None = None
        self.silence: Callable[[], None] | None = None  # where the process ends with the session
        self.report: Report | None = None  # once it has ended
        self._adopted = False  # whether a thread that no hook has named came to us
        self._alive: set[object] = set()  # the program's strands beside the first: begun, or about to begin
        self.position: Callable[[], int] = itertools.count(1).__next__  # the next place in the process's total order
        self._lock: Any = _thread.RLock()  # the collector may run a finalizer, and so ourselves, under it
        self._main = _thread.get_ident()
        self.lanes: dict[str, Lane] = {}
        self.asked = False  # whether the program has asked for anything from outside
        self._handed: dict[str, list[Handed]] = {}
        self._printed: dict[tuple[str, str], Printed] = {}
        self._whole: dict[str, Whole] = {}
        self.root = self.new_lane(process, None, None)

    # What the taps ask.

    def turns(self, lock: str) -> Any:
        """Replay: the recorded turns of a lock, None if only one strand ever took it."""
        raise NotImplementedError

    def hold(self, lock: Any) -> bool:
        """Replay: takes a plain lock that another strand will release."""
        raise NotImplementedError

    def open(self, kind: str) -> Any:
        """Begins an effect of the running strand; see `lockstep.session.call.Call`."""
        raise NotImplementedError

    def step(self, name: str, state: Value) -> None:
        """A named step: acknowledged once it is durable. Replay: compared with the recorded one."""
        raise NotImplementedError

    def checkpoint(self, thread: str, name: str, state: Value, of: int = 0, *, wait: bool = True) -> int:
        """A native checkpoint of a framework: a step of the run, and the next one of the native lane `thread`
        (`langgraph/t-91`, `langgraph/t-91/search`). Acknowledged and compared as a named step is.

        name  the nodes that led to it
        of    what this gave for the checkpoint that it comes from, 0 for none
        wait  False: it is acknowledged with the next `flush`

        Returns its position; 0 where it is none of the program's own, but of an effect that runs for real."""
        raise NotImplementedError

    def printing(self, channel: str) -> Callable[[bool], None] | None:
        """The program is about to print: waits for its turn among the threads that do. What is returned must
        be called after `output`, with whether the write succeeded."""
        raise NotImplementedError

    def output(self, channel: str, data: str | bytes) -> None:
        """The program printed `data`."""
        raise NotImplementedError

    def feed(self, lane: Lane, channel: str, data: bytes, site: str = "") -> None:
        """The program gave `data` to a process that runs as `lane`. Replay: Divergence where that is not recorded.
        `site`: where in the program's code, where the stack does not tell."""
        raise NotImplementedError

    def _print_whole(self, channel: str, lane: Lane, data: str | bytes) -> None:
        found = self._whole.get(channel)
        if found is None:
            found = self._whole[channel] = Whole()
        found.write(lane.strand, data)

    def printed(self, still_open: Collection[str]) -> dict[str, Value]:
        """The identity of each channel over all lanes, in the order printed."""
        found = {channel: whole.digest(still_open) for channel, whole in self._whole.items()}
        return {channel: digest for channel, digest in found.items() if digest is not None}

    def note(self, source: str, detail: str = "") -> None:
        """Names something that is not covered; a place counts once, with how often it was passed."""
        with self._lock:
            if len(self.notes) >= _MOST_NOTES and (source, detail) not in self.notes:
                detail = "at other places"
            self.notes[(source, detail)] = self.notes.get((source, detail), 0) + 1

    def forget(self, source: str) -> None:
        """What was named of this source is covered after all."""
        with self._lock:
            for named in [each for each in self.notes if each[0] == source]:
                del self.notes[named]

    def collected(self, what: str) -> None:
        """The garbage collector has something run that reaches outside. It is no part of the run: it may be of a time
        before that, and comes at another moment in a replay, or never. So it is named, and happens while recording
        only: in a replay or fork Stop is raised, which ends the finalizer, and nothing is latched."""
        self.note(COLLECTOR, f"{what} ({sites.site(2) or 'a library'})")
        if not self.recording or self.resumes:
            raise Stop(f"{Code.NOT_COVERED} {what} of the garbage collector is not made: it is no part of the run")

    def fault(self, where: str, error: BaseException) -> None:
        """An error of our own. Recording goes on and the run becomes incomplete."""
        self.faults.append(f"{where}: {type(error).__name__}: {error}")

    def diverge(self, code: Code, reason: str, **about: Any) -> NoReturn:
        """Latches a difference (see `latch`) and raises Divergence."""
        self.latch(code, reason, **about)
        self.raise_latched()

    def latch(self, code: Code, reason: str, **about: Any) -> None:
        """Replay: the first difference wins. `about`: call, or lane, kind and name; path, expected, actual."""

    def latched(self) -> BaseException:
        raise NotImplementedError

    def raise_latched(self) -> NoReturn:
        raise self.latched()

    # Forks.

    def when_live(self, told: Callable[[], None]) -> bool:
        """A fork that does not record yet: has `told` called when it goes live, or stops before. Else False."""
        return False

    def goes_live(self) -> bool:
        """Replay: whether this strand, which has come to the end of what is recorded of it, goes on for real: a
        fork's does, once all of the part served has happened. Blocks until then."""
        return False

    def reaches(self, source: str, what: str) -> None:
        """Recording: something that no tap covers is about to reach outside. A fork stops where its policy has it."""

    def beyond(self, lock: str, changes: int) -> bool:
        """Whether this change of a lock's or a channel's hands is to be stored: a fork has those up to the cut from
        its parent."""
        return True

    def clock_ahead(self, source: str) -> int:
        """Nanoseconds that a clock of the program is ahead of the machine's: a fork's go on from the cut."""
        return 0

    # Other processes.

    def board(self) -> Board | None:
        """What this process shares with the others of its run; None where they cannot share anything."""
        self.meet()
        if self._board is None and self.meeting and not self._apart:
            with self._lock:
                if self._board is None:
                    try:
                        self._board = Board(os.path.join(self.meeting, "board"))
                    except (ImportError, OSError) as error:
                        self._apart = True
                        self.fault("order among processes", error)
        return self._board

    @property
    def shared(self) -> Board | None:
        """The same, if somebody has needed it yet."""
        return self._board

    def meet(self) -> None:
        """There will be other processes of the run."""
        if not self.meeting and self.meets is not None:
            self.meeting = self.meets()

    def before_fork(self) -> None:
        """This thread is about to fork: nobody of ours may hold anything that the child needs."""
        raise NotImplementedError

    def after_in_parent(self) -> None:
        raise NotImplementedError

    def after_in_child(self) -> None:
        """This session is the parent's: it does nothing more here."""
        raise NotImplementedError

    def took_over(self, before: Session) -> None:
        """In a forked child: this session stands where the parent's stood."""
        self.meeting, self._board = before.meeting, before._board
        if self._board is not None:
            self._board.forked()

    # Lanes.

    def new_lane(self, name: str, parent: Lane | None, strand: Lane | None) -> Lane:
        lane = Lane(self, name, parent, strand)
        self.lanes[name] = lane
        self._handed[name] = []
        return lane

    def adopt(self) -> Lane:
        """The lane of a strand that no hook has named: the first thread's is the root."""
        if _thread.get_ident() == self._main:
            return self.root
        with self._lock:
            self._adopted = True
            return self.root.child("foreign", strand=True)

    def log_of(self, lane: Lane) -> list[Handed]:
        return self._handed[lane.name]

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def strand_began(self, strand: object) -> None:
        """A thread or work item of the program will run: its lane, or anything else that stands for it."""
        with self._lock:
            self._alive.add(strand)

    def strand_dropped(self, strand: object) -> None:
        """It will not run, or is over."""
        with self._lock:
            self._alive.discard(strand)

    def strand_ended(self, strand: Lane) -> None:
        """It ran, and is over."""
        self.strand_dropped(strand)

    def still_open(self) -> set[str]:
        """Strands that run on when the session ends (daemon threads). How far they came then is a race: each
        of their recorded calls must be made in a replay, but their lanes are no part of the run's identity."""
        with self._lock:
            return {strand.name for strand in self._alive if isinstance(strand, Lane)}

    # The end.

    def sums(self, still_open: Collection[str]) -> list[engine.LaneSum]:
        """The identity of each lane's content, but for those of strands that are still open."""
        printed: dict[str, list[tuple[str, bytes]]] = {}
        for (lane, channel), out in self._printed.items():
            printed.setdefault(lane, []).append((channel, out.digest()))
        return [
            engine.LaneSum(
                lane.name,
                tuple((handed.key, handed.digest()) for handed in self._handed[lane.name]),
                tuple(sorted((source, count) for source, count in lane.reads.items() if count)),
                tuple(sorted(printed.get(lane.name, []))),
            )
            for lane in list(self.lanes.values())
            if lane.strand.name not in still_open
        ]

    def writes(self) -> dict[str, int]:
        """How often the program wrote to each channel."""
        return {channel: whole.writes for channel, whole in self._whole.items()}

    def steps(self) -> int:
        return sum(count for kind, count in self.counts.items() if kind in _CLOSES_STEP)

    def finish(self, exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> Report:
        """Ends the session; see the two kinds. `exit` is the program's status, None in a live session."""
        raise NotImplementedError

    def _report(self, mode: str, digest: bytes, exit: int | None, **more: Any) -> Report:
        used = {lane.name for lane in self.lanes.values() if self._handed[lane.name]}
        return Report(
            mode=mode,
            run=self.run,
            process=self.process,
            steps=self.steps(),
            lanes=max(1, len(used)),
            counts=dict(self.counts),
            digest=digest.hex(),
            exit=exit,
            coverage=coverage.of(self),
            faults=tuple(self.faults),
            **{"seconds": (_monotonic_ns() - self.began) / 1e9, **more},
        )


_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")


def ending(exit: int | None, error: BaseException | None, result: Value = UNKNOWN) -> dict[str, Value]:
    """How a program ended, in comparable form: exit status, the exception by type, message and the
    function that raised it, and the result where it is known. Addresses in a message don't count, nor
    do line numbers, which move with a comment."""
    found: dict[str, Value] = {"exit": exit, "error": None}
    if error is not None:
        kind = type(error)
        found["error"] = {
            "type": f"{kind.__module__}.{kind.__qualname__}",
            "message": _ADDRESS.sub("0x…", str(error)),
            "function": sites.of_exception(error).rpartition(" in ")[2],
        }
    if result is not UNKNOWN:
        found["result"] = result
    return found
