"""A workflow that others can listen to: its activities publish what they say, word by word."""

from __future__ import annotations

import asyncio
import base64
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RetryPolicy
from temporalio.contrib.workflow_streams import WorkflowStream, WorkflowStreamClient

SOON = timedelta(seconds=20)
MOMENT = timedelta(milliseconds=5)
asked: list[str] = []  # what was said for real
lies: set[str] = set()  # what is told wrong


@activity.defn
async def tell(about: str) -> str:
    """Publishes each word."""
    asked.append(about)
    words = f"about {'a lie' if about in lies else about}".split()
    stream = WorkflowStreamClient.from_within_activity(batch_interval=MOMENT)
    async with stream:
        topic = stream.topic("words", type=str)
        for word in words:
            topic.publish(word, force_flush=True)
            await asyncio.sleep(0.01)
    return " ".join(words)


@activity.defn
async def knock(times: int) -> int:
    """Signals its workflow by its own client."""
    handle = activity.client().get_workflow_handle(activity.info().workflow_id)
    for number in range(times):
        await handle.signal("knocked", number)
    return times


@activity.defn
async def ring(workflow_id: str) -> None:
    """Signals another workflow."""
    await activity.client().get_workflow_handle(workflow_id).signal("knocked", 1)


@activity.defn
async def linger(about: str) -> None:
    """Publishes until it is cancelled, and once more then."""
    stream = WorkflowStreamClient.from_within_activity(batch_interval=MOMENT)
    async with stream:
        topic = stream.topic("words", type=str)
        try:
            for number in range(1000):
                topic.publish(f"{about} {number}", force_flush=True)
                await asyncio.sleep(0.01)
        finally:
            topic.publish("left")


ACTIVITIES = [tell, knock, ring, linger]


def published(stream: WorkflowStream) -> list[str]:
    """What is in a workflow's stream."""
    items = [Payload.FromString(base64.b64decode(item.data)) for item in stream.get_state().log]
    return [*workflow.payload_converter().from_payloads(items)]


@workflow.defn
class Tale:
    """Each sentence is about the last one."""

    @workflow.init
    def __init__(self, about: str, sentences: int = 2) -> None:
        self.stream = WorkflowStream()

    @workflow.run
    async def run(self, about: str, sentences: int = 2) -> list[str]:
        for number in range(sentences):
            about = await workflow.execute_activity(tell, f"{about} {number}", start_to_close_timeout=SOON)
        self.stream.detach_pollers()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return [about, *published(self.stream)]


@workflow.defn
class Choir:
    """Several speak at once, and then one more."""

    @workflow.init
    def __init__(self, voices: list[str]) -> None:
        self.stream = WorkflowStream()

    @workflow.run
    async def run(self, voices: list[str]) -> list[str]:
        said = await asyncio.gather(
            *(workflow.execute_activity(tell, voice, start_to_close_timeout=SOON) for voice in voices)
        )
        last = await workflow.execute_activity(tell, " and ".join(said), start_to_close_timeout=SOON)
        return [last, *published(self.stream)]


@workflow.defn
class Notes:
    """What is said of one thing does not hang on another."""

    @workflow.init
    def __init__(self, things: list[str]) -> None:
        self.stream = WorkflowStream()

    @workflow.run
    async def run(self, things: list[str]) -> list[str]:
        for thing in things:
            await workflow.execute_activity(tell, thing, start_to_close_timeout=SOON)
        return published(self.stream)


@workflow.defn
class Impatient:
    """Waits for some words, and not for who says them."""

    @workflow.init
    def __init__(self, words: int, timeout: float = 20) -> None:
        self.stream = WorkflowStream()

    @workflow.run
    async def run(self, words: int, timeout: float = 20) -> bool:
        once = RetryPolicy(maximum_attempts=1)
        within = timedelta(seconds=timeout)
        said = workflow.start_activity(linger, "word", start_to_close_timeout=within, retry_policy=once)
        await workflow.wait_condition(lambda: len(published(self.stream)) >= words or said.done())
        return len(published(self.stream)) >= words


@workflow.defn
class Near:
    """It speaks in local activities."""

    @workflow.init
    def __init__(self, about: str) -> None:
        self.stream = WorkflowStream()

    @workflow.run
    async def run(self, about: str) -> list[str]:
        self.words = 0
        for number in range(2):
            about = await workflow.execute_local_activity(tell, f"{about} {number}", start_to_close_timeout=SOON)
            self.words += len(about.split())
            # What a local activity sends comes once its workflow task is over.
            await workflow.wait_condition(lambda: len(published(self.stream)) >= self.words)
        return [about, *published(self.stream)]


@workflow.defn
class Door:
    """Counts who knocks."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    @workflow.signal
    def knocked(self, number: int) -> None:
        self.heard.append(number)

    @workflow.run
    async def run(self, other: str = "") -> list[int]:
        if other:
            await workflow.execute_activity(ring, other, start_to_close_timeout=SOON)
        times = await workflow.execute_activity(knock, 2, start_to_close_timeout=SOON)
        await workflow.execute_activity(knock, times, start_to_close_timeout=SOON)
        return self.heard


WORKFLOWS = [Tale, Choir, Notes, Impatient, Near, Door]
