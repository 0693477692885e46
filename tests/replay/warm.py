"""A warm process that forks a child for each recording or replay in process: the SDK is imported once, not 400 times.

    python warm.py        one JSON job a line on stdin, one JSON list of outcomes a line on stdout

A job is `{mode, times, run, store, agent, argv}` with mode `record` or `replay`; the environment is this process's own.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import importlib
import json
import os
import random
import runpy
import signal
import sys
import tempfile
import traceback
from typing import Any

import msgspec
import openai

import lockstep
from lockstep import taps

LIMIT = 30  # seconds until a child that hangs is ended


def main() -> None:
    _warm_up()
    gc.freeze()
    for line in sys.stdin:
        answer = _in_a_child(json.loads(line))
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.flush()


def _warm_up() -> None:
    """What the SDK and we import at the first call."""
    for name in (
        "lockstep.session.session",
        "lockstep.log.store",
        "lockstep.debugger.replay",
        "lockstep.debugger.render",
    ):
        importlib.import_module(name)
    taps.install()  # our own modules first: they keep the clocks that the taps replace
    messages: Any = [{"role": "user", "content": "warm"}]
    with openai.OpenAI() as client:
        client.chat.completions.create(model="gpt-4o", messages=messages)
        list(client.chat.completions.create(model="gpt-4o", messages=messages, stream=True))

    async def warm() -> None:
        async with openai.AsyncOpenAI() as client:
            await client.chat.completions.create(model="gpt-4o", messages=messages)
            async for _ in await client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
                pass

    asyncio.run(warm())


def _in_a_child(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Each time `{output, report, error}`: what the agent printed, the session's report, and what went wrong."""
    with tempfile.TemporaryFile() as told:
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(LIMIT * 0.8)
            signal.alarm(LIMIT)
            try:
                for _ in range(job["times"]):
                    os.write(told.fileno(), msgspec.json.encode(_captured(job)) + b"\n")
            except BaseException:
                traceback.print_exc()
                os._exit(70)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        told.seek(0)
        done = [json.loads(line) for line in told]
        if status:
            done.append({"output": "", "report": None, "error": f"the child ended with wait status {status}"})
        return done


def _captured(job: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as output:
        os.dup2(output.fileno(), 1)
        answer = _run(job)
        sys.stdout.flush()
        output.seek(0)
        return {"output": output.read().decode(), **answer}


def _run(job: dict[str, Any]) -> dict[str, Any]:
    # Objects get other addresses than at any other time, so that nothing agrees by accident of them.
    chance = random.SystemRandom()
    heap = [bytearray(chance.randrange(16, 700)) for _ in range(chance.randrange(200, 2000))]
    del heap[:: chance.randrange(2, 5)]
    sys.argv = [job["agent"], *job["argv"]]

    def target() -> None:
        runpy.run_path(job["agent"], run_name="__main__")

    if job["mode"] == "record":
        with lockstep.record(job["run"], store=job["store"]) as session:
            target()
        return {"report": session.report, "error": ""}
    done = lockstep.replay(job["run"], target, store=job["store"])
    return {"report": done.report, "error": done.divergence or ("" if done.error is None else repr(done.error))}


if __name__ == "__main__":
    main()
