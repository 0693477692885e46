"""Orders: an activity that looks up, one that charges, a timer, a signal, an update, another order in flight."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

SOON = timedelta(seconds=20)
ONCE = RetryPolicy(maximum_attempts=1)

called: list[tuple[str, Any]] = []  # by activities, in this process
together = threading.Barrier(2)


@dataclass
class Found:
    id: int
    total: int
    status: str = "open"


@activity.defn
async def look_up(order: int) -> Found:
    called.append(("look_up", order))
    return Found(order, order * 100)


@activity.defn
def charge(order: int, cents: int) -> str:
    called.append(("charge", (order, cents)))
    return f"charged {cents}"


@activity.defn
async def meets(who: str) -> str:
    """Ends when another one is on at the same time."""
    await asyncio.get_running_loop().run_in_executor(None, together.wait, 20)
    return who


@workflow.defn
class Order:
    """`status` of what is found decides."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    @workflow.run
    async def run(self, order: int) -> dict[str, Any]:
        found = await workflow.execute_activity(look_up, order, start_to_close_timeout=SOON)
        await workflow.sleep(3)
        if found.status == "lost":
            return {"lost": found.id, "at": workflow.now().second}
        try:
            paid = await workflow.execute_activity(
                charge, args=[order, found.total], start_to_close_timeout=SOON, retry_policy=ONCE
            )
        except ActivityError as error:
            cause = error.cause
            assert isinstance(cause, ApplicationError)
            paid = f"{cause.type}: {cause.message} {list(cause.details)}"
        return {"paid": paid, "notes": self.notes, "drawn": workflow.random().randrange(1000)}

    @workflow.signal
    def note(self, text: str) -> None:
        self.notes.append(text)

    @workflow.update
    def amend(self, text: str, times: int) -> int:
        self.notes += [text] * times
        return len(self.notes)


@workflow.defn
class Racing:
    """An activity against a timer."""

    @workflow.run
    async def run(self) -> str:
        looking = asyncio.create_task(workflow.execute_activity(look_up, 1, start_to_close_timeout=SOON))
        waiting = asyncio.create_task(workflow.sleep(5))
        done, _ = await workflow.wait([looking, waiting], return_when=asyncio.FIRST_COMPLETED)
        return "found" if looking in done else "too late"


@workflow.defn
class Meeting:
    """Two activities at once."""

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.execute_activity(look_up, 1, start_to_close_timeout=SOON)
        calls = (workflow.execute_activity(meets, who, start_to_close_timeout=SOON) for who in ("one", "two"))
        return sorted(await asyncio.gather(*calls))


@workflow.defn
class Patient:
    """Waits for a signal that nobody has promised."""

    def __init__(self) -> None:
        self.told = ""

    @workflow.run
    async def run(self) -> str:
        await workflow.execute_activity(look_up, 1, start_to_close_timeout=SOON)
        await workflow.wait_condition(lambda: bool(self.told))
        return self.told

    @workflow.signal
    def tell(self, what: str) -> None:
        self.told = what


@workflow.defn
class Polling:
    """Looks each second whether it was told."""

    def __init__(self) -> None:
        self.told = ""

    @workflow.run
    async def run(self) -> str:
        while not self.told:
            await workflow.sleep(1)
        return self.told

    @workflow.signal
    def tell(self, what: str) -> None:
        self.told = what


@workflow.defn
class Rounds:
    """A run for each round."""

    @workflow.run
    async def run(self, left: int, seen: list[int]) -> list[int]:
        found = await workflow.execute_activity(look_up, left + len(seen), start_to_close_timeout=SOON)
        seen.append(found.total)
        if left:
            workflow.continue_as_new(args=[left - 1, seen])
        return seen


@workflow.defn
class Stamping:
    """Puts into a request what is another each time, as frameworks do."""

    @workflow.run
    async def run(self, text: str) -> list[str]:
        found = await workflow.execute_activity(look_up, 1, start_to_close_timeout=SOON)
        return [
            await workflow.execute_activity(
                "agent__writer__model_request",
                {"messages": [{"parts": [{"content": text, "timestamp": f"{workflow.now()} {found.total}"}]}]},
                start_to_close_timeout=SOON,
            )
        ]  # fmt: skip


@activity.defn(name="agent__writer__model_request")
async def model_request(request: dict[str, Any]) -> str:
    text = request["messages"][0]["parts"][0]["content"]
    called.append(("model", text))
    return f"wrote {text}"


@workflow.defn
class Nexus:
    """Asks for what cannot be emulated, once it is told to."""

    @workflow.run
    async def run(self) -> str:
        found = await workflow.execute_activity(look_up, 1, start_to_close_timeout=SOON)
        if found.total == 100:
            return "nothing"
        client = workflow.create_nexus_client(service="billing", endpoint="elsewhere")
        return str(await client.execute_operation("pay", "now", output_type=str))


WORKFLOWS = [Order, Racing, Meeting, Patient, Polling, Rounds, Stamping, Nexus]
ACTIVITIES = [look_up, charge, meets, model_request]
