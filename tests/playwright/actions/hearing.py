"""Who hears of actions in these tests, and the page on which they are done."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from lockstep_playwright.actions import Action, Done, Given

SHOP = """<!doctype html><title>Shop</title>
<h1>Shop</h1>
<input id="q"><input id="pw" type="password"><input id="c" type="checkbox">
<select id="s"><option>a<option>b</select>
<button id="buy">Buy</button><div id="out"></div>
<script>
  let bought = 0;
  buy.onclick = () => {
    localStorage.setItem('bought', ++bought);
    out.append(`bought ${bought} of ${q.value}`);
  };
</script>"""


class Heard:
    """Is `Told`, and keeps what it is told."""

    def __init__(self) -> None:
        self.begun: list[Action] = []
        self.ended: list[tuple[Action, Done]] = []
        self.attached: list[tuple[str, str, str | bytes]] = []
        self.secrets: list[str] = []
        self.faults: list[str] = []
        self.order: list[str] = []
        self.wanted: dict[str, tuple[str, str]] = {}
        self.edits: dict[str, Given] = {}
        self.broken = False
        self.refuse = ""
        self.wait: Awaitable[None] | None = None

    def begin(self, action: Action) -> Awaitable[None] | None:
        self.order.append(f"begin {action.name}")
        if action.name == self.refuse:
            raise Refused(action.name)
        self.begun.append(action)
        wait, self.wait = self.wait, None
        return wait

    def closing(self, action: Action) -> None:
        self.order.append(f"closing {action.name}")
        if self.broken:
            raise RuntimeError("broken")

    def seen(self, action: Action) -> None:
        """It ends next."""

    def end(self, action: Action, done: Done) -> None:
        self.order.append(f"end {action.name}")
        self.ended.append((action, done))

    def attach(self, action: Action, name: str, content: str | bytes) -> None:
        self.attached.append((action.name, name, content))

    def hide(self, value: Any) -> Any:
        return value

    def secret(self, value: str) -> None:
        self.secrets.append(value)

    def given(self, action: Action) -> Given | None:
        return self.edits.get(action.name)

    def served(self, action: Action) -> Given | None:
        return None

    def expected(self, action: Action) -> tuple[str, str] | None:
        return self.wanted.get(action.name)

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(f"{where}: {type(error).__name__}: {error}")

    # What tests ask.

    def names(self, kind: str = "action") -> list[str]:
        return [action.name for action, _ in self.ended if action.kind == kind]

    def done(self, name: str) -> Done:
        return next(done for action, done in self.ended if action.name == name)

    def action(self, name: str) -> Action:
        return next(action for action, _ in self.ended if action.name == name)


class Refused(BaseException):
    """Ends a program's call, as a divergence does."""
