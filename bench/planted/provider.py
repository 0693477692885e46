"""The seeded provider behind the agents under test: it answers for the model and for the tools, and rolls the dice.

While a run is recorded, the answer of one step is wrong. In a probe none is. What was wrong before is in the total that
the agent has with it, and each answer that is still to come may find that out, as a model does that looks over what it
was told: it gives the right total with its own answer, and the run goes on well. The chance is the same for each of
the answers that are left when the first one is asked for that could, and such that the run ends well with the
probability `rescue`. So a probe that kept the wrong answer ends well with that probability, wherever it leaves the
run; and one that asks for nothing anew is as bad as the recording. All is drawn from the probe's seed. Nothing here
knows where a probe left the run, or what was said of it.
"""

from __future__ import annotations

import random
import re

import msgspec
from bench.planted import faults
from bench.planted.faults import MODEL, WORD, Case

from lockstep.session import lanes
from lockstep.testing import Answer, Request, ToolCall

# In what a model says: its step, and the total by then. In what a tool says: its step.
_SPOKE = re.compile(r"s(\d+) w(\d+)-total")
_USED = re.compile(r"a(\d+): (.*?) :z", re.DOTALL)


class Dice(msgspec.Struct, frozen=True):
    """How a probe may go.

    rescue  how likely one ends well that has something wrong with it
    spoil   how likely one in which nothing is wrong is made bad by one of its answers, for good
    breaks  how likely an answer does not come, so that the probe breaks down
    """

    rescue: float = 0.0
    spoil: float = 0.0
    breaks: float = 0.0


class Broke(Exception):
    """An answer did not come."""


class Provider:
    """Answers one agent at a time.

    planted  the wrong answer as it was given, "" before that
    """

    def __init__(self) -> None:
        self.planted = ""
        self._case = Case("", (), "", 0)
        self._dice: Dice | None = None
        self._seed = ""
        self._begun = False
        self._each: float | None = None
        self._spoils = self._breaks = 0
        self._words = random.Random()

    def record(self, case: Case) -> None:
        """From here on one answer is wrong, and no dice are rolled."""
        self._case, self._dice, self.planted = case, None, ""
        self._next(f"{case.seed} {case.kind} {case.at}")

    def probe(self, dice: Dice, seed: str) -> None:
        """From here on none is, for as long as one probe lasts."""
        self._dice = dice
        self._next(seed)

    def _next(self, seed: str) -> None:
        self._seed, self._begun, self._each = seed, False, None
        self._spoils = self._breaks = 0
        self._words = random.Random(f"{seed} words")

    @property
    def steps(self) -> int:
        return self._case.steps

    def answer(self, step: int, order: int, total: int) -> str:
        """What is said at a step. `order`: which one it is asked about; `total`: what the agent has counted so far.
        Raises Broke where it does not come."""
        case, role = self._case, self._case.roles[step - 1]
        wrong = self._dice is None and step == case.at
        text = faults.said(role, order, wrong=wrong, chance=self._words)
        if wrong:
            self.planted = text
        if self._dice is None:
            return text
        if not self._begun:
            self._begin(self._dice, step, right=total == case.total(step - 1))
        if step == self._breaks:
            self._next(f"{self._seed} again")  # nobody is asked what became of this probe, and so another one comes
            raise Broke(f"nothing came at step {step}")
        if step == self._spoils:
            return f"{text} recounted: {case.total(step) + 7000}"
        if total != case.total(step - 1) and not 0 < self._spoils < step and self._finds(self._dice, step):
            return f"{text} recounted: {case.total(step)}"
        return text

    def _begin(self, dice: Dice, step: int, *, right: bool) -> None:
        self._begun = True
        chance = random.Random(f"{self._seed} how")
        if chance.random() < dice.spoil and right:
            self._spoils = chance.randint(step, self._case.steps)
        if chance.random() < dice.breaks:
            self._breaks = chance.randint(step, self._case.steps)

    def _finds(self, dice: Dice, step: int) -> bool:
        if self._each is None:
            self._each = 1 - (1 - dice.rescue) ** (1 / (self._case.steps - step + 1))
        return random.Random(f"{self._seed} {step}").random() < self._each

    # On the wire.

    def __call__(self, request: Request) -> Answer:
        """A request of an agent whose model says what comes next, see `faults.by_model`: of its model, or of a tool."""
        return lanes.ours(self._answered)(request)

    def _answered(self, request: Request) -> Answer:
        if request.path.startswith("/tools/"):
            return self._tool(request)
        if request.method == "GET":  # a browser's own: the page that asks, and its icon
            return Answer(body=b"An agent.", headers=(("content-type", "text/html"),))
        return self._model("\n".join(_texts(request.json["messages"])))

    def _tool(self, request: Request) -> Answer:
        argument = request.query["argument"] if request.method == "GET" else request.json["argument"]
        spoke = _SPOKE.search(argument)
        if spoke is None:
            return Answer("a tool was asked for nothing", status=400)
        step = int(spoke[1]) + 1
        text = self.answer(step, faults.found(MODEL, argument), int(spoke[2]))
        body = msgspec.json.encode({"answer": f"a{step}: {text} :z"})
        return Answer(body=body, headers=(("content-type", "application/json"),))

    def _model(self, told: str) -> Answer:
        spoken = {int(at): int(total) for at, total in _SPOKE.findall(told)}
        used = {int(at): text for at, text in _USED.findall(told)}
        last = max(spoken, default=0)
        step, total = last + 1, spoken.get(last, 0)
        if step in used:
            total = faults.counted(total, self._case.roles[step - 1], used[step])
            step += 1
        role = self._case.roles[step - 1]
        try:
            text = self.answer(step, self._case.order(step), total)
        except Broke as broke:
            return Answer(str(broke), status=400)
        said = f"{text} s{step} w{faults.counted(total, role, text)}-total"
        if role == WORD:
            return Answer(said)
        return Answer("Let me see.", calls=(ToolCall(self._case.roles[step], {"argument": said}),))


def last_total(word: str) -> int | None:
    """The total in a model's last word, None where it has none."""
    totals = re.findall(r"w(\d+)-total", word)
    return int(totals[-1]) if totals else None


def _texts(value: object) -> list[str]:
    """All texts in a JSON value, in order."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]
