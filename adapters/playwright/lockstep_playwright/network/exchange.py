"""One exchange of a browser, as those who record and serve it speak of it: what was asked, and what came.

Values have the shapes of every HTTP exchange that Lockstep records (`lockstep.taps.http`): a request is
`{method, url, headers, body}`, an answer a head part `{status, reason, headers}`, then bytes as they come, then the
end. Bodies are without their content-encoding, since the browser takes it off before anybody sees them, and does not
for an answer that it is given; `decoded` says which it was, and an answer that is served carries that header again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep.log.model import Value

type Headers = tuple[tuple[str, str], ...]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is held: nothing of it has left the browser.

    id          of this hold, unique in the browser
    network     of the request in the Network domain: the hops of a redirect share it, "" where there is none
    lane        who asks: "main/page-1/frame", "main/page-1/worker-1", "main/service-worker-1/net"
    resource    what for, as the browser calls it: Document, Script, XHR, Fetch, EventSource, Ping, Preflight, …
    frame       of the frame or target that asks, as the browser names it
    session     of the connection, which knows this request in the Network domain; "" where there is none
    hop         whether a redirect led here
    """

    id: str
    network: str
    lane: str
    method: str
    url: str
    headers: Headers
    body: bytes
    resource: str
    frame: str
    session: str = ""
    hop: bool = False

    @property
    def preflight(self) -> bool:
        """Whether the browser itself asks whether a page may ask."""
        return self.resource == "Preflight"


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer begins. `headers` have every Set-Cookie; `decoded` is the content-encoding that was taken off, and
    is in no header."""

    status: int
    reason: str = ""
    headers: Headers = ()
    decoded: str = ""

    def part(self) -> dict[str, Value]:
        """As it is stored."""
        pairs: list[Value] = [[name, value] for name, value in self.headers]
        told: dict[str, Value] = {"status": self.status, "reason": self.reason, "headers": pairs}
        return {**told, "decoded": self.decoded} if self.decoded else told

    @classmethod
    def of(cls, part: Any) -> Head:
        """From what is stored, whose secrets stand in clear."""
        pairs = tuple((str(pair[0]), str(pair[1])) for pair in part.get("headers") or () if len(pair) == 2)
        return cls(
            status=int(part["status"]), reason=str(part.get("reason") or ""), headers=pairs,
            decoded=str(part.get("decoded") or ""),
        )  # fmt: skip

    def served(self) -> Headers:
        """The headers as a page gets them with an answer that does not come from the network."""
        kept = tuple(pair for pair in self.headers if pair[0].lower() != "transfer-encoding")
        return (*kept, ("content-encoding", self.decoded)) if self.decoded else kept


# What becomes of a request that is held.


class Go(msgspec.Struct, frozen=True):
    """It is made for real, and what comes is told to the answerer.

    url  where it is made in place of its own, which the page does not see: of a server of ours, and then nothing of
         the answer is told
    """

    url: str = ""


class Fulfil(msgspec.Struct, frozen=True):
    """It is answered with this, and nothing leaves."""

    head: Head
    body: bytes = b""


class Fail(msgspec.Struct, frozen=True):
    """It fails, as `Network.ErrorReason` has it: Failed, Aborted, ConnectionReset, BlockedByClient, …"""

    reason: str = "BlockedByClient"


class Hold(msgspec.Struct, frozen=True):
    """It is never answered: it ends with its page."""


type Decision = Go | Fulfil | Fail | Hold
