"""`lockstep temporal worker`: makes the probes of bisects that are run elsewhere."""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import Sequence

from lockstep.cli import terminal
from lockstep.debugger import words
from lockstep.debugger.lines import safe
from lockstep.errors import LockstepError
from lockstep_temporal import probes
from lockstep_temporal.probe_messages import Answer
from lockstep_temporal.probes import Maker, Program
from lockstep_temporal.reaching import connected

_ENDING = (signal.SIGINT, signal.SIGTERM)


def work(
    queue: str, command: Sequence[str], *, targets: Sequence[str], jobs: int, folder: str, isolate: bool, address: str,
    namespace: str,
) -> None:  # fmt: skip
    """Works until it is asked to end. Raises TargetError LS401 where nothing is to be run, or there is no server."""
    program = Program(command=tuple(command), targets=tuple(targets), isolate=isolate)
    asyncio.run(_work(queue, Maker(program, folder, _told), jobs, address, namespace))


async def _work(queue: str, maker: Maker, jobs: int, address: str, namespace: str) -> None:
    client = await connected(address, namespace, "--address")
    ended = asyncio.Event()
    for number in _ENDING:
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    mine = maker.program
    told = [*([shlex.join(mine.command)] if mine.command else []), *(f"--target {one}" for one in mine.targets)]
    terminal.say([("● waiting for probes", "good"), f"  {safe(', '.join(told))}"])
    where = client.service_client.config.target_host
    terminal.say(f"  task queue {safe(queue)}  namespace {safe(client.namespace)}  {safe(where)}")
    await probes.serve(client, queue, maker, jobs, ended)


def _told(address: str, answer: Answer | LockstepError) -> None:
    if isinstance(answer, LockstepError):
        terminal.say([("✗ ", "bad"), safe(str(answer))])
    elif answer.made is not None:
        what = f"  {words.number(answer.made.live, 'live call')}  {answer.made.seconds:.1f} s"
        terminal.say([("● made ", "good"), (safe(address), "strong"), what])
