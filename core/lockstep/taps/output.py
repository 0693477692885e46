"""What the program prints on stdout: part of the run, and seen without changing a byte of it.

`sys.stdout` and its buffer stay the objects that Python made. They get a `write` of their own, which
reports what was written once it was. What leaves through `sys.stdout.buffer` while the text layer
flushes was reported as text already. Not seen: what is written to file descriptor 1 by other means
(`os.write`, a child process, a C library). stderr is not compared.

Whether the three standard streams are terminals, and how large, decides what programs print (colour,
wrapping, progress bars). It is a fact of the recording: a replay answers `isatty` and the terminal's
size as recorded, wherever it runs itself.
"""

from __future__ import annotations

import errno
import os
import sys
from _thread import allocate_lock, get_ident
from collections.abc import Callable
from typing import Any

from lockstep.log.model import Value
from lockstep.session import current

CHANNEL = "stdout"

_isatty = os.isatty
_terminal_size = os.get_terminal_size
# Methods of the text layer that write to the buffer.
_METHODS = ("flush", "reconfigure", "close", "seek", "tell", "truncate")
# Threads that are in the text layer: what that writes to the buffer is not the program's own bytes.
_inside: set[int] = set()
# The thread that ends the process, once it does: threads that are left print no more than was recorded.
_last = 0
_tapped: Any = None
_write: Any = None  # the text layer's own


def install() -> None:
    """Taps the stdout of this moment, once. A later replacement by the program writes to its buffer."""
    global _tapped, _write
    text: Any = sys.stdout
    if _tapped is not None or text is None or not hasattr(text, "buffer"):
        return
    try:
        _write = text.write
        text.write = _text_write(text.write)
        text.buffer.write = _bytes_write(text.buffer.write)
        for name in _METHODS:
            setattr(text, name, _passing(getattr(text, name)))
        text.detach = _detaching(text)
    except AttributeError:
        return  # not Python's own kind of stream (a host's replacement): nothing of it is stdout's
    _tapped = text


def start(session: Any, facts: Value = None) -> dict[str, Value]:
    """Recording: notes the terminals. Replay: answers with the recorded ones."""
    if session.recording:
        return {str(fd): [_isatty(fd), _size(fd)] for fd in (0, 1, 2)}
    session.printer = _print
    if isinstance(facts, dict):
        _pretend({int(fd): told for fd, told in facts.items()})
    return {}


def silence() -> None:
    """This thread ends the process. Recording its end takes a moment, which other threads would not have had:
    they stop at their next print, and what one has begun is written and recorded before this returns."""
    global _last
    _last = get_ident()  # before the wait, in which others, who wait longer already, would print once more each
    session = current.session
    over = session.printing(CHANNEL) if session is not None and session.recording else None
    if over is not None:
        over(False)


def _turn() -> tuple[Any, Callable[[bool], None] | None]:
    """The session, and what to call after the write."""
    session = current.session
    over = None if session is None else session.printing(CHANNEL)
    if _last and get_ident() != _last:
        if over is not None:
            over(False)
        never = allocate_lock()
        never.acquire()
        never.acquire()
    return session, over


def stop(session: Any) -> None:
    """The terminals are what they are again."""
    os.isatty, os.get_terminal_size = _isatty, _terminal_size
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is not None:
            vars(stream).pop("isatty", None)


def _text_write(original: Any) -> Any:
    def write(text: Any, /) -> Any:
        """Write string s to stream.

        Return the number of characters written
        (which is always equal to the length of the string).
        """
        session, over = _turn()
        thread, done = get_ident(), False
        _inside.add(thread)
        try:
            written = original(text)
            done = True
        finally:
            _inside.discard(thread)
            if done and session is not None:
                session.output(CHANNEL, text)
            if over is not None:
                over(done)
        return written

    return write


def _bytes_write(original: Any) -> Any:
    def write(data: Any, /) -> Any:
        """Write buffer b to the IO stream.

        Return the number of bytes written, which is always
        the length of b in bytes.
        """
        if get_ident() in _inside:
            return original(data)
        session, over = _turn()
        done = False
        try:
            written = original(data)
            done = True
            if session is not None:
                # A copy: the program may use its buffer again. An unbuffered stream may take less than all.
                session.output(CHANNEL, bytes(memoryview(data).cast("B")[:written]))
        finally:
            if over is not None:
                over(done)
        return written

    return write


def _passing(original: Any) -> Any:
    def method(*args: Any, **options: Any) -> Any:
        thread = get_ident()
        _inside.add(thread)
        try:
            return original(*args, **options)
        finally:
            _inside.discard(thread)

    method.__name__ = original.__name__
    method.__doc__ = original.__doc__
    return method


def _detaching(text: Any) -> Any:
    original = _passing(text.detach)

    def detach() -> Any:
        """The text layer is of no use any more, and fails as it does without us; its buffer stays tapped."""
        buffer = original()
        for name in ("write", "detach", *_METHODS):
            vars(text).pop(name, None)
        return buffer

    return detach


def _print(channel: str, data: Value) -> None:
    """Prints what a served effect printed while it was recorded; it is the effect's, not the program's."""
    if _tapped is None:
        return
    thread = get_ident()
    _inside.add(thread)
    try:
        if isinstance(data, bytes):
            type(_tapped).flush(_tapped)
            _tapped.buffer.write(data)
        else:
            _write(data)
    finally:
        _inside.discard(thread)


def _size(fd: int) -> Value:
    try:
        return list(_terminal_size(fd))
    except OSError:
        return None


def _pretend(told: dict[int, Any]) -> None:
    def isatty(fd: int, /) -> bool:
        found = told.get(fd)
        return _isatty(fd) if found is None else bool(found[0])

    def get_terminal_size(fd: int = 1, /) -> os.terminal_size:
        found = told.get(fd)
        if found is None:
            return _terminal_size(fd)
        if found[1] is None:
            raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
        return os.terminal_size(found[1])

    os.isatty, os.get_terminal_size = isatty, get_terminal_size
    for fd, stream in ((0, sys.stdin), (1, sys.stdout), (2, sys.stderr)):
        if stream is not None and fd in told:
            answer = bool(told[fd][0])
            vars(stream)["isatty"] = lambda answer=answer: answer
