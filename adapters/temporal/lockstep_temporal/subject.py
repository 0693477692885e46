"""An agent as a Temporal workflow as a subject of `lockstep.conformance`: its model and its tools are activities, its
client has the plugin, and the server is a development server on loopback.

Needs the openai SDK and Temporal's command line beside Temporal's SDK.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

import lockstep
from lockstep.conformance import outside, telling
from lockstep.conformance.scenario import Tool
from lockstep.conformance.subject import Done, Found, Mode, Work
from lockstep.debugger import newest
from lockstep.log.address import MAIN, quote
from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep_temporal import subject_code

_MOST = 8  # activities at once
_SOON = timedelta(milliseconds=10)
_numbers = itertools.count(1)


class Temporal:
    """Runs agents as a program does whose client has the plugin, and replays, forks and bisects their workflows."""

    modes = (
        Mode("sync activities", False), Mode("async activities", True), Mode("local activities", True),
        Mode("unsandboxed", True),
    )  # fmt: skip
    unsupported: Mapping[str, str] = {}
    hooks: tuple[str, ...] = (
        "lockstep_temporal.execution:Execution._take",
        "lockstep_temporal.recording:Recorder.task",
        "lockstep_temporal.batch:Batch.append",
    )
    core_hooks: tuple[str, ...] = (
        "lockstep.session.secrets:Secrets.asked",
        "lockstep.session.secrets:Secrets.hide",
        "lockstep.session.native.journal:Journal.append",
        "lockstep.log.sqlite.shared:SharedStream.append",
    )

    def run(self, work: Work) -> Done:
        return asyncio.run(_talk(work, _unused(work), []))

    def record(self, work: Work) -> Done:
        from lockstep_temporal import LockstepPlugin

        name = _unused(work)
        with telling.faults() as faults:
            done = asyncio.run(_talk(work, name, [LockstepPlugin(work.store)]))
        return replace(done, run=_newest(work, f"temporal/{quote(name)}"), faults=tuple(faults))

    def replay(self, work: Work, run: str) -> Done:
        subject_code.heard.clear()
        replay = lockstep.replay(run, target(work), store=work.store)
        return telling.replayed(replay, run, _words(replay.result, replay.error), _heard(), _told)

    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        run = telling.fork(address, target(work), edits=edits, live=[*live], store=work.store)
        return telling.forked(run, _words(run.result, run.error) if run.state == "complete" else (), told=_told)

    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        def judge(view: Any) -> bool | None:
            return bad(_words(view.result, None)[-1]) if view.state == "complete" else None

        verdict = lockstep.bisect(run, target(work), bad=judge, store=work.store)
        return telling.found(verdict)


def target(work: Work) -> Any:
    """The agent of a scenario, for a replay, a fork or a bisect."""
    from lockstep_temporal import Setup

    return Setup(**_worker(work))


def _worker(work: Work) -> dict[str, Any]:
    """What a worker of the agent is made with, and a `Setup` too."""
    from temporalio.worker import UnsandboxedWorkflowRunner
    from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

    from lockstep_temporal.subject_workflow import Agent

    subject_code.change(subject_code.Code(work.scenario, local=work.mode.name == "local activities"))
    # The workflow's module is run anew in the sandbox; what the code is made of is not.
    through = SandboxRestrictions.default.with_passthrough_modules("lockstep_temporal.subject_code")
    sandboxed = SandboxedWorkflowRunner(restrictions=through)
    runner = UnsandboxedWorkflowRunner() if work.mode.name == "unsandboxed" else sandboxed
    activities = [_model(work), *(_tool(work, tool) for tool in work.scenario.tools)]
    return {"workflows": [Agent], "activities": activities, "workflow_runner": runner}


def _model(work: Work) -> Any:
    """The activity that asks the model. Its clients try nothing again: Temporal does."""
    from openai import APIStatusError, AsyncOpenAI, OpenAI
    from temporalio import activity
    from temporalio.contrib.workflow_streams import WorkflowStreamClient
    from temporalio.exceptions import ApplicationError

    options: Any = {"base_url": f"{work.url}/v1", "api_key": work.scenario.key, "max_retries": 0}
    request: Any = {"model": "gpt-4o", "tools": [_schema(tool) for tool in work.scenario.tools] or None}
    if request["tools"] is None:
        del request["tools"]

    def refused(error: APIStatusError) -> ApplicationError:
        return ApplicationError(f"status {error.status_code}", type="Model", non_retryable=error.status_code < 500)

    def ask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
        try:
            with OpenAI(**options) as client:
                return _message(client.chat.completions.create(**request, messages=messages))
        except APIStatusError as error:
            raise refused(error) from error

    async def aask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
        try:
            async with AsyncOpenAI(**options) as client:
                return _message(await client.chat.completions.create(**request, messages=messages))
        except APIStatusError as error:
            raise refused(error) from error

    async def stream_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
        """Publishes what the model says as it comes."""
        published = WorkflowStreamClient.from_within_activity(batch_interval=_SOON)
        heard = published.topic("said", type=str)
        pieces: list[Any] = []
        try:
            async with published, AsyncOpenAI(**options) as client:
                async for chunk in await client.chat.completions.create(**request, messages=messages, stream=True):
                    pieces.append(chunk)
                    if chunk.choices and chunk.choices[0].delta.content:
                        heard.publish(chunk.choices[0].delta.content)
        except APIStatusError as error:
            raise refused(error) from error
        return _joined(pieces)

    ask = aask_model if work.mode.asynchronous else ask_model
    # Only coroutines are given a client by the SDK, to publish with.
    made = activity.defn(name="ask_model")(stream_model if work.scenario.streams else ask)
    return lockstep.mark(made, effect="inference")


def _message(completion: Any) -> dict[str, Any]:
    said: dict[str, Any] = completion.choices[0].message.model_dump(exclude_none=True, mode="json")
    return {"content": "", **said}


def _joined(chunks: list[Any]) -> dict[str, Any]:
    """The message that a stream was of."""
    from openai.lib.streaming.chat import ChatCompletionStreamState

    state = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(chunk)
    return _message(state.get_final_completion())


def _schema(tool: Tool) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"argument": {"type": "string"}}, "required": ["argument"]}
    return {"type": "function", "function": {"name": tool.name, "parameters": parameters}}


def _tool(work: Work, tool: Tool) -> Any:
    from temporalio import activity

    def use(argument: str) -> Any:
        return outside.use(work.url, tool.name, argument)

    async def ause(argument: str) -> Any:
        return await outside.ause(work.url, tool.name, argument)

    made = activity.defn(name=tool.name)(ause if work.mode.asynchronous else use)
    return lockstep.mark(made, effect=tool.effect)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Temporal logs each attempt that failed, and the scenarios have many that do."""
    logger = logging.getLogger("temporalio")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


async def _talk(work: Work, name: str, plugins: list[Any]) -> Done:
    """Gives the agent the prompts, as a workflow of that name."""
    from temporalio.client import Client, WorkflowFailureError
    from temporalio.worker import Worker

    from lockstep_temporal import ending, subject_server

    ending.settle()
    client = await Client.connect(await subject_server.address(), plugins=plugins)
    with _quiet(), ThreadPoolExecutor(_MOST) as executor:
        async with Worker(client, task_queue=name, activity_executor=executor, **_worker(work)):
            agent = await client.start_workflow(
                "agent", args=[[*work.scenario.prompts], [], []], id=name, task_queue=name, result_type=list[str]
            )
            pieces = await _subscribed(client, name) if work.scenario.streams else ()
            try:
                words = await agent.result()
            except WorkflowFailureError as error:
                return Done(error=_told(error), pieces=pieces)
    return Done(outputs=tuple(words), pieces=pieces)


async def _subscribed(client: Any, name: str) -> tuple[str, ...]:
    """What a workflow's stream brings who subscribes to it, until there is no more."""
    from temporalio.contrib.workflow_streams import WorkflowStreamClient

    stream = WorkflowStreamClient.create(client, name)
    return tuple([item.data async for item in stream.topic("said", type=str).subscribe(poll_cooldown=_SOON)])


def _heard() -> tuple[str, ...]:
    """What the workflow that was replayed has in its stream: there is nobody who subscribes."""
    return tuple(subject_code.heard)


def _words(result: Any, error: BaseException | None) -> tuple[str, ...]:
    return tuple(result) if error is None and result is not None else ()


def _newest(work: Work, run: str) -> str:
    """The branch that a workflow went on in, where the server did not take a task of it."""
    with open_store(work.store) as store:
        branch = newest.branch(store.run(run)) if store.has_run(run) else ""
    return f"{run}@{branch}" if branch not in ("", MAIN) else run


def _told(error: BaseException | None) -> str:
    """What was at the bottom of a failure."""
    while error is not None and (cause := getattr(error, "cause", None)) is not None:
        error = cause
    return telling.raised(error)


def _unused(work: Work) -> str:
    """A workflow id that neither the server nor the store has."""
    return f"{work.scenario.name}-{os.getpid()}-{next(_numbers)}"


subject = Temporal()
