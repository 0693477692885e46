"""What is too large for one message of Temporal's, in parts that the server keeps: each the input of a workflow whose
id is the part's digest. So what is needed by many is sent once, and is there also when its sender has gone.

    content = await put(client, "queue", data)      small ones are kept in it
    data = await get(client, content)
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b

import msgspec
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from lockstep.errors import Code, TargetError
from lockstep_temporal.probe_workflow import LONGEST, PART

SMALL = 64 << 10  # bytes that are kept where they are
SIZE = 500_000  # of a part: a server takes 2 MB in a payload, and SDK and server warn from 512 KB on
MOST = 128  # parts


class Content(msgspec.Struct, frozen=True, array_like=True):
    """Bytes, or the digests of the parts that hold them."""

    held: bytes
    parts: tuple[str, ...] = ()


async def put(client: Client, queue: str, data: bytes, what: str) -> Content:
    """Leaves bytes with the server. `what`: what they are, in words. Raises TargetError LS413 where they are too many,
    RPCError."""
    if len(data) <= SMALL:
        return Content(data)
    if len(data) > SIZE * MOST:
        raise TargetError(
            Code.WORKERS,
            f"{what} is {len(data) / 1e6:.1f} MB, and at most {SIZE * MOST / 1e6:.1f} MB are sent to Temporal workers. "
            "Bisect it on this machine: --jobs N instead of --workers",
        )
    pieces = [data[at : at + SIZE] for at in range(0, len(data), SIZE)]
    return Content(b"", tuple([await _put(client, queue, piece) for piece in pieces]))


async def _put(client: Client, queue: str, piece: bytes) -> str:
    name = blake2b(piece, digest_size=16).hexdigest()
    with suppress(WorkflowAlreadyStartedError):  # it is there
        await client.start_workflow(
            PART, piece, id=_id(name), task_queue=queue, execution_timeout=LONGEST,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )  # fmt: skip
    return name


async def get(client: Client, content: Content) -> bytes:
    """The bytes that were left. Raises TargetError LS413 where the server has them no more, or has others."""
    if not content.parts:
        return content.held
    return b"".join([await _get(client, name) for name in content.parts])


async def _get(client: Client, name: str) -> bytes:
    handle = client.get_workflow_handle(_id(name))
    try:
        first = await anext(handle.fetch_history_events(page_size=1))
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        raise _lost(name, "the server has it no more") from error
    given = first.workflow_execution_started_event_attributes.input.payloads
    found = await client.data_converter.decode(given, [bytes])
    if not found or not isinstance(found[0], bytes) or blake2b(found[0], digest_size=16).hexdigest() != name:
        raise _lost(name, "it is another one than was sent")
    return found[0]


def _id(name: str) -> str:
    return f"{PART}-{name}"


def _lost(name: str, why: str) -> TargetError:
    return TargetError(
        Code.WORKERS, f"workflow {_id(name)} holds a part of what was sent for a bisect, and {why}. Bisect once more"
    )
