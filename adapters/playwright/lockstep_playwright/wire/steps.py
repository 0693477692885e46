"""Actions as steps of a session's run: a lane `playwright/context-1` for each context, in order of creation.

What they gave is not kept here again: it is in the conversation with the driver, which a replay serves. Pages are not
asked for their state, since that would be part of the conversation: the driver hears what it hears without us. What the
agent only looks at is no step.

Tried with playwright 1.60 to 1.65.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from lockstep.log.model import Value
from lockstep.session import current
from lockstep_playwright.actions import Action, Done, Watch
from lockstep_playwright.wire.language import spoken_at

_MODULES = ("playwright._impl.browser_context", "playwright._impl._browser_context")  # since 1.65, and before
_COUNT = "playwright"


class Steps:
    """Is `lockstep_playwright.actions.Told`."""

    def __init__(self, session: Any) -> None:
        self._session: Any = session
        number = session.adapters[_COUNT] = session.adapters.get(_COUNT, 0) + 1
        self._lane = f"playwright/context-{number}"

    def begin(self, action: Action) -> None:
        spoken_at(action.site)

    def closing(self, action: Action) -> None:
        """Nothing is looked at."""

    def seen(self, action: Action) -> None:
        """Nothing is looked at."""

    def end(self, action: Action, done: Done) -> None:
        is_on = current.session is self._session
        if action.kind != "action" or not is_on:
            return
        state: dict[str, Value] = {
            "action": action.api,
            "arguments": action.arguments,
            "url": [*done.url],
        }
        if done.error is not None:
            state["error"] = done.error
        self._session.checkpoint(self._lane, action.name, state, wait=False)

    def attach(self, action: Action, name: str, content: str | bytes) -> None:
        """Nothing is looked at."""

    def hide(self, value: Value) -> Value:
        hidden: Value = self._session.secrets.hide(value)
        return hidden

    def given(self, action: Action) -> None:
        return None

    def served(self, action: Action) -> None:
        return None

    def expected(self, action: Action) -> None:
        return None

    def secret(self, value: str) -> None:
        self._session.secrets.learn(value.encode(), "password")

    def fault(self, where: str, error: BaseException) -> None:
        self._session.fault(where, error)


def watch_contexts() -> None:
    """Each context that is made while a session is on is watched. Once; without a session it costs one comparison.
    Raises AttributeError where no version is like this one."""
    kind: Any = _context()
    real = kind.__init__
    if hasattr(real, "_lockstep"):
        return

    @functools.wraps(real)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        session = current.session
        if session is None:
            return
        try:
            Watch(self, Steps(session), looks=False).attach().send(None)
        except StopIteration:
            pass  # it awaits nothing
        except Exception as error:
            session.fault("actions of a browser", error)

    __init__.__dict__["_lockstep"] = True
    kind.__init__ = __init__


def _context() -> Any:
    for name in _MODULES:
        try:
            return import_module(name).BrowserContext
        except ImportError:
            continue
    raise AttributeError(f"no BrowserContext in {' or '.join(_MODULES)}")
