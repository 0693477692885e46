"""What becomes of a call past a fork point: the whole table, and which recorded call may answer it."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import pytest

from lockstep.log.model import Event, Kind, Status
from lockstep.session import engine, refusal
from lockstep.session.policy import CLASSES, TAILS, Declared, Policy, decide
from lockstep.session.tape import Tape
from lockstep.session.unused import Unused

L, U, R = "live", "reuse", "refuse"


@pytest.mark.parametrize(
    ("tail", "effect_class", "unrecorded", "recorded"),
    [
        ("", "inference", L, L), ("", "read", L, L), ("", "mutating", R, U), ("", "unknown", R, U),
        ("live", "inference", L, L), ("live", "read", L, L), ("live", "mutating", L, L), ("live", "unknown", L, L),
        ("reuse", "inference", L, U), ("reuse", "read", L, U), ("reuse", "mutating", R, U), ("reuse", "unknown", R, U),
        ("record", "inference", R, U), ("record", "read", R, U), ("record", "mutating", R, U),
        ("record", "unknown", R, U),
    ],
)  # fmt: skip
def test_what_runs_what_is_answered_and_what_is_refused(
    tail: Any, effect_class: str, unrecorded: str, recorded: str
) -> None:
    policy = Policy(tail=tail)
    assert decide(policy, effect_class, "tool", "f", recorded=False) == unrecorded
    assert decide(policy, effect_class, "tool", "f", recorded=True) == recorded


def test_what_was_named_runs_whatever_else_is_said() -> None:
    for tail in TAILS:
        policy = Policy(live=("issue_*",), tail=tail)
        for effect_class in CLASSES:
            for recorded in (False, True):
                assert decide(policy, effect_class, "tool", "issue_refund", recorded) == L
        assert decide(policy, "mutating", "tool", "send_mail", recorded=False) == (L if tail == "live" else R)


def test_a_request_is_named_by_its_address() -> None:
    policy = Policy(live=("POST https://api.stripe.com/*",))
    asked = {"method": "POST", "url": "https://api.stripe.com/v1/refunds", "body": b"", "headers": []}
    name = "POST api.stripe.com/v1/refunds"
    assert decide(policy, "unknown", "http", name, recorded=False, request=asked) == L
    assert decide(policy, "unknown", "http", name, recorded=False, request={**asked, "method": "PUT"}) == R


def test_what_was_typed_is_not_typed_again_and_what_is_wanted_beyond_it_is_read() -> None:
    assert decide(Policy(), "read", "human", "input", recorded=True) == U
    assert decide(Policy(), "read", "human", "input", recorded=False) == L
    assert decide(Policy(live=("input",)), "read", "human", "input", recorded=True) == L


# Which recorded call.

type _Call = tuple[str, str] | tuple[str, str, str | None]


def _key(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def _tape(*calls: _Call) -> Tape:
    """A tape of calls (lane, name) or (lane, name, how it ended; None: not at all)."""
    events = [
        Event(Kind.LANE, pos, 0, "", what=lane, name=lane) for pos, lane in enumerate(sorted({c[0] for c in calls}), 1)
    ]
    pos = len(events) + 1
    for call in calls:
        lane, name = call[0], call[1]
        status = call[2] if len(call) == 3 else "ok"
        body = {"request": {"arguments": {"what": name, "cents": 4000}}}
        events.append(Event(Kind.BEGIN, pos, 0, lane, what="tool", name=name, key=_key(name), body=body))
        if status is not None:
            events.append(Event(Kind.END, pos + 1, 0, lane, what=status, of=pos, body=name))
        pos += 2
    events.append(Event(Kind.FINISH, pos, 0, "main", what="complete", body={}))
    return Tape(enumerate(events), lambda seq: events[seq].body)


def _positions(found: Sequence[Any]) -> list[int]:
    return [each.begin.pos for each in found]


def test_each_recorded_call_answers_once_first_those_of_the_same_lane() -> None:
    tape = _tape(("main/b", "pay"), ("main/a", "pay"), ("main/b", "pay"))
    unused = Unused(tape)
    first = tape.lanes["main/a"].effects[0]
    others = tape.lanes["main/b"].effects
    assert unused.find(_key("pay"), "main/a") is first
    assert [unused.take(_key("pay"), "main/a") for _ in range(4)] == [first, *others, None]
    assert unused.find(_key("other"), "main/a") is None


def test_a_lane_that_was_not_recorded_gets_the_first_of_any() -> None:
    tape = _tape(("main/b", "pay"), ("main/a", "pay"))
    assert Unused(tape).take(_key("pay"), "main/new") is tape.lanes["main/b"].effects[0]


def test_what_was_served_or_answered_otherwise_is_not_handed_out() -> None:
    tape = _tape(("main", "pay"), ("main", "pay"), ("main", "pay"))
    engine.match(tape.lane("main"), _key("pay"), interrupted=False)
    unused = Unused(tape)
    unused.use(tape.lane("main").effects[1])
    assert unused.take(_key("pay"), "main") is tape.lane("main").effects[2]
    assert unused.take(_key("pay"), "main") is None


def test_only_a_call_that_was_answered_can_answer_another() -> None:
    ends = (Status.CANCELLED, None, Status.ERROR, Status.CLOSED, Status.OK)
    tape = _tape(*(("main", "pay", end) for end in ends))
    unused = Unused(tape)
    found = [unused.take(_key("pay"), "main") for _ in range(3)]
    assert [each.pieces[-1][1].what for each in found if each is not None] == [Status.ERROR, Status.CLOSED, Status.OK]
    assert unused.take(_key("pay"), "main") is None


def test_the_nearest_is_of_the_same_name_and_says_what_differs() -> None:
    tape = _tape(("main", "pay"), ("main", "look"))
    near = Unused(tape).nearest("tool", "pay", {"arguments": {"what": "pay", "cents": 4500}}, "main/x")
    assert near is not None
    assert near.effect is tape.lane("main").effects[0]
    assert (near.differs, near.used) == ((("arguments.cents", "4000", "4500"),), False)
    assert Unused(tape).nearest("tool", "refund", {"arguments": {}}, "main") is None
    assert Unused(tape).nearest("http", "pay", {"arguments": {}}, "main") is None


def test_the_nearest_may_be_one_that_has_answered_already_where_none_is_as_like() -> None:
    tape = _tape(("main", "pay"))
    unused = Unused(tape)
    asked = {"arguments": {"what": "pay", "cents": 4000}}
    unused.take(_key("pay"), "main")
    near = unused.nearest("tool", "pay", asked, "main")
    assert near is not None
    assert (near.differs, near.used) == ((), True)
    tape = _tape(("main", "pay"), ("main", "pay"))
    unused = Unused(tape)
    taken = unused.take(_key("pay"), "main")
    near = unused.nearest("tool", "pay", asked, "main")
    assert near is not None
    assert near.effect is not taken


def test_a_request_for_another_path_is_like_one_to_the_same_server() -> None:
    tape = _tape(("main", "POST a.example/orders/452/refund"), ("main", "POST b.example/orders/453/refund"))
    recorded = tape.lane("main").effects[0]
    near = Unused(tape).nearest("tool", "POST a.example/orders/453/refund", {"arguments": {}}, "main")
    assert near is not None
    assert near.effect is recorded
    assert Unused(tape).nearest("tool", "GET a.example/orders/453/refund", {"arguments": {}}, "main") is None
    assert Unused(tape).nearest("tool", "POST", {"arguments": {}}, "main") is None


# What is said of a call that is refused.


def _asked(**arguments: Any) -> dict[str, Any]:
    return {"arguments": arguments}


def test_a_refusal_names_the_call_its_class_what_differs_and_both_ways_out() -> None:
    tape = _tape(("main", "issue_refund"))
    asked = _asked(what="issue_refund", cents=4500)
    near = Unused(tape).nearest("tool", "issue_refund", asked, "main")
    said = refusal.text("tool", "issue_refund", asked, Declared("mutating", "declared in agent.py:71"), near, at="13.1")
    assert said.splitlines() == [
        'tool issue_refund(what="issue_refund", cents=4500) would run for real',
        "it is mutating (declared in agent.py:71) and differs from the recorded call (cents 4000 → 4500)",
        "let it run:    --live issue_refund",
        "or answer it:  --set 13.1=JSON",
    ]


def test_a_refusal_says_when_nothing_like_it_was_recorded_or_what_was_has_been_used() -> None:
    tape = _tape(("main", "pay"), ("main", "stop", None))
    unused = Unused(tape)
    unused.take(_key("pay"), "main")
    unknown = Declared("unknown", "nobody declared it")
    for name, why in (
        ("pay", "the recorded call like it has answered another one"),
        ("stop", "the recorded call like it was never answered"),
        ("refund", "the recorded run has no such call"),
    ):
        asked = _asked(what=name, cents=4000)
        said = refusal.text("tool", name, asked, unknown, unused.nearest("tool", name, asked, "main"))
        assert said.splitlines()[1] == f"it is unknown (nobody declared it) and {why}"
        assert "--set" not in said


def test_a_refusal_under_a_tail_that_only_the_record_answers_says_so() -> None:
    said = refusal.text("tool", "look", _asked(), Declared("read", "declared in a.py:1"), None, tail="record")
    assert "it is read (declared in a.py:1), --tail record answers from the record only, and the recorded run" in said


@pytest.mark.parametrize(
    ("kind", "name", "request_", "brief", "flag"),
    [
        ("http", "POST api.stripe.com/v1/refunds",
         {"method": "POST", "url": "https://api.stripe.com/v1/refunds", "body": b'{"cents": 4500}', "headers": []},
         'http POST api.stripe.com/v1/refunds {"cents": 4500}', "'POST api.stripe.com/v1/refunds'"),
        ("model", "POST api.openai.com/v1/responses",
         {"method": "POST", "url": "https://api.openai.com/v1/responses", "headers": [], "body": b'{"model": "o3"}'},
         'model POST api.openai.com/v1/responses {"model": "o3"}', "o3"),
        ("process", "git", {"argv": ["/usr/bin/git", "push", "a b"]}, "process /usr/bin/git push 'a b'", "git"),
        ("process", "sh", {"shell": "git push | tee log"}, "process git push | tee log", "sh"),
        ("human", "input", {"prompt": "sure?"}, 'human input {"prompt": "sure?"}', "input"),
        ("activity", "charge", None, "activity charge", "charge"),
    ],
)  # fmt: skip
def test_the_flag_of_a_refusal_lets_that_call_run(kind: str, name: str, request_: Any, brief: str, flag: str) -> None:
    said = refusal.text(kind, name, request_, Declared("unknown", "nobody declared it"), None).splitlines()
    assert said[0] == f"{brief} would run for real"
    assert said[2] == f"let it run:    --live {flag}"
    policy = Policy(live=(refusal.called(kind, name, request_),))
    assert decide(policy, "unknown", kind, name, recorded=False, request=request_) == L


def test_a_long_call_stays_a_line() -> None:
    said = refusal.text("tool", "f", _asked(**{f"a{i}": "x" * 500 for i in range(9)}), Declared("unknown", "x"), None)
    assert len(said.splitlines()[0]) < 160
