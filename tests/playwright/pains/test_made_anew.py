"""Values that are other ones in each run, in what a page asks: the user says which, and two of them stay apart."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_site import Site
from pained import Agent, Tapped

from lockstep.errors import Code, Difference, TargetError

# What is made anew comes from the program, as a route of its own.
_ASKED = """async () => {
    const {id, at} = await (await fetch("/made")).json();
    const get = async (path, options) => (await fetch(path, options)).text();
    const json = {method: "POST", headers: {"content-type": "application/json"}};
    const form = new FormData();
    form.append("id", id);
    return [
        await get(`/answer?at=${at}&q=tea`, {headers: {"x-nonce": id}}),
        await get("/post", {...json, body: JSON.stringify({order: [{id, cents: 4000}], at})}),
        await get("/upload", {method: "POST", body: form}).then((answer) => answer.split(" ")[0]),
        await get(`/small/7?after=0&known=${id}`),
    ];
}"""
_BOTH = """async () => {
    const ids = await (await fetch("/made")).json();
    const told = [];
    for (const id of ids) told.push(await fetch(`/again?id=${id}`).then((answer) => answer.text(), () => "missed"));
    return told;
}"""
_TALKED = """async () => {
    const {id} = await (await fetch("/made")).json();
    const socket = new WebSocket(`ws://${location.host}/talk?session=${id}`);
    await new Promise((resolve) => { socket.onopen = resolve; });
    socket.send(JSON.stringify({id, says: "hello"}));
    return new Promise((resolve) => {
        socket.onmessage = (event) => resolve(event.data.split(" to ")[0]);
        socket.onclose = () => resolve("closed");
    });
}"""

RULES = {"GET */answer": ["query.at"], "POST */post": ["body.order[].id", "body.at"], "POST */upload": ["body.id"]}


def asking(site: Site, script: str, make: Callable[[], Any]) -> Agent:
    def agent(context: Any) -> Any:
        page = context.new_page()
        page.route("**/made", lambda route: route.fulfill(json=make()))
        page.goto(f"{site.url}/basket")
        return page.evaluate(script)

    return agent


def anew() -> dict[str, Any]:
    return {"id": uuid.uuid4().hex, "at": time.time_ns() // 1_000_000}


def differs(done: Any) -> Difference:
    found = done.report.difference
    assert isinstance(found, Difference)
    return found


def test_a_value_that_is_another_one_each_time_is_named_with_the_rule_that_lets_it_differ(tapped: Tapped, site: Site):
    agent = asking(site, _ASKED, anew)
    seen = tapped.record(agent)
    site.kill()
    found = differs(tapped.replay(agent))
    assert (found.code, found.path, found.name.partition(" ")[0]) == (Code.REQUEST, "query.at", "GET")
    assert found.hint.endswith('[tool.lockstep.volatile] "GET */answer" = ["query.at"]')
    # What differs in two values has no one rule; and what looks like an order, or a price, is not made anew.
    found = differs(tapped.replay(agent, volatile={"GET */answer": ["query.at"]}))
    assert (found.name.rpartition("/")[2], found.hint) == ("post", "")
    done = tapped.replay(agent, volatile=RULES)
    assert (done.identical, done.result) == (True, seen), done.divergence
    told = {
        entry.detail.partition(": ")[0]: entry.count for entry in done.report.coverage if entry.source == "volatile"
    }
    host = site.url.removeprefix("http://")
    assert told == {
        f"GET {host}/answer  query.at": 1, f"POST {host}/post  body.at": 1, f"POST {host}/post  body.order[].id": 1,
        f"POST {host}/upload  body.id": 1,
    }  # fmt: skip


def test_two_values_that_were_apart_and_are_one_now_are_a_difference(tapped: Tapped, site: Site):
    ids = [["4f1c0d92", "88ab7e01", "4f1c0d92"]]
    agent = asking(site, _BOTH, lambda: ids[0])
    seen = tapped.record(agent)
    site.kill()
    rules = {"GET */again": ["query.id"]}
    ids[0] = ["0aa1bb22", "cc33dd44", "0aa1bb22"]
    done = tapped.replay(agent, volatile=rules)
    assert (done.identical, done.result) == (True, seen), done.divergence
    for others in (["0aa1bb22", "0aa1bb22", "0aa1bb22"], ["0aa1bb22", "cc33dd44", "ee55ff66"]):
        ids[0] = others
        done = tapped.replay(agent, volatile=rules)
        found = differs(done)
        assert (found.code, found.path, "stands for two" in found.reason) == (Code.REQUEST, "query.id", True)
        assert "missed" in done.result


def test_answers_go_by_the_names_that_values_have_and_not_by_the_order_in_which_they_are_asked_for(
    tapped: Tapped, site: Site
):
    ids = [["4f1c0d92", "88ab7e01", "88ab7e01", "4f1c0d92"]]
    agent = asking(site, _BOTH, lambda: ids[0])
    first, second, third, fourth = tapped.record(agent)
    site.kill()
    ids[0] = ["0aa1bb22", "cc33dd44", "0aa1bb22", "cc33dd44"]
    done = tapped.replay(agent, volatile={"GET */again": ["query.id"]})
    assert done.result == [first, second, fourth, third]
    assert not done.identical  # it asked in another order


def test_moments_may_come_once_or_twice(tapped: Tapped, site: Site):
    now = time.time_ns() // 1_000_000
    ids = [[now, now + 1]]
    agent = asking(site, _BOTH, lambda: ids[0])
    seen = tapped.record(agent)
    site.kill()
    ids[0] = [now + 60_000] * 2
    done = tapped.replay(agent, volatile={"GET */again": ["query.id"]})
    assert (done.identical, done.result) == (True, seen), done.divergence


def test_what_a_page_says_on_a_websocket_may_hold_such_values_too(tapped: Tapped, site: Site):
    agent = asking(site, _TALKED, anew)
    seen = tapped.record(agent)
    site.kill()
    done = tapped.replay(agent, volatile={"*/talk": ["query.session", "frame.id"]})
    assert (done.identical, done.result) == (True, seen), done.divergence
    # Its name is known from the address: where it stands in a frame it means the same.
    assert tapped.replay(agent, volatile={"*/talk": ["query.session"]}).identical


def test_an_address_that_the_program_makes_anew_is_the_same_page(tapped: Tapped, site: Site):
    def agent(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/basket?visit={uuid.uuid4().hex}")
        return page.title()

    tapped.record(agent)
    site.kill()
    found = differs(tapped.replay(agent))
    assert (found.kind, found.path) == ("action", "url")
    assert found.hint.endswith('"GET */basket" = ["query.visit"]')
    done = tapped.replay(agent, volatile={"GET */basket": ["query.visit"]})
    assert (done.identical, done.result) == (True, "basket"), done.divergence


def test_rules_of_the_project_hold_in_replays_and_forks_and_stay_with_the_run(
    tapped: Tapped, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    agent = asking(site, _ASKED, anew)
    lines = [f'"{pattern}" = {places!r}' for pattern, places in RULES.items()]
    (tmp_path / "pyproject.toml").write_text("\n".join(["[tool.lockstep.volatile]", *lines]))
    monkeypatch.chdir(tmp_path)
    seen = tapped.record(agent)
    steps = tapped.steps()
    upload = next(effect for effect in tapped.effects() if effect.endswith("/upload"))
    # The edited answer is told by what its request stands for.
    edited = tapped.fork(len(steps) - 1, agent, edits={upload.partition(" ")[0]: {"status": 200, "body": "edited so"}})
    assert (edited.state, edited.divergence) == ("complete", None)
    assert [edited.result[0], edited.result[1], edited.result[2]] == [seen[0], seen[1], "edited"]
    (tmp_path / "pyproject.toml").unlink()
    site.kill()
    assert tapped.replay(agent).identical


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"GET */answer": ["query.at"], "POST *": ["cookies"]}, "has no place 'cookies'"),
        ({"GET */answer": "query.at"}, "volatile= is as"),
        (["query.at"], "volatile= is as"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(tapped: Tapped, site: Site, rules: Any, said: str):
    agent = asking(site, _ASKED, anew)
    tapped.record(agent)
    with pytest.raises(TargetError, match="LS402") as told:
        tapped.replay(agent, volatile=rules)
    assert said in str(told.value)
