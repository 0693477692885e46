"""Whose signals are with which an activity streams into its workflow (`temporalio.contrib.workflow_streams`).

In the record they are signals like any other, and nothing says who sent them. But each attempt of an activity publishes
by an id of its own, and while it is in flight. So in a fork its signals come where its recorded answer is given, and
where it runs for real they do not, since it sends others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep_temporal.protos import plain
from lockstep_temporal.recorded import RecordedEffect

PUBLISH = "__temporal_workflow_stream_publish"


def publisher(job: Any) -> str:
    """The id by which a signal was published; "" of any other job."""
    told = job.signal_workflow
    if not job.HasField("signal_workflow") or told.signal_name != PUBLISH or not told.input:
        return ""
    said = plain(told.input[0])
    id = said.get("publisher_id") if isinstance(said, dict) else None
    return id if isinstance(id, str) else ""


def owners(
    publishers: Mapping[str, tuple[int, int]], activities: Sequence[RecordedEffect]
) -> dict[str, tuple[RecordedEffect, ...]]:
    """By publisher, given the steps that its first and its last signal came with: the activities that it may be of.
    Where it is one, it is that one's; where it is none, it was somebody outside."""
    found: dict[str, tuple[RecordedEffect, ...]] = {}
    for id, (first, last) in publishers.items():
        fit = tuple(each for each in activities if _in_flight(each, first))
        whole = tuple(each for each in fit if each.answered < 0 or last <= max(each.answered, first))
        found[id] = whole or fit
    # Of several at once, each has published by an id of its own.
    known = {fit[0].begin.pos for fit in found.values() if len(fit) == 1}
    for id, fit in found.items():
        others = tuple(each for each in fit if each.begin.pos not in known)
        if len(fit) > 1 and len(others) == 1:
            found[id] = others
    return found


def _in_flight(activity: RecordedEffect, step: int) -> bool:
    """Whether an activity was when this step's signals were sent. A local one holds them up until its task is over."""
    if activity.asked == activity.answered:
        return activity.answered == step - 1
    return activity.asked < step and (activity.answered < 0 or step <= activity.answered)
