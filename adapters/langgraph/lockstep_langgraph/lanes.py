"""Lanes of a graph's run: one name for each strand of it, the same in every run of the same graph.

LangGraph tells its namespaces and tasks apart by ids that hang on the random id of a checkpoint. A lane has none of
them; it is made of the names of nodes, and of the places in which tasks were sent:

    main                  the graph itself: its checkpoints
    main/plan             the task of node `plan`, and the checkpoints of a subgraph that it runs
    main/worker.2         the third task that was sent to `worker` in a step (`Send`)
    main/flow>double.0    the first `@task` that `flow` called
    main/plan/search      the task of node `search` in the subgraph of `plan`
    main/plan~1           the second subgraph that one task of `plan` runs
    main/plan>2           the third piece of work that `plan` sent to other threads, by `batch` or `RunnableParallel`

So the last part of a task's lane is the task, and what is before it the lane of the checkpoints that it works on.
An id says nothing of its task: who prepares the tasks has to tell them here (`remember`), before they run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from lockstep.log.address import quote

ROOT = "main"

_SEP, _END = "|", ":"  # of LangGraph's namespaces: names may have neither
_PUSH = "__pregel_push"
_HANDLER = "node_error_handler"
_SENT = re.compile(r"(>\d+)+$")  # what a task has sent to other threads runs graphs in the task's own namespace
_MOST = 1 << 16  # tasks remembered; more than run at once, in all graphs of a process


class Task(msgspec.Struct, frozen=True):
    """What is known of a task before it runs: the node, or the function of a `@task`, and its part of a lane, with
    the sign that it is joined by. `within`: that of the task which called it, "" for one that the graph began."""

    node: str
    part: str
    within: str = ""


_tasks: dict[str, Task] = {}


def remember(task_id: str, node: str, path: Any, caller: str = "") -> None:
    """Says which task has this id. `path` as LangGraph has it: `("__pregel_pull", node)`, `("__pregel_push", 2,
    False)`, or, of what another task called, `("__pregel_push", its path, 0, True)`; `caller` is that one's id."""
    if task_id in _tasks:
        return
    while len(_tasks) >= _MOST:
        try:
            del _tasks[next(iter(_tasks))]
        except (KeyError, RuntimeError, StopIteration):  # another thread did it meanwhile
            continue
    above = _tasks.get(caller) if caller else None
    _tasks[task_id] = Task(node, _part(node, path), above.within + above.part if above is not None else "")


def task(task_id: str) -> Task | None:
    """The task of this id, None where nobody said which it is."""
    return _tasks.get(task_id)


def of_namespace(namespace: str | None) -> str:
    """The lane of the checkpoints in a namespace; also that of the task whose namespace it is."""
    return ROOT + "".join(map(_segment, namespace.split(_SEP))) if namespace else ROOT


def of_task(namespace: str | None, task_id: str, path: str = "") -> str:
    """The lane of a task that works on the checkpoints of `namespace`. `path`: as `put_writes` has it, for a task
    that was not remembered."""
    lane = of_namespace(namespace)
    found = _tasks.get(task_id)
    return lane + (found.within + found.part if found is not None else _told(path))


def of_config(config: Mapping[str, Any]) -> str:
    """The lane of the code that runs under this config: its task's, or the graph's where that is outside of any."""
    namespace = (config.get("configurable") or {}).get("checkpoint_ns")
    if not namespace:
        return ROOT
    about = config.get("metadata") or {}
    if about.get("langgraph_checkpoint_ns") == namespace:
        path: Any = about.get("langgraph_path") or ()
        above, _, own = namespace.rpartition(_SEP)
        caller = above.rpartition(_END)[2] if len(path) > 2 and not isinstance(path[1], (int, str)) else ""
        remember(own.rpartition(_END)[2], about.get("langgraph_node", ""), path, caller)
    return of_namespace(namespace)


def checkpoints_of(lane: str) -> str:
    """The lane of the checkpoints that the task of this lane works on."""
    return lane.rpartition("/")[0]


def runs(call: str, checkpoints: str) -> bool:
    """Whether checkpoints of one lane, put while a call of another was open, are of a graph that the call ran."""
    task = _SENT.sub("", call)
    return checkpoints == task or checkpoints.startswith((f"{task}/", f"{task}~", f"{task}>"))


def _segment(part: str) -> str:
    """One part of a namespace as a part of a lane."""
    name, end, task_id = part.rpartition(_END)
    if not end:
        # What has no id is the number of a subgraph among those of its task, or the name of one that keeps its own
        # history through all of a thread.
        return f"~{part}" if part.isdigit() else f"/{quote(part)}"
    found = _tasks.get(task_id)
    return found.part if found is not None else f"/{quote(name)}"


def _part(node: str, path: Any) -> str:
    name = quote(node).replace(">", "%3E").replace("~", "%7E")
    if not path:
        return f"/{name}"
    if _HANDLER in path:
        return f"/{name}.{_part(str(path[1]), path[: path.index(_HANDLER)])[1:]}"
    if path[0] != _PUSH:
        return f"/{name}"
    called = len(path) > 2 and not isinstance(path[1], int)
    return f">{name}.{path[2]}" if called else f"/{name}.{path[1]}"


def _told(path: str) -> str:
    """The part of a task that is known by the text of its path only."""
    parts = path.lstrip("~").split(", ")
    if parts[0] == _PUSH:
        numbers = [int(part) for part in parts if part.isdigit()]
        return f"/push.{numbers[-1] if numbers else 0}"
    return f"/{quote(parts[1])}" if len(parts) > 1 else "/task"
