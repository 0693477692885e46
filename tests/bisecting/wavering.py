"""An agent that may find out by itself that it was told something wrong, and whose last word may be wrong by itself.
Every answer is another one each time; what a seeded provider rolls decides.
"""

import json
import random
import re
import uuid
from typing import Any

import lockstep
from lockstep.testing import Request

# Asks a model as often as it is told to. What it was told goes into each next question, as `[…]`.
AGENT = """
import json, sys
import httpx

class Overcharged(Exception):
    pass

def main(url, steps):
    told = []
    with httpx.Client() as client:
        for number in range(1, steps + 1):
            question = f"{number} of {steps} [{' '.join(told)}]"
            asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": question}]}
            said = json.loads(client.post(url, json=asked).json()["choices"][0]["message"]["content"])
            told = [] if said["anew"] else told
            told.append(f"{said['note']}={said['owed']}")
    if any(one.endswith("=4000") for one in told):
        raise Overcharged(told)

main(sys.argv[1], int(sys.argv[2]))
"""

_ASKED = re.compile(r"(\d+) of (\d+) \[(.*)\]")


class Model:
    """Answers the agent. One answer is bad while the run is recorded. Afterwards the last one throws away all that was
    said before it with the probability `rescue`, and is bad itself with the probability `spoil` where nothing was.

    planted  the number of the bad answer, 0 for none
    """

    def __init__(self, seed: int, *, rescue: float = 0.0, spoil: float = 0.0) -> None:
        self.planted = 0
        self.calls = 0
        self._rescue, self._spoil = rescue, spoil
        self._chance = random.Random(seed)

    def __call__(self, request: Request) -> str:
        self.calls += 1
        asked = _ASKED.search(request.body.decode())
        assert asked is not None
        number, steps, told = int(asked[1]), int(asked[2]), asked[3]
        last, wrong = number == steps and not self.planted, "=4000" in told
        anew = last and wrong and self._chance.random() < self._rescue
        spoiled = last and not wrong and self._chance.random() < self._spoil
        owed = 4000 if number == self.planted or spoiled else 450
        return json.dumps({"note": uuid.uuid4().hex, "owed": owed, "anew": anew})


class Overcharged(Exception):
    """What the bad answer leads to."""


class Tool:
    """The same in process: a tool in the model's place. `die`: the number of the call in which a probe breaks down."""

    def __init__(self, seed: int, steps: int, *, rescue: float = 0.0, spoil: float = 0.0, die: int = 0) -> None:
        self.planted = 0
        self.calls = 0
        self._steps, self._rescue, self._spoil, self._die = steps, rescue, spoil, die
        self._chance = random.Random(seed)
        self._look = lockstep.tool(effect="read", name="look")(self._answer)

    def _answer(self, number: int, told: list[list[Any]]) -> dict[str, Any]:
        self.calls += 1
        if number == self._die and not self.planted:
            raise RuntimeError("a probe's own fault")
        last, wrong = number == self._steps and not self.planted, any(owed == 4000 for _, owed in told)
        anew = last and wrong and self._chance.random() < self._rescue
        spoiled = last and not wrong and self._chance.random() < self._spoil
        owed = 4000 if number == self.planted or spoiled else 450
        return {"note": uuid.uuid4().hex, "owed": owed, "anew": anew}

    def agent(self) -> int:
        told: list[list[Any]] = []
        for number in range(1, self._steps + 1):
            said = self._look(number, told)
            told = [*([] if said["anew"] else told), [said["note"], said["owed"]]]
        if any(owed == 4000 for _, owed in told):
            raise Overcharged(told)
        return len(told)
