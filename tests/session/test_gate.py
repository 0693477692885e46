"""The gate lets things happen in the recorded total order, whoever comes first."""

import threading

import pytest

from lockstep.log.model import Event, Kind
from lockstep.session.gate import Gate, Stopped
from lockstep.session.tape import Slot


def _slots(*strands: str) -> list[Slot]:
    return [
        Slot(n, n, Event(Kind.CAUSE, n + 1, n * 1_000_000, strand, what="sleep"), strand)
        for n, strand in enumerate(strands)
    ]


def _run(gate: Gate, slots: list[Slot], order: list[int], errors: list[BaseException]) -> None:
    for slot in slots:
        try:
            gate.wait(slot)
        except Stopped as error:
            errors.append(error)
            return
        order.append(slot.index)


def test_threads_pass_in_the_recorded_order_whichever_comes_first() -> None:
    slots = _slots("a", "b", "b", "c", "a", "b")
    order: list[int] = []
    errors: list[BaseException] = []
    gate = Gate(slots, 0.0)
    threads = [
        threading.Thread(target=_run, args=(gate, [slot for slot in slots if slot.strand == strand], order, errors))
        for strand in ("c", "b", "a")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2, 3, 4, 5]
    assert gate.head() is None


def test_a_strand_never_waits_for_itself() -> None:
    slots = _slots("a", "a", "b")
    gate = Gate(slots, 0.0)
    gate.wait(slots[1])
    head = gate.head()
    assert head is slots[0]
    gate.wait(slots[0])
    assert gate.head() is slots[2]


def test_stopping_wakes_every_waiter() -> None:
    slots = _slots("a", "b")
    gate = Gate(slots, 0.0)
    order: list[int] = []
    errors: list[BaseException] = []
    thread = threading.Thread(target=_run, args=(gate, [slots[1]], order, errors))
    thread.start()
    while not gate.blocked():
        pass
    gate.stop()
    thread.join(10)
    assert order == []
    assert [type(error) for error in errors] == [Stopped]
    with pytest.raises(Stopped):
        gate.wait(slots[0])


def test_the_loop_of_the_next_strand_is_woken() -> None:
    slots = _slots("a", "loop")
    gate = Gate(slots, 0.0)
    woken: list[str] = []
    gate.attach("loop", lambda: woken.append("loop"))
    assert not gate.ready(slots[1])
    gate.perform(slots[0])
    assert woken == ["loop"]
    assert gate.ready(slots[1])


def test_pacing_is_by_absolute_deadlines() -> None:
    slots = _slots("a", "a", "a")
    gate = Gate(slots, 0.001)  # a thousand times slower: the second slot is due after a second
    assert gate.due(slots[0]) == 0.0
    assert 0.5 < gate.due(slots[1]) <= 1.0
    assert 1.5 < gate.due(slots[2]) <= 2.0
    assert Gate(slots, 0.0).due(slots[2]) == 0.0
