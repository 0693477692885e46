"""Forks twice, and draws in parent and children: no two of them may draw the same."""

import os
import random
import secrets
import uuid


def draws() -> list[str]:
    return [str(random.random()), str(uuid.uuid4()), secrets.token_hex(8), str(random.Random().random())]


def child() -> list[str]:
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, "\n".join(draws()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as found:
        drawn = found.read().split()
    os.wait()
    return drawn


before = draws()
seen = [*before, *child(), *child(), *draws()]
print(len(seen), len(set(seen)))
