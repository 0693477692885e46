"""Forks do the actions before a step again, with the recorded network, and then go on for real under the policy."""

import pytest
from browser_site import Site
from native_agents import Shop

import lockstep
import lockstep_playwright
from lockstep.debugger.diff import diff
from lockstep.errors import AddressError, EditError, Refused, TargetError
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_playwright.recorded import Recorded

POST = ["POST *"]


@pytest.fixture
def recorded(shop: Shop, store: str, chromium: str) -> Shop:
    with lockstep_playwright.launch(run="shop", store=store, executable=chromium) as context:
        assert shop.two_forms(context) == "Part 2, visit 2"
    return shop


def asked(site: Site, since: int) -> list[str]:
    return [f"{hit['method']} {hit['path']}" for hit in site.hits()[since:]]


def pages(store: str, branch: str) -> list[tuple[str, str, str]]:
    """Each step with the digests of its page and of what that had stored."""
    with open_store(store) as opened:
        actions = Recorded(opened.run("playwright/shop", branch)).actions
        return [(action.name, action.after("dom"), action.after("storage")) for action in actions]


def test_a_fork_at_each_step_asks_for_what_comes_behind_it_and_for_nothing_else(recorded: Shop, site: Site, store: str):
    every = ["GET /form/1", "POST /form/1", "GET /form/2", "POST /form/2"]
    behind = {0: 4, 1: 4, 2: 3, 3: 3, 4: 2, 5: 1, 6: 1, 7: 0}
    for step, count in behind.items():
        since = len(site.hits())
        fork = lockstep.fork(f"playwright/shop:{step}", recorded.two_forms, live=POST, store=store)
        assert (step, fork.state, fork.divergence, fork.live) == (step, "complete", None, count)
        assert asked(site, since) == every[len(every) - count :]
        assert pages(store, fork.branch)[:step] == pages(store, "main")[:step]


def test_a_form_is_not_posted_again_unless_that_is_allowed(recorded: Shop, site: Site, store: str):
    since = len(site.hits())
    with pytest.raises(Refused, match=r"POST .* would run for real") as refused:
        lockstep.fork("playwright/shop:1", recorded.one_form_of_jim, store=store)
    assert refused.value.run.state == "refused"
    assert asked(site, since) == ["GET /form/1"]
    reused = lockstep.fork("playwright/shop:1", recorded.two_forms, store=store)
    assert (reused.live, reused.reused) == (2, 2)


def test_an_edited_answer_of_the_network_is_what_the_page_shows(recorded: Shop, site: Site, store: str):
    since = len(site.hits())
    fork = lockstep.fork(
        "playwright/shop:7", recorded.two_forms, edits={"7.1:body": "<h1>All sold</h1>"}, store=store
    )  # fmt: skip
    assert (fork.result, fork.edited, fork.live) == ("All sold", 1, 0)
    assert asked(site, since) == []
    assert lockstep.replay(fork.address, recorded.two_forms, store=store).identical


def test_an_edited_answer_stays_before_one_that_was_asked_beside_it_and_came_first(
    shop: Shop, site: Site, store: str, chromium: str
):
    with lockstep_playwright.launch(run="beside", store=store, executable=chromium) as context:
        shop.two_at_once(context)
    since = len(site.hits())
    fork = lockstep.fork("playwright/beside:3", shop.two_at_once, edits={"3.1:body": "sold"}, store=store)
    assert (fork.state, fork.result[0], asked(site, since)) == ("complete", "sold", [])
    first = diff("playwright/beside", fork.address, store=store).first
    assert first is not None
    assert (str(first.address_a).rpartition(":")[2], str(first.address_b).rpartition(":")[2]) == ("3.1", "3.1")
    assert "sold" in first.b


def test_what_had_come_of_an_action_before_a_fork_left_amid_it_comes_in_the_branch_again(
    shop: Shop, store: str, chromium: str
):
    with lockstep_playwright.launch(run="turn", store=store, executable=chromium) as context:
        assert shop.in_turn(context) == ["1", "2"]
    fork = lockstep.fork("playwright/turn:4", shop.in_turn, edits={"3.2:body": 9}, store=store)
    assert (fork.state, fork.result) == ("complete", ["1", "9"])
    replay = lockstep.replay(fork.address, shop.in_turn, store=store)
    assert (replay.identical, replay.result) == (True, ["1", "9"]), replay
    again = lockstep.fork(f"{fork.address}:4", shop.in_turn, store=store)
    assert (again.state, again.result) == ("complete", ["1", "9"])
    assert not [entry for entry in again.report.coverage if entry.how == "not covered"]


def test_a_refused_request_is_answered_as_its_refusal_says(recorded: Shop, site: Site, store: str):
    with pytest.raises(Refused):
        lockstep.fork("playwright/shop:1", recorded.one_form_of_jim, store=store, branch="jim")
    since = len(site.hits())
    with open_store(store) as opened:
        steps = Timeline(opened.run("playwright/shop", "jim")).steps
    number = next(f"{step.number}.{each.number}" for step in steps for each in step.effects if each.end is None)
    page = {"status": 200, "headers": [["content-type", "text/html"]], "body": "<h1>Welcome, jim</h1>"}
    fork = lockstep.fork(
        f"playwright/shop@jim:{steps[-1].number}", recorded.one_form_of_jim, edits={number: page}, store=store
    )  # fmt: skip
    assert (fork.state, fork.divergence, fork.result, asked(site, since)) == ("complete", None, "Welcome, jim", [])
    assert not [entry for entry in fork.report.coverage if entry.how == "not covered"]


def test_a_failed_answer_is_an_edit_too(recorded: Shop, store: str):
    broken = {"7.1": {"$": "raise", "type": "OSError", "message": "net::ERR_CONNECTION_RESET"}}
    fork = lockstep.fork("playwright/shop:7", recorded.two_forms, edits=broken, store=store)
    assert fork.edited == 1
    assert fork.result != "Part 2, visit 2"


def test_what_the_agent_read_is_edited_for_it_alone(recorded: Shop, store: str):
    fork = lockstep.fork("playwright/shop:8", recorded.two_forms, edits={"8.1": "Part 9"}, store=store)
    assert (fork.result, fork.live) == ("Part 9", 0)


def test_a_page_that_is_another_one_before_the_step_is_the_finding(shop: Shop, store: str, chromium: str):
    with lockstep_playwright.launch(run="mocked", store=store, executable=chromium) as context:
        shop.mocked(context)
        context.pages[0].title()
    shop.shown = "something new"
    fork = lockstep.fork("playwright/mocked:2", shop.mocked, store=store)
    assert fork.state == "diverged"
    assert fork.report.difference is not None
    assert (fork.report.difference.code, fork.report.difference.step) == ("LS112", 2)


def test_what_cannot_be_forked_or_edited_is_told(recorded: Shop, store: str):
    def forked(address: str, **more) -> None:
        lockstep.fork(address, recorded.two_forms, store=store, **more)

    with pytest.raises(AddressError, match="a fork leaves at a step"):
        forked("playwright/shop")
    with pytest.raises(AddressError, match="answered only after"):
        forked("playwright/shop:2", edits={"4.1": {"status": 200}})
    with pytest.raises(AddressError, match=r"cart:2\.1 is another run's: this fork edits playwright/shop"):
        forked("playwright/shop:3", edits={"cart:2.1": {"status": 200}})
    with pytest.raises(EditError, match="stands in the code of the target"):
        forked("playwright/shop:3", edits={"3": {"value": "jim"}})
    with pytest.raises(TargetError, match="chooses between tasks"):
        forked("playwright/shop:3", tasks=["a"])


def test_bisect_finds_the_bad_one_among_thirty_answers(shop: Shop, store: str, chromium: str):
    with lockstep_playwright.launch(run="prices", store=store, executable=chromium) as context:
        assert shop.prices(context).startswith("total")
    with open_store(store) as opened:
        steps = Timeline(opened.run("playwright/prices")).steps
    numbers = {
        effect.name.rpartition("/")[2]: f"{step.number}.{effect.number}" for step in steps for effect in step.effects
    }
    planted = numbers["17"]
    fork = lockstep.fork(
        f"playwright/prices:{steps[-1].number}", shop.prices, edits={f"{planted}:body.price": -100000}, store=store,
        branch="bad",
    )  # fmt: skip
    assert fork.result == "the total cannot be right"

    def bad(view) -> bool:
        return any("cannot be right" in str(call.outcome) for call in view.calls if call.kind == "browser")

    verdict = lockstep.bisect(fork.address, shop.prices, bad=bad, store=store)
    assert (verdict.verdict, verdict.effect) == ("culprit", planted)
    assert verdict.probes <= 6


def test_bisect_finds_the_pair_of_answers_of_which_either_is_enough(shop: Shop, store: str, chromium: str):
    with lockstep_playwright.launch(run="prices", store=store, executable=chromium) as context:
        assert shop.prices(context).startswith("total")
    with open_store(store) as opened:
        steps = Timeline(opened.run("playwright/prices")).steps
    numbers = {
        effect.name.rpartition("/")[2]: f"{step.number}.{effect.number}" for step in steps for effect in step.effects
    }
    pair = (numbers["9"], numbers["21"])
    fork = lockstep.fork(
        f"playwright/prices:{steps[-1].number}", shop.prices, store=store, branch="bad",
        edits={f"{planted}:body.price": -100000 for planted in pair},
    )  # fmt: skip
    assert fork.result == "the total cannot be right"

    def bad(view) -> bool:
        return any("cannot be right" in str(call.outcome) for call in view.calls if call.kind == "browser")

    found = lockstep.bisect(fork.address, shop.prices, bad=bad, good="playwright/prices", store=store)
    assert (found.verdict, set(found.causes), found.minimal, found.live_calls) == ("culprit", set(pair), True, 0)
