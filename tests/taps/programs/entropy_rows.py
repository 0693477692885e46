"""Every way to draw at random, one row each."""

import asyncio
import os
import random
import secrets
import tempfile
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from random import choice as choice_taken
from random import gauss as gauss_taken
from random import random as random_taken
from typing import Any

import numpy as np
from rows import run


class Loaded(random.Random):
    """A generator of the program's own kind."""


class Holder:
    draw = random.random
    bits = random.getrandbits


class Thing:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


THINGS = [Thing("a"), Thing("b"), Thing("c")]


def row_random() -> Any:
    return random.random(), random.uniform(1, 2), random.triangular(0, 1, 0.5), random.getrandbits(64)


def row_integers() -> Any:
    return random.randint(100, 999), random.randrange(100, 999, 7)


def row_choice() -> Any:
    return random.choice("abc"), random.choice([(1, 2), (3, 4)]), random.choice([b"xx", b"yy"])


def row_choice_of_objects() -> Any:
    return random.choice(THINGS), random.choices(THINGS, k=3), random.choices("ab", weights=[1, 2], k=5)


def row_sample() -> Any:
    return sorted(map(type, random.sample([(1,), b"x", THINGS[0]], 3)), key=str), random.sample(range(100, 999), 5)


def row_shuffle() -> Any:
    cards = list(range(20))
    random.shuffle(cards)
    return cards


def row_randbytes() -> Any:
    return random.randbytes(9)


def row_distributions() -> Any:
    return (
        random.gauss(0, 1), random.gauss(), random.gauss(mu=1, sigma=2), random.normalvariate(0, 1),
        random.lognormvariate(0, 1), random.expovariate(1.5), random.betavariate(1, 2), random.gammavariate(2, 3),
        random.paretovariate(3), random.weibullvariate(1, 2), random.vonmisesvariate(0, 4),
        random.binomialvariate(10, 0.5),
    )  # fmt: skip


def row_names_taken_before() -> Any:
    return random_taken(), choice_taken("abc"), gauss_taken(0, 1)


def row_class_attribute() -> Any:
    return Holder().draw(), Holder().bits(8)


def row_unseeded_generators() -> Any:
    return random.Random().random(), Loaded().random(), random.Random(None).getrandbits(32)


def row_seeded_generators() -> Any:
    own = random.Random(42)
    again = random.Random()
    again.seed(42)
    return own.random(), again.random(), Loaded(42).random(), random.Random("text").random(), own.gauss(0, 1)


def row_system_random() -> Any:
    own = random.SystemRandom()
    return own.random(), own.choice("abc"), own.getrandbits(70) > 0


def row_secrets() -> Any:
    return secrets.token_hex(8), secrets.token_urlsafe(9), secrets.token_bytes(7), secrets.choice("abc")


def row_secrets_below() -> Any:
    return secrets.randbelow(10), secrets.randbits(9)


def row_urandom() -> Any:
    return os.urandom(16), os.urandom(0), os.urandom(10_000), os.getrandom(8)


def row_refused_by_the_system() -> Any:
    found = []
    for call in (lambda: os.urandom(-1), lambda: os.urandom("x"), lambda: random.getrandbits(-1)):
        try:
            found.append(call())
        except (TypeError, ValueError) as error:
            found.append(repr(error))
    return found


def row_uuids() -> Any:
    made = [uuid.uuid1(), uuid.uuid4(), uuid.uuid1(node=5), uuid.uuid1(clock_seq=3)]
    return made, [item.version for item in made], made[0].is_safe, made[2].node


def row_newer_uuids() -> Any:
    return [getattr(uuid, name)() for name in ("uuid6", "uuid7", "uuid8") if hasattr(uuid, name)]


def row_uuid_utils() -> Any:
    import uuid_utils
    import uuid_utils.compat

    return uuid_utils.uuid4(), uuid_utils.uuid7(), uuid_utils.compat.uuid7(), uuid_utils.compat.uuid4()


def row_numpy_global() -> Any:
    return np.random.rand(2).tolist(), np.random.normal(), np.random.RandomState().rand()


def row_numpy_unseeded() -> Any:
    return np.random.default_rng().random(2).tolist(), np.random.SeedSequence().entropy > 0


def row_numpy_seeded() -> Any:
    return np.random.default_rng(5).random(), np.random.RandomState(3).rand(), np.random.SeedSequence(9).entropy


def row_temporary_names() -> Any:
    with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as directory:
        return file.name, directory


def row_threads() -> Any:
    found: dict[int, Any] = {}

    def one(number: int) -> None:
        found[number] = random.random(), random.gauss(0, 1), random.gauss(0, 1), uuid.uuid4(), secrets.token_hex(3)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in reversed(threads):
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found.items())


def row_pool() -> Any:
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda number: (number, random.random(), uuid.uuid4()), range(8)))


def row_tasks() -> Any:
    async def one(number: int) -> Any:
        await asyncio.sleep(random.random() / 500)
        return number, random.random(), uuid.uuid4()

    async def all_of_them() -> Any:
        return await asyncio.gather(*map(one, range(5)))

    return asyncio.run(all_of_them())


def row_state() -> Any:
    state = random.getstate()
    first = random.random(), random.gauss(0, 1), random.random()
    random.setstate(state)
    return first == (random.random(), random.gauss(0, 1), random.random()), first


def row_seeded_module() -> Any:
    random.seed(7)
    drawn = random.random(), random.gauss(0, 1), random.choice("abcdef"), random_taken(), random.sample(range(99), 4)
    state = random.getstate()
    more = random.random()
    random.setstate(state)
    return drawn, more == random.random()


def row_seeded_module_in_a_thread() -> Any:
    random.seed("again")
    found = []
    thread = threading.Thread(target=lambda: found.append(random.random()))
    thread.start()
    thread.join()
    return found, random.random()


def row_unseeded_again() -> Any:
    random.seed(7)
    random.seed()
    return random.random() != 0.32383276483316237, random.random(), random.gauss(0, 1)


def row_numpy_seeded_global() -> Any:
    np.random.seed(3)
    return np.random.rand(), np.random.normal()


if __name__ == "__main__":
    run(globals())
