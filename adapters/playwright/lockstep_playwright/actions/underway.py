"""A call between its beginning and what is told of it, and the page that it is on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from lockstep.log.model import Value
from lockstep_playwright.actions import methods, values
from lockstep_playwright.actions.looking import Looker, State
from lockstep_playwright.actions.methods import Method
from lockstep_playwright.actions.model import Action, Done, Told
from lockstep_playwright.actions.pipe import Message, Sent
from lockstep_playwright.actions.values import Find


class Page:
    """One page of the context.

    held     calls that wait for it, in their order
    closing  how many of its actions are over, and not told as such yet
    looking  how many looks behind an action are on
    drawing  how many pictures are being taken
    shown    digest of the document that the last picture is of
    """

    def __init__(self, number: int, implementation: Any, looker: Looker) -> None:
        self.number = number
        self.implementation = implementation
        self.looker = looker
        self.held: deque[Underway] = deque()
        self.closing = 0
        self.looking = 0
        self.drawing = 0
        self.shown = ""

    def holds(self, method: Method) -> bool:
        """Whether a call has to wait for what is being looked at."""
        if self.closing and not method.frees:
            return True
        return bool(method.waits and (self.looking or (self.drawing and method.verb == "close page")))

    @property
    def main(self) -> Any:
        return getattr(self.implementation, "_main_frame", None)

    @property
    def closed(self) -> bool:
        closed = getattr(self.implementation, "_is_closed", False)
        return bool(closed() if callable(closed) else closed)


class Underway:
    """One call. `left`: its message has gone. `behind`: what is to follow that. `over`: all has been told that came
    before it was; `closed` is to be called when that is told of itself. `complete`: all is known of it."""

    def __init__(self, sent: Sent, method: Method, page: Page | None, began: int) -> None:
        self.sent = sent
        self.method = method
        self.page = page
        self.began = began
        self.ended = 0
        self.action: Action | None = None
        self.before: State | None = None
        self.after: State | None = None
        self.reply: Message | None = None
        self._came: tuple[dict[str, Value] | None, Value] | None = None
        self.left = False
        self.behind: list[Message] = []
        self.over = False
        self.closed: Callable[[], None] | None = None
        self.complete = False

    def told(self, told: Told, find: Find) -> tuple[Action, Done]:
        """What there is to tell of it, with what its page has shown of secrets."""
        assert self.action is not None
        action = self.action
        secrets = {*(self.before.secrets if self.before else ()), *(self.after.secrets if self.after else ())}
        for secret in secrets:
            told.secret(secret)
        kind, method = self.sent.object._type, self.sent.message["method"]
        if method in methods.TYPES:
            arguments = action.arguments
            if _is_secret(method, arguments.get("value") or arguments.get("text"), secrets):
                arguments = methods.without(arguments)
            shown: Any = told.hide(arguments)
            named = methods.name(self.method, kind, method, shown, values.of_handle(self.sent.object))
            action = msgspec.structs.replace(action, arguments=arguments, name=named)
        before, after = self.before, self.after
        error, result = self._came or self._outcome(find)
        return action, Done(
            result=result,
            error=error,
            url=(before.url if before else action.url, after.url if after else ""),
            dom=(before.dom if before else "", after.dom if after else ""),
            storage=(before.storage if before else "", after.storage if after else ""),
            document=after.text if after else "",
            settled=after is None or after.parsed,
            seconds=(self.ended - self.began) / 1e9,
        )

    def came(self, reply: Message, find: Find) -> None:
        """Its reply is here: what it names is there now, and may be gone when it is told."""
        self.reply = reply
        self._came = self._outcome(find)

    def _outcome(self, find: Find) -> tuple[dict[str, Value] | None, Value]:
        reply = self.reply
        if reply is None:
            zone = self.sent.zone
            failed = getattr(zone, "error", None)
            if failed is not None:
                return _error(type(failed).__name__, str(failed)), None
            return _error("CancelledError", ""), None
        kind, method = self.sent.object._type, self.sent.message["method"]
        if reply.get("error") and not reply.get("result"):
            failure = reply["error"].get("error") or reply["error"]
            if method == "expect":
                return _error("AssertionError", self._unmet()), None
            said = str(failure.get("message") or failure.get("value") or "")
            return _error(str(failure.get("name") or "Error"), f"{self.sent.api}: {said}"), None
        result = reply.get("result")
        if method == "expect" and isinstance(result, Mapping) and "matches" in result:
            negated = bool((self.sent.message.get("params") or {}).get("isNot"))
            unmet = bool(result["matches"]) == negated
            return (_error("AssertionError", self._unmet()), None) if unmet else (None, None)
        return None, values.shaped(values.result(kind, method, result, find))

    def _unmet(self) -> str:
        return f"{self.sent.api}: not as expected"


def _is_secret(method: str, typed: Any, secrets: Iterable[str]) -> bool:
    """Whether what was typed stands in a password field now: as the whole of it, or where it was typed."""
    if not isinstance(typed, str) or not typed:
        return False
    return any(typed == secret or (method != "fill" and typed in secret) for secret in secrets)


def _error(name: str, message: str) -> dict[str, Value]:
    """As the user saw it, without the log of its tries: how many there are is a matter of time."""
    return {"name": name, "message": message.partition("\n")[0]}
