"""Starts a command under a session: records it, or replays its recording."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockstep.launch import child, meeting, supervise

if TYPE_CHECKING:
    from lockstep.launch.outcome import Outcome


def run(
    command: Sequence[str],
    mode: str,
    store: str,
    name: str = "",
    *,
    branch: str = "",
    plan: bytes = b"",
    speed: float = 0.0,
    hash_seed: str | None = None,
    images: int = 0,
    foreign: bool = False,
    stdout: int | None = None,
    stderr: int | None = None,
    isolate: bool = False,
    debug: bool = False,
) -> Outcome:
    """Runs the command to its end, recorded or replayed, and says how it went.

    mode          "record", "replay" or "fork"
    store         absolute path of the store
    name          of the run; "" (recording): named after the script
    branch        replay: which one; fork: the one that it leaves
    plan          fork: a `session.tail.Plan`, encoded
    speed         replay: pace of streams and waits, 0 at once, 1 as recorded
    hash_seed     replay: the recorded PYTHONHASHSEED
    images        replay: the recorded number of programs before the recorded one, see `bootstrap`
    foreign       replay: whether the recording was started through an interpreter without lockstep
    stdout        file descriptor for the command's stdout, stderr likewise; None leaves ours
    isolate       replay: keep the command off the network

    Raises TargetError: LS401 where the command cannot be started, LS405 where it cannot be isolated.
    Heavy modules are imported only once the command runs, so a recorded program starts one bare interpreter
    later, and no more.
    """
    place = meeting.make()
    try:
        if plan:
            meeting.put(place, "plan", plan)
        meeting.put(place, "command", b"\0".join(os.fsencode(word) for word in command))
        environment = child.environment(
            mode=mode, meeting=place, run=name, store=store, branch=branch, speed=speed, hash_seed=hash_seed,
            images=images, foreign=foreign, debug=debug,
        )  # fmt: skip
        try:
            with child.fixed_addresses():
                ended = supervise.run(list(command), environment, stdout=stdout, stderr=stderr, isolate=isolate)
        except supervise.NotIsolated as error:
            from lockstep.errors import Code, TargetError

            raise TargetError(
                Code.NOT_ISOLATED,
                f"nothing here can take the network from a command ({error}). Without --isolate, what Python itself "
                "connects is still stopped.",
            ) from error
        except supervise.NotStarted as error:
            from lockstep.errors import Code, TargetError

            reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error.__cause__
            raise TargetError(Code.NO_TARGET, f"{command[0]} could not be started: {reason}.") from error
        from lockstep.launch import outcome

        return outcome.read(place, command, mode, ended)
    finally:
        meeting.remove(place)
