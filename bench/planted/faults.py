"""What is planted: a run's steps, what is right at each of them, and five kinds of faults. Pure.

An agent settles refunds. Step after step it gets an answer in words, reads a number out of it, and adds that to a
control total, which it has with it from step to step, so that one wrong answer makes every later total wrong, and the
run bad at its end. The kinds differ in whose answer is wrong, and how:

    corrupted tool output   a tool is asked the right thing and says another amount
    wrong tool argument     the model asks for the wrong order; the tool is honest about that one
    dropped message         of the messages of an inbox one is missing
    misleading retrieval    of three documents, the one that matters says something else
    wrong system prompt     the program reads its instructions from outside, and they are others

Every answer has a reference that was never given before, and wording, order of documents and senders vary from answer
to answer. So any two answers differ, and that two runs differ somewhere says nothing.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache
from itertools import accumulate

import msgspec

# Whose answer a step is. The last is a model's last word to a prompt, where nothing is wrong.
TOOL, MODEL, INBOX, SEARCH, PROMPT, WORD = "look_up", "model", "inbox", "search", "instructions", "word"

KINDS = {
    "corrupted tool output": TOOL,
    "wrong tool argument": MODEL,
    "dropped message": INBOX,
    "misleading retrieval": SEARCH,
    "wrong system prompt": PROMPT,
}
STEPS = (8, 16, 52, 200)
RESCUES = (0.0, 0.2, 0.35, 0.5)

_ROUND = (PROMPT, SEARCH, INBOX, MODEL, TOOL)  # what a program does by itself, over and over
_USED = (PROMPT, SEARCH, INBOX, TOOL)  # tools that a model wants to be called, in turns

_NAMES = ("Amber", "Basil", "Cedar", "Delta", "Ember", "Fjord", "Grove", "Heron", "Islet", "Kelp", "Lotus", "Maple")
_FOUND = {
    TOOL: re.compile(r"comes to (\d+) euro"),
    MODEL: re.compile(r"order (\d+)"),
    SEARCH: re.compile(r"returned within (\d+) days"),
    PROMPT: re.compile(r"no more than (\d+) euro"),
}
_MESSAGE = re.compile("wrote about")
RECOUNTED = re.compile(r"recounted: (\d+)")


class Case(msgspec.Struct, frozen=True):
    """A run with a fault in it.

    seed   decides the orders, and with that what is right
    roles  whose answer each step is, from step 1
    kind   one of `KINDS`
    at     the step whose answer is wrong, from 1
    """

    seed: str
    roles: tuple[str, ...]
    kind: str
    at: int

    @property
    def steps(self) -> int:
        return len(self.roles)

    def order(self, step: int) -> int:
        """The number of the order that a step is about."""
        return random.Random(f"{self.seed} {step}").randrange(100, 1000)

    def asked(self, step: int) -> int:
        """The order that this step's answer is about: a tool that the model wanted is told by the model, in the step
        before it."""
        return self.order(step - 1 if self.told(step) else step)

    def told(self, step: int) -> bool:
        """Whether the model, in the step before, said which order it is to be about."""
        return step > 1 and self.roles[step - 2] == MODEL

    def total(self, step: int) -> int:
        """The right control total after a step."""
        return _totals(self)[step]


@lru_cache(8)
def _totals(case: Case) -> tuple[int, ...]:
    return 0, *accumulate(value(case.roles[at - 1], case.asked(at)) for at in range(1, case.steps + 1))


def by_program(steps: int, kind: str, at: int, seed: str) -> Case:
    """A program that does a round of five things, over and over, shifted so that step `at` can have that fault."""
    shift = _ROUND.index(KINDS[kind]) - at
    return Case(seed, tuple(_ROUND[(shift + step) % len(_ROUND)] for step in range(1, steps + 1)), kind, at)


def by_model(steps: int, kind: str, at: int, seed: str) -> Case:
    """An agent whose model wants one tool after the other, and has a last word to each of two prompts: of so many
    answers each other one is the model's. The first prompt has one tool call, and for an odd number there is but one
    prompt."""
    words = (3, steps) if steps % 2 == 0 else (steps,)
    shift = _USED.index(KINDS[kind]) if KINDS[kind] in _USED else 0
    roles: list[str] = []
    for step in range(1, steps + 1):
        beyond = sum(step > word for word in words)
        if step in words:
            roles.append(WORD)
        elif (step + beyond) % 2:
            roles.append(MODEL)
        else:
            roles.append("")
    used = [step for step, role in enumerate(roles, 1) if not role]
    first = used.index(at) if at in used else 0
    for number, step in enumerate(used):
        roles[step - 1] = _USED[(shift + number - first) % len(_USED)]
    case = Case(seed, tuple(roles), kind, at)
    if roles[at - 1] != KINDS[kind]:
        raise ValueError(f"step {at} of {steps} is no {KINDS[kind]}")
    return case


def places(steps: int, kind: str) -> tuple[int, ...]:
    """Where `by_model` can have a fault of that kind."""
    found = []
    for at in range(1, steps + 1):
        try:
            by_model(steps, kind, at, "")
        except ValueError:
            continue
        found.append(at)
    return tuple(found)


def value(role: str, order: int) -> int:
    """The number that is to be read in the right answer about an order. A model's is below 1000, which no other can
    make up for: they are multiples of it, or too few."""
    drawn = random.Random(f"{role} {order}")
    match role:
        case "model":
            return order
        case "inbox":
            return 2 + drawn.randrange(4)
        case "word":
            return 0
        case _:
            return 1000 * drawn.randrange(1, 90)


def said(role: str, order: int, *, wrong: bool, chance: random.Random) -> str:
    """An answer in words. `chance`: for all in it that varies from answer to answer."""
    right = value(role, order)
    ref = f"{chance.choice(_NAMES).lower()}-{chance.getrandbits(40):x}"
    match role:
        case "model":
            wanted = _mistaken(order) if wrong else order
            return f"{_one_of(chance, 'Next is', 'I look at', 'Let us see')} order {wanted} ({ref})"
        case "look_up":
            amount = right + 1000 * 90 if wrong else right
            return f"{_one_of(chance, 'Order', 'No.')} {order} comes to {amount} euro ({ref})"
        case "inbox":
            senders = chance.sample(_NAMES, right)
            lines = [f"{name} wrote about {order} ({chance.getrandbits(24):x})" for name in senders]
            return " / ".join([f"Inbox {ref}", *(lines[1:] if wrong else lines)])
        case "search":
            days = right + 1000 * 90 if wrong else right
            documents = [
                f"[{chance.getrandbits(24):x}] Goods of order {order} may be returned within {days} days.",
                f"[{chance.getrandbits(24):x}] Parcels arrive within {chance.randrange(2, 9)} working days.",
                f"[{chance.getrandbits(24):x}] Gift cards are good for {chance.randrange(1, 4)} years.",
            ]
            chance.shuffle(documents)
            return " / ".join([f"Found {ref}", *documents])
        case "instructions":
            limit = right + 1000 * 90 if wrong else right
            return f"You settle refunds. Pay {_one_of(chance, 'at any time', 'here')} no more than {limit} euro. {ref}"
        case _:
            return f"{_one_of(chance, 'Done', 'That is all', 'So it is')} ({ref})"


def found(role: str, text: str) -> int:
    """The number that an agent reads in an answer. Raises ValueError where there is none."""
    if role == WORD:
        return 0
    if role == INBOX:
        return len(_MESSAGE.findall(text))
    match = _FOUND[role].search(text)
    if match is None:
        raise ValueError(f"nothing of a {role} in {text!r}")
    return int(match[1])


def counted(total: int, role: str, text: str) -> int:
    """The control total after an answer: what it was and what the answer adds, or what the answer says that it is."""
    recounted = RECOUNTED.search(text)
    return int(recounted[1]) if recounted else total + found(role, text)


def _mistaken(order: int) -> int:
    """Two digits in the wrong order, or another one: off by at least nine."""
    swapped = int("".join(str(order)[at] for at in (0, 2, 1)))
    return swapped if swapped != order else order + 100


def _one_of(chance: random.Random, *words: str) -> str:
    return chance.choice(words)


def kind_of(number: int) -> str:
    """Kinds take turns."""
    return (*KINDS,)[number % len(KINDS)]
