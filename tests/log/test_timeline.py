"""Steps, effects and addresses, read out of events."""

import random

import log_runs
import pytest

from lockstep.errors import AddressError, Code
from lockstep.log.address import Address, parse, quote, split, unquote
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import Store
from lockstep.log.timeline import Timeline, resolve

MIXED = [
    Event(Kind.LANE, 0, 0, "main", "main", "main"),
    Event(Kind.START, 1, 10, "main", body={"argv": ["a.py"]}),
    Event(Kind.BEGIN, 2, 20, "main", "model", "gpt", body={"request": "plan", "site": "a.py:1 in f"}),
    Event(Kind.BEGIN, 3, 21, "main", "http", "POST /v1", of=2),
    Event(Kind.PART, 4, 22, "main", of=3, body="head"),
    Event(Kind.END, 5, 23, "main", Status.OK, of=3),
    Event(Kind.PART, 6, 24, "main", of=2, body="Hel"),
    Event(Kind.PART, 7, 25, "main", of=2, body="lo"),
    Event(Kind.END, 8, 30, "main", Status.OK, of=2),
    Event(Kind.BEGIN, 9, 40, "main/task.2", "tool", "slow", body={"request": 1}),
    Event(Kind.BEGIN, 10, 41, "main/task.1", "tool", "fast", body={"request": 2}),
    Event(Kind.BEGIN, 11, 42, "main", "process", "git", body={"request": 3}),
    Event(Kind.READS, 12, 43, "main", "time.time", body={"first": 0}),
    Event(Kind.END, 13, 44, "main", Status.OK, of=11, body=0),
    Event(Kind.END, 14, 45, "main/task.1", Status.ERROR, of=10, body={"type": "ValueError"}),
    Event(Kind.END, 15, 50, "main/task.2", Status.OK, of=9, body="done"),
    Event(Kind.STEP, 16, 60, "main", name="triaged", body={"state": 1}),
    Event(Kind.BEGIN, 17, 70, "main", "tool", "cut", body={"request": 4}),
]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_steps_are_numbered_by_completion_whatever_the_order_of_storage(store: Store, seed: int | None) -> None:
    events = list(MIXED)
    if seed is not None:
        # As from threads: stored a little out of order.
        rng = random.Random(seed)
        events.sort(key=lambda event: event.pos + rng.randrange(6))
    log_runs.write(store, "mixed", events)
    timeline = Timeline(store.run("mixed"))
    found = [(step.number, step.kind, step.name, [(e.name, e.status) for e in step.effects]) for step in timeline.steps]
    assert found == [
        (0, "input", "", []),
        (1, "model", "gpt", [("gpt", Status.OK)]),
        (2, "tool", "fast", [("git", Status.OK), ("fast", Status.ERROR)]),
        (3, "tool", "slow", [("slow", Status.OK)]),
        (4, "step", "triaged", []),
        (5, "end", "", [("cut", None)]),
    ]
    assert timeline.state is RunState.INTERRUPTED
    assert timeline.input() == {"argv": ["a.py"]}
    model = timeline.effect(1, 1)
    assert timeline.request(model) == "plan"
    assert timeline.site(model) == "a.py:1 in f"
    assert list(timeline.parts(model)) == ["Hel", "lo"]
    assert timeline.outcome(model) is None
    assert model.duration == 10
    (nested,) = model.children
    assert (nested.kind, nested.name, nested.number) == ("http", "POST /v1", 1)
    assert list(timeline.parts(nested)) == ["head"]
    assert timeline.outcome(timeline.effect(2, 2)) == {"type": "ValueError"}
    flying = timeline.effect(5, 1)
    assert (flying.status, flying.duration, timeline.outcome(flying)) == (None, None, None)
    assert timeline.request(flying) == 4


def test_a_step_found_by_index_is_the_step_of_the_whole(store: Store) -> None:
    rng = random.Random(11)
    events = [Event(Kind.START, 1, 0, "main")]
    pos, flying = 1, []
    # Overlapping and nested effects, some of which close no step and some that stay open over many rows.
    while pos < 4000:
        pos += 1
        if flying and rng.random() < 0.5:
            begin = flying.pop(0 if rng.random() < 0.1 else rng.randrange(len(flying)))
            events.append(Event(Kind.END, pos, pos, begin.lane, Status.OK, of=begin.pos, body=begin.pos))
        elif rng.random() < 0.03:
            events.append(Event(Kind.STEP, pos, pos, "main", name=f"s{pos}"))
        else:
            of = rng.choice(flying).pos if flying and rng.random() < 0.3 else 0
            kind = rng.choice(["model", "tool", "http", "process"])
            lane = f"main/task.{rng.randrange(4)}"
            events.append(Event(Kind.BEGIN, pos, pos, lane, kind, f"n{pos}", of=of, body={"request": pos}))
            flying.append(events[-1])
            if len(flying) > 12:
                flying.sort(key=lambda event: event.pos != 40)
    log_runs.write(store, "long", events, batch=40)
    whole = Timeline(store.run("long"))
    assert len(whole.steps) > 800
    assert store.runs()[0].steps == len(whole.steps) - 2
    for number in [0, 1, 2, *rng.sample(range(len(whole.steps)), 40), len(whole.steps) - 1]:
        alone = Timeline(store.run("long"))
        assert alone.step(number) == whole.steps[number]
        assert ("steps" in alone.__dict__) == (number in (0, len(whole.steps) - 1))


def test_places_that_are_not_there_are_said(store: Store) -> None:
    log_runs.write(store, "run", MIXED)
    timeline = Timeline(store.run("run"))
    for step, effect, child, words in (
        (9, 1, (), "no step 9: its steps are 0 to 5"),
        (1, 2, (), "run:1 has no effect 2"),
        (1, 1, (2,), r"run:1\.1 has no nested call 2"),
        (1, 1, (1, 1), r"run:1\.1/1 has no nested call 1"),
    ):
        with pytest.raises(AddressError, match=words) as caught:
            timeline.effect(step, effect, child)
        assert caught.value.code is Code.NO_ADDRESS


def test_an_address_finds_run_thread_step_and_effect(store: Store) -> None:
    run = store.create_run("langgraph/t%2F1", None)
    for process in ("main", "main/process.1"):
        appender = store.stream(run, process)
        appender.append(MIXED if process == "main" else MIXED[:9])
        appender.close(None)
    place = resolve(store, "langgraph/t%2F1/main:2.1")
    assert place.step is not None
    assert place.step.name == "fast"
    assert place.effect is not None
    assert place.effect.name == "git"
    assert resolve(store, "langgraph/t%2F1@main:1.1/1").effect == resolve(store, "langgraph/t%2F1:1.1/1").effect
    whole = resolve(store, "langgraph/t%2F1").timeline
    assert {stream.process for stream in whole.streams} == {"main", "main/process.1"}
    own = [resolve(store, f"langgraph/t%2F1/{process}").timeline.steps for process in ("main", "process.1")]
    assert len(whole.steps) - 2 == sum(len(steps) - 2 for steps in own)
    assert [step.at for step in whole.steps[1:-1]] == sorted(step.at for steps in own for step in steps[1:-1])
    child = resolve(store, "langgraph/t%2F1/process.1:1")
    assert child.timeline.stream.process == "main/process.1"
    assert resolve(store, "langgraph/t%2F1/main/process.1:1").step == child.step
    assert resolve(store, "langgraph/t%2F1").step is None
    for text, code in (
        ("nothing:1", Code.NO_RUN),
        ("langgraph/t%2F1@try:1", Code.NO_ADDRESS),
        ("langgraph/t%2F1/process.2:1", Code.NO_ADDRESS),
        ("langgraph/t%2F1:77", Code.NO_ADDRESS),
    ):
        with pytest.raises(AddressError) as caught:
            resolve(store, text)
        assert caught.value.code is code


def test_a_call_is_found_by_its_name_and_its_number_in_the_order_of_asking(store: Store) -> None:
    calls = [Event(Kind.LANE, 0, 0, "main", "main", "main"), Event(Kind.START, 1, 10, "main", body={"argv": []})]
    for pos, name in ((2, "a b:c"), (3, "look"), (4, "look")):
        calls.append(Event(Kind.BEGIN, pos, pos, "main", "tool", name, body={"request": pos}))
    for pos, of in ((5, 4), (6, 2), (7, 3)):
        calls.append(Event(Kind.END, pos, pos, "main", Status.OK, of=of, body=of))
    log_runs.write(store, "calls", calls)
    found = {name: resolve(store, f"calls:{name}") for name in ("look#1", "look#2", "a%20b%3Ac#1")}
    assert [str(place.address) for place in found.values()] == ["calls:3.1", "calls:1.1", "calls:2.1"]
    assert all(place.effect == place.timeline.effect(place.step.number, 1) for place in found.values() if place.step)
    for name, told in (("look#3", "there are 2"), ("look#0", "look#0"), ("luck#1", "It has: a%20b%3Ac, look")):
        with pytest.raises(AddressError, match=told) as caught:
            resolve(store, f"calls:{name}")
        assert caught.value.code is Code.NO_ADDRESS


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("refund", Address("refund")),
        ("refund:0", Address("refund", step=0)),
        ("refund@try-2:7.1", Address("refund", "try-2", 7, 1)),
        ("refund/thread-1:7", Address("refund/thread-1", step=7)),
        ("refund:7.1/2/3", Address("refund", step=7, effect=1, child=(2, 3))),
        ("a%40b@c%3Ad", Address("a%40b", "c:d")),
        ("refund:get_order#2", Address("refund", call="get_order#2")),
        (
            "refund@try-2:GET%20https%3A//a.example/b#1#2",
            Address("refund", "try-2", call="GET%20https%3A//a.example/b#1#2"),
        ),
    ],
)
def test_addresses_are_read_and_written(text: str, address: Address) -> None:
    assert parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":1",
        "@b",
        "a:",
        "a:x",
        "a:1.",
        "a:1.1/",
        "a:1.1//2",
        "a@",
        "a@b@c",
        "a:1:2",
        "/a",
        "a:-1",
        "a:١",
        "a:#1",
        "a:b#",
        "a:b#x",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse(text)
    assert caught.value.code is Code.NO_ADDRESS


def test_the_longest_run_wins() -> None:
    runs = {"a", "a/b"}
    assert split(Address("a/b/c"), runs.__contains__) == ("a/b", "c")
    assert split(Address("a/x%2Fy/z"), runs.__contains__) == ("a", "x/y/z")


def test_names_survive_quoting() -> None:
    for name in ("a/b", "50%", "a@b:c", "new\nline", "é", "%2F"):
        assert unquote(quote(name)) == name
        assert parse(f"run/{quote(name)}:1").step == 1


def test_what_is_read_before_a_process_says_that_it_began_does_not_hide_its_beginning(store: Store) -> None:
    """An adapter that looks at the environment while it is attached, say."""
    run = store.create_run("family", {})
    for process, clock in (("main", 1000), ("main/child.1", 1500)):
        appender = store.stream(run, process)
        appender.append([
            Event(Kind.LANE, 1, 0, "", process, process),
            Event(Kind.READS, 2, 1, process, "environ", body={"PATH": "/bin"}),
            Event(Kind.START, 3, 2, process, body={"clock": clock, "argv": ["a.py"]}),
            Event(Kind.STEP, 4, 200, process, name=process, body=None),
        ])  # fmt: skip
        appender.close(None)
    timeline = Timeline(store.run("family"))
    assert [(step.number, step.name) for step in timeline.steps[1:3]] == [(1, "main"), (2, "main/child.1")]
    assert timeline.input() == {"clock": 1000, "argv": ["a.py"]}
