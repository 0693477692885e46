"""A browser with one fresh context, started for a replay, a fork or `launch`, and ended with it.

    with opened(Wanted(options=…)) as host:             # sync API
        host.context, host.endpoint
    async with aopened(Wanted(options=…)) as host:      # async API

The browser gets a DevTools port of its own beside Playwright's pipe, which reaches workers and whatever else has no
session of Playwright's.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import msgspec

from lockstep.errors import Code, TargetError
from lockstep.log import untapped
from lockstep_playwright import browsers, fitting

_PORTS = range(12_000, 32_000)
_NO_DISPLAY = "XServer"  # a word of Playwright's own advice
_SAID = 200  # characters of what a browser says
_TRIES = 3  # a port that was free may be taken by somebody else in between


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which browser and context.

    executable  path of a Chromium, "" to find one
    endpoint    the DevTools address of one that runs, "" to start one
    args        further arguments of its command line
    port        whether it is reached by a port of its own, beside Playwright's pipe
    options     keyword arguments of `new_context`
    """

    executable: str = ""
    endpoint: str = ""
    headless: bool = True
    args: tuple[str, ...] = ()
    port: bool = True
    options: Mapping[str, Any] = {}


class Host(msgspec.Struct, frozen=True):
    """What was opened. `endpoint`: where the browser's DevTools are, "" where it has no port."""

    playwright: Any
    browser: Any
    context: Any
    endpoint: str


@contextmanager
def opened(wanted: Wanted) -> Iterator[Host]:
    """With the sync API. Raises TargetError LS412 where there is no browser, or none that starts; AdapterError."""
    fitting.check()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser, endpoint = _launch(wanted, playwright.chromium)
        try:
            context = browser.new_context(**wanted.options)
            try:
                yield Host(playwright, browser, context, endpoint)
            finally:
                context.close()
        finally:
            browser.close()


def _launch(wanted: Wanted, chromium: Any) -> tuple[Any, str]:
    if wanted.endpoint:
        try:
            return chromium.connect_over_cdp(wanted.endpoint), wanted.endpoint
        except Exception as error:
            raise _unreachable(wanted, error) from error
    for _ in range(_TRIES):
        arguments, endpoint = _launched(wanted, chromium)
        try:
            return chromium.launch(**arguments), endpoint
        except Exception as error:
            if not _is_taken(endpoint):
                raise _unstarted(wanted, arguments["executable_path"], error) from error
    raise _taken()


@asynccontextmanager
async def aopened(wanted: Wanted) -> AsyncIterator[Host]:
    """The same with the async API."""
    fitting.check()
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser, endpoint = await _alaunch(wanted, playwright.chromium)
        try:
            context = await browser.new_context(**wanted.options)
            try:
                yield Host(playwright, browser, context, endpoint)
            finally:
                await context.close()
        finally:
            await browser.close()


async def _alaunch(wanted: Wanted, chromium: Any) -> tuple[Any, str]:
    if wanted.endpoint:
        try:
            return await chromium.connect_over_cdp(wanted.endpoint), wanted.endpoint
        except Exception as error:
            raise _unreachable(wanted, error) from error
    for _ in range(_TRIES):
        arguments, endpoint = _launched(wanted, chromium)
        try:
            return await chromium.launch(**arguments), endpoint
        except Exception as error:
            if not _is_taken(endpoint):
                raise _unstarted(wanted, arguments["executable_path"], error) from error
    raise _taken()


def _launched(wanted: Wanted, chromium: Any) -> tuple[dict[str, Any], str]:
    """The arguments of `launch`, and the endpoint that the browser will have."""
    args = [*wanted.args]
    endpoint = ""
    if wanted.port:
        port = free_port()
        args.append(f"--remote-debugging-port={port}")
        endpoint = f"http://127.0.0.1:{port}"
    path = browsers.find_chromium(wanted.executable, chromium.executable_path)
    return {"executable_path": path, "headless": wanted.headless, "args": args}, endpoint


def free_port() -> int:
    """A port for a browser. Not one of those that systems give away by themselves: by the time the browser is there,
    somebody else would have it, and would be taken for our browser."""
    while True:
        port = _PORTS.start + int.from_bytes(untapped.urandom(4)) % len(_PORTS)
        with socket.socket() as held, suppress(OSError):
            held.bind(("127.0.0.1", port))
            return port


def _is_taken(endpoint: str) -> bool:
    """Whether somebody else has the port by now."""
    if not endpoint:
        return False
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", int(endpoint.rpartition(":")[2]))) == 0


def _taken() -> TargetError:
    return TargetError(Code.BAD_TARGET, f"{_TRIES} ports that were free were taken before the browser could have them")


def _unreachable(wanted: Wanted, error: Exception) -> TargetError:
    why = str(error).partition("\n")[0].removeprefix("BrowserType.connect_over_cdp: ")
    return TargetError(
        Code.NO_BROWSER,
        f"no Chromium answers at endpoint={wanted.endpoint!r}: {why}. It is the address of one that was started with "
        "--remote-debugging-port=PORT, as http://127.0.0.1:PORT",
    )


def _unstarted(wanted: Wanted, path: str, error: Exception) -> TargetError:
    said = str(error)
    if not wanted.headless and _NO_DISPLAY in said:
        return TargetError(
            Code.NO_BROWSER,
            "a browser that is shown (headless=False, or so it was recorded) needs a display, and there is none: run "
            "it under xvfb-run, or with headless=True",
        )
    # What it printed itself, where it did, says more than that it did not start.
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    printed = [line for line in lines if "][err] " in line or "exitCode" in line or "<process did exit" in line]
    why = (printed or lines or ["it says nothing"])[0]
    return TargetError(Code.NO_BROWSER, f"{path} does not start as a browser: {why.removeprefix('- ')[:_SAID]}")


def in_thread_if_needed[T](work: Callable[[], T]) -> T:
    """What `work()` returns: in a thread of its own where a loop runs in this one, which the sync API would refuse."""
    if asyncio._get_running_loop() is None:
        return work()
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="lockstep-playwright-replay")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
