"""How a task waits for a recorded answer: suspended where the recording suspended, resumed where it resumed."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, NoReturn

from lockstep.errors import Code
from lockstep.session import exceptions, lanes
from lockstep.session.lanes import INSIDE, leave
from lockstep.session.tape import Slot
from lockstep.session.ticks import Ticks


class _Answer(asyncio.Future[None]):
    """One that the recording saw cancelled is cancelled where it was then, which may be some callbacks
    after the program called `cancel()` (a live client has clean-up to do first)."""

    on_cancel: Any = None  # where the recording saw it cancelled: asks for that place
    message: Any = None
    told: Any = None  # the message that the recorded program got, where the client had put one in

    def cancel(self, msg: Any = None) -> bool:
        if self.on_cancel is not None and not self.done():
            self.message = msg
            self.on_cancel()
            return True
        return super().cancel(msg)

    def cancel_now(self) -> None:
        ours = self.told is None or exceptions.scope_message(self.message) is not None
        super().cancel(self.message if ours else self.told)


async def until(call: Any, slot: Slot, cancelled: bool, ticks: Ticks, told: Any = None) -> None:
    """Suspends the task until the slot's place. Raises CancelledError where the recording did; `told`: with this
    message, which the recorded program had not given itself."""
    session = call.session
    answer = _Answer(loop=ticks.loop)
    answer.told = told

    def release(loop: Any) -> None:
        if answer.done():
            return
        if session.stopped:
            answer.set_exception(session.latched())
        elif cancelled:
            answer.cancel_now()
        else:
            answer.set_result(None)
        # The wake-up goes ahead of what is scheduled already: this is its recorded place.
        ready = loop._ready
        if ready:
            ready.appendleft(ready.pop())

    if cancelled:
        answer.on_cancel = lambda: ticks.park(slot, release)
        ticks.park_forever(answer)
    else:
        ticks.park(slot, release)
    # As in the recording, the callback that resumes the program belongs to the effect.
    token = INSIDE.set(call)
    try:
        await answer
    except asyncio.CancelledError:
        if not cancelled and not session.stopped:
            ticks.unpark(slot)
            session.diverge(Code.ORDER, "the program cancels a call that was answered in the recording", call=call)
        if not session.stopped:
            session.gate.perform(slot)
        raise
    finally:
        leave(token)
    if not session.stopped:
        session.gate.perform(slot)


async def forever(call: Any, ticks: Ticks) -> NoReturn:
    """Waits past the cut of an interrupted recording: nothing comes but the end."""
    answer = _Answer(loop=ticks.loop)
    token = INSIDE.set(call)
    try:
        ticks.park_forever(answer)
        await answer
    finally:
        leave(token)
    raise call.session.latched()


async def until_live(call: Any, ticks: Ticks) -> bool:
    """Of a fork: suspends the task until the part served is over, and says whether it had to. The callbacks by which
    it goes on are nobody's."""
    answer = _Answer(loop=ticks.loop)
    token = INSIDE.set(call)
    try:
        ticks.park_forever(answer)
        waits: bool = call.session.when_live(partial(_post, ticks.loop, answer))
        if waits:
            await answer
        return waits
    finally:
        leave(token)


async def until_stopped(call: Any, ticks: Ticks) -> NoReturn:
    """Of a fork that is live: waits for what the record has no more of. Only the program ends it, or a refusal."""
    answer = _Answer(loop=ticks.loop)
    token = INSIDE.set(call)
    try:
        call.session.when_stopped(partial(_post, ticks.loop, answer))
        await answer
    finally:
        leave(token)
    raise call.session.latched()


def _post(loop: Any, answer: _Answer) -> None:
    def go_on() -> None:
        if not answer.done():
            answer.set_result(None)

    if not loop.is_closed():
        lanes.ours(loop.call_soon_threadsafe)(go_on)
