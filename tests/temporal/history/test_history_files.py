"""What is read as a history, and what is said of files that are none."""

import json
from pathlib import Path
from typing import Any

import past
import pytest
from live_server import committed

from lockstep.errors import Code, StoreError
from lockstep.log.store import Store, open_store
from lockstep_temporal import history
from lockstep_temporal.adapter import adapter
from lockstep_temporal.reading import events_of
from lockstep_temporal.recorded import Recorded

Events = list[dict[str, Any]]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_store(str(tmp_path / "store.db"), create=True) as opened:
        yield opened


def whole(store: Store, name: str) -> list[Any]:
    """The history that a run is of, put together again."""
    recorded = Recorded(store.run(name))
    return [event for step in recorded.steps for event in step.events()] + recorded.rest()


@pytest.mark.parametrize("name", past.COMMITTED)
def test_a_history_comes_back_whole(name: str, store: Store) -> None:
    given = committed(name)
    run = history.imports(store, given.encode())
    assert whole(store, run) == past.events_of(given)


@pytest.mark.parametrize("end", [1, 2, 3, 4, 5, 9, 12, 20, 28, 31, 32, 33, 40, 58, 61, 66, 69, 77])
def test_an_execution_that_goes_on_comes_back_wherever_it_ends(end: int, store: Store) -> None:
    events = past.events_of(committed("kitchen_sink.1"))[:end]
    run = history.take(store, events)
    assert whole(store, run) == events
    (turn,) = Recorded(store.run(run)).turns
    assert turn.status == ""


def test_json_of_the_command_line_and_of_the_http_api_is_read(store: Store) -> None:
    told = json.loads(committed("steps"))
    for given in (told["events"], {"history": told}, told["events"][::-1]):
        assert events_of(json.dumps(given).encode()) == past.events_of(committed("steps"))


def test_names_of_events_in_the_old_form_are_read() -> None:
    def short(events: Events) -> None:
        for event in events:
            words = event["eventType"].removeprefix("EVENT_TYPE_").split("_")
            event["eventType"] = "".join(word.capitalize() for word in words)

    assert events_of(past.edited("steps", short)) == past.events_of(committed("steps"))


def test_events_of_an_unknown_type_are_kept_and_passed_over(store: Store) -> None:
    def skipped(events: Events) -> None:
        """Time was skipped, after the seventh event."""
        for event in events[7:]:
            event["eventId"] = str(int(event["eventId"]) + 1)
            for said in event.values():
                for field in said if isinstance(said, dict) else ():
                    if field.endswith("EventId") and int(said[field]) > 7:
                        said[field] = str(int(said[field]) + 1)
        events.insert(7, {
            "eventId": "8", "eventTime": events[6]["eventTime"], "workerMayIgnore": True,
            "eventType": "EVENT_TYPE_WORKFLOW_EXECUTION_TIME_SKIPPING_TRANSITIONED",
            "workflowExecutionTimeSkippingTransitionedEventAttributes": {"wallClockTime": events[6]["eventTime"]},
        })  # fmt: skip

    data = past.edited("steps", skipped)
    run = history.imports(store, data)
    steps = Recorded(store.run(run)).steps
    assert [step.event.what for step in steps] == ["start"] + ["activity"] * 5
    looked, differs = past.against(events_of(data))
    assert (looked.verdict, differs) == (None, None)


def decoded_payloads(events: Events) -> None:
    events[4]["activityTaskScheduledEventAttributes"]["input"] = {"payloads": [{"id": 7}]}


def decoded_metadata(events: Events) -> None:
    events[4]["activityTaskScheduledEventAttributes"]["input"] = {
        "payloads": [{"metadata": {"encoding": "json/plain"}, "data": "7"}]
    }


def decoded_list(events: Events) -> None:
    events[4]["activityTaskScheduledEventAttributes"]["input"] = [1, []]


def without_event(events: Events) -> None:
    del events[9]


def without_start(events: Events) -> None:
    del events[0]


def answering_nothing(events: Events) -> None:
    next(each for each in events if "activityTaskCompletedEventAttributes" in each)[
        "activityTaskCompletedEventAttributes"
    ]["scheduledEventId"] = "3"


def answering_the_future(events: Events) -> None:
    next(each for each in events if "activityTaskCompletedEventAttributes" in each)[
        "activityTaskCompletedEventAttributes"
    ]["scheduledEventId"] = "30"


def other_type(events: Events) -> None:
    events[6]["eventType"] = "EVENT_TYPE_TIMER_FIRED"


def saying_nothing(events: Events) -> None:
    del events[9]["workflowTaskCompletedEventAttributes"]


def task_that_goes_on(events: Events) -> None:
    events[8], events[7] = {**events[7], "eventId": "9"}, {**events[8], "eventId": "8"}


def strange_type(events: Events) -> None:
    events[4]["activityTaskScheduledEventAttributes"] = "a text"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (decoded_payloads, 'a decoded download: event 5 has {"id": 7} where a payload should be'),
        (decoded_metadata, "a decoded download: event 5"),
        (decoded_list, "a decoded download: event 5 has 1 where a payload should be"),
        (without_event, "event 10 is missing: "),
        (without_start, "begins with WORKFLOW_TASK_SCHEDULED, not with WORKFLOW_EXECUTION_STARTED"),
        (answering_nothing, "is about event 3, which is no earlier ACTIVITY_TASK_SCHEDULED"),
        (answering_the_future, "is about event 30, which is no earlier ACTIVITY_TASK_SCHEDULED"),
        (strange_type, "not what Temporal writes"),
        (other_type, "event 7 is called TIMER_FIRED and says activity_task_completed_event_attributes"),
        (saying_nothing, "event 10 (WORKFLOW_TASK_COMPLETED) says nothing"),
        (task_that_goes_on, "event 9 (WORKFLOW_TASK_SCHEDULED) comes right behind event 8 (WORKFLOW_TASK_STARTED)"),
        (lambda events: [], "it has no events"),
        (lambda events: {"not": "a list"}, 'it has no list "events"'),
    ],
)
def test_a_file_that_cannot_be_imported_says_why(change: Any, told: str, store: Store) -> None:
    with pytest.raises(StoreError) as raised:
        history.imports(store, past.edited("steps", change))
    assert raised.value.code is Code.BAD_FILE
    assert told in raised.value.message
    assert store.names() == []


def test_a_file_that_was_cut_off_says_so(store: Store) -> None:
    data = committed("steps").encode()
    for end in (1, 100, len(data) // 2, len(data) - 3):
        with pytest.raises(StoreError, match="LS214 not a history that can be imported: it is no whole JSON"):
            history.imports(store, data[:end])


def test_a_history_that_nests_too_deep_is_refused(store: Store) -> None:
    data = b'{"events": [{"eventId": "1", "memo": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"
    with pytest.raises(StoreError, match="LS214"):
        history.imports(store, data)


def calls_nexus(events: Events) -> None:
    said = events[4].pop("activityTaskScheduledEventAttributes")
    events[4]["eventType"] = "EVENT_TYPE_NEXUS_OPERATION_SCHEDULED"
    events[4]["nexusOperationScheduledEventAttributes"] = {"operation": said["activityType"]["name"]}
    del events[5:]


def versioned(events: Events) -> None:
    events[3]["workflowTaskCompletedEventAttributes"]["versioningBehavior"] = "VERSIONING_BEHAVIOR_PINNED"


def schedules(events: Events) -> None:
    events[0]["workflowExecutionStartedEventAttributes"]["workflowType"]["name"] = "temporal-sys-scheduler-workflow"


@pytest.mark.parametrize(
    ("change", "told"),
    [(calls_nexus, "a Nexus operation (event 5)"), (versioned, "worker versioning"), (schedules, "of a schedule")],
)
def test_what_is_not_supported_is_named_with_a_code(change: Any, told: str, store: Store) -> None:
    with pytest.raises(StoreError) as raised:
        history.imports(store, past.edited("steps", change))
    assert raised.value.code is Code.UNSUPPORTED
    assert told in raised.value.message


def test_a_history_of_an_old_server_needs_the_workflows_id(store: Store) -> None:
    def nameless(events: Events) -> None:
        del events[0]["workflowExecutionStartedEventAttributes"]["workflowId"]

    data = past.edited("steps", nameless)
    with pytest.raises(StoreError, match=r"LS214 .*does not say the workflow's id.* give it by --run ID"):
        history.imports(store, data)
    assert history.imports(store, data, "temporal/order-7") == "temporal/order-7"
    assert Recorded(store.run("temporal/order-7")).native["workflow_id"] == "order-7"


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (b'{"events":[]}', True),
        (b'\xef\xbb\xbf {\n "events": [{"eventId": "1"', True),
        (b'[{"eventId":"1"}]', True),
        (b"SQLite format 3\x00", False),
        (b'{"name": "package"}', False),
        (b"", False),
    ],
)
def test_a_history_is_told_by_its_beginning(content: bytes, is_one: bool) -> None:
    assert adapter.reads is not None
    assert adapter.reads(content) is is_one
