"""A browser agent that believes a wrong price: recorded, replayed with the shop gone, and run on with the price mended.

    python examples/browser_refund.py

Needs `pip install "lockstep-replay[playwright]"` and a Chromium (`playwright install chromium`, or your system's). The
shop is part of this file, on loopback.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import BrowserContext, expect

import lockstep
import lockstep_playwright

PAGE = """<h1>Order 452</h1>
<form method="post" action="/refund"><input id="cents" name="cents"><button id="refund">Refund</button></form>"""


class Shop(BaseHTTPRequestHandler):
    """Says for order 452 that it cost 400.00. It cost 40.00."""

    def do_GET(self) -> None:
        if self.path == "/order/452":
            self.answer(json.dumps({"order": 452, "total": 40000}), "application/json")
        else:
            self.answer(PAGE, "text/html")

    def do_POST(self) -> None:
        cents = self.rfile.read(int(self.headers["content-length"])).decode().removeprefix("cents=")
        self.answer(f"<h1>Refunded {cents}</h1>", "text/html")

    def answer(self, body: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args: object) -> None:
        """Nothing is printed."""


@contextmanager
def shop(port: int = 0) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", port), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def refunding(url: str) -> Callable[[BrowserContext], str]:
    """The agent, for a shop at this address: a function of a browser context."""

    def refund(context: BrowserContext) -> str:
        page = context.new_page()
        page.goto(url)
        order = page.evaluate("fetch('/order/452').then(answer => answer.json())")
        page.fill("#cents", str(order["total"]))
        page.click("#refund")
        expect(page.locator("h1")).to_contain_text("Refunded")
        return page.inner_text("h1")

    return refund


def main(store: str) -> None:
    with shop() as port:
        refund = refunding(f"http://127.0.0.1:{port}")
        with lockstep_playwright.launch(run="refund", store=store) as context:
            print("recorded:", refund(context))

    replay = lockstep.replay("playwright/refund", refund, store=store)
    print("replayed with the shop gone:", replay.result, "identical" if replay.identical else replay.divergence)

    with shop(port):
        mended = {"3.1:body.total": 4000}
        try:
            lockstep.fork("playwright/refund:3", refund, edits=mended, store=store)
        except lockstep.Refused as refused:
            print("with the right price, refused:", refused.run.refused[0].splitlines()[0])
        run = lockstep.fork("playwright/refund:3", refund, edits=mended, live=["POST */refund"], store=store)
        print("allowed:", run.result)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(str(Path(place, "store.db")))
