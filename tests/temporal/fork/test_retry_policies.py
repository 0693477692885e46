"""When an activity is tried again: the policy's intervals, its bounds, and what is never tried again."""

from __future__ import annotations

import pytest
from temporalio.api.common.v1 import RetryPolicy
from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import Failure

from lockstep_temporal.failures import application, timeout
from lockstep_temporal.retries import SECOND, Again, Given, Policy, after, policy


def given(**fields: int) -> RetryPolicy:
    made = RetryPolicy(maximum_attempts=fields.get("most", 0), backoff_coefficient=fields.get("coefficient", 0))
    if "first" in fields:
        made.initial_interval.FromMilliseconds(fields["first"])
    if "longest" in fields:
        made.maximum_interval.FromMilliseconds(fields["longest"])
    return made


def waits(read: Policy, attempts: int) -> list[float]:
    found = [after(read, attempt, Failure(), 0, 0) for attempt in range(1, attempts + 1)]
    return [each.wait / SECOND for each in found if isinstance(each, Again)]


def test_intervals_grow_from_a_second_on_and_double() -> None:
    assert waits(policy(RetryPolicy()), 8) == [1, 2, 4, 8, 16, 32, 64, 100]


def test_intervals_stay_below_the_longest_one() -> None:
    assert waits(policy(given(first=500, coefficient=3, longest=5_000)), 4) == [0.5, 1.5, 4.5, 5]


def test_a_longest_interval_that_is_too_short_is_the_first_one() -> None:
    assert waits(policy(given(first=500, longest=100)), 3) == [0.5, 0.5, 0.5]


def test_attempts_without_end_do_not_overflow() -> None:
    assert after(policy(RetryPolicy()), 100_000, Failure(), 0, 0) == Again(100 * SECOND)


def test_no_more_attempts_than_the_policy_has() -> None:
    read = policy(given(most=2))
    assert isinstance(after(read, 1, Failure(), 0, 0), Again)
    assert after(read, 2, Failure(), 0, 0) == Given(RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED)


def test_what_is_not_retryable_is_not_tried_again() -> None:
    failure = application("no", "Final")
    failure.application_failure_info.non_retryable = True
    assert after(Policy(), 1, failure, 0, 0) == Given(RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE)


CASES = [("Never", False, False), ("never", False, True), ("never", True, False)]


@pytest.mark.parametrize(("kind", "local", "again"), CASES)
def test_types_that_are_not_tried_again_are_told_by_their_names(kind: str, local: bool, again: bool) -> None:
    """Core compares them without regard to case, the server does not."""
    found = after(Policy(types=("Never",)), 1, application("no", kind), 0, 0, local=local)
    assert isinstance(found, Again) is again


def test_a_failure_may_say_itself_when_it_is_to_be_tried_again() -> None:
    failure = application("busy", "Busy")
    failure.application_failure_info.next_retry_delay.FromSeconds(7)
    assert after(Policy(), 1, failure, 0, 0) == Again(7 * SECOND)


def test_no_attempt_begins_after_the_whole_activitys_timeout() -> None:
    assert after(Policy(), 1, Failure(), 10 * SECOND, 11 * SECOND) == Again(SECOND)
    assert after(Policy(), 2, Failure(), 10 * SECOND, 11 * SECOND) == Given(RetryState.RETRY_STATE_TIMEOUT)


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        (TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE, True),
        (TimeoutType.TIMEOUT_TYPE_HEARTBEAT, True),
        (TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, False),
        (TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START, False),
    ],
)
def test_attempts_that_time_out_are_tried_again_and_activities_are_not(
    kind: TimeoutType.ValueType, again: bool
) -> None:
    assert isinstance(after(Policy(), 1, timeout(kind), 0, 0), Again) is again


def test_a_policy_can_name_a_timeout() -> None:
    read = Policy(types=("TemporalTimeout:Heartbeat",))
    assert isinstance(after(read, 1, timeout(TimeoutType.TIMEOUT_TYPE_HEARTBEAT), 0, 0), Given)
    assert isinstance(after(read, 1, timeout(TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE), 0, 0), Again)
