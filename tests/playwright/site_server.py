"""The server of the site that tests browse: a program of its own, so that it can be killed like one.

    python site_server.py LOG

Prints its two ports (the second one is the other site) as JSON, and ends when its stdin does. Each request is written
to LOG, a JSON object a line, before it is answered. No two answers are equal: each has a number and a token.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import secrets
import struct
import sys
import zlib
from collections.abc import Awaitable, Callable
from email import message_from_bytes
from pathlib import Path
from typing import TextIO

from aiohttp import WSMsgType, web

PAGES = Path(__file__).parent / "site"
TYPES = {".html": "text/html", ".js": "text/javascript"}
# What is asked as it is, and the file it is made from.
FILES = {
    "/all": "all.html",
    "/observables.js": "observables.js",
    "/frame": "frame.html",
    "/popup": "popup.html",
    "/sw/frame": "sw_frame.html",
    "/sw/worker.js": "sw_worker.js",
    "/worker.js": "worker.js",
    "/worker-socket.js": "worker_socket.js",
    "/prices": "prices.html",
    "/basket": "basket.html",
    "/load": "load.html",
}
PAUSE = 0.03  # seconds between the parts of a stream
LARGE = "large text " * 1490  # 16 kB

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def brotli(data: bytes) -> bytes:
    """`data` in the brotli format, not compressed (RFC 7932, section 9.2): one uncompressed meta-block, and an empty
    last one."""
    return ((len(data) - 1) << 4 | 1 << 20).to_bytes(3, "little") + data + b"\x03"


def png(width: int) -> bytes:
    """A picture one pixel high."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\x00" + b"\x80" * width)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


class Answers:
    """What the site says. It remembers how often it was asked, as sites do."""

    def __init__(self, log: TextIO) -> None:
        self._log = log
        self._count = 0
        self._again = 0
        self._tries = 0
        self._library = secrets.token_hex(4)
        self._left: list[str] = []
        self._leaving = asyncio.Event()
        self.other = ""  # the other site's origin

    def told(self) -> str:
        """A text that no answer had before."""
        self._count += 1
        return f"answer {self._count} {secrets.token_hex(4)}"

    @web.middleware
    async def noted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Writes down what was asked, before it is answered."""
        body = await request.read()
        line = {
            "method": request.method,
            "path": request.path_qs,
            "host": request.host,
            "cookie": request.headers.get("cookie", ""),
            "body": body.decode("utf-8", "replace"),
        }
        print(json.dumps(line), file=self._log, flush=True)
        answer = await handler(request)
        if not answer.prepared:
            answer.headers.setdefault("cache-control", "no-store")
        return answer

    async def file(self, request: web.Request) -> web.Response:
        path = PAGES / FILES[request.path]
        named = "other/frame" if request.host.startswith("localhost") else "/frame"
        query = f"?{request.query_string}" if request.query_string else ""
        filled = {"nonce": self.told(), "other": self.other, "named": named, "query": query}
        answer = web.Response(text=_fill(path.read_text(), filled), content_type=TYPES[path.suffix])
        if request.path == "/all":
            answer.set_cookie("visit", secrets.token_hex(4))
            answer.set_cookie("kept_from_pages", secrets.token_hex(4), httponly=True)
        return answer

    async def answer(self, request: web.Request) -> web.Response:
        text = self.told()
        return web.Response(text=text, headers={"x-answer": text})

    async def style(self, request: web.Request) -> web.Response:
        color = ", ".join(str(secrets.randbelow(256)) for _ in range(3))
        text = f"h1 {{ color: rgb({color}); }} #painted {{ height: 9px; background-image: url(/painted.png); }}"
        return web.Response(text=text, content_type="text/css")

    async def picture(self, request: web.Request) -> web.Response:
        keep = {"cache-control": "max-age=600"}
        return web.Response(body=png(1 + secrets.randbelow(300)), content_type="image/png", headers=keep)

    async def library(self, request: web.Request) -> web.Response:
        headers = {"etag": f'"{self._library}"', "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == headers["etag"]:
            return web.Response(status=304, headers=headers)
        text = f"window.library = {self._library!r};"
        return web.Response(text=text, content_type="text/javascript", headers=headers)

    async def imported(self, request: web.Request) -> web.Response:
        return web.Response(text=f"self.imported = {self.told()!r};", content_type="text/javascript")

    async def moved(self, request: web.Request) -> web.Response:
        answer = web.Response(status=302, headers={"location": "/answer?moved"})
        answer.set_cookie("set_by_redirect", secrets.token_hex(4))
        return answer

    async def moved_as_it_is(self, request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"location": "/post?moved"})

    async def post(self, request: web.Request) -> web.Response:
        return web.Response(text=f"{self.told()} to {await request.text()}")

    async def again(self, request: web.Request) -> web.Response:
        self._again += 1
        return web.Response(text=f"{self._again}: {self.told()}")

    async def flaky(self, request: web.Request) -> web.StreamResponse:
        """Fails, breaks off, and then works."""
        self._tries += 1
        if self._tries == 2:
            half = web.StreamResponse(headers={"content-length": "100"})
            await half.prepare(request)
            await half.write(b"half")
            assert request.transport is not None
            request.transport.close()
            return half
        return web.Response(status=503 if self._tries == 1 else 200, text=self.told())

    async def packed(self, request: web.Request) -> web.Response:
        coding = request.match_info["coding"]
        data = (self.told() + " packed" * 20).encode()
        body = gzip.compress(data) if coding == "gzip" else brotli(data)
        return web.Response(body=body, content_type="text/plain", headers={"content-encoding": coding})

    async def binary(self, request: web.Request) -> web.Response:
        return web.Response(body=bytes(range(256)) + secrets.token_bytes(16))

    async def events(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-store"})
        await answer.prepare(request)
        await answer.write(b"retry: 60000\n\n")
        for number in range(3):
            await asyncio.sleep(PAUSE)
            await answer.write(f"id: {number}\nevent: tick\ndata: {self.told()}\n\n".encode())
        if request.match_info["how"] == "held":
            await asyncio.Event().wait()
        return answer

    async def events_again(self, request: web.Request) -> web.Response:
        """One event, and then the page has to connect anew, soon."""
        text = f"retry: 30\ndata: {self.told()}\n\n"
        return web.Response(text=text, content_type="text/event-stream")

    async def chunks(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/plain", "cache-control": "no-store"})
        answer.enable_chunked_encoding()
        await answer.prepare(request)
        for number in range(4):
            await answer.write(f"[{number} {self.told()}]".encode())
            await asyncio.sleep(PAUSE)
        return answer

    async def talk(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v2.chat", "v1.chat"))
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await socket.send_str(f"{self.told()} to {message.data}")
            elif message.type is WSMsgType.BINARY:
                await socket.send_bytes(message.data + secrets.token_bytes(4))
                await socket.close(code=4001, message=f"enough: {secrets.token_hex(4)}".encode())
        return socket

    async def shared(self, request: web.Request) -> web.Response:
        allowed = {
            "access-control-allow-origin": "*",
            "access-control-allow-methods": "PUT",
            "access-control-allow-headers": "x-custom",
            "access-control-expose-headers": "x-answer",
        }
        if request.method == "OPTIONS":
            return web.Response(status=204, headers=allowed)
        text = f"{self.told()} to {request.headers['x-custom']} {await request.text()}"
        return web.Response(text=text, headers={**allowed, "x-answer": text})

    async def upload(self, request: web.Request) -> web.Response:
        head = f"content-type: {request.headers['content-type']}\r\n\r\n".encode()
        form = message_from_bytes(head + await request.read())
        parts = [
            f"{part.get_filename() or ''}={part.get_payload()!r}" for part in form.walk() if not part.is_multipart()
        ]
        return web.Response(text=f"{self.told()} to {', '.join(parts)}")

    async def beacon(self, request: web.Request) -> web.Response:
        self._left.append(await request.text())
        self._leaving.set()
        return web.Response(status=204)

    async def beacon_seen(self, request: web.Request) -> web.Response:
        await self._leaving.wait()
        return web.Response(text=f"{self.told()} after {self._left[-1]}")

    async def unavailable(self, request: web.Request) -> web.Response:
        return web.Response(status=503, text=self.told())

    async def dropped(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async def report(self, request: web.Request) -> web.Response:
        headers = {"content-disposition": 'attachment; filename="report.csv"'}
        return web.Response(text=f"name,value\n{self.told()},1\n", content_type="text/csv", headers=headers)

    async def form(self, request: web.Request) -> web.Response:
        part, visits = request.match_info["part"], request.cookies.get("visits", "0")
        told = "Who are you?"
        if request.method == "POST":
            visits = str(int(visits) + 1)
            told = f"{self.told()} to {(await request.post())['name']}"
        filled = {"part": part, "visits": visits, "told": told}
        answer = web.Response(text=_fill((PAGES / "form.html").read_text(), filled), content_type="text/html")
        answer.set_cookie("visits", visits)
        return answer

    async def price(self, request: web.Request) -> web.Response:
        """A price; that of the number in `?bad=` is one that no total survives."""
        number = request.match_info["number"]
        price = -1_000_000 if request.query.get("bad") == number else secrets.randbelow(100)
        return web.json_response({"number": int(number), "price": price})

    async def small(self, request: web.Request) -> web.Response:
        """A number, `?after=` some seconds."""
        await asyncio.sleep(float(request.query.get("after", 0)))
        return web.Response(text=request.match_info["number"])

    async def large(self, request: web.Request) -> web.Response:
        """16 kB, likewise."""
        await asyncio.sleep(float(request.query.get("after", 0)))
        return web.Response(text=LARGE)

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self.noted])
        route = application.router.add_route
        for path in FILES:
            route("GET", path, self.file)
        route("GET", "/answer", self.answer)
        route("GET", "/style.css", self.style)
        route("GET", "/picture.png", self.picture)
        route("GET", "/painted.png", self.picture)
        route("GET", "/library.js", self.library)
        route("GET", "/imported.js", self.imported)
        route("GET", "/moved", self.moved)
        route("POST", "/moved/307", self.moved_as_it_is)
        route("POST", "/post", self.post)
        route("GET", "/again", self.again)
        route("GET", "/flaky", self.flaky)
        route("GET", "/packed/{coding}", self.packed)
        route("GET", "/binary", self.binary)
        route("GET", "/events/again", self.events_again)
        route("GET", "/events/{how}", self.events)
        route("GET", "/chunks", self.chunks)
        route("GET", "/talk", self.talk)
        route("*", "/shared", self.shared)
        route("POST", "/upload", self.upload)
        route("POST", "/beacon", self.beacon)
        route("GET", "/beacon/seen", self.beacon_seen)
        route("GET", "/unavailable", self.unavailable)
        route("GET", "/dropped", self.dropped)
        route("GET", "/report.csv", self.report)
        route("*", "/form/{part}", self.form)
        route("GET", "/price/{number}", self.price)
        route("POST", "/basket", self.post)
        route("GET", "/small/{number}", self.small)
        route("GET", "/large/{number}", self.large)
        return application


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    return text


async def serve(log: TextIO) -> None:
    answers = Answers(log)
    # What is held is not waited for at the end.
    runner = web.AppRunner(answers.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    sites = [web.TCPSite(runner, "127.0.0.1", 0) for _ in range(2)]
    for site in sites:
        await site.start()
    ports = [address[1] for address in runner.addresses]
    answers.other = f"http://localhost:{ports[1]}"
    print(json.dumps(ports), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    with open(sys.argv[1], "w") as log:
        asyncio.run(serve(log))
