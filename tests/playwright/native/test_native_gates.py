"""What a page asks past the cut of a fork waits until the part before is over, and keeps its order."""

import asyncio

from lockstep_playwright.tailing import Gate


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
