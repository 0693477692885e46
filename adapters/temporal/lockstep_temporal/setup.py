"""What a workflow's recorded run is driven with: its code, and what the user's worker is set up with.

    Setup(workflows=[OrderWorkflow], activities=[charge], plugins=[OpenAIAgentsPlugin()])
    setup_of(OrderWorkflow)     setup_of([OrderWorkflow, charge])     setup_of(app.workflows)

What a worker is told that changes what a workflow sees or does has to be told here too: plugins, interceptors, the data
converter, runners. All else about a worker (queues, pollers, slots) does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import msgspec

from lockstep.errors import Code, TargetError

_WORKFLOW = "__temporal_workflow_definition"  # where the SDK keeps the definition on a workflow's class
_INPUT = re.compile(r"(arguments|args|input)(?![\w-])")  # of activities, of signals, of children
_ACTIVITY = "__temporal_activity_definition"


class Setup(msgspec.Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """A worker, as far as its workflows notice it. The arguments are those of `temporalio.worker.Worker`.

    workflows   classes with `@workflow.defn`
    activities  functions with `@activity.defn`, for what runs live past a fork
    sandboxed   False runs every workflow outside the sandbox, whatever the runner
    volatile    by the type of an activity, child or signal (`*` in it stands for anything): the fields of what it is
                called with that may differ from the record, as a replay's report has them, such as
                `arguments[0].messages[].sent_at`, or `arguments` for all
    """

    workflows: Sequence[type] = ()
    activities: Sequence[Callable[..., Any]] = ()
    data_converter: Any = None
    plugins: Sequence[Any] = ()
    interceptors: Sequence[Any] = ()
    workflow_runner: Any = None
    unsandboxed_workflow_runner: Any = None
    workflow_failure_exception_types: Sequence[type[BaseException]] = ()
    patch_activation_callback: Callable[[Any], bool] | None = None
    sandboxed: bool = True
    volatile: Mapping[str, Sequence[str]] = {}


def setup_of(target: Any, own: Mapping[str, Any] | None = None) -> Setup:
    """The setup that a target stands for: a workflow class, a list of workflow classes and activities, a module (all
    that are in it), or a Setup. `own`: what was said beside it; `data_converter=` takes the place of the setup's.

    Raises TargetError LS402 for what is none of these, or has no workflow.
    """
    given = dict(own or {})
    converter = given.pop("data_converter", None)
    found = _setup(target)
    if converter is None:
        return found
    from temporalio.converter import DataConverter

    if not isinstance(converter, DataConverter):
        raise TargetError(
            Code.BAD_TARGET,
            f"data_converter= is a temporalio.converter.DataConverter, not a {type(converter).__name__}",
        )
    return msgspec.structs.replace(found, data_converter=converter)


def is_workflow(value: Any) -> bool:
    return isinstance(value, type) and _WORKFLOW in vars(value)


def is_activity(value: Any) -> bool:
    """Whether it is a function, method or callable object that `@activity.defn` was put on."""
    if isinstance(value, type):
        return False
    # A callable object has it on its class' __call__.
    return hasattr(value, _ACTIVITY) or hasattr(vars(type(value)).get("__call__"), _ACTIVITY)


def _setup(target: Any) -> Setup:
    if isinstance(target, Setup):
        return _checked(target)
    if isinstance(target, ModuleType):
        # Names that stand for one object twice (an import and an alias) are one workflow.
        values = list({id(value): value for value in vars(target).values()}.values())
        return _checked(Setup(workflows=_only(values, is_workflow), activities=_only(values, is_activity)), target)
    if is_workflow(target):
        return Setup(workflows=[target])
    if isinstance(target, list | tuple):
        strange = [value for value in target if not is_workflow(value) and not is_activity(value)]
        if strange:
            raise TargetError(
                Code.BAD_TARGET,
                f"{strange[0]!r} is neither a class with @workflow.defn nor a function with @activity.defn",
            )
        return _checked(Setup(workflows=_only(target, is_workflow), activities=_only(target, is_activity)))
    raise TargetError(
        Code.BAD_TARGET,
        "the target of a workflow's run is a workflow class, a list of workflow classes and activities, a module or a"
        f" lockstep_temporal.Setup, not a {type(target).__name__}",
    )


def _only(values: Iterable[Any], test: Callable[[Any], bool]) -> list[Any]:
    return [value for value in values if test(value)]


def _checked(setup: Setup, module: ModuleType | None = None) -> Setup:
    for name, paths in setup.volatile.items():
        strange = [path for path in paths if not _INPUT.match(path)] if not isinstance(paths, str) else [paths]
        if strange:
            raise TargetError(
                Code.BAD_TARGET,
                f"Setup(volatile={{{name!r}: …}}) lists fields of what is called with, such as 'arguments[0].sent_at',"
                f" and not {strange[0]!r}",
            )
    if setup.workflows or setup.plugins:  # a plugin may bring workflows
        return setup
    where = "the target" if module is None else module.__name__
    raise TargetError(Code.BAD_TARGET, f"{where} has no workflow: no class in it has @workflow.defn")
