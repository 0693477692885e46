"""How the command line's process ends where a framework's threads would abort an interpreter that is torn down.

Python ends by taking its objects apart while threads of native libraries may still hold some. Those of Temporal's core
then crash the process, with a status that says nothing of what was asked (temporalio/sdk-python#300). So what Python
does for a program is done here, and the process ends with its status, at once.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from typing import Any


def ended(command: Callable[[], None]) -> None:
    """Runs a command. The process ends with it where an adapter asks for that, else its outcome is passed on."""
    try:
        command()
    except BaseException as error:
        if not abrupt():
            raise
        leave(_status(error))
    if abrupt():
        leave(0)


def abrupt() -> bool:
    """Whether a framework that was used here cannot be torn down."""
    registry = sys.modules.get("lockstep.adapter.registry")
    if registry is None or not registry.found.cache_info().currsize:
        return False
    return any(adapter.abrupt is not None and adapter.abrupt() for adapter in registry.installed())


def leave(status: int) -> None:
    """Ends the process: threads that are to be waited for are, functions that were registered for it run, and what was
    written gets out."""
    seams: Any = (threading, atexit)
    for end in (seams[0]._shutdown, seams[1]._run_exitfuncs):
        try:
            end()
        except BaseException:
            sys.excepthook(*sys.exc_info())  # as Python does, which goes on
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            status = status or 120  # Python's own status for it
    os._exit(status)


def _status(error: BaseException) -> int:
    """What Python would end with, having said what it would say."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)  # noqa: T201
        return 1
    sys.excepthook(type(error), error, error.__traceback__)
    return 130 if isinstance(error, KeyboardInterrupt) else 1
