"""Where in the user's own code something happened: `file:line in function`."""

from __future__ import annotations

import os
import sys
import sysconfig
from contextlib import suppress
from types import CodeType, FrameType

from lockstep.session.lanes import ours

_LIBRARIES = tuple(
    {
        os.path.realpath(path) + os.sep
        for path in (*sysconfig.get_paths().values(), os.path.dirname(os.__file__))
        if path
    }
    - {os.path.realpath(sysconfig.get_path("scripts")) + os.sep, os.path.realpath(sysconfig.get_path("data")) + os.sep}
)
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SITE = os.sep + "site-packages" + os.sep
_realpath = ours(os.path.realpath)  # it looks at each directory above, which is not the program's doing
_relpath = ours(os.path.relpath)
_adapters: tuple[str, ...] = ()
_known: dict[str, bool] = {}
_named: dict[str, str] = {}
_MOST_PLACES = 4096
_above: dict[int, int] = {}  # by depth: how many of a client's frames lay between the last time
_placed: dict[tuple[CodeType, int], str] = {}  # finding a line number takes as long as all the rest


def pass_over(directory: str) -> None:
    """An adapter's own code lies there, wherever it is installed: it is nobody's place."""
    global _adapters
    _adapters = (*_adapters, os.path.realpath(directory) + os.sep)
    _known.clear()


def users(filename: str) -> bool:
    found = _known.get(filename)
    if found is None:
        real = filename if filename.startswith("<") else _realpath(filename)
        library = real.startswith((_OURS, "<frozen", *_adapters)) or _SITE in real or real.startswith(_LIBRARIES)
        found = _known[filename] = not library
    return found


def site(depth: int = 1) -> str:
    """The innermost frame that is neither Lockstep's, nor the standard library's, nor an installed package's."""
    return _site(sys._getframe(depth))[0]


def usual_site(depth: int) -> str:
    """The same, for the one place that asks with this depth, call after call. A client's dozen frames, each made for
    us when it is looked at, take 12 µs, so it is looked first where the user's own code called a client the last
    time: code of the user's that has come between since, in the place of one of the client's frames, is passed over."""
    above = _above.get(depth)
    if above is not None:
        with suppress(ValueError):  # there are not so many frames
            client = sys._getframe(depth + above)
            caller = client.f_back
            if caller is not None and _known.get(client.f_code.co_filename) is False:
                text = _placed.get((caller.f_code, caller.f_lasti))
                if text is not None:
                    return text
    frame: FrameType | None = sys._getframe(depth)
    text, passed = _site(frame)
    if passed:
        _above[depth] = passed - 1
    return text


def _site(frame: FrameType | None) -> tuple[str, int]:
    """What `site` says, and how many frames lie before."""
    known = _known.get  # most calls pass a dozen frames of a client: not a function call for each
    passed = 0
    while frame is not None:
        filename = frame.f_code.co_filename
        found = known(filename)
        if found or (found is None and users(filename)):
            return _placed_at(frame), passed
        frame = frame.f_back
        passed += 1
    return "", 0


def _placed_at(frame: FrameType) -> str:
    code = frame.f_code
    place = code, frame.f_lasti
    text = _placed.get(place)
    if text is None:
        text = f"{_short(code.co_filename)}:{frame.f_lineno} in {code.co_qualname}"
        if len(_placed) < _MOST_PLACES:
            _placed[place] = text
    return text


def line(depth: int = 1) -> str:
    """`file:line` of that frame, or of the one of the user's own code that led to it."""
    found = site(depth + 1).partition(" in ")[0]
    frame = sys._getframe(depth)
    return found or f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}"


def defined(code: CodeType) -> str:
    """`file:line` of a function, of its first decorator if it has any."""
    return f"{_short(code.co_filename)}:{code.co_firstlineno}"


def place(filename: str, line: int, function: str) -> str:
    """A place as `site` tells it."""
    return f"{_short(filename)}:{line} in {function}"


def package(depth: int = 1) -> str:
    """The installed package nearest to here: the one that the user's own code had do it. "" where there is none."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        filename = frame.f_code.co_filename
        if users(filename):
            return ""
        if _SITE in filename and not filename.startswith(_OURS):
            return str(frame.f_globals.get("__name__", "")).partition(".")[0]
        frame = frame.f_back
    return ""


def of_exception(error: BaseException) -> str:
    """The innermost frame of the user's own code in the traceback of `error`."""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if users(code.co_filename):
            found = f"{_short(code.co_filename)}:{trace.tb_lineno} in {code.co_qualname}"
        trace = trace.tb_next
    return found


def _short(filename: str) -> str:
    # Asking for the working directory costs 30 µs.
    found = _named.get(filename)
    if found is None:
        relative = _relpath(filename) if os.path.isabs(filename) else filename
        found = _named[filename] = filename if relative.startswith("..") else relative
    return found
