"""What an agent did with a browser, as those who watch it tell those who record, replay and fork it.

class Recorder:                                  # is `Told`
    def began(self, action): …                   # before anything of it reaches the browser
    def ended(self, action): …                   # its outcome, addresses and digests are in it by now
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from lockstep.log.model import Value


class Action(msgspec.Struct, kw_only=True, eq=False):
    """One call of Playwright's API by the agent's own code. What is below `began` is filled in until it has ended.

    lane       of its page: "main/page-1"; "main" of the context and of what is no page's
    api        "Page.click"; `name`: in a few words, with secrets redacted: `click "#buy"`
    arguments  by name, inert, with what was typed into secret fields redacted
    source     "file:line in function" of the agent's code, "" where it is not known
    reads      whether it only looks: title, inner_text, cookies, … It is no step, but a call of kind "browser"
    beside     whether another action of the same loop was on when it began: `before` is no state of its own then
    result     what it gave, inert: an object of Playwright's is told by its kind; None where it failed
    error      {"name", "message"} of what it raised; None where it did not
    raised     that exception itself
    url, dom, storage   before and after, "" where there is nothing to tell; the last two are digests in hex
    seconds    that it took
    pictures   attachments, taken once it was over: {"aria": text, "screenshot": PNG}
    state      for who is told of it
    """

    lane: str
    api: str
    name: str
    arguments: Value
    source: str = ""
    reads: bool = False
    beside: bool = False
    result: Value = None
    error: Value = None
    raised: BaseException | None = None
    url: tuple[str, str] = ("", "")
    dom: tuple[str, str] = ("", "")
    storage: tuple[str, str] = ("", "")
    seconds: float = 0.0
    pictures: dict[str, Value] = {}
    state: Any = None


class Given(msgspec.Struct, frozen=True):
    """What a read gives the agent in place of what the browser said: an edit of a fork."""

    value: Value


class Told(Protocol):
    """Who is told of actions, in the loop in which Playwright runs. Neither can wait.

    What they raise is the agent's to have where it is a `lockstep.errors.Stop`: it ends the call, and reaches the code
    that made it. Anything else is a fault of ours, and told to whoever made the watch.
    """

    def began(self, action: Action) -> None:
        """Nothing of the action has reached the browser yet."""
        ...

    def ended(self, action: Action) -> Given | None:
        """It is over, and the agent has not got its result yet."""
        ...
