"""What the program reads from stdin: an answer from outside, effects of kind `human`.

`sys.stdin` stays the object that Python made. Its lowest layer gets a `readinto` and a `readall` of its
own, so one effect is what one read of the descriptor brought, and everything above (lines, iteration,
encodings) works as ever. On a terminal `input()` goes past all of that to the line editor, so there the
builtin itself is wrapped. Not seen: reads of descriptor 0 by other means (`os.read`, a child process,
asyncio's pipe transports).
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import Any

from lockstep.log.model import Status, Value
from lockstep.session import current, exceptions

KIND = "human"

_isatty = os.isatty
_input = builtins.input
_tapped = False
# Recorded bytes that a smaller buffer than the recording's has not taken yet.
_left = bytearray()


def install() -> None:
    """Taps the stdin of this moment, once."""
    global _tapped
    if _tapped or sys.stdin is None:
        return
    raw: Any = getattr(getattr(sys.stdin, "buffer", None), "raw", None)
    if raw is None:
        return  # a host's replacement, not the process's stdin
    raw.readinto = _readinto(raw.readinto)
    raw.readall = _readall(raw.readall)
    _tapped = True


def start(session: Any, facts: Value = None) -> dict[str, Value]:
    """Notes whether `input()` speaks to a person at a terminal; a replay is told by the recording."""
    if session.recording:
        person = _isatty(0) and _isatty(1)
    else:
        person = isinstance(facts, dict) and bool(facts.get("person"))
    if person:
        builtins.input = _asking
    return {"person": person}


def stop(session: Any) -> None:
    """`input` is Python's own again."""
    builtins.input = _input
    _left.clear()


def _readinto(original: Any) -> Any:
    def readinto(buffer: Any, /) -> Any:
        """Same as RawIOBase.readinto()."""
        session = current.session
        if session is None:
            return original(buffer)
        view = memoryview(buffer).cast("B")
        if not _left:
            call = session.open(KIND)
            call.ask("stdin", {"read": "some"}, {"read": "some"})
            if call.held:
                call.ready()
            if call.live:
                return _live(call, lambda: original(buffer), lambda got: bytes(view[:got]) if got is not None else None)
            served = _served(call)
            if served is None:
                return None
            _left.extend(served)
        size = min(len(_left), len(view))
        view[:size] = _left[:size]
        del _left[:size]
        return size

    return readinto


def _readall(original: Any) -> Any:
    def readall() -> Any:
        """Read all data from the file, returned as bytes."""
        session = current.session
        if session is None:
            return original()
        call = session.open(KIND)
        call.ask("stdin", {"read": "all"}, {"read": "all"})
        if call.held:
            call.ready()
        rest = bytes(_left)
        _left.clear()
        if call.live:
            got = _live(call, original, lambda got: got)
            return got if not rest else rest + (got or b"")
        served = _served(call)
        return rest + served if served is not None else rest or None

    return readall


def _asking(prompt: object = "", /) -> Any:
    """Read a string from standard input.  The trailing newline is stripped.

    The prompt string, if given, is printed to standard output without a
    trailing newline before reading input.
    """
    session: Any = current.session
    if session is None:
        return _input(prompt)
    call = session.open(KIND)
    asked: dict[str, Value] = {"prompt": str(prompt)}
    call.ask("input", asked, asked)
    if call.held:
        call.ready()
    if call.live:
        return _live(call, lambda: _input(prompt), lambda got: got)
    answer = _served(call)
    # Shown as it stood on the recorded terminal, where the line editor wrote it and not the program.
    if sys.stderr is not None:
        sys.stderr.write(f"{prompt}{answer}\n")
    return answer


def _live(call: Any, read: Any, kept: Any) -> Any:
    try:
        with call.inside():
            got = read()
    except BaseException as error:
        call.end(Status.ERROR, error)
        raise
    call.end(Status.OK, kept(got))
    return got


def _served(call: Any) -> Any:
    piece = call.take()
    if piece.status is Status.ERROR:
        raise exceptions.revive(piece.value, call)
    return piece.value
