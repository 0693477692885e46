"""What is told of an agent's actions, and what whoever hears of them has to offer."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Literal, Protocol

import msgspec

from lockstep.log.model import Value


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One call of Playwright's API, as it begins.

    number     from 1, in the order in which they began in the context
    kind       "action": closes a step. "read": only looks, an effect of the step around it
    api        as the user called it: "Page.click", "LocatorAssertions.to_have_text"
    name       in a line, secrets hidden: `click "#buy"`, `goto http://127.0.0.1/shop`. When it begins, without what is
               typed: whether that is a password is known behind it
    arguments  by name, inert; cookies and headers written as in an exchange. Secrets are in it, but for what is typed
               into a field for secrets: whoever stores it hides them
    page       the number of its page, from 1 in the order in which they were made; 0: of the context
    frame      the frame's place, "" for the main frame: its name or address
    site       "file:line in function" of the user's code, "" where it is not known (a task of its own)
    url        of its frame, when it began
    alone      whether it is a request that the program makes without the browser, or what it reads of its answer
    beside     numbers of the actions that were on at the same time and began before
    """

    number: int
    kind: Literal["action", "read"]
    api: str
    name: str
    arguments: dict[str, Value]
    page: int
    frame: str = ""
    site: str = ""
    url: str = ""
    alone: bool = False
    beside: tuple[int, ...] = ()


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an action, once the page's state behind it has been taken.

    result   what it gave, inert; an object of the page as {"$": "handle", …}. Likewise with its secrets
    error    None, or {"name", "message"} as the user saw it, without the log of its tries
    url      of the page, before and after
    dom      digests of the page before and after; "" where there is no page, or none could be taken
    storage  digests of cookies and storages before and after, likewise
    document the page as a text, secrets hidden, of which `dom` is the digest; "" of one too long to be read
    settled  whether the document had been parsed when the digest behind it was taken: one that was not is no promise
    seconds  that it took
    """

    result: Value = None
    error: dict[str, Value] | None = None
    url: tuple[str, str] = ("", "")
    dom: tuple[str, str] = ("", "")
    storage: tuple[str, str] = ("", "")
    document: str = ""
    settled: bool = True
    seconds: float = 0.0


class Given(msgspec.Struct, frozen=True):
    """What a read gives the program in place of what the browser said: an edit of a fork. `error`: {"name", "message"}
    of what it raises."""

    value: Value = None
    error: dict[str, Value] | None = None


class Told(Protocol):
    """Who hears of the actions of one context. Called in Playwright's loop, one call at a time."""

    def begin(self, action: Action) -> Awaitable[None] | None:
        """An action begins: its message has not left yet. Where it returns an awaitable, the message is held until
        that is done. A Divergence, Cut or Refusal that either raises is raised in the user's call."""
        ...

    def closing(self, action: Action) -> None:
        """It is over: what comes from here on, came later. Its page is looked at next, and `end` follows. Told in the
        order in which they ended, before anything else begins on the same page. Not told of a read."""
        ...

    def seen(self, action: Action) -> None:
        """Its page has been looked at. Told at once: `end` waits for those that ended before."""
        ...

    def end(self, action: Action, done: Done) -> None:
        """It is over, with the name and arguments that are final now. Told in the order in which they ended; of actions
        once their digests are taken, which the next one on the same page waits for. A Divergence, Cut or Refusal that
        is raised here is raised in the user's next call."""
        ...

    def attach(self, action: Action, name: str, content: str | bytes) -> None:
        """Of an action that has been told the end of: what people look at. "aria" and "dom" are texts, "screenshot"
        a PNG. Never part of a digest."""
        ...

    def hide(self, value: Value) -> Value:
        """The value with its secrets hidden, the same placeholder for the same secret in a recording and its replay."""
        ...

    def given(self, action: Action) -> Given | None:
        """What a read gives, if not what the browser says. Asked when it has said it, and before `end`."""
        ...

    def served(self, action: Action) -> Given | None:
        """What one that is `alone` gives without being made: it would leave, past whatever stands before the browser's
        network. Asked when it has begun. None: it is made."""
        ...

    def expected(self, action: Action) -> tuple[str, str] | None:
        """Replay and fork: the digests of page and storage that the recording had behind this action. A page that has
        another state is looked at again for a moment, in which it may get there. None: whatever it is then."""
        ...

    def secret(self, value: str) -> None:
        """This stood in a field for passwords: it is hidden from now on, wherever it turns up."""
        ...

    def fault(self, where: str, error: BaseException) -> object:
        """An error of our own, of which the program sees nothing."""
        ...
