"""One recorded WebSocket, with a page that talks to it again."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from contextlib import suppress
from typing import Any

from websockets.frames import CloseCode, Opcode
from websockets.http11 import Request

from lockstep.errors import Code
from lockstep.log.model import Event, Kind, Status
from lockstep_playwright.serving.client import Client, Message
from lockstep_playwright.serving.matching import Match
from lockstep_playwright.serving.pace import Pace
from lockstep_playwright.serving.renaming import Renaming

PAGE = "page"  # who a frame is from; others are from the server
_CLOSES = 0.3  # seconds that a page is given to close what it closed when it was recorded


class Conversation:
    """One recorded conversation, with a page that holds it again."""

    def __init__(self, client: Client, found: Match, pace: Pace | None) -> None:
        assert found.recorded is not None
        assert found.serving is not None
        self._client = client
        self._found = found
        self._call = found.call
        self._recorded = found.recorded
        self._serving = found.serving
        self._pace = pace

    async def play(self, request: Request, offered: tuple[str, ...]) -> None:
        client = self._client
        pieces = [(event, self._stored(seq, event)) for seq, event, _ in self._recorded.pieces]
        since = self._recorded.begin.at
        first = pieces[0][1] if pieces else {}
        if isinstance(first, dict) and "status" in first:
            since = await self._turn(since, pieces.pop(0)[0])
            accepted = await self._shake_hands(request, first)
        elif pieces and pieces[0][0].kind is Kind.END and not first.get("opened", True):
            accepted = False
        else:
            accepted = await self._shake_hands(request, {"status": 101, "headers": _protocol(offered)})
        if not accepted:
            await self._over(since, pieces)
            return
        listening = asyncio.get_running_loop().create_task(client.listen())
        try:
            await self._go_on(since, pieces)
        finally:
            listening.cancel()
            self._call.end(Status.CLOSED)

    def _stored(self, seq: int, event: Event) -> Any:
        """What is said of a piece without handing it out."""
        return self._serving.tape.body(seq) or {}

    async def _turn(self, since: int, event: Event) -> int:
        if self._pace is not None:
            await self._pace.turn(self._recorded.begin, since, event, late=True)
        self._found.now()
        return event.at

    async def _shake_hands(self, request: Request, head: dict[str, Any]) -> bool:
        """Answers the handshake as the server did. False: it refused."""
        if head["status"] != 101:
            await self._client.reject(int(head["status"]))
            return False
        headers = {str(name).lower(): str(value) for name, value in head.get("headers") or ()}
        chosen, extensions = headers.get("sec-websocket-protocol", ""), headers.get("sec-websocket-extensions", "")
        await self._client.accept(request, chosen, extensions)
        return True

    async def _go_on(self, since: int, pieces: list[tuple[Event, Any]]) -> None:
        client, protocol = self._client, self._client.protocol
        for event, stored in pieces:
            if event.kind is Kind.END:
                await self._close(since, event, stored)
                return
            if stored.get("from") == PAGE:
                said = await client.said.get()
                if said is None:
                    return  # what is left of it is what the record has and the page did not take
                self._compare(said, stored)
                since = await self._turn(since, event)
                continue
            if self._pace is not None:
                await self._pace.turn(self._recorded.begin, since, event, late=True)
            since = event.at
            told: Any = self._found.now().value
            if "text" in told:
                protocol.send_text(str(told["text"]).encode("utf-8", "surrogatepass"))
            else:
                protocol.send_binary(b64decode(told["base64"]))
            await client.flush()
        await client.closed.wait()
        self._extra()

    async def _close(self, since: int, event: Event, stored: Any) -> None:
        """Ends it as it ended. A page that closed it closes it again."""
        client, protocol = self._client, self._client.protocol
        if event.what in (Status.CANCELLED, Status.CLOSED):
            await client.closed.wait()
            self._extra()
            return
        if stored.get("by") == PAGE:
            await client.closed.wait()
        elif "by" not in stored:
            with suppress(TimeoutError):
                await asyncio.wait_for(client.closed.wait(), _CLOSES)
        self._extra()
        await self._turn(since, event)
        code = stored.get("code")
        if code == CloseCode.ABNORMAL_CLOSURE or stored.get("clean") is False:
            client.line.abort()
        elif not client.closed.is_set():
            protocol.send_close(
                None if code in (None, CloseCode.NO_STATUS_RCVD) else code, str(stored.get("reason", ""))
            )
            await client.flush()
            await client.closed.wait()

    async def _over(self, since: int, pieces: list[tuple[Event, Any]]) -> None:
        for event, _ in pieces:
            await self._turn(since, event)
        await self._client.line.finish()

    def _compare(self, said: Message, stored: Any) -> None:
        serving = self._serving
        now = _frame(*said)
        if now == stored or now == serving.secrets.reveal(stored):
            return
        hidden: Any = serving.secrets.hide(now)
        if hidden != stored and not self._may_differ(stored, now):
            serving.diverge(
                Code.REQUEST, "the page said something else on a WebSocket", call=self._call, path="frame",
                expected=_shown(stored), actual=_shown(hidden),
            )  # fmt: skip

    def _may_differ(self, stored: Any, now: dict[str, Any]) -> bool:
        """Whether the user said so of all that is another thing in a frame."""
        renaming, before = self._serving.alike, self._serving.secrets.reveal(stored)
        if not isinstance(renaming, Renaming) or not isinstance(before, dict):
            return False
        return renaming.same_frame(self._recorded.begin.name, before, now)

    def _extra(self) -> None:
        """The page has said more than it said when it was recorded."""
        while not self._client.said.empty():
            said = self._client.said.get_nowait()
            if said is not None:
                hidden: Any = self._serving.secrets.hide(_frame(*said))
                self._serving.diverge(
                    Code.EXTRA, "the page said more on a WebSocket than when it was recorded", call=self._call,
                    actual=_shown(hidden),
                )  # fmt: skip


def _frame(opcode: Opcode, data: bytes) -> dict[str, Any]:
    if opcode is Opcode.TEXT:
        return {"from": PAGE, "text": data.decode("utf-8", "replace")}
    return {"from": PAGE, "base64": b64encode(data).decode()}


def _shown(frame: dict[str, Any]) -> str:
    return str(frame.get("text", frame.get("base64", "")))


def _protocol(offered: tuple[str, ...]) -> list[list[str]]:
    """What a server that is not known chose: the first."""
    return [["sec-websocket-protocol", offered[0]]] if offered else []
