"""What Lockstep knows of Playwright before anything of it is imported."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.adapter.late import Later
from lockstep.adapter.native import Native
from lockstep.errors import Code, TargetError
from lockstep.log.model import Value

_OWN = {
    "endpoint": "the DevTools address of a running Chromium, in place of one that is started for the replay",
    "executable": "path of a Chromium, in place of the one that is found",
    "headless": "False shows the browser",
    "misses": '"fail": an unrecorded request fails in the page and is named; "strict": it also stops the program',
    "volatile": 'values that are other ones in each run: {"GET */search": ["query.ts"]}',
}


def _is_function(target: Any) -> bool:
    return callable(target) and not isinstance(target, type)


def _program(target: Any, given: Value) -> Callable[[], Any]:
    raise TargetError(
        Code.BAD_TARGET,
        "a function of a browser context is the target of a browser's own run, as in playwright/checkout",
    )


def attach(module: ModuleType) -> None:
    """In a program under `lockstep record` or `replay`, or that has imported this package itself."""
    from lockstep_playwright.wire import attaching

    attaching.attach()


adapter = Adapter(
    name="playwright",
    title="Playwright",
    distribution="playwright",
    extra="playwright",
    modules=("playwright",),
    instrument=attach,
    tested=Versions("1.60", "1.65.2"),
    steps=Steps(kind="action", what="each action on a page: goto, click, fill, evaluate, expect, …"),
    restore=Way(
        exact=False,
        reason="what is in a page's memory cannot be put back: its actions are done again, with the recorded network",
    ),
    re_execute=Way(exact=True),
    target=Target(
        what="function of a browser context, or module:function",
        inputs="a fresh context with the recorded options",
        accepts=_is_function,
        program=_program,
    ),
    subject="lockstep_playwright.subject:subject",
    native=Native(
        replay=Later("lockstep_playwright.replaying:replay"),
        areplay=Later("lockstep_playwright.replaying:areplay"),
        fork=Later("lockstep_playwright.forking:fork"),
        afork=Later("lockstep_playwright.forking:afork"),
        own=_OWN,
    ),
)
