"""The agent of the conformance tests as a workflow: it asks the model, uses the tools that the model wants, all at
once, and goes on as a new execution with the next prompt. What the model says while it speaks is published in the
workflow's stream, for whoever subscribes to it.
"""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RetryPolicy
from temporalio.contrib.workflow_streams import WorkflowStream
from temporalio.exceptions import ActivityError

from lockstep_temporal import subject_code

_AGAIN = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=2)
_PATIENCE = timedelta(seconds=30)


@workflow.defn(name="agent")
class Agent:
    """Answers prompts, one after the other."""

    @workflow.init
    def __init__(self, prompts: list[str], messages: list[dict[str, Any]], words: list[str]) -> None:
        self._stream = WorkflowStream()

    @workflow.run
    async def run(self, prompts: list[str], messages: list[dict[str, Any]], words: list[str]) -> list[str]:
        """messages: the conversation so far. words: what was answered to the prompts before."""
        code = subject_code.now()
        messages = messages or [{"role": "system", "content": code.scenario.system}]
        messages.append({"role": "user", "content": prompts[0]})
        try:
            while True:
                said = await workflow.execute_activity(
                    "ask_model", messages, start_to_close_timeout=_PATIENCE, retry_policy=_AGAIN,
                    result_type=dict[str, Any],
                )  # fmt: skip
                messages.append(said)
                if not said.get("tool_calls"):
                    break
                messages += await asyncio.gather(*(_use(call, code.local) for call in said["tool_calls"]))
        except ActivityError:
            await self._close()
            raise
        await self._close()
        words = [*words, said["content"] + code.scenario.ending]
        if prompts[1:]:
            workflow.continue_as_new(args=[prompts[1:], messages, words])
        return words

    async def _close(self) -> None:
        """Lets subscribers have what there is, and tells it."""
        self._stream.detach_pollers()
        await workflow.wait_condition(workflow.all_handlers_finished)
        items = [Payload.FromString(base64.b64decode(item.data)) for item in self._stream.get_state().log]
        subject_code.heard[:] = workflow.payload_converter().from_payloads(items)


async def _use(call: dict[str, Any], local: bool) -> dict[str, Any]:
    """The message with what a tool said, or that it did not work."""
    name = call["function"]["name"]
    argument = json.loads(call["function"]["arguments"])["argument"]
    execute = workflow.execute_local_activity if local else workflow.execute_activity
    try:
        answer = await execute(
            name, argument, schedule_to_close_timeout=_PATIENCE, retry_policy=_AGAIN, result_type=str
        )
    except ActivityError as error:
        answer = f"{name} does not work: {error.cause}"
    return {"role": "tool", "tool_call_id": call["id"], "content": answer}
