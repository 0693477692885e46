"""One request and its answer on an http.client connection."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from lockstep.log.model import Value
from lockstep.session import current, sites
from lockstep.session.call import failed
from lockstep.taps.http import connecting, streams
from lockstep.taps.http.bodies import CUT
from lockstep.taps.http.connections import forget, origin
from lockstep.taps.http.expected import next_request
from lockstep.taps.http.request import absolute, asked, offered
from lockstep.taps.http.sockets import Play, Tee
from lockstep.taps.http.wire import Outgoing

if TYPE_CHECKING:
    from lockstep.session.surface import Session

# Why a request was not sent to its end: the socket refused it, and the program was told.
UNSENT = "unsent"

_NO_BODY = frozenset((204, 304))


class Exchange:
    """The same object records and replays, as its call does."""

    __slots__ = (
        "_asked", "_connection", "_early", "_held", "_limit", "_reason", "_request", "call", "fake", "over", "session",
    )  # fmt: skip

    def __init__(self, session: Session, connection: Any) -> None:
        self.session = session
        self.call = session.open("http")
        self.over = False
        self.fake: Any = None  # the stand-in for its socket, where there is one
        self._connection = connection
        self._request = Outgoing()
        self._asked = False
        self._limit: int | None = None
        self._reason = ""
        self._held: list[bytes] | None = [] if self.call.held else None  # what the client has sent and nobody got
        self._early = b""  # of an answer that came before the request was whole
        if not self.call.live and not session.recording:
            self._look_ahead()

    # Recording.

    def sent(self) -> None:
        """What was taken so far has reached the socket."""
        if self._request.complete:
            self._ask_live(None)

    def send_failed(self, error: BaseException) -> None:
        """The socket raised, and the client gives up."""
        self._ask_live(UNSENT)
        if self.call.held:  # asked before it was sent, so the request does not say it
            self.call.part({"connection": {}})
        failed(self.call, error)

    def receive(self, original: Any) -> Any:
        """Runs the client's `getresponse` with a tee beneath its reader."""
        connection = self._connection
        request = self._request
        self._ask_live(None if request.complete or request.open_ended else CUT)
        tees: list[Tee] = []
        real = connection.response_class

        def teed(*args: Any, **kwargs: Any) -> Any:
            response = real(*args, **kwargs)
            try:
                tee = Tee(response.fp.detach(), self.call, self._early)
                response.fp = io.BufferedReader(tee)
                tees.append(tee)
            except Exception as error:
                self._fault(error)
            return response

        own = vars(connection).get("response_class")
        connection.response_class = teed
        try:
            with self.call.inside():
                response = original(connection)
        except BaseException as error:
            for tee in tees:
                tee.unparsed()
            if not tees:
                failed(self.call, error)
            raise
        finally:
            # botocore sets another one while it reads.
            if vars(connection).get("response_class") is teed:
                if own is None:
                    del connection.response_class
                else:
                    connection.response_class = own
        for tee in tees:
            self._parsed(tee, response)
        return response

    def _parsed(self, tee: Tee, response: Any) -> None:
        try:
            headers: list[Value] = [[name, str(value)] for name, value in response.headers.items()]
            head: dict[str, Value] = {
                "status": response.status, "reason": response.reason, "version": response.version, "headers": headers,
            }  # fmt: skip
            if response.headers.get("content-encoding"):
                head["offered"] = offered(self._request.headers)
            if response.status == 101:
                head["switched"] = True
                self.session.note("protocol switch", f"{self.call.name} ({sites.site() or 'a library'})")
            tee.parsed(head, _length(response))
        except Exception as error:
            self._fault(error)

    def _ask_live(self, partial: str | None) -> None:
        try:
            self.ask(partial)
        except Exception as error:
            self._fault(error)

    def _fault(self, error: BaseException) -> None:
        session = current.session
        if session is not None:
            session.fault("http.client", error)

    # Replay.

    def _look_ahead(self) -> None:
        # A recorded request that its socket refused midway ends here at the same byte.
        request = next_request(self.call)
        partial, size = request.get("partial"), request.get("sent")
        if partial in (CUT, UNSENT) and isinstance(size, int):
            self._limit, self._reason = size, str(partial)

    def reader(self, descriptor: int) -> Play:
        """The recorded answer, as what a socket would be read through."""
        return Play(self.call, offered(self._request.headers), descriptor, self._fail)

    def _fail(self, piece: Any) -> None:
        connecting.fail(self.call, self._connection, piece)

    def expects_continue(self) -> bool:
        request = self._request
        expect = request.header("expect") if request.at_head and not request.complete else None
        return expect is not None and expect.lower() == "100-continue"

    # Both.

    def took(self, data: bytes) -> None:
        """The client gave these bytes to be sent."""
        request = self._request
        request.feed(data)
        if self.call.live:
            return
        if self._held is not None:
            self._held.append(data)
        if self._limit is not None and request.size >= self._limit:
            self.ask(self._reason)
            if self.call.live:
                return
            if self._reason == CUT:
                raise BrokenPipeError(32, "Broken pipe")  # as recorded; urllib3 goes on to the answer
            streams.raise_end(self.call, self.call.take())
        if request.complete:
            self.ask()

    def ask(self, partial: str | None = None) -> None:
        """States the request, once: with its last byte, at the latest before the answer is read."""
        if self._asked:
            return
        self._asked = True
        request = self._request
        method, _, target = request.line.partition(" ")
        target = target.rpartition(" ")[0] or target
        what = asked(method, self._url(target), request.headers, request.body(), partial)
        if partial is not None and isinstance(what.request, dict):
            what.request["sent"] = request.size
        self.call.ask(what.name, what.request, what.key, what.kind)
        if self._held is not None:
            self._decide()
        if not self.call.live:
            connecting.raise_failed(self.call, self._connection, self.fake)

    def _decide(self) -> None:
        """Held: the request is sent now, for real, or the record answers it; or it is refused."""
        pieces, self._held = self._held, None
        assert pieces is not None
        fake = self.fake
        try:
            self.call.ready()
        except BaseException:
            fake.give_back()
            forget(self._connection)
            raise
        if not self.call.live:
            fake.let_go()
            return
        with self.call.inside():
            self._early = connecting.release(self._connection, fake, pieces)

    def _url(self, target: str) -> str:
        if "://" in target.partition("?")[0]:
            return target  # to a forwarding proxy
        scheme, host, port = origin(self._connection)
        return absolute(scheme, host, port, target)


def _length(response: Any) -> int | str | None:
    """How long the body will be, as the client's parser decided it."""
    if response.chunked:
        return 0 if response._method == "HEAD" or response.status in _NO_BODY else "chunked"
    length: int | None = response.length
    return length
