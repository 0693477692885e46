"""Starts the session of a process that was launched by `lockstep record` or `lockstep replay`.

Called by `boot/sitecustomize.py` before the program's first line. The first Python process of the command
begins the run; each that descends from it joins, as the lane that its parent named (`LOCKSTEP_LANE`). A
process that nobody named, since its parent is none of ours (a shell, a package manager), is numbered as it
comes: `main/sh.1` is the first Python of that shell, `main/sh.1/report#1` the next.

multiprocessing's own processes get no lane. What it spawns is named when it is told what to do
(`taps.multiprocess`), and what its forkserver forks likewise.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from lockstep.launch import inherit, meeting
from lockstep.launch.followed import Followed
from lockstep.launch.inherit import Ours
from lockstep.launch.settings import Settings

_settings: Settings | None = None
_followed: Followed | None = None


def start(boot: str) -> None:
    """Begins what the environment asks for; `boot` is the directory that brought us here."""
    global _settings
    ours = Ours.take(boot)
    if ours is None or _settings is not None:
        return
    settings = Settings.read(ours)
    if settings.mode not in ("record", "replay", "fork"):
        return
    _settings, inherit.here = settings, ours
    if ours.get("LOCKSTEP_NURSERY"):
        from lockstep.launch import nursery

        nursery.wait(settings)
    lane = settings.lane
    server = _server()
    if server:
        meeting.hello(settings.meeting, meeting.SERVER, lane, sys.executable)
        if server == "forkserver":
            _when_told()
    elif "--multiprocessing-fork" in sys.orig_argv:
        _when_told()
    elif not lane:
        meeting.hello(settings.meeting, meeting.WITHIN, lane, sys.executable)
    elif lane == meeting.FIRST and settings.mode != "record" and settings.image < settings.images:
        meeting.hello(settings.meeting, meeting.EARLIER, lane, sys.executable)
    else:
        _follow(settings, _lane(settings))
    _wrap_exec(settings)


def told(lane: str | None) -> None:
    """A process of multiprocessing has come to its work: its parent's name for it, "" for one that belongs to an
    effect, None where the parent knew none."""
    settings = _settings
    if settings is None or _followed is not None:
        return
    settings.image = 0
    if lane:
        claimed = meeting.claim(settings.meeting, lane)
        _follow(settings, lane if claimed is not None else None, at_exit=False)
        return
    settings.lane = ""
    meeting.hello(settings.meeting, meeting.WITHIN if lane == "" else meeting.CHILD, "", sys.executable)
    if settings.mode != "record":
        os._exit(2)  # nothing of a replay may run for real


def ends_with(status: int) -> None:
    """What this process will exit with, where only its own code knows it."""
    if _followed is not None:
        _followed.status = status


def _at_exit() -> None:
    if _followed is not None:
        _followed.at_exit()


def _follow(settings: Settings, lane: str | None, *, at_exit: bool = True) -> None:
    """Begins the session of this process as `lane`; None where nobody can be told any more. `at_exit`: whether to
    end it as Python exits."""
    global _followed
    if lane is None:
        if settings.mode != "record":
            os._exit(2)
        meeting.hello(settings.meeting, meeting.CHILD, settings.lane, sys.executable)
        return
    settings.lane = lane
    assert settings.ours is not None
    settings.ours.set("LOCKSTEP_LANE", lane)
    settings.ours.set("LOCKSTEP_IMAGE", "0")  # of its children; this process's own is in the settings
    meeting.hello(settings.meeting, meeting.RECORDED, lane, sys.executable)
    followed = _followed = Followed(settings)
    if at_exit:
        atexit.register(followed.at_exit)  # first, so that it runs last
    if not followed.begin(_name()):
        _followed = None
        meeting.release(settings.meeting, lane)
        meeting.hello(settings.meeting, meeting.EARLIER, lane, sys.executable)


def _lane(settings: Settings) -> str | None:
    """The lane of this process: what the environment says, if nobody has it yet."""
    given, number = settings.lane, 0
    lane = given
    while True:
        got = meeting.claim(settings.meeting, lane)
        if got is not False:
            return lane if got else None
        number += 1
        lane = f"{given}/{_name()}#{number}"


def _server() -> str:
    """Which process of multiprocessing's own this is, "" for none. A forkserver's children are forks of it and
    are no Python starts of their own."""
    if "-c" not in sys.orig_argv:
        return ""
    code = sys.orig_argv[-1] if sys.orig_argv[-2:-1] == ["-c"] else " ".join(sys.orig_argv)
    return next((name for name in ("resource_tracker", "forkserver") if f"multiprocessing.{name}" in code), "")


def _when_told() -> None:
    """Prepares a process that multiprocessing will tell what to do. The taps come before what it imports."""
    try:
        # Before the taps: what a session waits and measures with must be the real thing.
        from lockstep.session import session  # noqa: F401  # isort: skip
        from lockstep import taps
        from lockstep.taps import multiprocess

        taps.install()
        atexit.register(_at_exit)  # first, so that it runs after multiprocessing's own
        multiprocess.when_told = told
        multiprocess.ends_with = ends_with
    except Exception as error:
        settings = _settings
        if settings is not None and settings.mode != "record":
            os._exit(2)
        sys.stderr.write(f"lockstep: a process of multiprocessing is not recorded: {error!r}\n")


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


def _wrap_exec(settings: Settings) -> None:
    """Ends the session before this process becomes another program, and lets that one find us."""
    execv, execve = os.execv, os.execve
    ours = settings.ours
    assert ours is not None

    def becoming(path: Any) -> None:
        # `os.execvp` tries one directory after the other: a path that will fail ends nothing.
        if isinstance(path, int) or os.access(path, os.X_OK):
            image = settings.image + 1 if _followed is None else _followed.becomes(path)
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
