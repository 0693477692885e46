"""All that a replayed browser needs in the place of the network.

    network = Network(serving, began, ended, server.note)        # of a fork: Forking, with its own note
    await network.start()                                        # before the browser is launched
    … launch(args=network.switches()) …
    linked = await link(transport, context, network.answerer, shim, fault)
    network.know(linked)
    await network.pace.action_begins(); …                        # as the agent acts
    await network.stop()

The loop in which it is started has the streams and WebSockets; that of the connection may be another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lockstep.session.native.forking import Forking
from lockstep.session.native.serving import Serving
from lockstep.session.tape import Tape
from lockstep_playwright.connecting import Linked
from lockstep_playwright.layout import SOCKET
from lockstep_playwright.serving import certificate
from lockstep_playwright.serving.answering import Answering
from lockstep_playwright.serving.cookies import Jar
from lockstep_playwright.serving.matching import Note
from lockstep_playwright.serving.openers import Openers
from lockstep_playwright.serving.pace import Pace
from lockstep_playwright.serving.renaming import Renaming
from lockstep_playwright.serving.sockets import Sockets
from lockstep_playwright.serving.wall import Wall
from lockstep_playwright.volatile import Rules


class Network:
    """See above.

    answerer  decides on the browser's requests
    pace      when what is recorded comes; told of the agent's actions
    wall      what stands before the real network
    renaming  whose values are other ones in each run
    """

    def __init__(
        self, calls: Serving | Forking, began: Sequence[int], ended: Sequence[int], note: Note, *,
        rules: Rules = Rules(), since: float = 0.0,  # noqa: B008 - immutable
    ) -> None:  # fmt: skip
        """`began` and `ended`: the positions at which the recorded actions did, of those that are served. `note` is
        told what goes out of its order. `rules`: what may be another value in each run, `since` when the recording
        began, in seconds since 1970."""
        self._openers: Openers | None = None
        servings = [calls] if isinstance(calls, Serving) else [calls.served, calls.later]
        self.renaming = Renaming(rules, servings, since, note)
        self.pace = Pace(calls if isinstance(calls, Serving) else calls.served, began, ended, note)
        sockets = Sockets(calls, self.pace, self._lane_of, note)
        # Only where one may be needed: making it takes as long as some pages do.
        needed = isinstance(calls, Forking) or any(map(_is_secure, _opened(self.pace.tape)))
        made = certificate.make() if needed else None
        self.wall = Wall(sockets.converse, calls.fault, made)
        self.answerer = Answering(calls, self.wall, self.pace, note)

    async def start(self) -> None:
        await self.wall.start()

    async def goes_live(self) -> None:
        """Of a fork that has served its part: nothing waits any more, and what the policy lets go leaves."""
        self.pace.close()
        self.wall.is_open = True

    async def stop(self) -> None:
        """The browser is gone."""
        self.pace.close()
        await self.wall.stop()

    def switches(self) -> tuple[str, ...]:
        """See `Wall.switches`."""
        return self.wall.switches()

    def know(self, linked: Linked) -> None:
        """The browser is connected to: it is asked who opens a WebSocket."""
        self._openers = Openers(linked.transport, linked.targets)
        self.answerer.jar = Jar(linked.transport, linked.targets)

    async def _lane_of(self, key: str) -> str:
        return "" if self._openers is None else await self._openers.lane(key)


def _opened(tape: Tape) -> Iterator[str]:
    """The addresses of a recorded browser's WebSockets."""
    for lane in tape.lanes.values():
        yield from (effect.begin.name for effect in lane.effects if effect.begin.what == SOCKET)


def _is_secure(address: str) -> bool:
    return address.startswith("wss:")
