"""`os.system`, `os.posix_spawn` and `os.posix_spawnp`: processes with no pipes to the program.

What `os.system` prints goes where the program's own output goes, and is not recorded.
"""

from __future__ import annotations

import os
from typing import Any

from lockstep.launch import inherit
from lockstep.log.model import Status, Value
from lockstep.session import current, exceptions, lanes
from lockstep.session.tape import STARTED
from lockstep.taps.environ.watch import as_here, as_seen
from lockstep.taps.patches import stand_in as in_place
from lockstep.taps.processes import descriptors, request, stand_in
from lockstep.taps.processes.process import EXIT, KIND, Live, Served, begun, follows

_system = os.system
_spawns = {name: getattr(os, name) for name in ("posix_spawn", "posix_spawnp") if hasattr(os, name)}
_WHOM = frozenset({"setpgroup", "setsid", "resetids", "setsigmask", "setsigdef", "scheduler"})


def system(_: object, command: Any) -> int:
    """Execute the command in a subshell."""
    session: Any = current.session
    if session is None or not isinstance(command, (str, bytes, os.PathLike)):
        return _system(command)
    if lanes.inside() is not None:
        return int(lanes.ours(_system)(_named(command, "")))
    call = session.open(KIND)
    asked: dict[str, Value] = {"shell": os.fsdecode(command)}
    call.ask("sh", asked, asked)
    if call.held:
        call.ready()
    if not call.live and call.recorded is None:
        session.never(call.lane, KIND)
    lane = call.lane.child("sh", strand=True)
    if call.live:
        with call.inside():
            status = _system(_named(command, lane.name))
        call.part({"status": os.waitstatus_to_exitcode(status)}, EXIT, call.lane)
        call.end(Status.OK, None, call.lane)
        return status
    process = Served(session, call, lane, [], follows(session, lane))
    if process.followed:
        found = lanes.ours(_system)(_named(command, lane.name))
        process.over(os.waitstatus_to_exitcode(found))
    else:
        process.over(process.status or 0)
    return descriptors.wait_status(process.ended())


def _named(command: Any, lane: str) -> Any:
    """The command in an environment that names the lane: the shell inherits that of this process."""
    if inherit.here is None:
        return command
    quoted = "'" + lane.replace("'", "'\\''") + "'"
    return f"export {inherit.LANE}={quoted} {inherit.IMAGE}=0; ".encode() + os.fsencode(command)


def _spawning(name: str, real: Any) -> Any:
    def spawn(_: object, path: Any, argv: Any, env: Any, /, **options: Any) -> int:
        session: Any = current.session
        if session is None:
            return int(real(path, argv, env, **options))
        if lanes.inside() is not None:
            return int(lanes.ours(real)(path, argv, _dressed(env, ""), **options))
        argv = list(argv)
        call = session.open(KIND)
        asked: dict[str, Value] = {"argv": list(request.argv(argv))}
        changed = request.environment(env, as_seen(), as_here())
        if changed:
            asked["env"] = changed
        title = request.name({"args": argv, "executable": path})
        call.ask(title, {**asked, "executable": os.fsdecode(path)}, request.key(asked))
        if call.held:
            call.ready()
        for action in options.get("file_actions") or ():
            if action[0] == os.POSIX_SPAWN_DUP2 and request.foreign(action[1]):
                descriptors.know_foreign(action[1])
                session.note(descriptors.NOTE, f"{title} is given descriptors of the program's own")
        return (_record if call.live else _serve)(session, call, title, real, (path, argv, env), options)

    return in_place(spawn, real, "posix")


def _record(session: Any, call: Any, title: str, real: Any, what: tuple[Any, Any, Any], options: Any) -> int:
    path, argv, env = what
    process = Live(session, call, call.lane.child(title, strand=True), [])
    try:
        with call.inside():
            process.pid = real(path, argv, _dressed(env, process.name), **options)
    except BaseException as error:
        call.end(Status.ERROR, error)
        raise
    session.cause(call.lane, STARTED, process.name, body=process.pid)
    descriptors.know(process, [])
    return process.pid


def _serve(session: Any, call: Any, title: str, real: Any, what: tuple[Any, Any, Any], options: Any) -> int:
    path, argv, env = what
    if not begun(call):
        session.never(call.lane, KIND)
    lane = call.lane.child(title, strand=True)
    last = call.recorded.pieces[-1] if call.recorded.ended else None
    if last is not None and last[1].what == Status.ERROR:
        raise exceptions.revive(call.hand(last).value, call)
    process = Served(session, call, lane, [], follows(session, lane))
    if process.followed:
        process.pid = lanes.ours(real)(path, argv, _dressed(env, lane.name), **options)
    else:
        words = stand_in.words(process.status or 0)
        kept = {option: value for option, value in options.items() if option in _WHOM}
        process.pid = lanes.ours(_spawns["posix_spawn"])(words[0], words, {}, **kept)
    descriptors.know(process, [])
    found, pid = process.cause(STARTED, process.name)
    if not found or not isinstance(pid, int):
        return process.pid
    descriptors.know_as(process, pid)
    return pid


def _dressed(env: Any, lane: str) -> Any:
    # `Popen` itself spawns like this where it can, in an environment that its own seam has dressed.
    return env if inherit.here is None or inherit.LANE in env else inherit.here.dress(env, lane)


def install() -> None:
    """Puts the seams in place."""
    module: Any = os
    module.system = in_place(system, _system, "posix")
    for name, real in _spawns.items():
        setattr(module, name, _spawning(name, real))
