"""When an activity is tried again: the retry policy, as the server and core apply it. Pure functions.

The server's rules are those of `service/history/workflow/retry.go`, core's of local activities those of
`sdk-core/src/retry_logic.rs`; they agree but for what is said at `after`.
"""

from __future__ import annotations

import msgspec
from temporalio.api.common.v1 import RetryPolicy
from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import Failure

SECOND = 1_000_000_000  # nanoseconds: all times here are


_RETRIED = {
    TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE: "StartToClose",
    TimeoutType.TIMEOUT_TYPE_HEARTBEAT: "Heartbeat",
}


class Policy(msgspec.Struct, frozen=True):
    """A retry policy with its defaults filled in. `most`: attempts, 0 for no bound."""

    first: int = SECOND
    coefficient: float = 2.0
    longest: int = 100 * SECOND
    most: int = 0
    types: tuple[str, ...] = ()


class Again(msgspec.Struct, frozen=True):
    """It is tried again, after this long."""

    wait: int


class Given(msgspec.Struct, frozen=True):
    """It is not: the failure is final, with this retry state."""

    state: RetryState.ValueType


def policy(given: RetryPolicy) -> Policy:
    """That of a command; what it leaves out is the default."""
    first = given.initial_interval.ToNanoseconds() or SECOND
    longest = given.maximum_interval.ToNanoseconds() or 100 * first
    return Policy(
        first,
        given.backoff_coefficient if given.backoff_coefficient >= 1 else 2.0,
        max(longest, first),
        max(given.maximum_attempts, 0),
        tuple(given.non_retryable_error_types),
    )


def after(
    policy: Policy, attempt: int, failure: Failure, now: int, until: int, *, local: bool = False
) -> Again | Given:
    """What follows an attempt (from 1) that ended with this failure.

    until  when the schedule-to-close timeout passes, 0 for never
    local  core decides, not the server: it knows no `until`, and compares types without regard to case
    """
    if failure.HasField("timeout_failure_info"):
        kind = failure.timeout_failure_info.timeout_type
        if kind not in (TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE, TimeoutType.TIMEOUT_TYPE_HEARTBEAT):
            return Given(RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE)
        if (
            "TemporalTimeout:" + TimeoutType.Name(kind).removeprefix("TIMEOUT_TYPE_").title().replace("_", "")
            in policy.types
        ):
            return Given(RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE)
    info = failure.application_failure_info
    if info.non_retryable or _is_named(info.type, policy.types, local):
        return Given(RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE)
    if policy.most and attempt >= policy.most:
        return Given(RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED)
    wait = info.next_retry_delay.ToNanoseconds() if info.HasField("next_retry_delay") else _interval(policy, attempt)
    if until and not local and now + wait > until:
        return Given(RetryState.RETRY_STATE_TIMEOUT)
    return Again(wait)


def _is_named(kind: str, types: tuple[str, ...], local: bool) -> bool:
    if local:
        return kind.lower() in (each.lower() for each in types)
    return bool(kind) and kind in types


def _interval(policy: Policy, attempt: int) -> int:
    """initial interval * coefficient ^ (attempt - 1), at most the maximum interval."""
    try:
        found = int(policy.first * policy.coefficient ** (attempt - 1))
    except OverflowError:
        return policy.longest
    return min(found, policy.longest)
