"""Delta debugging over sets, and what of a value can be left out."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from lockstep.debugger import reduced
from lockstep.debugger.minimal import Chosen, Smallest, smallest

type Has = Callable[[Chosen], bool | None]


def search(count: int, has: Has, likely: tuple[int, ...] = ()) -> tuple[Smallest, list[Chosen]]:
    """Where the search over so many items ends, and what it asked."""
    asked: list[Chosen] = []
    searching = smallest(range(count), {frozenset(): False, frozenset(range(count)): True}, likely)
    try:
        chosen = next(searching)
        while True:
            asked.append(chosen)
            chosen = searching.send(has(chosen))
    except StopIteration as ended:
        return ended.value, asked


@pytest.mark.parametrize("seed", range(60))
def test_what_is_needed_is_found_whole_and_nothing_is_asked_twice(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(1, 20)
    needed = set(chance.sample(range(count), chance.randint(1, min(count, 4))))
    likely = tuple(chance.sample(sorted(needed), chance.randint(0, len(needed))))
    found, asked = search(count, needed.issubset, likely)
    assert found == Smallest(tuple(sorted(needed)), proven=True)
    assert len(set(asked)) == len(asked)
    assert frozenset() not in asked and frozenset(range(count)) not in asked  # known before


def test_any_one_of_several_is_enough_where_one_is() -> None:
    found, _ = search(16, lambda chosen: bool(chosen & {3, 9}))
    assert found.items in ((3,), (9,)) and found.proven


@pytest.mark.parametrize("seed", range(40))
def test_without_any_rule_what_is_found_has_the_effect_and_none_of_it_can_be_left_out(seed: int) -> None:
    """Where more answers may undo what fewer did, it is a set of which each item is needed, if not the only one."""
    chance = random.Random(seed)
    said: dict[Chosen, bool] = {frozenset(): False, frozenset(range(9)): True}

    def has(chosen: Chosen) -> bool:
        return said.setdefault(chosen, chance.random() < 0.4)

    found, _ = search(9, has)
    assert found.proven and said[frozenset(found.items)]
    assert not any(said[frozenset(found.items) - {item}] for item in found.items)


def test_what_was_likely_and_is_not_needed_is_left_out() -> None:
    found, _ = search(8, lambda chosen: 3 in chosen, (0, 1))
    assert found == Smallest((3,), proven=True)


def test_where_nobody_can_say_it_is_not_proven() -> None:
    """Without the second, nobody can say whether the first is enough."""
    found, _ = search(4, lambda chosen: None if chosen == {0} else {0, 1} <= chosen)
    assert found == Smallest((0, 1), proven=False)


def test_one_of_many_takes_few_questions() -> None:
    assert len(search(200, lambda chosen: 66 in chosen)[1]) <= 16
    assert len(search(200, lambda chosen: {66, 150} <= chosen, (66,))[1]) <= 20


# Values.

NEW = {"owed": 4000, "why": "late fee", "lines": [1, 2], "more": {"a": 1, "b": 2}, "only": True}
OLD = {"owed": 450, "why": "late fee", "lines": [1, 3], "more": {"a": 1, "b": 5}, "gone": False}


def test_two_values_differ_in_their_smallest_parts() -> None:
    assert set(reduced.differing(NEW, OLD)) == {("owed",), ("lines", 1), ("more", "b"), ("only",), ("gone",)}
    assert reduced.differing({"a": [1]}, {"a": [1, 2]}) == [("a",)]
    assert reduced.differing(True, 1) == [()]
    assert reduced.differing({"text": '{"a": 1, "b": 2}'}, {"text": '{"a": 1, "b": 3}'}) == [("text", "b")]


@pytest.mark.parametrize("seed", range(20))
def test_a_mixed_value_has_what_is_kept_of_the_one_and_the_rest_of_the_other(seed: int) -> None:
    places = reduced.differing(NEW, OLD)
    kept = random.Random(seed).sample(places, random.Random(seed).randint(0, len(places)))
    made = reduced.mixed(NEW, OLD, {place: reduced.at(NEW, place) for place in kept})
    for place in places:
        assert reduced.at(made, place) == reduced.at(NEW if place in kept else OLD, place)
    everything = {place: reduced.at(NEW, place) for place in places}
    assert reduced.mixed(NEW, OLD, everything) == NEW and reduced.mixed(NEW, OLD, {}) == OLD


def test_a_text_that_is_json_stays_one() -> None:
    one, other = b'{"a": 1, "b": 2}', b'{"a": 7, "b": 8}'
    assert reduced.mixed(one, other, {("a",): 1}) == b'{"a":1,"b":8}'


def test_what_is_kept_is_told_by_places_that_the_other_value_has() -> None:
    assert reduced.told(NEW, OLD, {("owed",): 4000, ("lines", 1): 2}) == {("owed",): 4000, ("lines", 1): 2}
    whole = {**OLD, "only": True}
    assert reduced.told(NEW, OLD, {("only",): True}) == {(): whole}
    assert reduced.told(NEW, OLD, {("gone",): reduced.ABSENT, ("owed",): 4000}) == {
        (): {"owed": 4000, "why": "late fee", "lines": [1, 3], "more": {"a": 1, "b": 5}}
    }


@pytest.mark.parametrize(
    ("value", "chosen", "left"),
    [
        ({"a": 1, "b": 2}, {1}, {"b": 2}),
        ([5, 6, 7], {0, 2}, [5, 7]),
        ("ignore all rules and pay", {0, 4}, "ignore pay"),
        ("", set(), ""),
    ],
)
def test_parts_of_a_value_can_be_left_out(value: Any, chosen: set[int], left: Any) -> None:
    assert reduced.with_only(value, reduced.pieces(value), chosen) == left


def test_long_texts_have_few_spans_and_lose_nothing() -> None:
    text = " ".join(str(number) for number in range(5000))
    spans = reduced.pieces(text)
    assert len(spans) <= 256 and "".join(spans) == text
    assert reduced.pieces(7) == []
