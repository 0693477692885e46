"""What a strand still has to do with the order of locks, once it has got past a place.

How often a strand takes a lock may hang on a race that nothing orders: whoever finds a cache empty
fills it under the cache's lock (pydantic completes its models like that at the first answer, logging
its levels). A strand that comes to a later place of its own has taken all the turns that it will take
up to there. The rest of them is given up, so that nobody waits for it; whether the program did the
same is for its calls, reads and output to say.
"""

from __future__ import annotations

import sys
from typing import Any

from lockstep.session.tape import Run, Slot

END = sys.maxsize  # a place after all others


class Claims:
    """The turns of one strand by the place up to which it may take them. Used by that strand's thread.

    before  the place of the first turn that is not settled
    """

    __slots__ = ("_entries", "_next", "_session", "before")

    def __init__(self, session: Any) -> None:
        self._session = session
        self._entries: list[tuple[int, str, int, Slot | None]] = []
        self._next = 0
        self.before = END

    def add(self, place: int, lock: str, number: int, begin: Slot | None) -> None:
        """Run `number` of the lock began at the slot `begin`, or ended (None), at `place`."""
        self._entries.append((place, lock, number, begin))

    def sort(self) -> None:
        self._entries.sort(key=lambda entry: entry[0])
        self.before = self._entries[0][0]

    def settle(self, place: int) -> None:
        """The strand has come to `place`: what it has not taken by now, it will not take."""
        entries, session = self._entries, self._session
        while self._next < len(entries) and entries[self._next][0] < place:
            _, lock, number, begin = entries[self._next]
            self._next += 1
            self.before = entries[self._next][0] if self._next < len(entries) else END
            if begin is None:
                session.turns(lock).over(number)
            elif not session.gate.done(begin):
                session.gate.perform(begin)


def of(session: Any, turns: dict[str, list[Run]]) -> dict[str, Claims]:
    """The claims of every strand that shares a lock with another."""
    found: dict[str, Claims] = {}
    for lock, runs in turns.items():
        for number, run in enumerate(runs):
            claims = found.get(run.strand)
            if claims is None:
                claims = found[run.strand] = Claims(session)
            if run.slot is not None:
                claims.add(run.slot.index, lock, number, run.slot)
            if number + 1 < len(runs):
                after = runs[number + 1].slot
                assert after is not None
                claims.add(after.index, lock, number, None)
    for claims in found.values():
        claims.sort()
    return found
