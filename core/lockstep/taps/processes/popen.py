"""The seams of `subprocess.Popen`: the start, and what its methods learn.

Tried with CPython 3.12.1 and 3.13.0. Private names used:
`Popen._internal_poll`, `_wait`, `_try_wait`, `_communicate`, `_check_timeout`, `_waitpid_lock`, `_PopenSelector`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from lockstep.launch import inherit
from lockstep.log.model import Status
from lockstep.session import current, exceptions, lanes
from lockstep.session.tape import STARTED
from lockstep.taps.environ.watch import as_here, as_seen
from lockstep.taps.patches import disguise
from lockstep.taps.processes import descriptors, files, languages, pipes, readiness, request, stand_in
from lockstep.taps.processes.pipes import LivePipe, ServedPipe
from lockstep.taps.processes.process import KIND, STDIN, Live, Served, begun, follows
from lockstep.taps.processes.readiness import EXPIRED, choosing
from lockstep.taps.processes.waiting import looking

_SLOT = "_lockstep_process"
_RUNNING, _OVERDUE = "running", "overdue"

_Popen: Any = subprocess.Popen
_init = _Popen.__init__
_internal_poll, _wait, _try_wait = _Popen._internal_poll, _Popen._wait, _Popen._try_wait
_communicate, _check_timeout = _Popen._communicate, _Popen._check_timeout
_NAMES = _init.__code__.co_varnames[1 : _init.__code__.co_argcount + _init.__code__.co_kwonlyargcount]
_POSITIONAL = _init.__code__.co_argcount - 1

_ASKS_THE_HOST = frozenset({"platform", "ctypes.util", "uuid", "_osx_support"})


def __init__(self: Any, *args: Any, **kwargs: Any) -> Any:
    session = current.session
    given = _given(args, kwargs) if session is not None else None
    if session is None or given is None:
        return _init(self, *args, **kwargs)
    if lanes.inside() is not None or _host_fact():
        # Of a client's or a tool's own: its outcome is part of theirs. It is not followed.
        return lanes.ours(_init)(self, **_dressed(given, ""))
    call = session.open(KIND)
    if not call.held:
        return (_record if call.live else _serve)(session, self, given, call)
    name = _ask(session, call, given)
    call.ready()
    return (_record if call.live else _serve)(session, self, given, call, name)


def _record(session: Any, popen: Any, given: dict[str, Any], call: Any, name: str | None = None) -> None:
    process, arguments = None, given
    try:
        name = name or _ask(session, call, given)
        lane = call.lane.child(name, strand=True)
        written = files.of({stream: given.get(stream) for stream in ("stdout", "stderr")})
        process = Live(session, call, lane, written, _spoken(given))
        arguments = _dressed(given, lane.name)
    except Exception as error:
        session.fault("start of a process", error)
    if process is None:
        lanes.ours(_init)(popen, **given)
        return
    try:
        with process.call.inside():
            _init(popen, **arguments)
    except BaseException as error:
        process.call.end(Status.ERROR, error)
        raise
    try:
        session.cause(call.lane, STARTED, process.name, body=popen.pid)
        _begun(popen, process, LivePipe)
    except Exception as error:
        session.fault("pipes of a process", error)


def _serve(session: Any, popen: Any, given: dict[str, Any], call: Any, name: str | None = None) -> None:
    name = name or _ask(session, call, given)
    if not begun(call):
        session.never(call.lane, KIND)
    lane = call.lane.child(name, strand=True)
    last = call.recorded.pieces[-1] if call.recorded.ended else None
    if last is not None and last[1].what == Status.ERROR:
        raise exceptions.revive(call.hand(last).value, call)
    followed = follows(session, lane)
    written = files.of({stream: given.get(stream) for stream in ("stdout", "stderr")})
    process = Served(session, call, lane, written, followed, _spoken(given))
    if followed:
        lanes.ours(_init)(popen, **_dressed(given, lane.name))
    else:
        lanes.ours(_init)(popen, **stand_in.arguments(given, process.status or 0))
        popen.args = given["args"]
    _begun(popen, process, ServedPipe)
    found, pid = process.cause(STARTED, process.name)
    if found and isinstance(pid, int):
        popen.pid = pid
        descriptors.know_as(process, pid)


def _ask(session: Any, call: Any, given: dict[str, Any]) -> str:
    asked = request.asked(given, as_seen(), as_here())
    name = request.name(given)
    language = _spoken(given)
    if language is None:
        call.ask(name, asked, request.key(asked))
    else:
        name = language.name
        call.ask(name, {"speaks": language.name, **asked}, languages.key(language, asked))
    for channel in ("stdout", "stderr"):
        stream: Any = given.get(channel)
        into = request.foreign(stream)
        if into:
            fd = stream if isinstance(stream, int) else stream.fileno()
            if descriptors.pipe_of(fd) is None:  # else into the next process
                descriptors.know_foreign(fd)
                session.note(descriptors.NOTE, f"{channel} of {name} goes into a {into} of the program's own")
    if given.get("pass_fds"):
        session.note(descriptors.NOTE, f"{name} is given descriptors (pass_fds)")
    return name


def _spoken(given: dict[str, Any]) -> languages.Language | None:
    return languages.spoken_to(request.argv(given.get("args")))


def _begun(popen: Any, process: Any, kind: Any) -> None:
    process.pid = popen.pid
    vars(popen)[_SLOT] = process
    found: list[Any] = []
    for channel in ("stdin", "stdout", "stderr"):
        file = getattr(popen, channel)
        if file is not None:
            pipe = kind(process, channel, file)
            pipes.tap(file, pipe)
            found.append(pipe)
    if process.live:
        process.opened(pipe for pipe in found if pipe.channel != STDIN)
    else:
        process.stdin = next((pipe for pipe in found if pipe.channel == STDIN), None)
    descriptors.know(process, found)


def _given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments by name; None where `Popen` itself has to complain of them."""
    given = dict(zip(_NAMES, args, strict=False))
    if len(args) > _POSITIONAL or given.keys() & kwargs.keys() or not kwargs.keys() <= set(_NAMES):
        return None
    given.update(kwargs)
    words = given.get("args")
    if words is None:
        return None
    if not isinstance(words, (str, bytes, os.PathLike, list, tuple)):
        try:
            given["args"] = list(words)  # it may be read only once
        except TypeError:
            return None
    return given


def _host_fact() -> bool:
    """Whether a module of Python's own asks the machine what it is (every SDK that tells its platform runs
    `uname -p`): no answer that a replay elsewhere could take for the program's data."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in ("subprocess", "os"):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") in _ASKS_THE_HOST


def _dressed(given: dict[str, Any], lane: str) -> dict[str, Any]:
    """The arguments with an environment that reaches a Python child; `lane`: see `Ours.dress`."""
    ours = inherit.here
    if ours is None:
        return given
    env = given.get("env")
    return {**given, "env": ours.dress(os.environ if env is None else env, lane)}


def _of(popen: Any) -> Any:
    """The process behind it, None where that is not of this session."""
    process = vars(popen).get(_SLOT)
    return process if process is not None and process.on() else None


def poll(self: Any, _deadstate: Any = None, _original: Any = _internal_poll, **more: Any) -> Any:
    if _deadstate is not None:
        # A dropped `Popen` looks after its process: nothing that the program sees. At the interpreter's end too, when
        # no global is left.
        process = self.__dict__.get("_lockstep_process")
        if process is not None:
            self.pid = process.pid
        return _original(self, _deadstate, **more)
    process = _of(self) if self.returncode is None else None
    if process is None:
        return _internal_poll(self, _deadstate, **more)
    number = process.number(_RUNNING)
    if process.live:
        if self._waitpid_lock.acquire(False):
            try:
                if self.returncode is None:
                    _learn(self, process, os.WNOHANG)
            finally:
                self._waitpid_lock.release()
        if self.returncode is None:
            process.cause(_RUNNING, number)
    elif not process.cause(_RUNNING, number)[0]:
        _take(self, process)
    return self.returncode


def wait(self: Any, timeout: Any) -> Any:
    process = _of(self) if self.returncode is None else None
    if process is None:
        return _wait(self, timeout)
    number = process.number(_OVERDUE)
    if process.live:
        try:
            return lanes.ours(_wait)(self, timeout)  # between its looks it sleeps
        except subprocess.TimeoutExpired as expired:
            process.cause(_OVERDUE, number, expired.timeout)
            raise
        except BaseException as error:
            process.cause(_OVERDUE, number, exceptions.encode(error))  # a signal handler's, or Ctrl-C
            raise
    found, body = process.cause(_OVERDUE, number)
    if isinstance(body, dict):
        raise exceptions.revive(body, process.call)
    if found:
        raise subprocess.TimeoutExpired(self.args, body)
    return _take(self, process)


def try_wait(self: Any, flags: int) -> Any:
    process = _of(self)
    if process is None or not process.live:
        return _try_wait(self, flags)
    try:
        return descriptors.learn(process, flags)
    except ChildProcessError:
        # SIGCHLD is ignored, or somebody else has taken the status.
        process.ended(0)
        return self.pid, 0


def _learn(popen: Any, process: Any, flags: int) -> None:
    got, status = try_wait(popen, flags)
    if got == popen.pid:
        popen._handle_exitstatus(status)


def _take(popen: Any, process: Any) -> Any:
    status = process.ended()
    if popen.returncode is None:
        popen.returncode = status
    return popen.returncode


def communicate(self: Any, input: Any, endtime: Any, orig_timeout: Any) -> Any:
    process = _of(self)
    if process is None:
        return _communicate(self, input, endtime, orig_timeout)
    # One that expires does so while it waits for pipes (noted here) or for the end (`wait`'s).
    vars(self)["_lockstep_expires"] = process.number(EXPIRED)
    if process.live:
        with looking():
            return _communicate(self, input, endtime, orig_timeout)
    with choosing(self, process):
        return _communicate(self, input, None, orig_timeout)


def check_timeout(self: Any, endtime: Any, orig_timeout: Any, *seqs: Any, **more: Any) -> Any:
    process = _of(self)
    if process is None:
        return _check_timeout(self, endtime, orig_timeout, *seqs, **more)
    number = vars(self)["_lockstep_expires"]
    if process.live:
        try:
            return _check_timeout(self, endtime, orig_timeout, *seqs, **more)
        except subprocess.TimeoutExpired:
            process.cause(EXPIRED, number)
            raise
    if vars(self).pop("_lockstep_expired", False):
        return _check_timeout(self, 0.0, orig_timeout, *seqs, skip_check_and_raise=True)
    return None


def send_signal(self: Any, sig: int) -> Any:
    process = _of(self)
    if process is not None:
        process.signalled = True
    return _send_signal(self, sig)


_send_signal = _Popen.send_signal
_SEAMS = (
    (__init__, "__init__"), (poll, "_internal_poll"), (wait, "_wait"), (try_wait, "_try_wait"),
    (communicate, "_communicate"), (check_timeout, "_check_timeout"), (send_signal, "send_signal"),
)  # fmt: skip


def install(module: Any) -> None:
    """Puts the seams in place, once for each class."""
    popen = module.Popen
    module._PopenSelector = readiness.selector
    for ours, name in _SEAMS:
        seam: Any = ours
        disguise(seam, vars(popen)[name], "subprocess", name)
        seam.__qualname__ = f"Popen.{name}"
        setattr(popen, name, seam)
