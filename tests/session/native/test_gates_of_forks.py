"""What is asked past the cut of a fork waits until the part before is over, and keeps its order."""

import asyncio
import threading
import time

from lockstep.session.native.gate import Gate


def test_who_waits_at_a_gate_goes_through_in_the_order_of_coming():
    async def passed() -> list[int]:
        gate, through = Gate(), []

        async def wait(number: int) -> None:
            await gate.passed(lambda: False)
            through.append(number)

        waiting = [asyncio.create_task(wait(number)) for number in range(40)]
        await asyncio.sleep(0)
        assert not through
        gate.open()
        late = asyncio.create_task(wait(40))
        await asyncio.gather(*waiting, late)
        return through

    assert asyncio.run(passed()) == [*range(41)]


def test_who_is_stopped_does_not_wait_for_a_gate():
    async def passed() -> None:
        await asyncio.wait_for(Gate().passed(lambda: True), 5)

    asyncio.run(passed())


def test_threads_wait_at_the_same_gate():
    gate, through = Gate(), []

    def wait(number: int) -> None:
        gate.wait(lambda: False)
        through.append(number)

    waiting = []
    for number in range(3):
        waiting.append(threading.Thread(target=wait, args=(number,)))
        waiting[-1].start()
        while len(gate._waiting) <= number:
            time.sleep(0.001)
    assert not through
    gate.open()
    for thread in waiting:
        thread.join(5)
    assert through == [0, 1, 2]
