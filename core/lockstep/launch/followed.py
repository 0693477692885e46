"""One followed process: its session from the program's first line to its last, and its report.

A process may become another program by `exec` before it has done anything worth recording
(instrumentation wrappers do). Then its recording is dropped and the next image starts afresh; the record
keeps how many images there were, and its replay lets as many pass.
"""

from __future__ import annotations

import _thread
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from lockstep.launch import meeting
from lockstep.launch.settings import Settings

if TYPE_CHECKING:
    from lockstep.errors import Difference
    from lockstep.session.session import Session

# Bound before any tap replaces them.
_sleep = time.sleep
_start_thread = _thread.start_new_thread
_exit = os._exit
_abort = os.abort
_kill = os.kill

# Seconds between the first divergence and the end of the process: the program's own way out comes first. Of a
# process that is no command's first, its parent waits for less.
GRACE = 2.0
GRACE_OF_CHILD = 0.5
# Seconds for the last report once the grace is over: a lock may be held by a thread that never wakes.
LAST = 2.0
# Seconds that a child which has come to the cut of its recording waits to be killed as it was then.
LINGER = 0.5
# Seconds that the end of another process waits until what it has done is stored.
STORED = 0.25
# Seconds in which no process of a replay moves before one is signalled that is not at its end, and between looks.
STILL, LOOK = 3.0, 0.005


class Followed:
    """The session of this process, from its first line to its last report."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pid = os.getpid()
        self.session: Session | None = None
        self.status: int | None = None  # what the process will exit with, where somebody told
        self.reported = False
        self._cut = False
        self._board: Any = None
        self._earlier = False  # replay: it was forked to become the program that was recorded
        self._ending = _thread.allocate_lock()
        self._ender = 0  # the thread that records the end

    @property
    def first(self) -> bool:
        return self.settings.lane == meeting.FIRST

    # -- the beginning

    def begin(self, name: str) -> bool:
        """Starts the session; `name` is that of the run if nobody gave one. False: another image of this process
        will. While recording, a fault of ours lets the program run bare; a store or run that cannot be used ends
        the process before the program has begun, and so does any fault in replay."""
        try:
            session = self._start_session(name)
        except BaseException as error:
            try:
                self._not_begun(error)
            finally:
                if self.settings.mode != "record":
                    _exit(2)  # whatever else is broken here: a replay never runs for real
            return True
        if session is None:
            return False
        self.take(session)
        self.wrap()
        from lockstep.launch import attaching  # needs a session's modules, which come in their own order

        attaching.watch()
        return True

    def take(self, session: Session | None) -> None:
        """This process has its session: it will be ended and reported here."""
        self.session = session
        if session is None:
            return
        session.meeting = self.settings.meeting
        if self.settings.mode != "record" or session.resumes:  # a fork may have gone live already
            session.on_stop = self.stopped
            vars(session).update(wanted=self._wanted, want=partial(meeting.want, self.settings.meeting))
            if session.stopped:
                self.stopped()

    def _wanted(self) -> bool:
        return meeting.wanted(self.settings.meeting, self.settings.lane)

    def wrap(self) -> None:
        """Sees to ways of ending that run no exit handler, and to forks."""
        from lockstep.session import forks
        from lockstep.taps.guard import own

        own.family = self._family

        os._exit = self._leave  # type: ignore[assignment]
        os.abort = self._abort
        os.kill = self._kill
        forks.on_fork = self.forked

    def _not_begun(self, error: BaseException) -> None:
        code, message = getattr(error, "code", None), getattr(error, "message", None)
        if code is not None and message is not None:
            self._trouble(str(code), str(message))
            if self.first:
                _exit(2)
        else:
            self._fault(error)
        current: Any = sys.modules.get("lockstep.session.current")
        if current is not None:
            current.session = None  # taps that were started find nobody to tell

    def _start_session(self, name: str) -> Session | None:
        from lockstep.log import seal
        from lockstep.log.address import called
        from lockstep.session import session as sessions

        settings = self.settings
        if settings.ours is not None:
            seal.hide(settings.ours.values)
        session: Session | None
        if settings.mode == "fork" and self.first:
            from lockstep.session import tail

            plan = tail.decode(meeting.read(settings.meeting, "plan"))
            session = sessions.start_fork(settings.store, settings.run, plan, self._went_live)
        elif settings.mode != "record":
            if self.first:
                run = called(settings.run, settings.branch)
                session = sessions.start_replay(settings.store, run, speed=settings.speed)
            else:
                session = sessions.join_replay(
                    settings.store, settings.run, settings.lane, settings.branch, speed=settings.speed,
                    image=settings.image,
                )  # fmt: skip
        elif self.first:
            self._supersede()
            session = sessions.start_recording(settings.store, settings.run or name, self._meta())
            if settings.ours is not None:
                settings.ours.set("LOCKSTEP_RUN", session.run)  # what its children are to join
            meeting.put(settings.meeting, "run", session.run.encode())
            return session
        else:
            run = meeting.read(settings.meeting, "run").decode()
            session = sessions.join_recording(settings.store, run, settings.lane, settings.image, settings.branch)
        if self.first and session is not None:
            meeting.put(settings.meeting, "run", session.run.encode())
        return session

    def _went_live(self, branch: str) -> None:
        """A fork has served its part: it, and the processes that it starts from now on, record the branch."""
        settings = self.settings
        settings.mode, settings.branch = "record", branch
        if settings.ours is not None:
            settings.ours.set("LOCKSTEP_MODE", "record")
            settings.ours.set("LOCKSTEP_BRANCH", branch)

    def _family(self) -> list[int]:
        """The processes of this run that are recorded or replayed."""
        followed = (meeting.RECORDED, meeting.CHILD)
        return [other.pid for other in meeting.heard(self.settings.meeting) if other.state in followed]

    def _meta(self) -> dict[str, Any]:
        return {
            "command": meeting.words(meeting.read(self.settings.meeting, "command")),
            "cwd": os.getcwd(),
            "executable": sys.executable,
            "hash_seed": self.settings.hash_seed,
            "image": self.settings.image,
            "foreign": any(other.state == meeting.FOREIGN for other in meeting.heard(self.settings.meeting)),
        }

    # -- forks

    def forked(self, before: Session, session: Session | None, lane: Any) -> None:
        """In a forked child, which goes on as a process of its own."""
        self.pid = os.getpid()
        self.session, self.status, self.reported = None, None, False
        self._ending = _thread.allocate_lock()
        self._ender = 0
        settings = self.settings
        settings.lane = lane.name if lane is not None else ""
        settings.image = 0
        if settings.ours is not None:
            settings.ours.set("LOCKSTEP_LANE", settings.lane)
            settings.ours.set("LOCKSTEP_IMAGE", "0")
        if lane is None:
            return
        state = meeting.RECORDED
        if session is None:  # in a replay: what it is about to become was followed, and this was not
            self._earlier = settings.mode != "record"
            state = meeting.EARLIER if self._earlier else meeting.CHILD
        if settings.meeting:
            if state == meeting.RECORDED:
                meeting.claim(settings.meeting, settings.lane)
            meeting.hello(settings.meeting, state, settings.lane, sys.executable)
        self.take(session)

    # -- the end

    def at_exit(self) -> None:
        """The program has ended in the usual way. Its exit status is for who waits for it to see: Python keeps
        the argument of `sys.exit` to itself. An uncaught exception it leaves in `sys.last_exc`."""
        if os.getpid() != self.pid:
            return
        error = getattr(sys, "last_exc", None)
        self.end(self.status, error)
        self._at_cut()
        if isinstance(error, KeyboardInterrupt):
            # Python ends by SIGINT after an uncaught one, unless some text was evaluated since: what we import
            # at the end does that. This evaluation has the interpreter remember again.
            try:
                exec("raise KeyboardInterrupt")
            except KeyboardInterrupt:
                return

    def end(self, status: int | None, error: BaseException | None = None) -> None:
        """Ends the session and leaves its report, once, whoever comes first."""
        if self._ender == _thread.get_ident():
            return  # a signal handler that ends the process while its end is being recorded
        with self._ending:
            session, self.session = self.session, None
            if session is None:
                return
            self._ender = _thread.get_ident()
            from lockstep.session.session import finish
            from lockstep.taps.output import silence

            session.silence = silence
            if session.recording:
                silence()  # at once: to look at what was not covered takes a moment too
            stopped = session.stopped
            if self.settings.mode == "replay":
                from lockstep.taps import guard

                guard.seal()
            try:
                if self.first:
                    self._name_the_uncovered(session)
                report = finish(session, status, error)
            except BaseException as fault:
                self._fault(fault)
                return
            self._cut = report.cut and stopped
            self._board = session.shared
            self._report(report)

    def _at_cut(self) -> None:
        """A process that was killed when it was recorded does not end by itself here: whoever killed it then may be
        about to."""
        if self._cut and not self.first:
            if self._board is not None:
                self._board.cut()
            _sleep(LINGER)
            _kill(self.pid, 9)

    def _name_the_uncovered(self, session: Session) -> None:
        for other in meeting.heard(self.settings.meeting):
            if other.state == meeting.CHILD:
                session.note(meeting.CHILD_PROCESS, other.executable)

    def _report(self, report: Any) -> None:
        import msgspec

        try:
            meeting.report(self.settings.meeting, self.settings.lane, msgspec.json.encode(report))
        except OSError:
            return  # it outlives its supervisor: what it did is in the store
        self.reported = True

    def _leave(self, status: int) -> None:
        """Stands for `os._exit`, which runs no exit handler."""
        if os.getpid() == self.pid:
            self.end(status)
            self._at_cut()
        _exit(status)

    def _abort(self) -> NoReturn:
        """Stands for `os.abort`."""
        self._dies()
        _abort()

    def _kill(self, pid: int, number: int, /) -> None:
        """Stands for `os.kill`, by which a program may end itself."""
        from lockstep.taps.host import pids

        pid = pids.here(pid)  # a replayed program names itself as it was called when recorded
        if pid == self.pid == os.getpid():
            if _deadly(number):
                self._dies()
        elif number and self.session is not None:
            from lockstep.session import lanes

            lanes.ours(self._let_come)(pid)
        _kill(pid, number)

    def _let_come(self, pid: int) -> None:
        """Before another process of the run gets a signal. Recording: what it did is stored. Replay: it does all
        that it had done then, until it has reported, or nothing moves any more."""
        session: Any = self.session
        other = next((each for each in reversed(meeting.heard(self.settings.meeting)) if each.pid == pid), None)
        board = session.board() if session is not None else None
        if board is None or other is None or other.state != meeting.RECORDED:
            return
        if self.settings.mode == "record":
            board.settled(other.lane, STORED)
            return
        meeting.want(self.settings.meeting, other.lane)
        quiet, progress = 0.0, -1
        while quiet < STILL and not session.stopped:
            if meeting.reported(self.settings.meeting, other.lane):
                return
            quiet = quiet + LOOK if board.progress == progress else 0.0
            progress = board.progress
            _sleep(LOOK)

    def _dies(self) -> None:
        """The program is about to end itself without an end of its own. What was recorded stays, cut off; a
        replay that got here has reached the cut, if nothing of the recording is left."""
        session: Any = self.session
        if session is None or os.getpid() != self.pid:
            return
        if self.settings.mode == "record":
            session.flush()
            return
        if session.interrupted and session.gate is not None and session.gate.head() is None:
            session.on_stop = None  # it ends by itself now
            session.cut()
        self.end(None)

    def becomes(self, path: Any) -> int:
        """This process becomes another program. Returns the number of that image.

        Where nothing has come from outside yet, this image's recording gives way to the next one's, if there
        will be one: only a Python that loads us records. Else nobody records what follows, and a replay that
        gets here stops.
        """
        image = self.settings.image
        session: Any = self.session
        if session is None or os.getpid() != self.pid:
            return image + self._earlier
        named = os.fsdecode(path) if isinstance(path, (str, bytes)) else "?"
        if not self.first and self._gives_way(session, named):
            return image + 1
        from lockstep.taps.guard import uncovered

        uncovered.refuse("process", f"becomes {named}")
        nothing_yet = self.first and not session.asked
        self.end(None)
        if self.settings.mode == "replay" or not nothing_yet:
            return image
        meeting.put(self.settings.meeting, "superseded", session.run.encode())
        meeting.release(self.settings.meeting, self.settings.lane)
        return image + 1

    def _gives_way(self, session: Any, path: str) -> bool:
        """Whether this process, no command's first, has stored nothing. In a replay the next program is none that
        was followed, then, and would run for real."""
        settings = self.settings
        if settings.mode == "replay":
            if settings.lane not in session.processes:
                from lockstep.errors import Code

                reason = f"{path} was not recorded, and would run for real"
                session.diverge(Code.NOT_COVERED, reason, lane=session.root, kind="process", name=path)
            return False
        if session.writer.appender.opened:
            return False
        self.session = None
        meeting.release(settings.meeting, settings.lane)
        meeting.hello(settings.meeting, meeting.LEFT, settings.lane, path)
        return True

    def _supersede(self) -> None:
        """Drops the recording of the image that this one took over from: it had recorded nothing yet."""
        run = meeting.read(self.settings.meeting, "superseded").decode()
        if run:
            from lockstep.log.store import open_store

            with open_store(self.settings.store) as store:
                store.delete_run(run)
            meeting.put(self.settings.meeting, "superseded", b"")
            meeting.report(self.settings.meeting, self.settings.lane, b"")

    # -- a replay that is over before the program is

    def stopped(self) -> None:
        """The session's first divergence, that of another process, or the end of an interrupted recording, from
        any thread.

        The program is given a moment to end by itself; whatever it does, it does not outlive the grace.
        """
        if not self.settings.debug:
            _quiet()
        session = self.session
        ours = session is not None and _difference(session) is not None
        if ours and session is not None:
            board = session.board() if len(session.processes) > 1 else None
            if board is not None:
                board.stop()
        cut = session is not None and _is_cut(session)
        _start_thread(self._watch, (0.0 if cut else GRACE if self.first else GRACE_OF_CHILD,))

    def _watch(self, grace: float) -> None:
        _sleep(grace)
        _start_thread(self._last, (self.session,))
        self.end(None)
        self._at_cut()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        _exit(1)

    def _last(self, session: Session | None) -> None:
        _sleep(LAST)
        if session is not None and not self.reported:
            from lockstep.session.report import Report

            difference = _difference(session)
            cut = difference is None
            self._report(Report("replay", session.run, cut=cut, difference=difference, process=session.process))
        _exit(1)

    # -- faults of ours

    def _trouble(self, code: str, message: str) -> None:
        if self.first:
            meeting.put(self.settings.meeting, "trouble", f"{code} {message}".encode())
        else:
            self._faulty(f"{code} {message}".strip())

    def _fault(self, error: BaseException) -> None:
        from traceback import format_exception, format_exception_only

        text = format_exception(error) if self.settings.debug else format_exception_only(error)
        self._trouble("", "".join(text).strip())

    def _faulty(self, words: str) -> None:
        from lockstep.session.report import Report

        mode, lane = self.settings.mode, self.settings.lane
        self._report(Report(mode, self.settings.run, faults=(f"process {lane}: {words}",), process=lane))


def _difference(session: Session) -> Difference | None:
    """What a stopped replay stopped for; None for the end of an interrupted recording."""
    from lockstep.errors import Divergence

    latched = session.latched()
    return latched.difference if isinstance(latched, Divergence) else None


def _is_cut(session: Session) -> bool:
    """Whether it stopped for no fault of the program: at the end of an interrupted recording, or for another
    process."""
    from lockstep.errors import Cut

    return isinstance(session.latched(), Cut)


def _deadly(number: int) -> bool:
    """Whether that signal ends this process: nobody handles it, and ending is what it does."""
    import signal

    harmless = {"SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"}
    try:
        return (
            number != 0 and signal.Signals(number).name not in harmless and signal.getsignal(number) is signal.SIG_DFL
        )
    except ValueError:
        return False


def _quiet() -> None:
    """Keeps tracebacks of what the session raised off the program's stderr: the report says it better."""
    from lockstep.errors import Stop

    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if not issubclass(kind, Stop):
            shown(kind, error, trace)

    sys.excepthook = hook
    shown_anywhere = sys.unraisablehook

    def unraisable_hook(args: Any) -> None:
        if not issubclass(args.exc_type, Stop):
            shown_anywhere(args)

    sys.unraisablehook = unraisable_hook
    threading: Any = sys.modules.get("threading")
    if threading is None:
        return
    shown_in_thread = threading.excepthook

    def thread_hook(args: Any) -> None:
        if not issubclass(args.exc_type, Stop):
            shown_in_thread(args)

    threading.excepthook = thread_hook
