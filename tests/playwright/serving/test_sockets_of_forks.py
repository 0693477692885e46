"""A WebSocket that a fork opens past its cut: refused by itself, and where it is allowed passed on and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser_site import Site

import lockstep
import lockstep_playwright
from lockstep_playwright.hosting import Wanted, opened

_TALK = """() => new Promise((resolve) => {
  const socket = new WebSocket(`ws://${location.host}/talk`, ["v2.chat"]), said = [];
  socket.binaryType = "arraybuffer";
  socket.onopen = () => { socket.send("hello"); socket.send(new Uint8Array([1, 2, 3]).buffer); };
  socket.onmessage = ({data}) => said.push(typeof data === "string" ? data : [...new Uint8Array(data)]);
  socket.onclose = ({code, reason, wasClean}) => resolve([socket.protocol, said, code, reason, wasClean]);
})"""


def test_an_allowed_socket_is_held_for_real_and_replayed_from_the_branch(
    site: Site, chromium: str, tmp_path: Path
) -> None:
    store: dict[str, Any] = {"store": str(tmp_path / "store.db"), "executable": chromium}

    def talks(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/form/1")
        return page.evaluate(_TALK)

    with opened(Wanted(executable=chromium)) as host:
        context = lockstep_playwright.tap(host.context, run="talk", store=store["store"], endpoint=host.endpoint)
        recorded = talks(context)
        context.close()
    address = f"ws://127.0.0.1:{site.ports[0]}/talk"
    with pytest.raises(lockstep.Refused, match=f"websocket {address} would run for real"):
        lockstep.fork("playwright/talk:2", talks, **store)
    forked = lockstep.fork("playwright/talk:2", talks, live=[address], branch="live", **store)
    assert (forked.state, forked.live) == ("complete", 1)
    assert forked.result[0] == recorded[0] == "v2.chat"
    assert forked.result[1][0].endswith(" to hello")
    assert forked.result[1] != recorded[1]
    replayed = lockstep.replay("playwright/talk@live", talks, **store)
    assert replayed.identical
    assert replayed.result == forked.result
