"""A program that serves: what comes in from outside is no answer that a recording has.

No audit event tells that a connection was accepted, so `socket.accept` is wrapped. A replay, which
nobody will connect to, stops where the recorded program began to listen.
"""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any

from lockstep.session import current, lanes
from lockstep.taps.guard import own, uncovered
from lockstep.taps.patches import disguise

SOURCE = uncovered.SERVED

# Where each socket began to listen: an accepted connection belongs to that place.
_places: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_recorded: set[str] = set()
_WHAT = "connections from outside"


def began(session: Any) -> None:
    """A session begins. A replay learns where the recorded program served others."""
    _recorded.clear()
    if not session.recording:
        _recorded.update(detail for source, detail in session.recorded_notes() if source == SOURCE)


def patch(module: ModuleType) -> None:
    """Wraps `socket.socket.accept` and `listen`."""
    sockets = module.socket
    accept, listen = sockets.accept, sockets.listen

    def our_accept(self: Any) -> Any:
        found = accept(self)
        if current.session is not None:
            own.noticed(found[0])
            if lanes.inside() is None and not own.answered(self, found[1]):
                uncovered.refuse(SOURCE, _WHAT, _places.get(self))
        return found

    def our_listen(self: Any, *backlog: int) -> None:
        if current.session is not None and lanes.inside() is None:
            place = _places[self] = uncovered.place()
            if f"{_WHAT} ({place})" in _recorded:
                uncovered.refuse(SOURCE, _WHAT, place)
        listen(self, *backlog)

    disguise(our_accept, accept, "socket", "accept")
    disguise(our_listen, listen, "socket", "listen")
    sockets.accept, sockets.listen = our_accept, our_listen
