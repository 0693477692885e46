"""lockstepd on the same faults: the agent as a script of plain Python, whose provider answers over loopback.

It takes no adapter of a framework, and each probe is two processes, so it is tried with few trials.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from bench.planted import faults
from bench.planted.faults import MODEL, Case
from bench.planted.provider import Dice, Provider
from bench.planted.trial import ONCE, Trial

from lockstep.testing import Answer, Request
from lockstep.testing import Provider as Loopback

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import contenders

NAME = "lockstepd"
_NAMED = re.compile(rb"culprit step\W+(\d+)")
_PROBES = re.compile(rb"probes used\W+(\d+)")


class _Served:
    """The provider, as programs ask it. A program keeps one connection: where another one comes, a probe begins."""

    def __init__(self) -> None:
        self.provider = Provider()
        self.loopback = Loopback(self._answer)
        self.begun = 0
        self._case = Case("", (), "", 0)
        self._dice = Dice()
        self._seen = 0
        self._recording = True
        self.live = 0

    def record(self, case: Case, dice: Dice) -> None:
        self._case, self._dice, self._recording = case, dice, True
        self.provider.record(case)

    def search(self) -> None:
        self._recording, self.begun, self.live, self._seen = False, 0, 0, self.loopback.connections

    def _answer(self, request: Request) -> Answer:
        if not self._recording and self.loopback.connections != self._seen:
            self._seen = self.loopback.connections
            self.begun += 1
            self.provider.probe(self._dice, f"{self._case.seed} {self._dice.rescue} {self.begun}")
        self.live += not self._recording
        case, asked = self._case, request.json
        step, total = asked["step"], asked["total"]
        role = case.roles[step - 1]
        text = self.provider.answer(step, asked["wanted"] if case.told(step) else case.order(step), total)
        told = {
            "text": text,
            "total": faults.counted(total, role, text),
            "wanted": faults.found(MODEL, text) if role == MODEL else asked["wanted"],
        }
        return Answer(body=msgspec.json.encode(told), headers=(("content-type", "application/json"),))


def trials(steps: int, number: int, dice: Sequence[Dice]) -> Iterator[Trial]:
    """The bad run that plain Python's trial of this number has too, recorded once for each rate."""
    served = _Served()
    kind = faults.kind_of(number)
    at = random.Random(f"plain {steps} {number}").choice(range(1, steps + 1))
    case = faults.by_program(steps, kind, at, f"{steps} {number}")
    with served.loopback, tempfile.TemporaryDirectory() as folder:
        for one in dice:
            yield _searched(served, case, number, one, Path(folder, f"{one.rescue:g}"))


def _searched(served: _Served, case: Case, number: int, dice: Dice, room: Path) -> Trial:
    room.mkdir()
    os.environ["RIGHT"] = str(case.total(case.steps))
    command = [contenders.WORKLOADS / "clerk.py", f"{served.loopback.url}/clerk", case.steps]
    tool = contenders.PEER.python.with_name("lockstepd")
    served.record(case, dice)
    began = time.perf_counter()
    _, status, said = contenders.told([tool, "record", room / "tape.gz", "--", *command])
    recording = time.perf_counter() - began
    if status:
        raise RuntimeError(f"lockstepd did not record ({status}):\n{said.decode()}")
    served.search()
    began = time.perf_counter()
    _, status, said = contenders.told([
        tool, "bisect-cli", room / "tape.gz", "--workdir", room / "probes",
        "--predicate", contenders.WORKLOADS / "clerk_bad.py", "--", *command,
    ])  # fmt: skip
    seconds = time.perf_counter() - began
    found, probes = _NAMED.search(said), _PROBES.search(said)
    named = str(int(found[1]) + 1) if found is not None and not status else ""  # it counts from 0
    return Trial(
        NAME, case.steps, number, case.kind, case.at, str(case.at), dice.rescue, 0.0, 0.0, ONCE,
        "culprit" if named else said.decode().strip().splitlines()[-1][:200], named, 1.0, bool(named),
        int(probes[1]) if probes is not None else 0, 0, served.live, seconds, recording, alone=True,
    )  # fmt: skip
