"""Actions of the sync API, seen without a changed line: what they are called, and what came of them."""

import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from hearing import SHOP, Heard, Refused
from playwright.sync_api import Browser, BrowserContext, Page, expect
from playwright.sync_api import Error as PlaywrightError

from lockstep_playwright.actions import Watch

URL = "http://shop.test/"


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def context(browser: Browser, heard: Heard) -> Iterator[BrowserContext]:
    """A watched context with a shop in it."""
    made = browser.new_context()
    made.route("**/*", lambda route: route.fulfill(body=SHOP, content_type="text/html"))
    made._sync(Watch(made, heard).attach())  # type: ignore[attr-defined]
    yield made
    made.close()
    assert heard.faults == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    opened = context.new_page()
    opened.goto(URL)
    return opened


def test_actions_are_steps_and_what_only_looks_is_not(page: Page, heard: Heard) -> None:
    page.fill("#q", "shoes")
    page.check("#c")
    page.select_option("#s", "b")
    page.click("#buy")
    assert page.inner_text("#out") == "bought 1 of shoes"
    page.get_by_role("button", name="Buy").click()
    expect(page.locator("#out")).to_have_text("bought 1 of shoesbought 2 of shoes")
    assert page.evaluate("x => x.a + 1", {"a": 1}) == 2
    page.keyboard.press("Tab")
    page.mouse.move(10, 20.5)
    page.close()
    page.context.close()
    assert heard.names() == [
        "new page",
        f"goto {URL}",
        'fill "#q" = "shoes"',
        'check "#c"',
        'select "#s" = "b"',
        'click "#buy"',
        'click role=button[name="Buy"]',
        'expect "#out" to have text "bought 1 of shoesbought 2 of shoes"',
        "evaluate x => x.a + 1",
        "press Tab",
        "mouse move 10,20.5",
        "close page",
    ]
    assert heard.names("read") == ['inner text "#out"']


def test_results_are_those_that_the_program_got(page: Page, context: BrowserContext, heard: Heard) -> None:
    page.select_option("#s", "b")
    assert page.evaluate("() => ({a: [1, null, 'x', true], b: {c: NaN}})")["a"] == [1, None, "x", True]
    page.title()
    page.context.add_cookies([{"name": "sid", "value": "s3cret", "url": URL}])
    context.cookies()
    context.close()
    assert heard.done(f"goto {URL}").result == {"status": 200, "url": URL}
    assert heard.done('select "#s" = "b"').result == ["b"]
    found: Any = heard.done("evaluate () => ({a: [1, null, 'x', true], b: {c: NaN}})").result
    assert found["a"] == [1, None, "x", True] and str(found["b"]["c"]) == "nan"
    assert heard.done("title").result == "Shop"
    # A cookie stands as in a header, where its value is known for a secret.
    cookies: Any = heard.done("cookies").result
    assert cookies[0]["set-cookie"] == "sid=s3cret" and cookies[0]["domain"] == "shop.test"
    assert heard.action("add cookies").arguments["cookies"] == [{"set-cookie": "sid=s3cret", "url": URL}]


def test_a_failing_action_is_told_as_its_caller_saw_it(page: Page, context: BrowserContext, heard: Heard) -> None:
    with pytest.raises(PlaywrightError) as caught:
        page.click("#nope", timeout=50)
    with pytest.raises(AssertionError):
        expect(page.locator("h1")).to_have_text("Bakery", timeout=50)
    context.close()
    error = heard.done('click "#nope"').error
    assert error == {"name": "TimeoutError", "message": str(caught.value).partition("\n")[0]}
    unmet = heard.done('expect "h1" to have text "Bakery"').error
    assert unmet is not None and unmet["name"] == "AssertionError"


def test_no_frame_of_ours_is_in_what_a_failing_action_raises(page: Page) -> None:
    with pytest.raises(PlaywrightError) as caught:
        page.click("#nope", timeout=50)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert [file for file in files if "lockstep" in file.lower() and "tests" not in file] == []


def test_an_action_knows_its_line_and_its_page(page: Page, context: BrowserContext, heard: Heard) -> None:
    other = context.new_page()
    other.goto(URL)
    other.click("#buy")
    context.close()
    action = heard.action('click "#buy"')
    assert action.page == 2
    assert "test_watching.py:" in action.site and action.site.endswith("test_an_action_knows_its_line_and_its_page")
    assert action.url == URL


def test_a_popup_is_the_next_page(page: Page, context: BrowserContext, heard: Heard) -> None:
    with page.expect_popup() as opened:
        page.evaluate("void window.open('/again')")
    opened.value.click("#buy")
    context.close()
    assert heard.action('click "#buy"').page == 2


def test_handles_are_called_by_what_gave_them(page: Page, context: BrowserContext, heard: Heard) -> None:
    handles = page.query_selector_all("input")
    handles[2].check()
    page.evaluate_handle("document.querySelector('#buy')").as_element().click()  # type: ignore[union-attr]
    context.close()
    assert 'check "input [2]"' in heard.names()
    assert "click \"document.querySelector('#buy')\"" in heard.names()


def test_what_is_typed_into_a_password_field_is_in_nothing_that_is_told(
    page: Page, context: BrowserContext, heard: Heard
) -> None:
    page.fill("#pw", "hunter2-and-more")
    page.focus("#q")
    page.keyboard.type("shoes")
    context.close()
    assert 'type "shoes"' in heard.names()
    assert [action.name for action in heard.begun if "hunter2" in action.name or "shoes" in action.name] == []
    assert heard.secrets[0] == "hunter2-and-more"
    assert heard.action('fill "#pw" = "…"').arguments["value"] == "…"
    told = [*(str(each) for each in heard.ended), *(str(content) for _, _, content in heard.attached)]
    assert [each for each in told if "hunter2" in each] == []


def test_each_action_has_the_page_before_and_behind_it(page: Page, context: BrowserContext, heard: Heard) -> None:
    page.fill("#q", "shoes")
    page.click("#buy")
    page.keyboard.press("Tab")
    context.close()
    goto, fill, click, tab = (
        heard.done(name) for name in (f"goto {URL}", 'fill "#q" = "shoes"', 'click "#buy"', "press Tab")
    )
    assert goto.dom[1] == fill.dom[0] != fill.dom[1] == click.dom[0] != click.dom[1] == tab.dom[0] == tab.dom[1]
    assert fill.storage[0] == fill.storage[1] == click.storage[0] != click.storage[1]
    assert goto.url == ("about:blank", URL)


def test_what_people_look_at_is_kept_where_the_page_changed(page: Page, context: BrowserContext, heard: Heard) -> None:
    page.fill("#q", "shoes")
    page.keyboard.press("Tab")
    page.close()
    found = [(action, name) for action, name, _ in heard.attached]
    assert sorted(name for action, name in found if action.startswith("fill")) == ["aria", "dom", "screenshot"]
    assert [name for action, name in found if action == "press Tab"] == []
    pictures = [content for _, name, content in heard.attached if name == "screenshot"]
    assert all(isinstance(each, bytes) and each.startswith(b"\x89PNG") for each in pictures)
    assert [content for action, name, content in heard.attached if action.startswith("fill") and name == "aria"] == [
        '- heading "Shop" [level=1]\n- textbox: shoes\n- textbox\n- checkbox\n- combobox:\n  - option "a" [selected]\n'
        '  - option "b"\n- button "Buy"'
    ]


def test_the_last_action_is_told_before_its_context_is_gone(page: Page, context: BrowserContext, heard: Heard) -> None:
    page.click("#buy")
    context.close()
    assert heard.done('click "#buy"').dom[1]


def test_a_dialog_is_answered_by_the_program_and_nothing_waits_for_it(
    page: Page, context: BrowserContext, heard: Heard
) -> None:
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.accept()))
    page.evaluate("setTimeout(() => { document.title = String(confirm('sure?')) })")
    page.wait_for_function("document.title === 'true'")
    context.close()
    assert said == ["sure?"]
    assert "accept dialog" in heard.names()


def test_whoever_hears_of_an_action_can_end_it_before_it_happens(
    page: Page, context: BrowserContext, heard: Heard
) -> None:
    heard.refuse = 'click "#buy"'
    with pytest.raises(Refused):
        page.click("#buy")
    assert page.evaluate("bought") == 0
    heard.refuse = 'fill "#q" = "…"'
    page.click("#q")
    with pytest.raises(Refused):
        page.fill("#q", "late")  # held until the page behind the one before has been looked at
    assert page.input_value("#q") == ""


def test_a_fault_of_who_hears_of_actions_stops_nothing(page: Page, heard: Heard) -> None:
    heard.broken = True
    page.fill("#q", "shoes")
    page.click("#buy")
    heard.broken = False
    assert page.inner_text("#out") == "bought 1 of shoes"
    assert heard.faults == ["the end of an action: RuntimeError: broken"] * 2
    heard.faults.clear()


def test_a_replayed_page_is_given_a_moment_to_become_as_it_was(
    page: Page, context: BrowserContext, heard: Heard
) -> None:
    page.click("#buy")
    page.evaluate("1")
    wanted = heard.done('click "#buy"')
    page.goto(URL)
    page.evaluate("localStorage.clear(); buy.onclick = null; buy.onclick = () => setTimeout(() => {"
                  "localStorage.setItem('bought', 1); out.append('bought 1 of ') }, 300)")  # fmt: skip
    heard.ended.clear()
    heard.wanted['click "#buy"'] = wanted.dom[1], wanted.storage[1]
    page.click("#buy")
    context.close()
    assert heard.done('click "#buy"').dom[1] == wanted.dom[1]
