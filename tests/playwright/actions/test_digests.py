"""The state of a page as it counts: equal for equal pages, in another browser and at another time, and not equal where
a page is another one."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hearing import Heard
from playwright.sync_api import Browser, BrowserContext, Page, Route

from lockstep_playwright.actions import Watch
from lockstep_playwright.actions.looking import LONGEST

URL = "http://state.test/"
FRAMES = {
    "/inner": "<p id=p>inner</p>",
    "/late": "<p>late</p>",
}


class States:
    """Pages with the same content, each in a context of its own."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    def of(self, html: str, act: Callable[[Page], Any] = lambda page: None, **options: Any) -> tuple[str, str]:
        """Digests of page and storage of this document behind what was done with it."""
        heard = Heard()
        context = self._browser.new_context(**options)
        self._contexts.append(context)

        def answer(route: Route) -> None:
            path = route.request.url.removeprefix(URL.rstrip("/"))
            route.fulfill(
                body=FRAMES.get(path, html), content_type="text/html", headers={"set-cookie": "sid=1; max-age=60"}
            )

        context.route("**/*", answer)
        context._sync(Watch(context, heard).attach())  # type: ignore[attr-defined]
        page = context.new_page()
        page.goto(URL)
        act(page)
        page.keyboard.press("Shift")
        context.close()
        assert heard.faults == []
        done = heard.done("press Shift")
        assert done.dom[1] and done.storage[1]
        return done.dom[1], done.storage[1]

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def states(browser: Browser) -> Iterator[States]:
    made = States(browser)
    yield made
    made.close()


def test_what_moves_by_itself_is_no_part_of_it(states: States) -> None:
    page = "<style>p {{height: 3000px}}</style><input id=a autofocus><input id=b><p nonce={0}>text<!-- {0} --></p>"

    def scrolled(page: Page) -> None:
        page.focus("#b")
        page.evaluate("scrollTo(0, 500)")
        page.screenshot()  # leaves an empty style on each field

    assert states.of(page.format(1)) == states.of(page.format(2), scrolled, viewport={"width": 600, "height": 400})


def test_blobs_are_told_apart_by_their_order(states: States) -> None:
    page = "<img id=a><img id=b><script>for (const at of [{}]) at.src = URL.createObjectURL(new Blob(['x']))</script>"
    assert states.of(page.format("a, b")) == states.of(page.format("a, b"))
    same = page.replace("</script>", "; b.src = a.src</script>").format("a, b")
    assert states.of(same)[0] != states.of(page.format("a, b"))[0]


@pytest.mark.parametrize(
    "change",
    [
        "document.querySelector('#t').value = 'typed'",
        "document.querySelector('#c').checked = true",
        "document.querySelector('#s').selectedIndex = 1",
        "document.querySelector('#area').value = 'typed'",
        "document.querySelector('#host').shadowRoot.firstChild.textContent = 'other'",
        "document.querySelector('iframe').contentDocument.querySelector('p').textContent = 'other'",
        "document.body.append(' ', 'more')",
        "document.body.className = 'dark'",
    ],
)
def test_each_thing_that_a_page_shows_counts(states: States, change: str) -> None:
    html = (
        "<input id=t><input id=c type=checkbox><select id=s><option>a<option>b</select><textarea id=area></textarea>"
        "<div id=host></div><iframe src=/inner></iframe>"
        "<script>host.attachShadow({mode: 'open'}).innerHTML = '<b>in</b>'</script>"
    )
    plain, changed = states.of(html), states.of(html, lambda page: page.evaluate(change))
    assert plain[0] != changed[0]
    assert plain[1] == changed[1]


def test_a_password_counts_as_there_or_not(states: States) -> None:
    html = "<input id=p type=password>"
    typed = states.of(html, lambda page: page.fill("#p", "one and another"))
    assert typed == states.of(html, lambda page: page.fill("#p", "quite different"))
    assert typed != states.of(html)


@pytest.mark.parametrize(
    "change",
    [
        "localStorage.setItem('k', 'v')",
        "sessionStorage.setItem('k', 'v')",
        "document.cookie = 'k=v'",
        """new Promise(done => {
            const opening = indexedDB.open('db', 1);
            opening.onupgradeneeded = () => opening.result.createObjectStore('store').put({when: new Date(5)}, 'key');
            opening.onsuccess = done;
        })""",
    ],
)
def test_each_storage_counts(states: States, change: str) -> None:
    plain, changed = (states.of("<p>text</p>", act) for act in (lambda page: None, lambda page: page.evaluate(change)))
    assert plain[0] == changed[0]
    assert plain[1] != changed[1]
    assert changed == states.of("<p>text</p>", lambda page: page.evaluate(change))


def test_looking_at_a_database_does_not_hold_up_its_page(states: States) -> None:
    made = """new Promise((done, failed) => {
        const opening = indexedDB.open('db', VERSION);
        opening.onupgradeneeded = () => opening.result.createObjectStore('store VERSION');
        opening.onsuccess = () => { opening.result.close(); done(); };
        opening.onblocked = opening.onerror = failed;
    })"""

    def upgraded(page: Page) -> None:
        for version in range(1, 6):
            page.evaluate(made.replace("VERSION", str(version)))
        page.evaluate("new Promise((done, no) => { const gone = indexedDB.deleteDatabase('db');"
                      "gone.onsuccess = done; gone.onblocked = no })")  # fmt: skip

    assert states.of("<p>text</p>", upgraded) == states.of("<p>text</p>")


def test_a_document_that_is_too_long_to_be_read_is_told_by_its_hash(states: States) -> None:
    html = "<p id=first>a</p>" + "<p>" + "x" * LONGEST + "</p>"
    plain = states.of(html)
    assert plain == states.of(html)
    assert plain != states.of(html, lambda page: page.evaluate("first.textContent = 'b'"))


def test_the_page_can_neither_see_nor_change_how_it_is_looked_at(states: States) -> None:
    html = "<p>text</p>"
    broken = (
        "for (const name of ['firstChild', 'nextSibling', 'nodeType', 'attributes'])"
        "  for (const kind of [Node, Element]) if (Object.getOwnPropertyDescriptor(kind.prototype, name))"
        "    Object.defineProperty(kind.prototype, name, {get() { throw Error('seen') }});"
        "JSON.stringify = Math.imul = () => { throw Error('seen') }; Promise.prototype.then = null;"
    )
    assert states.of(html, lambda page: page.evaluate(broken)) == states.of(html)
    seen: list[str] = []
    states.of(html, lambda page: seen.append(page.evaluate("typeof lockstep")))
    assert seen == ["undefined"]
