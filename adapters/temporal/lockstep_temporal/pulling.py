"""`lockstep temporal pull`: histories are taken from a server, and become a run or files."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from temporalio.client import Client, WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from lockstep.cli import terminal
from lockstep.debugger import words
from lockstep.debugger.lines import safe
from lockstep.errors import Code, StoreError, TargetError
from lockstep.log.store import locate, open_store
from lockstep_temporal import ending, history
from lockstep_temporal.reaching import connected
from lockstep_temporal.tasks import attributes


class Pulled(msgspec.Struct, frozen=True):
    """What was taken. `files`: where histories were written; `run`: the run that was made, "" for none."""

    run: str
    workflow_id: str
    run_ids: list[str]
    events: int
    files: list[str]


def pull(
    workflow_id: str, *, run_id: str, address: str, namespace: str, data_converter: str, run: str, output: str,
    store: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Takes an execution's histories. Raises StoreError LS205 where the server has none, TargetError LS401 where it
    cannot be reached."""
    converter = _converter(data_converter)
    try:
        found, named = asyncio.run(_fetch(workflow_id, run_id, address, namespace))
    finally:
        ending.settle()
    files: list[str] = []
    name = ""
    if output:
        files = _written(output, found)
    else:
        with open_store(locate(store, create=True), create=True) as opened:
            for one in found:
                name = history.take(
                    opened, one.events, run=run or name, workflow_id=workflow_id, namespace=named, converter=converter
                )
    done = Pulled(name, workflow_id, [one.run_id for one in found], sum(len(one.events) for one in found), files)
    if as_json:
        terminal.emit(done)
        return
    for file in files:
        terminal.say([("● written ", "good"), (safe(file), "strong")])
    if name:
        what = f"  {words.number(len(found), 'execution')}  {words.number(done.events, 'event')}"
        terminal.say([("● imported ", "good"), (safe(name), "strong"), what])
        terminal.say(f"  next: lockstep log {safe(shlex.quote(name))}")


async def _fetch(workflow_id: str, run_id: str, address: str, namespace: str) -> tuple[list[WorkflowHistory], str]:
    """The executions of a chain, and the namespace that they are of."""
    client = await connected(address, namespace, "--address")
    target = client.service_client.config.target_host
    try:
        if run_id:
            return [await _one(client, workflow_id, run_id)], client.namespace
        newest = await _one(client, workflow_id, "")
        return await _chain(client, workflow_id, newest), client.namespace
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            which = f"{workflow_id}, run id {run_id}" if run_id else workflow_id
            raise StoreError(
                Code.NO_RUN,
                f"the server at {target} has no workflow {which} in namespace {client.namespace} ({error.message}): "
                "it may be over for longer than the namespace keeps histories",
            ) from error
        raise TargetError(Code.NO_TARGET, f"the server at {target} does not answer: {error.message}") from error


async def _one(client: Client, workflow_id: str, run_id: str) -> WorkflowHistory:
    return await client.get_workflow_handle(workflow_id, run_id=run_id or None).fetch_history()


async def _chain(client: Client, workflow_id: str, newest: WorkflowHistory) -> list[WorkflowHistory]:
    """All executions of the chain up to the newest, as far back as the server keeps them."""
    found = [newest]
    while before := attributes(found[0].events[0]).continued_execution_run_id:
        try:
            found.insert(0, await _one(client, workflow_id, before))
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            terminal.say(f"  execution {before} is not kept any more: the run begins with the one after it")
            break
    return found


def _written(folder: str, found: Sequence[WorkflowHistory]) -> list[str]:
    os.makedirs(folder, exist_ok=True)
    files = []
    for number, one in enumerate(found, 1):
        name = quote(one.workflow_id, safe="")
        file = os.path.join(folder, f"{name}.{number}.json" if len(found) > 1 else f"{name}.json")
        with open(file, "w", encoding="utf-8") as out:
            out.write(one.to_json() + "\n")
        files.append(file)
    return files


def _converter(reference: str) -> Any:
    if not reference:
        return None
    from temporalio.converter import DataConverter

    from lockstep.launch.target import load

    found = load(reference)
    if not isinstance(found, DataConverter):
        raise TargetError(
            Code.BAD_TARGET, f"{reference} is a {type(found).__name__}, not a temporalio.converter.DataConverter"
        )
    return found
