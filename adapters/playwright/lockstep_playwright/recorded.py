"""What is recorded of a browser's run, for all who replay, fork and show it.

    recorded = Recorded(store.run("playwright/checkout"))
    recorded.actions[3].name, .api, .arguments, .dom
    recorded.began                      # positions at which actions began
    recorded.asked(secrets)             # the context that its replay gets: {"options", "state", …}

Reads the heads of a branch's events once, and bodies when they are asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from lockstep.debugger import acted
from lockstep.errors import Code, TargetError
from lockstep.log.address import called
from lockstep.log.model import Event, Kind, Value
from lockstep.log.store import RunReader
from lockstep.session.native.record import Record, RecordedTurn
from lockstep_playwright import layout
from lockstep_playwright.shim.shim import Mode, Shim

_MAKES = "BrowserContext.new_page"


class RecordedAction(msgspec.Struct, frozen=True):
    """One action.

    step    its number in the run; `pos` and `seq` of its STEP event, where it was over
    lane    of its page, "main" of the context's own
    record  its body, as it is stored: with its secrets hidden
    began   position at which it began
    """

    step: int
    pos: int
    seq: int
    lane: str
    name: str
    key: bytes
    record: Mapping[str, Any]
    began: int

    @property
    def said(self) -> Mapping[str, Any]:
        """What was called with what, and what came of it."""
        found = self.record.get("action")
        return found if isinstance(found, Mapping) else {}

    @property
    def number(self) -> int:
        """In the order in which actions began, reads among them."""
        found = self.record.get("number")
        return found if isinstance(found, int) else 0

    def after(self, what: str) -> str:
        """Address or digest behind it: of "url", "dom" or "storage"."""
        pair = self.record.get(what)
        return str(pair[1]) if isinstance(pair, list) and len(pair) == 2 else ""

    @property
    def page(self) -> int | None:
        """The number of the page that it made, None where it made none."""
        result = self.said.get("result")
        found = result.get("number") if isinstance(result, Mapping) and self.said.get("api") == _MAKES else None
        return found if isinstance(found, int) else None

    @property
    def settled(self) -> bool:
        return self.record.get("settled") is not False


class Recorded:
    """One branch of a browser's run."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        self.record = Record(reader, again=True)
        self.meta: Mapping[str, Any] = reader.meta if isinstance(reader.meta, Mapping) else {}
        self.address = called(reader.info.name, reader.branch)

    @property
    def turn(self) -> RecordedTurn:
        """The only turn. Raises TargetError LS402 where the run was cut off before it began."""
        turns = self.record.turns
        if not turns:
            raise TargetError(Code.BAD_TARGET, f"{self.address} was cut off before its context was there")
        return turns[0]

    @property
    def end(self) -> tuple[int, Event] | None:
        """The END event of its turn, with its number; None where it was cut off."""
        turn = self.record.turns[-1] if self.record.turns else None
        return None if turn is None or turn.end is None else (turn.end_seq, turn.end)

    def document(self, action: RecordedAction) -> str:
        """The page behind an action, as a text; "" where it was too long to be kept."""
        return self._documents.get(action.pos, "")

    @cached_property
    def _documents(self) -> dict[int, str]:
        return acted.pages(self.reader, self.reader.main)

    @cached_property
    def actions(self) -> tuple[RecordedAction, ...]:
        """In the order in which they ended."""
        found: list[RecordedAction] = []
        for step, (seq, event) in enumerate(self.record.steps):
            if event.what != layout.ACTION:
                continue
            body = self.record.body(seq)
            record: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
            began = self._began.get(str(record.get("number")), event.pos)
            found.append(RecordedAction(step, event.pos, seq, event.lane, event.name, event.key, record, began))
        return tuple(found)

    @cached_property
    def began(self) -> tuple[int, ...]:
        """The positions at which actions began, of those that did not end too."""
        return tuple(sorted(self._began.values()))

    @cached_property
    def _began(self) -> dict[str, int]:
        """By the number of an action. What was on where a branch left another one begins anew in it: what had come of
        it before that came of its first beginning."""
        found: dict[str, int] = {}
        for _, event in self.record.heads:
            if _begins(event):
                found.setdefault(event.name, event.pos)
        return found

    def begun_by(self, upto: int) -> dict[int, str]:
        """Of the actions that had begun by a position: where, and the lane of each that was still on then, "" of one
        that was over."""
        ended = {str(action.number) for action in self.actions if action.pos <= upto}
        first: dict[str, Event] = {}
        for _, event in self.record.heads:
            if _begins(event) and event.pos <= upto:
                first.setdefault(event.name, event)
        return {event.pos: "" if name in ended else event.lane for name, event in first.items()}

    @property
    def is_cut(self) -> bool:
        """Whether nothing is known of what follows its last event."""
        return self.end is None

    def stop(self, until: int | None) -> int:
        """The position before which calls are served, up to a step."""
        return sys.maxsize if until is None else self.record.position(until) + 1

    @property
    def ended(self) -> tuple[int, ...]:
        """The positions at which actions were over: what came later is not in the digests of their pages."""
        return tuple(action.pos for action in self.actions if action.number)

    @property
    def browser(self) -> Mapping[str, Any]:
        found = self.meta.get("browser")
        return found if isinstance(found, Mapping) else {}

    def shim(self) -> Shim | None:
        """A fresh one like that of the recording; None where it had none."""
        found = self.meta.get("shim")
        told: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        modes: dict[str, Mode] = {"seed": "seed", "freeze": "freeze", "off": "off"}
        mode = modes.get(str(told.get("mode")))
        return None if mode is None else Shim(mode, seed=str(told.get("seed")), start=int(told.get("start") or 0))

    @property
    def since(self) -> float:
        """When it began, in seconds since 1970."""
        found = self.meta.get("shim")
        start = found.get("start") if isinstance(found, Mapping) else 0
        return start / 1000 if isinstance(start, int) else 0.0

    @property
    def base(self) -> str:
        """What addresses of its pages are relative to, "" for nothing."""
        options = self.browser.get("options")
        return str(options.get("baseURL") or "") if isinstance(options, Mapping) else ""

    @property
    def own_socket(self) -> bool:
        """Whether the browser was reached over a connection of ours."""
        return self.meta.get("backend") == layout.OWN_SOCKET

    def asked(self, reveal: Any) -> Mapping[str, Any]:
        """What the turn was begun with, as `layout.turn_request` has it. `reveal`: gives secrets back. Raises
        TargetError LS402 where nothing of the run can be run again."""
        told: Value = reveal(self.record.request(self.turn))
        found: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
        if found.get("api") == layout.ANY:
            raise TargetError(
                Code.BAD_TARGET,
                f"{self.address} was recorded by CdpTap, of a browser that another client drove: it can be shown and "
                "compared, and nothing of it be run again",
            )
        return found


def _begins(event: Event) -> bool:
    return event.kind is Kind.CAUSE and event.what == layout.BEGAN
