"""Who decides on the requests of a browser, and is told what came of them."""

from __future__ import annotations

from typing import Protocol

from lockstep_playwright.network.exchange import Asked, Decision, Head
from lockstep_playwright.network.sockets import Told


class Answerer(Protocol):
    """What recording, replay and fork each have one of. Called in the loop of the connection.

    A fault of `asked` fails the request where the answerer serves, and lets it go where it records. The other methods
    must not raise and are told in the order in which things came; after `over` nothing more is told of a request.

    recording  whether every request is made for real, whatever is decided: it is told of one as that leaves
    sockets    who is told of WebSockets, None where nobody is
    """

    recording: bool
    sockets: Told | None

    async def asked(self, asked: Asked) -> Decision:
        """A request is held. It stays so until this returns."""
        ...

    def answered(self, asked: Asked, head: Head) -> None:
        """The answer to one that was let go has begun; the page has seen nothing of it yet, unless it came from a
        target that cannot be held."""
        ...

    def part(self, asked: Asked, data: bytes, when: int = 0) -> None:
        """A piece of its body, all of it where it came whole. `when`: ns of the system's monotonic clock, 0 for now."""
        ...

    def over(self, asked: Asked, error: str = "", *, cancelled: bool = False) -> None:
        """It is over. `error`: as the browser says it, "net::ERR_CONNECTION_RESET", "" for none. `cancelled`: the page
        gave it up, by navigating away, closing or aborting; also one that is held or was served."""
        ...
