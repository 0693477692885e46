"""The workflows of a bisect whose probes run on Temporal workers. Light: the sandbox loads it for each of them.

Each probe is a workflow of its own, with an id that is told from its content, so that whoever asks for it again gets
the one that runs or has run. What it is given and returns is bytes, of which it knows nothing.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

PROBE = "lockstep-probe"
PART = "lockstep-part"
MAKE = "lockstep-make-probe"
ENDED = "lockstep-ended"  # the type of the error of a probe that was cancelled amid it

# An attempt ends without an answer only where its worker died, or was told to end: another one takes it.
RETRIES = RetryPolicy(initial_interval=timedelta(seconds=1), backoff_coefficient=2.0, maximum_attempts=5)
LONGEST = timedelta(days=1)  # of a probe, waiting for a worker included


@workflow.defn(name=PROBE)
class LockstepProbe:
    """One probe, made by whichever worker takes it."""

    @workflow.run
    async def run(self, order: bytes, silence: float) -> bytes:
        """`order`: as the client packed it. `silence`: seconds after which a worker that says nothing is dead."""
        made: bytes = await workflow.execute_activity(
            MAKE,
            order,
            result_type=bytes,
            start_to_close_timeout=LONGEST,
            heartbeat_timeout=timedelta(seconds=silence),
            retry_policy=RETRIES,
            # It says what had happened by then.
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        return made


@workflow.defn(name=PART)
class LockstepPart:
    """A part of something that is too large for a message. It lies in the history's first event, for as long as the
    server keeps that: nothing has to be done."""

    @workflow.run
    async def run(self, content: bytes) -> None:
        """`content`: the part."""
