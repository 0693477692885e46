"""Where in a record an answer is."""

from __future__ import annotations

import re

import msgspec

from lockstep.debugger import calls
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve

_REF = re.compile(r"\b[a-z]+-[0-9a-f]{6,10}\b")


def holding(run: str, store: str, text: str) -> str:
    """The address of the one answer that has the reference of this text, as `7.1`. Raises RuntimeError where it is not
    one."""
    ref = _REF.findall(text)[-1]
    with open_store(store) as opened:
        timeline = resolve(opened, run).timeline
        found = [
            f"{step.number}.{effect.number}"
            for step in timeline.steps for effect in step.effects
            if ref in msgspec.json.encode(calls.read(timeline, effect).outcome, enc_hook=repr).decode()
        ]  # fmt: skip
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} answers of {run} have what was planted: {found}")
    return found[0]


def is_alone(run: str, store: str, address: str) -> bool:
    """Whether the step of an answer has no other one."""
    with open_store(store) as opened:
        return len(resolve(opened, run).timeline.step(int(address.partition(".")[0])).effects) == 1
