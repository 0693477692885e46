"""An agent that believes what it is told. Every answer is another one each time and goes into the next question, so
that a call which is made anew is another call for all that follow; one of the recorded answers is bad.
"""

import hashlib
import uuid
from typing import Any

import lockstep

USUAL, BAD, LIMIT = 450, 4000, 1000

planted = 0  # number of the call whose answer is bad, 0 for none: set while the bad run is recorded


class Overcharged(Exception):
    """What the bad answer leads to."""


@lockstep.tool(effect="read")
def look(number: int, known: str) -> dict[str, Any]:
    return answer(number)


@lockstep.tool(effect="read", name="look")
async def alook(number: int, known: str) -> dict[str, Any]:
    return answer(number)


def answer(number: int) -> dict[str, Any]:
    return {"note": uuid.uuid4().hex, "owed": BAD if number == planted else USUAL}


def agent(steps: int) -> int:
    known, owed = "", 0
    for number in range(1, steps + 1):
        found = look(number, known)
        known, owed = learned(known, found), max(owed, found["owed"])
    return settled(owed)


async def aagent(steps: int) -> int:
    known, owed = "", 0
    for number in range(1, steps + 1):
        found = await alook(number, known)
        known, owed = learned(known, found), max(owed, found["owed"])
    return settled(owed)


def learned(known: str, found: dict[str, Any]) -> str:
    return hashlib.sha256(f"{known}{found['note']}".encode()).hexdigest()[:16]


def settled(owed: int) -> int:
    if owed > LIMIT:
        raise Overcharged(owed)
    return owed
