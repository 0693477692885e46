"""What it takes to find the one bad answer of a run of 64: time, and calls that really happen.

Both tools search the same agent with the same fault, in turns. Every answer of the provider is another one each time,
and goes into the agent's next question.
"""

from __future__ import annotations

import json
import re
import statistics
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from contenders import OURS, PEER, WORKLOADS, Spent, told
from rounds import WHOLE, Bench, Row, main, turned

from lockstep.testing import Answer, Provider, Request

STEPS = 64
PLACES = (1, 23, 64)  # of the bad answer, from 1
_STORE = Path("store", "store.db")


class _World:
    """The provider's script: one answer is bad, of those that are counted while it is set."""

    def __init__(self) -> None:
        self.planted = 0
        self.calls = 0

    def answer(self, request: Request) -> Answer:
        self.calls += 1
        owed = 4000 if self.calls == self.planted else 450
        return Answer(json.dumps({"owed": owed, "note": uuid.uuid4().hex}))


type Search = Callable[[Path, Sequence[object]], tuple[Spent, int]]


def bisects(bench: Bench) -> Iterator[Row]:
    world = _World()
    found: dict[tuple[str, str], list[float]] = {}
    with Provider(world.answer) as provider:
        command = [WORKLOADS / "planted.py", "model", f"{provider.url}/v1/chat/completions", STEPS]
        for turn in range(bench.sizes.bisects):
            for name, search in turned(_SEARCHES, turn):
                for place in PLACES:
                    room = bench.fresh()
                    _record(name, world, place, room, command)
                    world.calls, world.planted = 0, 0
                    spent, named = search(room, command)
                    if named != place:
                        raise RuntimeError(f"{name} names {named}, and the bad answer is {place}")
                    for what in WHOLE:
                        found.setdefault((name, what), []).append(getattr(spent, what))
                    found.setdefault((name, "calls"), []).append(world.calls)
    title = f"bisect of {STEPS} calls, bad one {', '.join(map(str, PLACES))}"
    for what, unit in WHOLE.items():
        goal = 3.0 if what == "wall" else None
        yield Row(f"{title}: whole command", unit, (), *_both(found, what), peer_over=goal)
    yield Row(f"{title}: live calls", "calls", (), *_both(found, "calls"), peer_over=1.0)


def _both(found: dict[tuple[str, str], list[float]], what: str) -> tuple[list[float], list[float]]:
    """Both tools' figures, by round: the mean over the places, since a search's cost is that of where it leads."""
    return tuple(
        [
            statistics.mean(found[name, what][at : at + len(PLACES)])
            for at in range(0, len(found[name, what]), len(PLACES))
        ]
        for name in (OURS.name, PEER.name)
    )  # type: ignore[return-value]


def _record(name: str, world: _World, place: int, room: Path, command: Sequence[object]) -> None:
    """The bad run, which ends with its exception."""
    world.calls, world.planted = 0, place
    words: Sequence[object] = (
        [OURS.python, "-m", "lockstep", "record", "--store", room / _STORE, "--run", "bench", "--", OURS.python]
        if name == OURS.name
        else [PEER.python.with_name("lockstepd"), "record", room / "tape.gz", "--"]
    )
    _, status, said = told([*words, *command])
    if status != 1 or world.calls != STEPS:
        raise RuntimeError(f"the run ended with {status} after {world.calls} calls:\n{said.decode()}")


def _ours(room: Path, _: Sequence[object]) -> tuple[Spent, int]:
    spent, status, said = told([OURS.python, "-m", "lockstep", "bisect", "--store", room / _STORE, "bench", "--json"])
    found = json.loads(said) if status == 0 else {}
    if not found.get("step"):
        raise RuntimeError(f"no answer was found ({status}):\n{said.decode()}")
    return spent, found["step"]


def _peer(room: Path, command: Sequence[object]) -> tuple[Spent, int]:
    spent, status, said = told([
        PEER.python.with_name("lockstepd"), "bisect-cli", room / "tape.gz", "--workdir", room / "probes",
        "--predicate", WORKLOADS / "overcharged.py", "--", *command,
    ])  # fmt: skip
    named = re.search(rb"culprit step\W+(\d+)", said)
    if status or named is None:
        raise RuntimeError(f"no answer was found ({status}):\n{said.decode()}")
    return spent, int(named[1]) + 1  # it counts from 0


_SEARCHES: tuple[tuple[str, Search], ...] = ((OURS.name, _ours), (PEER.name, _peer))

if __name__ == "__main__":
    main(__doc__, bisects)
