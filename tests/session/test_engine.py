"""The engine decides without a clock, a lock or a socket: given a lane's record and a key, what now?"""

from hashlib import blake2b

from lockstep.errors import Code
from lockstep.log.model import Event, Kind, Status
from lockstep.session import engine
from lockstep.session.tape import Tape


def _key(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def _tape(*asked: str, lane: str = "main", finished: bool = True) -> Tape:
    events, pos = [Event(Kind.LANE, 1, 0, "", what="main", name="main")], 2
    for text in asked:
        events.append(Event(Kind.BEGIN, pos, 0, lane, what="tool", name=text, key=_key(text), body={"request": text}))
        events.append(Event(Kind.END, pos + 1, 0, lane, what=Status.OK, of=pos, body=text))
        pos += 2
    if finished:
        events.append(Event(Kind.FINISH, pos, 0, "main", what="complete", body={}))
    return Tape(enumerate(events), lambda seq: events[seq].body)


def test_the_next_effect_of_the_lane_is_served_where_the_key_is_the_same() -> None:
    lane = _tape("a", "b").lane("main")
    for text in ("a", "b"):
        decision = engine.match(lane, _key(text), interrupted=False)
        assert isinstance(decision, engine.Serve)
        assert decision.effect.begin.name == text


def test_equal_calls_are_served_by_occurrence() -> None:
    lane = _tape("a", "a").lane("main")
    served = [engine.match(lane, _key("a"), interrupted=False) for _ in range(2)]
    assert [decision.effect.begin.pos for decision in served if isinstance(decision, engine.Serve)] == [2, 4]


def test_another_key_is_another_request() -> None:
    decision = engine.match(_tape("a").lane("main"), _key("x"), interrupted=False)
    assert isinstance(decision, engine.Diverge)
    assert decision.code is Code.REQUEST
    assert decision.expected is not None
    assert decision.expected.begin.name == "a"


def test_a_call_that_was_recorded_later_in_the_lane_is_a_matter_of_order() -> None:
    decision = engine.match(_tape("a", "b").lane("main"), _key("b"), interrupted=False)
    assert isinstance(decision, engine.Diverge)
    assert decision.code is Code.ORDER


def test_a_call_after_the_last_one_is_extra_but_unknown_where_the_recording_was_cut() -> None:
    extra = engine.match(_tape().lane("main"), _key("a"), interrupted=False)
    assert isinstance(extra, engine.Diverge)
    assert extra.code is Code.EXTRA
    assert isinstance(engine.match(_tape(finished=False).lane("main"), _key("a"), interrupted=True), engine.Beyond)


def test_what_is_left_is_the_first_unused_effect_of_all_lanes() -> None:
    tape = _tape("a", "b")
    lane = tape.lane("main")
    engine.match(lane, _key("a"), interrupted=False)
    left = engine.left(tape.lanes.values())
    assert left is not None
    assert left.begin.name == "b"
    engine.match(lane, _key("b"), interrupted=False)
    assert engine.left(tape.lanes.values()) is None


def _sum(name: str = "main", key: str = "a", outcome: str = "1", reads: int = 2) -> engine.LaneSum:
    return engine.LaneSum(name, ((_key(key), _key(outcome)),), (("time.time", reads),), (("stdout", _key("out")),))


def test_the_digest_changes_with_request_outcome_reads_output_lane_and_end_and_with_nothing_else() -> None:
    same = engine.digest([_sum()], b"end")
    others = [
        engine.digest([_sum(key="b")], b"end"),
        engine.digest([_sum(outcome="2")], b"end"),
        engine.digest([_sum(reads=3)], b"end"),
        engine.digest([_sum(name="main/one.1")], b"end"),
        engine.digest([_sum()], b"other end"),
        engine.digest([], b"end"),
    ]
    assert len({same, *others}) == len(others) + 1
    idle = engine.LaneSum("main/idle.1", (), (), ())
    assert engine.digest([_sum(), idle], b"end") == same
    two = [_sum(), _sum("main/x.1")]
    assert engine.digest(two, b"end") == engine.digest(two[::-1], b"end")


def test_slots_are_in_order_of_position_and_a_closed_end_has_none() -> None:
    events = [
        Event(Kind.LANE, 1, 0, "", what="main", name="main"),
        Event(Kind.END, 4, 0, "main", what=Status.CLOSED, of=2),
        Event(Kind.PART, 3, 0, "main", of=2, body=b"x"),
        Event(Kind.BEGIN, 2, 0, "main", what="http", name="GET x", key=b"k" * 16),
        Event(Kind.BEGIN, 5, 0, "main", what="http", name="inner", of=2, key=b"i" * 16),
    ]
    tape = Tape(enumerate(events), lambda seq: events[seq].body)
    assert [slot.event.pos for slot in tape.slots] == [2, 3]
    assert [effect.begin.pos for effect in tape.lane("main").effects] == [2]
    assert tape.interrupted
