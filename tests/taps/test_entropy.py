"""The entropy tap: what a run draws follows from one recorded seed, and what is seeded is left alone."""

import os
import random
import secrets
import sys
import threading
import types
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.taps.effect_around import call

from lockstep.errors import Code
from lockstep.session import lanes
from lockstep.taps import entropy
from lockstep.taps.entropy import generators, streams, system

PROGRAMS = Path(__file__).parent / "programs"
ROWS = PROGRAMS / "entropy_rows.py"
# What a seed given by the program, or nothing at all, decides.
FIXED = (
    "numpy_seeded",
    "numpy_seeded_global",
    "refused_by_the_system",
    "seeded_generators",
    "seeded_module",
    "seeded_module_in_a_thread",
)


@pytest.fixture(scope="module")
def rows(commands: Any) -> dict[str, dict[str, tuple[str, Any]]]:
    """Every row, run bare, recorded, and replayed."""
    printed = {"bare": commands.bare(ROWS), "recorded": commands.record(ROWS), "replayed": commands.replay(ROWS)}
    return {run: commands.rows(text) for run, text in printed.items()}


def test_row(rows: dict[str, dict[str, tuple[str, Any]]], row: str) -> None:
    bare, recorded, replayed = (rows[run][row] for run in ("bare", "recorded", "replayed"))
    assert recorded[1] == bare[1], "another type or length than bare"
    assert replayed == recorded
    if row in FIXED:
        assert recorded == bare


@pytest.fixture(autouse=True)
def generator() -> Iterator[None]:
    """Tests here seed the module's generator: others get it as it was."""
    state, seeded = random.getstate(), generators.seeded
    yield
    random.setstate(state)
    generators.seeded = seeded


def everything() -> list[Any]:
    return [
        random.random(), random.gauss(0, 1), random.Random().random(), secrets.token_hex(4), str(uuid.uuid4()),
        str(uuid.uuid1()), os.urandom(4), random.SystemRandom().random(), np.random.default_rng().random(),
    ]  # fmt: skip


def test_two_recordings_draw_differently(session: Any) -> None:
    session.record(everything)
    first = session.result
    session.record(everything)
    assert not set(first) & set(session.result)


def test_draws_are_counted_by_source(session: Any) -> None:
    def program() -> dict[str, int]:
        everything()
        return lanes.lane().reads

    counts = session.same(program)
    assert {"random", "random.Random", "SystemRandom", "os.urandom", "uuid.uuid1"} <= counts.keys()
    assert counts["os.urandom"] == 2  # its own and uuid4's


DRAWS = {
    "random": random.random,
    "os.urandom": lambda: os.urandom(3),
    "SystemRandom": lambda: secrets.token_hex(3),
    "random.Random": random.Random,
    "uuid.uuid1": uuid.uuid1,
}


@pytest.mark.parametrize("source", DRAWS)
def test_one_draw_more_or_fewer_is_a_divergence_that_names_the_source(session: Any, source: str) -> None:
    # Looked up in the program, where the taps are.
    draw = {**DRAWS, "random": lambda: random.random(), "uuid.uuid1": lambda: uuid.uuid1()}[source]
    session.record(lambda: [draw(), draw()])
    for times in (1, 3):
        report = session.replay(lambda times=times: [draw() for _ in range(times)])
        assert not report.identical
        assert report.difference.code == Code.READS
        assert report.difference.path == source


def test_a_draw_of_one_source_does_not_shift_another(session: Any) -> None:
    session.record(lambda: [os.urandom(8), secrets.token_bytes(8), random.random(), str(uuid.uuid4())])
    recorded = session.result
    session.replay(lambda: [next(iter([os.urandom(8) for _ in range(3)])), secrets.token_bytes(8), random.random()])
    assert session.result == recorded[:3]


def test_a_client_inside_an_effect_draws_apart_from_the_program(session: Any) -> None:
    def client() -> str:
        random.seed(5)  # even this, and a state taken and put back
        random.setstate(random.getstate())
        return repr([everything(), random.random(), random.choice("abc"), random.gauss(0, 1)])

    def program() -> Any:
        first = random.random(), random.gauss(0, 1)
        answer = call(client)
        return first, answer, random.gauss(0, 1), everything(), lanes.lane().reads["random"]

    session.same(program)


def test_a_client_inside_an_effect_does_not_move_a_seeded_program(session: Any) -> None:
    def program() -> list[float]:
        random.seed(42)
        first = random.random()
        call(lambda: str(random.random()))
        return [first, random.random()]

    expected = random.Random(42)
    assert session.same(program) == [expected.random(), expected.random()]


def test_an_earlier_seed_of_the_program_is_respected(session: Any) -> None:
    bare = random.Random(7)
    random.seed(7)
    session.record(lambda: [random.random(), random.gauss(0, 1), random.choice(range(99))])
    recorded = session.result
    assert recorded == [bare.random(), bare.gauss(0, 1), bare.choice(range(99))]
    # After the recording it goes on as if nothing had been recorded.
    assert random.random() == bare.random()
    replay = session.replay(lambda: [random.random(), random.gauss(0, 1), random.choice(range(99))])
    assert replay.identical
    assert session.result == recorded
    # A replay leaves no trace.
    assert random.random() == bare.random()


def test_an_earlier_seed_of_numpy_is_respected(session: Any) -> None:
    state = np.random.get_state()
    try:
        bare = np.random.RandomState(7)
        np.random.seed(7)
        session.record(lambda: [np.random.rand(), np.random.normal()])
        recorded = session.result
        assert recorded == [bare.rand(), bare.normal()]
        assert np.random.rand() == bare.rand()
        assert session.replay(lambda: [np.random.rand(), np.random.normal()]).identical
        assert session.result == recorded
        assert np.random.rand() == bare.rand()
    finally:
        np.random.set_state(state)


def test_a_seed_given_in_the_session_outlives_a_recording_only(session: Any) -> None:
    bare = random.Random("kept")

    def program() -> float:
        random.seed("kept")
        return random.random()

    random.seed(1)
    session.record(program)
    assert session.result == bare.random()
    assert random.random() == bare.random()
    random.seed(1)
    session.replay(program)
    assert random.random() == random.Random(1).random()


@pytest.mark.parametrize("seeded", [None, True, False])
def test_threads_draw_by_lane_unless_the_program_has_seeded(session: Any, seeded: bool | None) -> None:
    def program() -> list[float]:
        found: dict[int, float] = {}

        def draw(number: int) -> None:
            found[number] = random.random()

        threads = [threading.Thread(target=draw, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
            thread.join()
        return [found[number] for number in range(3)]

    random.seed(9)
    generators.seeded = seeded
    drawn = session.same(program)
    bare = random.Random(9)
    assert (drawn == [bare.random() for _ in range(3)]) is (seeded is True)


def test_a_seed_that_nobody_saw_goes_on_in_the_first_thread(session: Any) -> None:
    random.seed(9)
    generators.seeded = None
    assert session.same(lambda: random.random()) == random.Random(9).random()


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module that took its functions before the taps."""
    entropy.install()
    module = types.ModuleType("took_draws_before")
    vars(module).update(draw=generators._real["random"], bell=generators._real["gauss"], raw=system.real_urandom)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_names_taken_before_are_named_and_served_for_the_session(session: Any, late: types.ModuleType) -> None:
    held = [name for name in entropy.held_names() if name.startswith(late.__name__)]
    assert held == ["took_draws_before.bell", "took_draws_before.draw", "took_draws_before.raw"]
    session.same(lambda: [late.draw(), late.bell(0, 1), late.raw(5)])
    assert late.raw is system.real_urandom


def test_children_of_a_fork_draw_for_themselves(commands: Any) -> None:
    program = PROGRAMS / "fork_draws.py"
    assert commands.bare(program) == commands.record(program) == "16 16\n"


def test_a_fork_within_the_session_takes_keys_of_its_own() -> None:
    first = streams.derive(b"seed", "main", "random")
    try:
        streams.forked("main", 1)
        child = streams.derive(b"seed", "main", "random")
        streams.forked("main", 1)
        grandchild = streams.derive(b"seed", "main", "random")
        streams.fresh()
        streams.forked("main", 2)
        second = streams.derive(b"seed", "main", "random")
    finally:
        streams.fresh()
    assert len({first, child, grandchild, second}) == 4
    assert streams.derive(b"seed", "main", "random") == first


def test_keys_do_not_run_into_each_other() -> None:
    keys = {streams.derive(b"s", "ab", "c"), streams.derive(b"s", "a", "bc"), streams.derive(b"s", "abc")}
    assert len(keys) == 3


def test_a_stream_is_the_same_again_however_much_is_drawn() -> None:
    sizes = [16, 0, 3, 5000, 1, 64, 4096, 16]
    one, other = streams.ByteStream(b"key"), streams.ByteStream(b"key")
    drawn = [one.draw(size) for size in sizes]
    assert [len(part) for part in drawn] == sizes
    assert drawn == [other.draw(size) for size in sizes]
    assert one.count == len(sizes)
    assert len({part for part in drawn if len(part) > 2}) == 6


def test_hashes_are_described() -> None:
    facts = entropy.hash_facts()
    assert facts == {"randomized": bool(sys.flags.hash_randomization), "probe": hash("lockstep")}


def test_the_functions_still_pickle_and_bind_no_instance() -> None:
    import pickle

    entropy.install()
    for function in (random.random, random.gauss, random.seed, os.urandom):
        assert pickle.loads(pickle.dumps(function)) is function

    class Holder:
        draw = random.random
        raw = os.urandom

    assert 0 <= Holder().draw() < 1
    assert len(Holder().raw(3)) == 3
