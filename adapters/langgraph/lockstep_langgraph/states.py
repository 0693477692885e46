"""A checkpoint with other values in its channels: put as a child of the recorded one.

Only the edited channels get a new version, and who has seen the old one has seen the new one, too. So what runs next
is what would have run next, `Command(goto=…)` and all (LangGraph's own `update_state` plans anew, and loses that).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.checkpoint.base.id import uuid6
from langgraph.pregel._algo import task_path_str

from lockstep.debugger.edits import Edit
from lockstep.errors import Code, EditError
from lockstep_langgraph import changes, lanes
from lockstep_langgraph.planning import NULL_TASK

_ID = "|"  # joins the parts of a namespace; a task's id follows its name after a colon


def edit(graph: Any, saver: Any, config: Mapping[str, Any], edits: Sequence[Edit], codec: Any) -> None:
    """Puts it. `config` says which checkpoint is edited: thread, namespace and id.

    What tasks of that one had written is given to the same tasks of the new one, whose ids are others. Raises
    EditError.
    """
    where = config["configurable"]
    found = saver.get_tuple(config)
    own = _graph(graph, where["checkpoint_ns"], edits)
    values, deltas = _values(own, found, saver)
    changed = changes.state(edits, values, own.channels, codec)
    checkpoint = {**found.checkpoint, "channel_values": dict(found.checkpoint["channel_values"])}
    versions = dict(checkpoint["channel_versions"])
    seen = {node: dict(each) for node, each in checkpoint["versions_seen"].items()}
    new: dict[str, Any] = {}
    for name, value in {**{name: values[name] for name in deltas if name in values}, **changed}.items():
        old = versions.get(name)
        versions[name] = new[name] = saver.get_next_version(old, None)
        checkpoint["channel_values"][name] = _stored(own.channels[name], value, name, edits)
        for each in seen.values():
            if old is not None and each.get(name) == old:
                each[name] = versions[name]
    made = {
        **checkpoint, "id": str(uuid6(clock_seq=found.metadata.get("step", -1))), "channel_versions": versions,
        "versions_seen": seen, "ts": datetime.datetime.now(datetime.UTC).isoformat(),
    }  # fmt: skip
    metadata = {**found.metadata, "source": "fork"}
    put = saver.put({"configurable": dict(where)}, made, metadata, new)
    if found.pending_writes:
        _move(graph, saver, found, put)


def _graph(graph: Any, namespace: str, edits: Sequence[Edit]) -> Any:
    """The graph whose checkpoints are in a namespace."""
    if not namespace:
        return graph
    path = _ID.join(part.partition(":")[0] for part in namespace.split(_ID) if not part.isdigit())
    for name, each in graph.get_subgraphs(recurse=True):
        if name == path:
            return each
    raise EditError(
        Code.UNEDITABLE,
        f"{edits[0].address} is a state of the graph that {path} runs from inside its code, which the target does not "
        "show: edit a call of it, or the state of the graph around it",
    )


def _values(graph: Any, found: Any, saver: Any) -> tuple[dict[str, Any], list[str]]:
    """The values of all channels, and the names of those that are rebuilt from writes: a child has them whole."""
    values = dict(found.checkpoint["channel_values"])
    deltas = [name for name, channel in graph.channels.items() if type(channel).__name__ == "DeltaChannel"]
    if deltas:
        from langgraph.pregel._checkpoint import channels_from_checkpoint

        live, _ = channels_from_checkpoint(graph.channels, found.checkpoint, saver=saver, config=found.config)
        for name in deltas:
            if live[name].is_available():
                values[name] = live[name].get()
            else:
                values.pop(name, None)
    return values, deltas


def _stored(channel: Any, value: Any, name: str, edits: Sequence[Edit]) -> Any:
    """What a checkpoint has of a channel with that value."""
    if type(channel).__name__ == "DeltaChannel":
        from langgraph.checkpoint.serde.types import _DeltaSnapshot

        return _DeltaSnapshot(value)
    try:
        return channel.from_checkpoint(value).checkpoint()
    except Exception as problem:
        raise EditError(
            Code.UNEDITABLE, f"{edits[0].address}: the channel {name} cannot have this value: {problem}"
        ) from None


def _move(graph: Any, saver: Any, before: Any, after: Any) -> None:
    """Gives what a checkpoint's tasks wrote to the same tasks of its copy: those in the same places."""
    old, new = (graph.get_state(config).tasks for config in (before.config, after))
    same = {task.path: task for task in new}
    ids = {task.id: same[task.path] for task in old if task.path in same}
    written: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in before.pending_writes:
        written.setdefault(task_id, []).append((channel, value))
    for task_id, writes in written.items():
        task = ids.get(task_id)
        if task is not None:
            lanes.remember(task.id, task.name, task.path)
            saver.put_writes(after, writes, task.id, task_path_str(task.path))
        elif task_id == NULL_TASK:
            saver.put_writes(after, writes, task_id)
