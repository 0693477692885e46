"""How a call ended is told from what it raised: what the program did to its task is no failure of the call."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

from lockstep.log.model import Status
from lockstep.session.call import failed


class Noting:
    """Notes how it was ended."""

    def __init__(self) -> None:
        self.ended: tuple[str, Any] | None = None

    def end(self, status: str, value: Any = None) -> None:
        self.ended = status, value


async def _waits(call: Noting, *, begun: asyncio.Event) -> None:
    try:
        begun.set()
        await asyncio.Event().wait()
    except BaseException as error:
        failed(call, error)  # type: ignore[arg-type]
        raise


def test_a_call_whose_task_is_cancelled_is_cancelled() -> None:
    call = Noting()

    async def main() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(_waits(call, begun=begun))
        await begun.wait()
        task.cancel("enough")
        await asyncio.wait([task])

    asyncio.run(main())
    assert call.ended is not None
    status, error = call.ended
    assert (status, type(error), error.args) == (Status.CANCELLED, asyncio.CancelledError, ("enough",))


def test_a_call_whose_coroutine_is_dropped_is_closed_without_an_error() -> None:
    call = Noting()

    async def main() -> None:
        dropped = _waits(call, begun=asyncio.Event())
        dropped.send(None)
        dropped.close()

    asyncio.run(main())
    assert call.ended == (Status.CLOSED, None)


def test_anything_else_that_is_raised_is_an_error_with_that() -> None:
    class CancelledError(Exception):
        """Another library's, of the same name."""

    for error in (ValueError("no"), CancelledError(), KeyboardInterrupt()):
        call = Noting()
        failed(call, error)  # type: ignore[arg-type]
        assert call.ended == (Status.ERROR, error)


def test_a_program_without_asyncio_does_not_load_it_for_that() -> None:
    program = """
import sys
from lockstep.session.call import status_of
print(status_of(ValueError()).value, "asyncio" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert told.stdout == "error False\n", told.stderr
