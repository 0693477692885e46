"""What it takes to find the one bad answer of a run of 64: time, and calls that really happen.

Both tools search the same agent with the same fault, in turns. Every answer is another one each time, and goes into
the agent's next question. Of two agents one asks a model over HTTP and the other a tool, so that what an HTTP client's
import and requests cost both alike is seen apart.
"""

from __future__ import annotations

import json
import os
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


class _Models:
    """An agent that asks a model. One answer is bad, of those that are counted while it is set."""

    title = "model calls"

    def __init__(self) -> None:
        self._planted = 0
        self.calls = 0

    def answer(self, request: Request) -> Answer:
        self.calls += 1
        owed = 4000 if self.calls == self._planted else 450
        return Answer(json.dumps({"owed": owed, "note": uuid.uuid4().hex}))

    def command(self, url: str, place: int) -> Sequence[object]:
        self._planted, self.calls = place, 0
        return [WORKLOADS / "planted.py", "model", f"{url}/v1/chat/completions", STEPS]

    def mend(self) -> None:
        """From now on no answer is bad; calls are counted anew."""
        self._planted, self.calls = 0, 0


class _Tools:
    """One that asks a tool, which looks up whether it is mended and says each time that it was asked."""

    title = "tool calls"

    def __init__(self, room: Path) -> None:
        self._made, self._mended = room / "made", room / "mended"
        os.environ.update(MADE=str(self._made), MENDED=str(self._mended))

    @property
    def calls(self) -> int:
        return self._made.stat().st_size

    def command(self, _: str, place: int) -> Sequence[object]:
        self._mended.unlink(missing_ok=True)
        self._made.write_text("")
        return [WORKLOADS / "planted.py", "tool", place, STEPS]

    def mend(self) -> None:
        self._mended.touch()
        self._made.write_text("")


type Agent = _Models | _Tools
type Search = Callable[[Path, Sequence[object]], tuple[Spent, int]]


def bisects(bench: Bench) -> Iterator[Row]:
    models = _Models()
    with Provider(models.answer) as provider:
        for agent in (models, _Tools(bench.fresh())):
            yield from _searched(bench, agent, provider.url)


def _searched(bench: Bench, agent: Agent, url: str) -> Iterator[Row]:
    found: dict[tuple[str, str], list[float]] = {}
    for turn in range(bench.sizes.bisects):
        for name, search in turned(_SEARCHES, turn):
            for place in PLACES:
                room = bench.fresh()
                command = agent.command(url, place)
                _record(name, agent, room, command)
                agent.mend()
                spent, named = search(room, command)
                if named != place:
                    raise RuntimeError(f"{name} names {named}, and the bad answer is {place}")
                for what in WHOLE:
                    found.setdefault((name, what), []).append(getattr(spent, what))
                found.setdefault((name, "calls"), []).append(agent.calls)
    title = f"bisect of {STEPS} {agent.title}"
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


def _record(name: str, agent: Agent, room: Path, command: Sequence[object]) -> None:
    """The bad run, which ends with its exception."""
    words: Sequence[object] = (
        [OURS.python, "-m", "lockstep", "record", "--store", room / _STORE, "--run", "bench", "--", OURS.python]
        if name == OURS.name
        else [PEER.python.with_name("lockstepd"), "record", room / "tape.gz", "--"]
    )
    _, status, said = told([*words, *command])
    if status != 1 or agent.calls != STEPS:
        raise RuntimeError(f"the run ended with {status} after {agent.calls} calls:\n{said.decode()}")


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
