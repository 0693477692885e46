"""Histories for the tests here: committed ones, and such as are changed on purpose."""

import importlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import kitchen_sink
from live_server import committed
from temporalio.client import WorkflowHistory

from lockstep.log.store import open_store
from lockstep_temporal import history
from lockstep_temporal.expected import Differs
from lockstep_temporal.imported import Against
from lockstep_temporal.recorded import Recorded
from lockstep_temporal.setup import setup_of

COMMITTED = ("steps", "unwinds", "edges.1", "edges.2", "kitchen_sink.1", "kitchen_sink.2")


def events_of(text: str) -> list[Any]:
    return list(WorkflowHistory.from_json("", text).events)


def workflow_id(events: Sequence[Any]) -> str:
    found: str = events[0].workflow_execution_started_event_attributes.workflow_id
    return found


def steps_of(events: Sequence[Any]) -> list[list[Any]]:
    """The events of each step, as an import keeps them."""
    with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/store.db", create=True) as store:
        name = history.take(store, events)
        return [step.events() for step in Recorded(store.run(name)).steps]


def against(events: Sequence[Any], target: Any = kitchen_sink) -> tuple[Against, Differs | None]:
    """Today's code against a history, and the first difference."""
    steps = steps_of(events)
    found = Against(setup_of(target), steps, workflow_id=workflow_id(events))
    return found, next(filter(None, (found.differs(number) for number in range(len(steps)))), None)


def changed(
    folder: Path, monkeypatch: Any, name: str, *changes: tuple[str, str], of: ModuleType = kitchen_sink
) -> ModuleType:  # fmt: skip
    """A module with changes, as another module."""
    source = Path(of.__file__ or "").read_text()
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (folder / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module(name)


def edited(name: str, change: Any) -> bytes:
    """A committed history after `change(events)`, where events are JSON."""
    told = json.loads(committed(name))
    made = change(told["events"])
    return json.dumps({"events": told["events"] if made is None else made}).encode()
