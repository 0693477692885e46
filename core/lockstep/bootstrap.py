"""Starts the session of a process that was launched by `lockstep record` or `lockstep replay`.

Called by `boot/sitecustomize.py` before the program's first line, and ends the session at its last.
The first Python process of the command takes the claim and is recorded; the others say hello and stay
inert, so that the run can say that they were not covered.

A process may become another program by `exec` before it has done anything worth recording
(instrumentation wrappers do). Then its recording is dropped and the next image starts afresh; the run
keeps how many images there were, and its replay lets as many pass.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from lockstep.launch import meeting
from lockstep.launch.inherit import Ours

if TYPE_CHECKING:
    from lockstep.errors import Difference
    from lockstep.session.session import Session

# Bound before any tap replaces them.
_sleep = time.sleep
_start_thread = _thread.start_new_thread
_exit = os._exit
_abort = os.abort
_kill = os.kill

# Seconds between the first divergence and the end of the process: the program's own way out comes first.
GRACE = 2.0
# Seconds for the last report once the grace is over: a lock may be held by a thread that never wakes.
LAST = 2.0

_launched: Launched | None = None


def start(boot: str) -> None:
    """Begins what the environment asks for; `boot` is the directory that brought us here."""
    global _launched
    ours = Ours.take(boot)
    if ours is None or _launched is not None:
        return
    settings = Settings(ours)
    launched = None
    if settings.mode not in ("record", "replay"):
        return
    if _server():
        state = meeting.SERVER
    elif settings.mode == "replay" and settings.image < settings.images:
        state = meeting.EARLIER
    elif meeting.claim(settings.meeting):
        state = meeting.RECORDED
        launched = _launched = Launched(settings)
    else:
        state = meeting.CHILD
    meeting.hello(settings.meeting, state, sys.executable)
    if launched is not None:
        launched.begin()
    _wrap_exec(settings, launched)


class Settings:
    """What the supervisor asks of this process. See `launch.child.environment`."""

    def __init__(self, ours: Ours) -> None:
        self.ours = ours
        self.mode = ours.get("LOCKSTEP_MODE")
        self.run = ours.get("LOCKSTEP_RUN")
        self.store = ours.get("LOCKSTEP_STORE")
        self.meeting = ours.get("LOCKSTEP_REPORT")
        self.speed = float(ours.get("LOCKSTEP_SPEED") or 0.0)
        self.image = int(ours.get("LOCKSTEP_IMAGE") or 0)
        self.images = int(ours.get("LOCKSTEP_IMAGES") or 0)
        self.debug = ours.get("LOCKSTEP_DEBUG") == "1"
        self.hash_seed = ours.get("PYTHONHASHSEED")


def _server() -> bool:
    """Whether this is a process that multiprocessing runs for itself. A forkserver's children are forks
    of it and are no Python starts of their own."""
    if "-c" not in sys.orig_argv:
        return False
    code = sys.orig_argv[-1] if sys.orig_argv[-2:-1] == ["-c"] else " ".join(sys.orig_argv)
    return "multiprocessing.resource_tracker" in code or "multiprocessing.forkserver" in code


def _name() -> str:
    """The run's name where the user gave none: the script's stem, the module, the console script."""
    first = sys.argv[0] if sys.argv else ""
    if first == "-m":
        after = sys.orig_argv.index("-m") + 1
        name = sys.orig_argv[after].removesuffix(".__main__")
    else:
        name = os.path.basename(first)
        if name == "__main__.py":
            name = os.path.basename(os.path.dirname(os.path.abspath(first)))
        name = {"": "stdin", "-": "stdin", "-c": "command"}.get(name, name.removesuffix(".py"))
    # What has a meaning in an address is written as in a URL.
    return "".join(f"%{ord(c):02X}" if c in "%@:/" or not c.isprintable() else c for c in name)[:150]


class Launched:
    """The session of this process, from its first line to its last report."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pid = os.getpid()
        self.session: Session | None = None
        self.reported = False
        self._ending = _thread.allocate_lock()
        self._ender = 0  # the thread that records the end

    # -- the beginning

    def begin(self) -> None:
        """Starts the session. While recording, a fault of ours lets the program run bare; a store or run
        that cannot be used ends the process before the program has begun, and so does any fault in replay."""
        atexit.register(self.at_exit)  # first, so that it runs last
        try:
            self._start_session()
        except BaseException as error:
            try:
                self._not_begun(error)
            finally:
                if self.settings.mode == "replay":
                    _exit(2)  # whatever else is broken here: a replay never runs for real
            return
        os._exit = self._leave  # type: ignore[assignment]
        os.abort = self._abort
        os.kill = self._kill
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _not_begun(self, error: BaseException) -> None:
        code, message = getattr(error, "code", None), getattr(error, "message", None)
        if code is not None and message is not None:
            self._trouble(str(code), str(message))
            _exit(2)
        self._fault(error)
        current: Any = sys.modules.get("lockstep.session.current")
        if current is not None:
            current.session = None  # taps that were started find nobody to tell

    def _start_session(self) -> None:
        from lockstep.log import seal
        from lockstep.session.session import start_recording, start_replay

        settings = self.settings
        seal.hide(settings.ours.values)
        if settings.mode == "replay":
            self.session = start_replay(settings.store, settings.run, speed=settings.speed)
            self.session.on_stop = self.stopped
        else:
            self._supersede()
            self.session = start_recording(settings.store, settings.run or _name(), self._meta())
        meeting.put(settings.meeting, "run", self.session.run.encode())
        from lockstep.taps.guard import own

        own.family = self._family

    def _family(self) -> list[int]:
        """The processes of this run that are recorded or replayed."""
        followed = (meeting.RECORDED, meeting.CHILD)
        return [pid for pid, state, _ in meeting.heard(self.settings.meeting) if state in followed]

    def _meta(self) -> dict[str, Any]:
        return {
            "command": meeting.words(meeting.read(self.settings.meeting, "command")),
            "cwd": os.getcwd(),
            "executable": sys.executable,
            "hash_seed": self.settings.hash_seed,
            "image": self.settings.image,
            "foreign": any(state == meeting.FOREIGN for _, state, _ in meeting.heard(self.settings.meeting)),
        }

    # -- the end

    def at_exit(self) -> None:
        """The program has ended in the usual way. Its exit status is the supervisor's to see: Python keeps
        the argument of `sys.exit` to itself. An uncaught exception it leaves in `sys.last_exc`."""
        if os.getpid() != self.pid:
            return
        error = getattr(sys, "last_exc", None)
        self.end(None, error)
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
            if self.settings.mode == "replay":
                from lockstep.taps import guard

                guard.seal()
            for _, state, executable in meeting.heard(self.settings.meeting):
                if state == meeting.CHILD:
                    session.note(meeting.CHILD_PROCESS, executable)
            try:
                report = finish(session, status, error)
            except BaseException as fault:
                self._fault(fault)
                return
            self._report(report)

    def _report(self, report: Any) -> None:
        import msgspec

        meeting.put(self.settings.meeting, "report", msgspec.json.encode(report))
        self.reported = True

    def _leave(self, status: int) -> None:
        """Stands for `os._exit`, which runs no exit handler."""
        if os.getpid() == self.pid:
            self.end(status)
        _exit(status)

    def _abort(self) -> NoReturn:
        """Stands for `os.abort`."""
        self._dies()
        _abort()

    def _kill(self, pid: int, number: int, /) -> None:
        """Stands for `os.kill`, by which a program may end itself."""
        if pid == self.pid == os.getpid() and _deadly(number):
            self._dies()
        _kill(pid, number)

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

    def _forked(self) -> None:
        """In a forked child, which shares our memory but must not write the parent's run; what becomes of
        the session there is `lockstep.session.forks`' business."""
        self.session = None
        meeting.hello(self.settings.meeting, meeting.CHILD, sys.executable)

    def becomes(self) -> int:
        """This process becomes another program. Returns the number of that image.

        Where nothing has come from outside yet, this image's recording gives way to the next one's, if there
        will be one: only a Python that loads us records.
        """
        image = self.settings.image
        session = self.session
        if session is None or os.getpid() != self.pid:
            return image
        nothing_yet = not session.counts
        self.end(None)
        if self.settings.mode == "replay" or not nothing_yet:
            return image
        meeting.put(self.settings.meeting, "superseded", session.run.encode())
        meeting.release(self.settings.meeting)
        return image + 1

    def _supersede(self) -> None:
        """Drops the recording of the image that this one took over from: it had recorded nothing yet."""
        run = meeting.read(self.settings.meeting, "superseded").decode()
        if run:
            from lockstep.log.store import open_store

            with open_store(self.settings.store) as store:
                store.delete_run(run)
            meeting.put(self.settings.meeting, "superseded", b"")
            meeting.put(self.settings.meeting, "report", b"")

    # -- a replay that is over before the program is

    def stopped(self) -> None:
        """The session's first divergence, or the end of an interrupted recording, from any thread.

        The program is given a moment to end by itself; whatever it does, it does not outlive the grace.
        """
        if not self.settings.debug:
            _quiet()
        session = self.session
        cut = session is not None and _difference(session) is None
        _start_thread(self._watch, (0.0 if cut else GRACE,))

    def _watch(self, grace: float) -> None:
        _sleep(grace)
        _start_thread(self._last, (self.session,))
        self.end(None)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        _exit(1)

    def _last(self, session: Session | None) -> None:
        _sleep(LAST)
        if session is not None and not self.reported:
            from lockstep.session.report import Report

            difference = _difference(session)
            self._report(Report("replay", session.run, cut=difference is None, difference=difference))
        _exit(1)

    # -- faults of ours

    def _trouble(self, code: str, message: str) -> None:
        meeting.put(self.settings.meeting, "trouble", f"{code} {message}".encode())

    def _fault(self, error: BaseException) -> None:
        from traceback import format_exception, format_exception_only

        text = format_exception(error) if self.settings.debug else format_exception_only(error)
        self._trouble("", "".join(text).strip())


def _difference(session: Session) -> Difference | None:
    """What a stopped replay stopped for; None for the end of an interrupted recording."""
    from lockstep.errors import Divergence

    latched = session.latched()
    return latched.difference if isinstance(latched, Divergence) else None


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
    from lockstep.errors import Cut, Divergence

    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if not issubclass(kind, (Cut, Divergence)):
            shown(kind, error, trace)

    sys.excepthook = hook
    threading: Any = sys.modules.get("threading")
    if threading is None:
        return
    shown_in_thread = threading.excepthook

    def thread_hook(args: Any) -> None:
        if not issubclass(args.exc_type, (Cut, Divergence)):
            shown_in_thread(args)

    threading.excepthook = thread_hook


def _wrap_exec(settings: Settings, launched: Launched | None) -> None:
    """Ends the session before this process becomes another program, and lets that one find us."""
    execv, execve = os.execv, os.execve
    ours = settings.ours

    def becoming(path: Any) -> None:
        # `os.execvp` tries one directory after the other: a path that will fail ends nothing.
        if isinstance(path, int) or os.access(path, os.X_OK):
            image = settings.image + 1 if launched is None else launched.becomes()
            ours.values["LOCKSTEP_IMAGE"] = str(image)

    def our_execv(path: Any, args: Any) -> None:
        becoming(path)
        execve(path, args, ours.dress(os.environ))

    def our_execve(path: Any, args: Any, env: Any) -> None:
        becoming(path)
        execve(path, args, ours.dress(env))

    for ours_, theirs in ((our_execv, execv), (our_execve, execve)):
        ours_.__name__ = theirs.__name__
        ours_.__doc__ = theirs.__doc__
    os.execv = our_execv  # type: ignore[assignment]
    os.execve = our_execve  # type: ignore[assignment]
