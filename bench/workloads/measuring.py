"""A workflow that measures one thing after the other, and its history as a server would keep it, of any length.

Measuring, measure          the total of so many measurements, of which those in WRONG go wrong
history(2000)               its history JSON, in which measurement n was answered with n
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity, workflow

BEGAN = datetime(2026, 11, 30, 9, 30, tzinfo=UTC)
BAD = -1_000_000
WRONG: set[int] = set()
DONE: list[int] = []  # measurements that really took place
RUN_ID = "0196e000-0000-7000-8000-000000000001"


@activity.defn
def measure(number: int) -> int:
    DONE.append(number)
    return BAD if number in WRONG else number


@workflow.defn
class Measuring:
    """Adds up."""

    @workflow.run
    async def run(self, count: int) -> int:
        total = 0
        for number in range(1, count + 1):
            total += await workflow.execute_activity(measure, number, start_to_close_timeout=timedelta(seconds=20))
        return total


def history(count: int, answers: Mapping[int, int] = {}, workflow_id: str = "measuring") -> str:
    """The history of a run that measured so often. `answers`: those that are not the number itself."""
    events = _Events()
    queue = {"name": "queue", "kind": "TASK_QUEUE_KIND_NORMAL"}
    events.add(
        "WORKFLOW_EXECUTION_STARTED", workflowType={"name": "Measuring"}, taskQueue=queue, input=_payloads(count),
        workflowTaskTimeout="10s", originalExecutionRunId=RUN_ID, firstExecutionRunId=RUN_ID, identity="tests",
        attempt=1, firstWorkflowTaskBackoff="0s", workflowId=workflow_id, priority={},
    )  # fmt: skip
    total = 0
    for number in range(1, count + 2):
        completed = _task(events, queue, flags=number == 1)
        if number > count:
            events.add("WORKFLOW_EXECUTION_COMPLETED", result=_payloads(total), workflowTaskCompletedEventId=completed)
            break
        scheduled = events.add(
            "ACTIVITY_TASK_SCHEDULED", activityId=str(number), activityType={"name": "measure"}, taskQueue=queue,
            header={}, input=_payloads(number), scheduleToCloseTimeout="0s", scheduleToStartTimeout="0s",
            startToCloseTimeout="20s", heartbeatTimeout="0s", workflowTaskCompletedEventId=completed,
            retryPolicy={"initialInterval": "1s", "backoffCoefficient": 2.0, "maximumInterval": "100s"},
            useWorkflowBuildId=True, priority={},
        )  # fmt: skip
        begun = events.add("ACTIVITY_TASK_STARTED", scheduledEventId=scheduled, identity="tests", attempt=1)
        answer = answers.get(number, number)
        total += answer
        events.add(
            "ACTIVITY_TASK_COMPLETED", result=_payloads(answer), scheduledEventId=scheduled, startedEventId=begun,
            identity="tests",
        )  # fmt: skip
    return json.dumps({"events": events.made})


def _task(events: _Events, queue: Any, *, flags: bool) -> str:
    scheduled = events.add("WORKFLOW_TASK_SCHEDULED", taskQueue=queue, startToCloseTimeout="10s", attempt=1)
    begun = events.add("WORKFLOW_TASK_STARTED", scheduledEventId=scheduled, identity="tests")
    told = {"coreUsedFlags": [3, 4, 1, 2], "sdkName": "temporal-python", "sdkVersion": "1.35.0"} if flags else {}
    return events.add(
        "WORKFLOW_TASK_COMPLETED", scheduledEventId=scheduled, startedEventId=begun, identity="tests", sdkMetadata=told
    )


class _Events:
    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []

    def add(self, kind: str, **attributes: Any) -> str:
        number = str(len(self.made) + 1)
        head, *rest = kind.lower().split("_")
        name = head + "".join(word.capitalize() for word in rest) + "EventAttributes"
        at = (BEGAN + timedelta(milliseconds=5 * len(self.made))).isoformat(timespec="milliseconds")
        at = at.replace("+00:00", "Z")
        self.made.append({"eventId": number, "eventTime": at, "eventType": f"EVENT_TYPE_{kind}", name: attributes})
        return number


def _payloads(value: Any) -> dict[str, Any]:
    def coded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    return {"payloads": [{"metadata": {"encoding": coded("json/plain")}, "data": coded(json.dumps(value))}]}
