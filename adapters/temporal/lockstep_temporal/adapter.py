"""What Lockstep knows of Temporal before anything of it is imported."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.adapter.late import Later
from lockstep.adapter.native import Native
from lockstep.adapter.registry import require
from lockstep.errors import Code, TargetError
from lockstep.log.model import Value

_WORKERS = "temporalio.worker"
_HEAD = 4096  # bytes of a file that are looked at
_DEFINITION = "__temporal_workflow_definition"  # where the SDK keeps it on a workflow's class


_OWN = {
    "data_converter": "a temporalio DataConverter, in place of the setup's: it has the codec that payloads need",
    "server": '"local": forks run on a development server; or the address of one on loopback',
}


def _is_setup(target: Any) -> bool:
    """A workflow class, a list that has one, a module that has one, or a `Setup`."""
    if isinstance(target, ModuleType):
        return any(_is_workflow(value) for value in vars(target).values())
    if isinstance(target, list | tuple):
        return any(_is_workflow(value) for value in target)
    return _is_workflow(target) or type(target).__module__ == "lockstep_temporal.setup"


def _is_workflow(target: Any) -> bool:
    return isinstance(target, type) and _DEFINITION in vars(target)


def _program(target: Any, given: Value) -> Callable[[], Any]:
    raise TargetError(Code.BAD_TARGET, "workflows are the target of a workflow's own run, as in temporal/order-7")


def _reads(content: bytes) -> bool:
    """Whether it looks like a history in JSON."""
    head = content[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head[:1] in (b"{", b"[") and (b'"eventId"' in head or b'"events"' in head)


def _order(content: bytes) -> str:
    """When its first event was: executions of a chain are taken one after the other."""
    head = content[:_HEAD].decode("utf-8", "replace")
    return head.partition('"eventTime"')[2].partition('"')[2].partition('"')[0]


def _imports(store: Any, content: bytes, name: str) -> str:
    require(adapter)
    from lockstep_temporal.history import imports

    return imports(store, content, name)


def _attach(module: ModuleType) -> None:
    """In a program under `lockstep record`: once it has loaded what runs workflows."""
    if module.__name__ == _WORKERS:
        from lockstep_temporal.attaching import attach

        attach()


adapter = Adapter(
    name="temporal",
    title="Temporal",
    distribution="temporalio",
    extra="temporal",
    modules=("temporalio", _WORKERS),
    instrument=_attach,
    tested=Versions("1.27", "1.35.0"),
    steps=Steps(kind="task", what="each workflow task: what came to the workflow, and its commands"),
    restore=Way(exact=False, reason="a workflow's state is its code's: it can only be run again"),
    re_execute=Way(exact=True),
    target=Target(
        what="workflow class, list of workflows and activities, module, or lockstep_temporal.Setup",
        inputs="recorded, per turn", accepts=_is_setup, program=_program,
    ),
    subject="lockstep_temporal.subject:subject",
    native=Native(
        replay=Later("lockstep_temporal.replaying:replay"),
        areplay=Later("lockstep_temporal.replaying:areplay"),
        fork=Later("lockstep_temporal.forking:fork"),
        afork=Later("lockstep_temporal.forking:afork"),
        plain=Later("lockstep_temporal.coded:plainly"),
        own=_OWN,
    ),
    abrupt=Later("lockstep_temporal.ending:core_started"),
    reads=_reads,
    imports=_imports,
    order=_order,
    commands="lockstep_temporal.command:app",
    workers=Later("lockstep_temporal.probe_client:hired"),
)  # fmt: skip
