"""What a workflow is driven with: what targets stand for, plugins, interceptors, and what is said of others."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import one_workflow
import plugged_workflows as plugged
import pytest
import replayed_workflows as flows
from scripted_workflow import scripted

import lockstep
from lockstep.errors import AdapterError, TargetError
from lockstep_temporal import Setup, prepared
from lockstep_temporal.driver import Drive
from lockstep_temporal.setup import setup_of


def test_a_target_stands_for_workflows_and_activities() -> None:
    assert setup_of(flows.Orders).workflows == [flows.Orders]
    both = setup_of([one_workflow.greet, one_workflow.Greets])
    assert (both.workflows, both.activities) == ([one_workflow.Greets], [one_workflow.greet])
    module = setup_of(one_workflow)
    assert (module.workflows, module.activities) == (both.workflows, both.activities)
    given = Setup(workflows=[flows.Orders], sandboxed=False)
    assert setup_of(given) is given


def test_methods_and_callable_objects_are_activities_too() -> None:
    from temporalio import activity

    class Shop:
        @activity.defn
        async def sell(self) -> None: ...

    class Sells:
        @activity.defn
        async def __call__(self) -> None: ...

    shop, sells = Shop(), Sells()
    assert len(setup_of([flows.Orders, shop.sell, sells]).activities) == 2


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (7, "not a int"),
        (flows.Receipt, "not a type"),
        ([flows.Orders, print], "is neither a class with @workflow.defn nor a function with @activity.defn"),
        ([flows.look_up], "has no workflow: no class in it has @workflow.defn"),
        (Setup(activities=[flows.look_up]), "has no workflow"),
        (ModuleType("empty"), "empty has no workflow"),
    ],
)
def test_what_is_no_target_is_said_so(target: Any, told: str) -> None:
    with pytest.raises(TargetError, match="LS402") as raised:
        setup_of(target)
    assert told in str(raised.value)


def test_what_a_plugin_sets_up_is_there_while_the_workflow_runs(store: Path) -> None:
    setup = Setup(plugins=[plugged.plugin()])
    with scripted(store, setup) as script:
        script.start("why?")
        script.resolve(1, "because")
    assert plugged.providers == []
    done = lockstep.replay("temporal/order-7", setup, store=store)
    assert (done.identical, done.result) == (True, "because")
    assert plugged.providers == []
    bare = lockstep.replay("temporal/order-7", plugged.Asks, store=store)
    assert bare.divergence is not None
    assert "IndexError" in bare.divergence


def test_a_plugin_that_cannot_begin_is_told(store: Path) -> None:
    from contextlib import asynccontextmanager

    from temporalio.plugin import SimplePlugin

    @asynccontextmanager
    async def broken() -> Any:
        raise OSError("no provider here")
        yield

    with scripted(store, one_workflow.Greets) as script:
        script.start("Ada")
    setup = Setup(workflows=[one_workflow.Greets], plugins=[SimplePlugin("tests.broken", run_context=broken)])
    with pytest.raises(OSError, match="no provider here"):
        lockstep.replay("temporal/order-7", setup, store=store)


def test_interceptors_are_part_of_what_a_workflow_does(store: Path) -> None:
    setup = Setup(workflows=[one_workflow.Greets], interceptors=[plugged.Shouting()])
    with scripted(store, setup) as script:
        script.start("Ada")
        script.resolve(1, "Hello")
    assert lockstep.replay("temporal/order-7", setup, store=store).identical
    found = lockstep.replay("temporal/order-7", one_workflow.Greets, store=store).report.difference
    assert found is not None
    assert (found.expected, found.actual) == ('"ADA"', '"Ada"')


def test_a_workflow_that_the_sandbox_cannot_import_is_no_divergence(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted(store, one_workflow.Greets) as script:
        script.start("Ada")
    module = tmp_path / "a_module_that_goes.py"
    module.write_text(Path(one_workflow.__file__).read_text())
    monkeypatch.syspath_prepend(str(tmp_path))
    target = import_module("a_module_that_goes").Greets
    module.write_text("raise OSError('the disk is gone')")
    with pytest.raises(TargetError, match=r"LS402 workflow Greets cannot be made: the disk is gone"):
        lockstep.replay("temporal/order-7", target, store=store)


def test_a_version_without_a_seam_is_told_with_what_is_tested(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from temporalio.worker import _workflow

    with scripted(store, one_workflow.Greets) as script:
        script.start("Ada")

    class Newer(_workflow._WorkflowWorker):
        def __init__(self, *, another_thing: int, **given: Any) -> None:
            raise AssertionError("it is asked what it takes before")

    monkeypatch.setattr(_workflow, "_WorkflowWorker", Newer)
    with pytest.raises(
        AdapterError, match=r"LS410 .*asks for another_thing in temporalio .* tested with temporalio 1\."
    ):
        lockstep.replay("temporal/order-7", one_workflow.Greets, store=store)


def test_an_activation_is_left_as_it_was(store: Path) -> None:
    with scripted(store, flows.Orders) as script:
        script.start(4711)
        first = script.first
        assert first is not None
        before = first.SerializeToString(deterministic=True)
        with Drive(script.prepared, first, task_queue="orders") as drive:
            drive.activate(first)
            assert [source.line > 0 for source in (drive.source(0), drive.source(7))] == [True, True]
        assert first.SerializeToString(deterministic=True) == before
    assert prepared.Prepared(setup_of(flows.Orders)).definition("Orders").cls is flows.Orders
