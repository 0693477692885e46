"""Workflows that show what an interceptor may get wrong."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kitchen_sink import QUICKLY, SOON
from temporalio import activity, workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError


@activity.defn
async def echo(value: Any) -> Any:
    return value


@activity.defn
def beats(count: int) -> int:
    """Beats from its own thread, and from one that it has begun."""

    def beat(who: str) -> None:
        for number in range(count):
            activity.heartbeat(who, number)

    beat("own")
    context = contextvars.copy_context()
    other = threading.Thread(target=context.run, args=(beat, "other"))
    other.start()
    other.join()
    if activity.info().attempt == 1:
        raise ApplicationError("once", {"beats": count}, type="Once")
    return count


@activity.defn
async def fails(card: str) -> str:
    raise ApplicationError("it was declined", {"card": card}, type="Declined", non_retryable=True)


@dataclass
class Message:
    """As frameworks have them."""

    text: str


@activity.defn
async def say(text: str) -> Message:
    return Message(text)


@activity.defn
async def hear(messages: list[Any], last: Message) -> str:
    return last.text


@workflow.defn
class Talks:
    """Hands messages on, once with their type and once without."""

    @workflow.run
    async def run(self) -> str:
        said = await workflow.execute_activity(say, "hello", start_to_close_timeout=SOON)
        return await workflow.execute_activity(hear, args=[[said], said], start_to_close_timeout=SOON)


@workflow.defn
class Grows:
    """What it gives to each activity, it changes afterwards."""

    @workflow.run
    async def run(self, rounds: int) -> list[str]:
        said: list[str] = []
        for number in range(rounds):
            said.append(f"round {number}")
            await workflow.execute_activity(echo, said, start_to_close_timeout=SOON)
        return said


@workflow.defn
class Draws:
    """Draws random numbers between everything that an interceptor looks at."""

    def __init__(self) -> None:
        self.drawn: list[Any] = []
        self.told = 0

    @workflow.run
    async def run(self, kinds: list[str]) -> dict[str, Any]:
        for kind in kinds:
            self.draw()
            if kind == "activity":
                await workflow.execute_activity(echo, kind, start_to_close_timeout=SOON)
            elif kind == "local":
                await workflow.execute_local_activity(echo, kind, start_to_close_timeout=SOON)
            elif kind == "child":
                # Without an id of its own the SDK would draw one.
                own = f"{workflow.info().workflow_id}-{len(self.drawn)}"
                await workflow.execute_child_workflow(Named.run, kind, id=own)
            elif kind == "signal":
                await workflow.wait_condition(lambda: self.told > 0)
                self.told -= 1
            else:
                await workflow.sleep(timedelta(milliseconds=1))
        self.draw()
        return {"seed": workflow.random_seed(), "drawn": self.drawn}

    def draw(self) -> None:
        self.drawn.append(workflow.random().random())

    @workflow.signal
    def tell(self) -> None:
        self.told += 1

    @workflow.query
    def waits(self) -> int:
        return len(self.drawn)


@workflow.defn
class Named:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"child {name} {workflow.uuid4().version}"


_failed_once: set[str] = set()


@workflow.defn(sandboxed=False)
class Stumbles:
    """Its second workflow task fails once, after it has given a command."""

    @workflow.run
    async def run(self, name: str) -> str:
        first = await workflow.execute_activity(echo, f"{name} 1", start_to_close_timeout=SOON)
        second = workflow.start_activity(echo, f"{name} 2", start_to_close_timeout=SOON)
        if workflow.info().workflow_id not in _failed_once:
            _failed_once.add(workflow.info().workflow_id)
            raise RuntimeError("a bug, fixed in a moment")
        return f"{first}, {await second}"


@workflow.defn
class Beats:
    @workflow.run
    async def run(self, count: int) -> int:
        return await workflow.execute_activity(
            beats, count, start_to_close_timeout=SOON, heartbeat_timeout=SOON, retry_policy=QUICKLY
        )


@workflow.defn
class Fails:
    @workflow.run
    async def run(self, card: str) -> str:
        return await workflow.execute_activity(fails, card, start_to_close_timeout=SOON)


@workflow.defn
class Waits:
    """Waits for a signal between two activities."""

    def __init__(self) -> None:
        self.said: list[str] = []

    @workflow.run
    async def run(self, name: str) -> list[str]:
        self.said.append(await workflow.execute_activity(echo, name, start_to_close_timeout=SOON))
        await workflow.wait_condition(lambda: len(self.said) > 1)
        self.said.append(await workflow.execute_activity(echo, f"{name} again", start_to_close_timeout=SOON))
        return self.said

    @workflow.signal
    async def say(self, what: str) -> None:
        self.said.append(what)

    @workflow.query
    def heard(self) -> list[str]:
        return self.said


@activity.defn(dynamic=True)
async def anything(args: Sequence[RawValue]) -> str:
    return f"{activity.info().activity_type} of {len(args)}"


@workflow.defn(dynamic=True)
class Anything:
    def __init__(self) -> None:
        self.heard: list[str] = []

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> list[str]:
        self.heard.append(await workflow.execute_activity("unheard of", args=["a", 2], start_to_close_timeout=SOON))
        await workflow.wait_condition(lambda: len(self.heard) > 1)
        return self.heard

    @workflow.signal(dynamic=True)
    async def hear(self, name: str, args: Sequence[RawValue]) -> None:
        self.heard.append(f"{name} with {len(args)}")


WORKFLOWS = [Talks, Grows, Draws, Named, Stumbles, Beats, Fails, Waits, Anything]
ACTIVITIES = [say, hear, echo, beats, fails, anything]
