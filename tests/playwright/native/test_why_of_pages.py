"""Where what is typed into a page came from: from what a server answered."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import sync_playwright

import lockstep
import lockstep_playwright


class Order(BaseHTTPRequestHandler):
    """A page with two prices."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>Order 452</h1><p id=old>4001</p><p id=total>4002</p><input id=cents>")

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Order)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_is_typed_is_followed_to_the_page_that_a_server_gave(chromium: str, url: str, store: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        context = lockstep_playwright.tap(browser.new_context(), run="shop", store=store)
        page = context.new_page()
        page.goto(url)
        page.fill("#cents", page.inner_text("#total"))
        context.close()
        browser.close()
    first = lockstep.why("playwright/shop:3", "value", store=store).origins[0]
    assert (first.address, first.path, first.kind) == ("playwright/shop:2.1", "outcome.body", "http")
