"""A fork that goes live to a server on the loopback, and a replay that has no network at all."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from browser_site import Site
from pained import Tapped

import lockstep
from lockstep.launch import supervise

_TALKED = """() => new Promise((resolve) => {
    const socket = new WebSocket(`ws://${location.host}/talk`, ["v1.chat"]);
    socket.onopen = () => socket.send("hello");
    socket.onmessage = (event) => resolve(event.data);
    socket.onclose = (event) => resolve(`closed ${event.code}`);
})"""

REPLAYS = """
import json, sys
import lockstep

def agent(context):
    page = context.new_page()
    page.goto(sys.argv[1] + "/basket")
    chunks = page.evaluate("fetch('/chunks').then((answer) => answer.text())")
    return [page.title(), chunks]

if __name__ == "__main__":
    done = lockstep.replay("playwright/pain", agent, store=sys.argv[2], executable=sys.argv[3])
    with open(sys.argv[4], "w") as told:
        json.dump([done.identical, str(done.divergence or ""), done.result], told)
"""


def test_a_fork_may_talk_to_a_server_on_the_loopback_from_a_page_that_was_served(tapped: Tapped, site: Site):
    def agent(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/basket")
        page.fill("#item", "tea")
        asked = "fetch('/again').then((answer) => answer.text())"
        return page.evaluate(asked).partition(":")[0], page.evaluate(_TALKED)

    seen = tapped.record(agent)
    assert seen[0] == "1"
    # In a browser of its own, as a fork is without `endpoint=`.
    forked = lockstep.fork("playwright/pain:3", agent, store=tapped.store, live=["*"])
    assert (forked.state, forked.divergence) == ("complete", None)
    assert forked.result[0] == "2"
    assert "to hello" in forked.result[1]
    assert forked.result[1] != seen[1]


def test_a_replay_needs_no_network_but_the_loopback_of_its_own(
    tapped: Tapped, site: Site, chromium: str, tmp_path: Path
):
    def agent(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/basket")
        chunks = page.evaluate("fetch('/chunks').then((answer) => answer.text())")
        return [page.title(), chunks]

    seen = tapped.record(agent)
    script, told = tmp_path / "replays.py", tmp_path / "told.json"
    script.write_text(REPLAYS)
    command = [sys.executable, str(script), site.url, tapped.store, chromium, str(told)]
    ended = supervise.run(command, dict(os.environ), stdout=2, isolate=True)
    assert (ended.status, ended.isolated) == (0, "network namespace")
    assert json.loads(told.read_text()) == [True, "", seen]
    assert [hit["path"] for hit in site.hits()] == ["/basket", "/chunks"]
