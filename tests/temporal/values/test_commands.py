"""What commands and jobs are called, what of them is a request, and what is left out of a step's key."""

from typing import Any

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError

from lockstep.log.address import parse, unquote
from lockstep.log.sqlite.store import check_name
from lockstep_temporal import commands, layout
from lockstep_temporal.protos import json_payload


def command(**fields: Any) -> WorkflowCommand:
    made = WorkflowCommand()
    for name, values in fields.items():
        said = getattr(made, name)
        said.SetInParent()
        for key, value in values.items():
            if isinstance(value, list):
                getattr(said, key).extend(json_payload(item) for item in value)
            elif isinstance(value, dict):
                target = getattr(said, key)
                for inner, item in value.items():
                    setattr(target, inner, item)
            else:
                setattr(said, key, value)
    return made


def said(*given: WorkflowCommand) -> list[commands.Command]:
    completion = WorkflowActivationCompletion()
    completion.successful.commands.extend(given)
    return list(commands.commands_of(completion))


ACTIVITY = {"seq": 2, "activity_id": "2", "activity_type": "charge", "task_queue": "q", "arguments": [40, "eur"]}


@pytest.mark.parametrize(
    ("given", "kind", "name", "seq", "asked", "waits"),
    [
        (command(schedule_activity=ACTIVITY), "activity", "charge", 2, {"arguments": [40, "eur"]}, True),
        (
            command(schedule_local_activity={"seq": 3, "activity_type": "sum", "arguments": [[1]]}),
            "local_activity", "sum", 3, {"arguments": [[1]]}, True,
        ),
        (
            command(start_timer={"seq": 1, "start_to_fire_timeout": {"seconds": 3}}),
            "timer", "3s", 1, {"seconds": 3}, True,
        ),
        (
            command(start_timer={"seq": 1, "start_to_fire_timeout": {"nanos": 20_000_000}}),
            "timer", "0.02s", 1, {"seconds": 0.02}, True,
        ),
        (
            command(start_timer={"seq": 1, "start_to_fire_timeout": {"seconds": 259_200}}),
            "timer", "3d", 1, {"seconds": 259_200}, True,
        ),
        (
            command(
                start_child_workflow_execution={"seq": 1, "workflow_id": "c", "workflow_type": "Pack", "input": ["x"]}
            ),
            "child", "Pack", 1, {"workflow_id": "c", "arguments": ["x"]}, True,
        ),
        (
            command(signal_external_workflow_execution={"seq": 1, "child_workflow_id": "c", "signal_name": "hurry"}),
            "signal_external", "hurry", 1, {"child": "c", "arguments": []}, True,
        ),
        (
            command(request_cancel_external_workflow_execution={"seq": 4, "workflow_execution": {"workflow_id": "w"}}),
            "cancel_external", "w", 4, {"workflow_id": "w"}, True,
        ),
        (command(cancel_timer={"seq": 1}), "cancel_timer", "", 1, {}, False),
        (
            command(set_patch_marker={"patch_id": "p", "deprecated": True}),
            "patch", "p", -1, {"deprecated": True}, False,
        ),
        (command(complete_workflow_execution={}), "complete", "", -1, {"result": None}, False),
        (command(cancel_workflow_execution={}), "cancelled", "", -1, {}, False),
        (
            command(continue_as_new_workflow_execution={"workflow_type": "W", "arguments": [1]}),
            "continue_as_new", "W", -1, {"arguments": [1]}, False,
        ),
    ],
)  # fmt: skip
def test_a_command_has_a_kind_a_name_and_what_is_of_meaning_in_it(
    given: WorkflowCommand, kind: str, name: str, seq: int, asked: Any, waits: bool
) -> None:
    (found,) = said(given)
    assert (found.kind, found.name, found.seq, found.request, found.waits) == (kind, name, seq, asked, waits)
    assert found.variant == getattr(given, given.WhichOneof("variant") or "")


def test_every_command_and_every_job_of_this_sdk_is_known_by_name() -> None:
    for field in WorkflowCommand.DESCRIPTOR.oneofs_by_name["variant"].fields:
        made = WorkflowCommand()
        getattr(made, field.name).SetInParent()
        (found,) = said(made)
        assert field.name in commands.COMMANDS
        assert layout.command_text(found)
    job_type = WorkflowActivation.DESCRIPTOR.fields_by_name["jobs"].message_type
    for field in job_type.oneofs_by_name["variant"].fields:
        activation = WorkflowActivation()
        getattr(activation.jobs.add(), field.name).SetInParent()
        (answer,) = commands.answers_of(activation)
        assert field.name in commands.JOBS
        assert layout.job_text(answer, "")


def test_answers_say_to_which_command_and_how_it_ended() -> None:
    activation = WorkflowActivation()
    activation.jobs.add().resolve_activity.seq = 2
    activation.jobs[0].resolve_activity.result.completed.result.CopyFrom(json_payload({"ok": True}))
    failed = activation.jobs.add().resolve_child_workflow_execution
    failed.seq = 1
    converter = DataConverter.default
    error = ApplicationError("no box", {"left": 0}, type="Broken", non_retryable=True)
    converter.failure_converter.to_failure(error, converter.payload_converter, failed.result.failed.failure)
    backoff = activation.jobs.add().resolve_activity
    backoff.seq, backoff.is_local, backoff.result.backoff.attempt = 3, True, 2
    started = activation.jobs.add().resolve_child_workflow_execution_start
    started.seq, started.succeeded.run_id = 2, "run-2"
    signal = activation.jobs.add().signal_workflow
    signal.signal_name = "pay"
    signal.input.append(json_payload(25))
    first, second, third, fourth, fifth = commands.answers_of(activation)
    assert (first.kind, first.seq, first.status, first.value, first.ends) == ("activity", 2, "ok", {"ok": True}, True)
    assert (second.kind, second.seq, second.status, second.ends) == ("child", 1, "error", True)
    assert commands.failure_value(second.failure) == {
        "type": "Broken", "message": "no box", "non_retryable": True, "details": [{"left": 0}],
    }  # fmt: skip
    assert (third.status, third.local, third.ends) == ("backoff", True, False)
    assert (fourth.kind, fourth.status, fourth.value, fourth.ends) == ("child_start", "started", "run-2", False)
    assert (fifth.kind, fifth.name, fifth.value, fifth.ends) == ("signal", "pay", [25], False)


def test_a_failure_is_shown_as_the_exception_that_the_workflow_saw_and_kept_exactly() -> None:
    activation = WorkflowActivation()
    failure = activation.jobs.add().resolve_activity.result.failed.failure
    failure.message = "Activity task failed"
    failure.activity_failure_info.activity_type.name = "charge"
    failure.cause.message = "card declined"
    failure.cause.application_failure_info.type = "Declined"
    form: Any = layout.failure_form(failure)
    assert (form["name"], form["args"]) == ("ActivityError", ["Activity task failed"])
    assert form["cause"]["exception"]["args"] == ["Declined: card declined"]
    assert layout.failure_in(form) == {
        "message": "Activity task failed",
        "cause": {"message": "card declined", "application_failure_info": {"type": "Declined"}},
        "activity_failure_info": {"activity_type": {"name": "charge"}},
    }


# The key of a step.


def key(*given: WorkflowCommand, names: Any = None) -> bytes:
    return layout.step_key(layout.normal_commands(said(*given), names or {}, "Order"))


def test_numbers_queues_and_timeouts_are_not_in_a_steps_key_and_requests_are() -> None:
    one = command(schedule_activity=ACTIVITY)
    other = command(
        schedule_activity={**ACTIVITY, "seq": 9, "task_queue": "replay", "start_to_close_timeout": {"seconds": 5}}
    )
    assert key(one) == key(other)
    assert key(one) != key(command(schedule_activity={**ACTIVITY, "arguments": [41, "eur"]}))
    assert key(one, one) != key(one)


def test_what_a_history_does_not_have_is_not_in_a_steps_key() -> None:
    nothing = key()
    assert key(command(schedule_local_activity={"seq": 1, "activity_type": "sum"})) == nothing
    assert key(command(respond_to_query={"query_id": "q"})) == nothing
    assert key(command(start_timer={"seq": 1}), command(cancel_timer={"seq": 1})) == nothing
    rejected = WorkflowCommand()
    rejected.update_response.rejected.message = "no"
    assert key(rejected) == nothing
    assert key(command(cancel_timer={"seq": 1}), names={("timer", 1): "3s"}) != nothing


def test_going_on_as_new_is_the_same_whether_the_type_is_named_or_not() -> None:
    unnamed = command(continue_as_new_workflow_execution={"arguments": [1]})
    named = command(continue_as_new_workflow_execution={"workflow_type": "Order", "arguments": [1]})
    assert key(unnamed) == key(named)
    assert key(unnamed) != key(command(continue_as_new_workflow_execution={"workflow_type": "Other", "arguments": [1]}))


def test_names_of_a_step_are_few() -> None:
    assert layout.step_name(["a", "", "b"]) == "a, b"
    assert layout.step_name(str(n) for n in range(9)) == "0, 1, 2, 3, 4, +4"


@pytest.mark.parametrize(
    ("workflow_id", "name"),
    [
        ("order-7", "temporal/order-7"),
        ("shop/order 7", "temporal/shop%2Forder%207"),
        ("a@b:c%d", "temporal/a%40b%3Ac%25d"),
        ("bestellung-ü+1", "temporal/bestellung-ü+1"),
        ("two\nlines\u200b", "temporal/two%0Alines%E2%80%8B"),
    ],
)
def test_a_run_is_named_after_its_workflow_in_a_way_that_an_address_can_have(workflow_id: str, name: str) -> None:
    assert layout.run_name(workflow_id) == name
    assert layout.run_name(workflow_id, 3) == f"{name}-3"
    assert parse(f"{name}@retried:4.1").path == name
    assert unquote(name) == f"temporal/{workflow_id}" or not workflow_id.isascii() or not workflow_id.isprintable()
    check_name(name)


def test_ids_that_are_too_long_for_a_name_are_told_apart() -> None:
    one, other = (layout.run_name("x" * 990 + end) for end in "ab")
    assert one != other
    check_name(one)
