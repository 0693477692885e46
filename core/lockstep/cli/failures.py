"""What a failed command says, and the status it ends with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from lockstep.cli import terminal
from lockstep.debugger.lines import safe

OK = 0
NO = 1  # the answer is no: diverged, differs, not consistent
UNUSABLE = 2  # wrong usage, or a store that cannot be used
INTERRUPTED = 130  # as a shell says it
NOT_STARTED = 125  # the target cannot be imported or started, so that `git bisect run` skips it


@contextmanager
def reported(*, as_json: bool = False, debug: bool = False, reading: bool = False) -> Iterator[None]:
    """Turns an error of ours into its line and status. With `debug` it passes, traceback and all.

    reading  the block shows what is stored. It may have been made by anybody and make no sense: whatever that leads
             to is reported as damage
    """
    try:
        yield
    except BrokenPipeError:
        # `lockstep log x | head`: the reader has enough. Python would complain once more at exit.
        sys.stdout = None
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        terminal.say("lockstep: interrupted")
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        from lockstep.errors import LockstepError  # here: a program to record starts before this is needed

        if reading and not debug and not isinstance(error, (LockstepError, OSError)):
            from lockstep.errors import Code, StoreError

            error = StoreError(
                Code.DAMAGED,
                f"what is stored cannot be shown ({type(error).__name__}: {error}). lockstep verify RUN --times 0 says "
                "whether it is damaged; if not, this is a bug in Lockstep: --debug shows where",
            )
        if debug or not isinstance(error, LockstepError):
            raise error
        fail(error, as_json=as_json)


def fail(error: Exception, *, as_json: bool = False, status: int | None = None) -> NoReturn:
    """Says the error in one line and ends with the status that its kind stands for."""
    from lockstep.errors import LockstepError, TargetError

    code = error.code if isinstance(error, LockstepError) else ""
    message = error.message if isinstance(error, LockstepError) else str(error)
    if as_json:
        terminal.emit({"error": {"code": str(code), "message": message}})
    terminal.say([("lockstep: ", "bad"), (f"{code} " if code else "", "strong"), safe(message)])
    if status is None:
        status = NOT_STARTED if isinstance(error, TargetError) else UNUSABLE
    raise SystemExit(status)
