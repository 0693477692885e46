"""What the model of a talk says: some forty words, others at each request."""

from __future__ import annotations

import random

from lockstep.testing import Request

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def answer(request: Request) -> str:
    return text(request.number)


def text(number: int) -> str:
    chance = random.Random(number)
    return " ".join("".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(40))
