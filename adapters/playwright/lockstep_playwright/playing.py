"""The agent's actions in a replay: each is the recorded one, begins when it may, and has the recorded outcome.

What it asks of the network is answered meanwhile (`lockstep_playwright.serving`). Actions on one page come in their
order; those on several pages, each in its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from lockstep.errors import Code, Stop
from lockstep.log.model import Status, Value
from lockstep.session import difference, findings, sites
from lockstep.session.native.served import NativeCall
from lockstep.session.native.serving import Serving
from lockstep.session.tape import Recorded as Effect
from lockstep_playwright import comparing, layout
from lockstep_playwright.actions import Action, Done, Given
from lockstep_playwright.apart import Apart
from lockstep_playwright.comparing import Found
from lockstep_playwright.recorded import Recorded, RecordedAction
from lockstep_playwright.recording import record_of
from lockstep_playwright.serving.pace import Pace
from lockstep_playwright.volatile import Rules

_LOOK, _LOOKS = 0.01, 200  # seconds between two looks for another page, and how many
_ENDS = 5.0  # seconds that reads are given to be over, once all else is


class Player:
    """Is `lockstep_playwright.actions.Told`.

    strict    whether the program is stopped at its next action after a request that was not recorded
    compared  steps that were the recorded ones
    over      nothing is compared any more
    """

    def __init__(
        self, recorded: Recorded, serving: Serving, pace: Pace, apart: Apart, *, rules: Rules = Rules(),  # noqa: B008
        strict: bool = False, upto: int | None = None, until: int | None = None,
    ) -> None:  # fmt: skip
        """`serving` and `pace`: in the loop apart. `rules`: what may be another value in each run. `upto`:
        position behind which no action is expected; `until`: the step after which the program is stopped."""
        self.strict = strict
        self.compared: list[int] = []
        self.over = False
        self._recorded = recorded
        self._serving = serving
        self._pace = pace
        self._apart = apart
        self._rules = rules
        self._until = until
        self._context: Any = None
        self._stopped = False  # an action was another one: the program goes no further
        self._left: dict[str, list[RecordedAction]] = {}
        for action in sorted(recorded.actions, key=lambda each: each.began):
            if (upto is None or action.pos <= upto) and (until is None or action.step <= until):
                self._left.setdefault(action.lane, []).append(action)
        self._on: dict[int, RecordedAction] = {}
        self._reads: dict[int, tuple[NativeCall, Effect]] = {}
        self._closing: set[int] = set()  # actions that are over
        self._seen: set[int] = set()  # those whose page has been looked at
        self._taken: list[Future[Any]] = []

    # Actions (`Told`).

    def start(self, context: Any) -> None:
        """The context, of either API, is there."""
        self._context = context._impl_obj

    @property
    def done(self) -> bool:
        """Whether all actions that are expected have ended."""
        return not self._on and not any(self._left.values())

    def expects(self, action: Action) -> bool:
        """Of a fork: whether this belongs to the part that is played."""
        lane = layout.action_lane(action.page)
        if action.kind == "read":
            return next(self._serving.strand(layout.read_lane(lane)).state.left(), None) is not None
        return bool(self._left.get(lane))

    def begin(self, action: Action) -> Awaitable[None] | None:
        """See `Told`."""
        if self.over:
            return None
        latch = self._serving.latched
        if latch.stopped:
            if self.strict or self._stopped or latch.cut:
                latch.raise_it()
            return None
        if action.kind == "read":
            return self._look(action)
        lane = layout.action_lane(action.page)
        left = self._left.get(lane)
        expected = left[0] if left else None
        if expected is None:
            self._past_the_end(lane, action)
            return None
        found = comparing.asked(
            expected, action.api, action.name, self.hide(action.arguments), action.frame, self._is_address
        )  # fmt: skip
        if found is not None:
            self._differs(expected, found, action)
        assert left is not None
        self._on[action.number] = left.pop(0)
        made = expected.page
        at = expected.began
        return self._after(made - 1, at) if made is not None else self.begins(at)

    async def _after(self, pages: int, at: int) -> None:
        """A page is made once so many are there, which were made before it: where several are made at once, the browser
        has them in any order."""
        await self.begins(at)
        for _ in range(_LOOKS):
            if len(self._context.pages) >= pages:
                break
            await asyncio.sleep(_LOOK)

    def begins(self, at: int) -> Awaitable[None]:
        """The action that began at a position begins when everything has happened that had then."""
        return self._apart.arun(self._pace.action_begins(at))

    def _past_the_end(self, lane: str, action: Action) -> None:
        """An action after the last recorded one of its page."""
        serving = self._serving
        self._stopped = True
        if serving.interrupted or self._until is not None:
            serving.latched.come_to_cut()
            serving.latched.raise_it()
        last = self._recorded.actions[-1].pos if self._recorded.actions else self._recorded.turn.pos
        serving.diverge(
            Code.EXTRA, "an action after the last one that was recorded on this page", lane=lane, kind=layout.ACTION,
            name=action.name, actual=f"{action.name} ({action.api})", source=action.site, at=last + 1,
        )  # fmt: skip

    def closing(self, action: Action) -> None:
        """See `Told`: the page is looked at until it is as it was recorded."""
        self._closing.add(action.number)

    def seen(self, action: Action) -> None:
        """See `Told`: what came later, comes from here on."""
        self._is_seen(action.number)

    def _is_seen(self, number: int) -> None:
        expected = self._on.get(number)
        if expected is not None and not self.over and number not in self._seen:
            self._seen.add(number)
            self._taken.append(self._apart.start(self._pace.action_ends(expected.pos)))

    def end(self, action: Action, done: Done) -> None:
        """See `Told`."""
        if self.over:
            return
        if action.kind == "read":
            self._looked(action, done)
            return
        expected = self._on.pop(action.number, None)
        if expected is None or self._serving.latched.stopped:
            return
        now: Any = self.hide(record_of(action, done))
        later = [each for each in self._recorded.actions if each.lane == expected.lane and each.pos > expected.pos]
        found = comparing.outcome(expected.record, now, [each.record for each in later], self._is_address)
        if found is not None:
            if found.path == "dom":
                found = comparing.placed(found, self._recorded.document(expected), done.document)
            self._differs(expected, found, action)
        self.compared.append(expected.step)
        if action.number not in self._seen:
            self._taken.append(self._apart.start(self._pace.action_ends(expected.pos)))

    def _differs(self, expected: RecordedAction, found: Found, action: Action) -> None:
        # Where only an order is another one, the program has what it had: it may go on.
        self._stopped = found.code is not Code.ORDER
        differs = self._serving.diverge if self._stopped else self._serving.differs
        differs(
            found.code, found.reason, lane=expected.lane, kind=layout.ACTION, name=expected.name, at=expected.pos,
            path=found.path, expected=found.expected, actual=found.actual, source=action.site, hint=found.hint,
        )  # fmt: skip

    def _is_address(self, recorded: str, now: str) -> bool:
        """Whether it is the recorded address, but for what may be another value."""
        return self._rules.same_address(recorded, now, self._recorded.base)

    def attach(self, action: Action, name: str, content: str | bytes) -> None:
        """See `Told`: what people look at is in the record already."""

    def hide(self, value: Value) -> Value:
        return self._serving.secrets.hide(value)

    def secret(self, value: str) -> None:
        """See `Told`. It is known: the recording has it as one."""
        self._serving.secrets.stand(value.encode("utf-8", "surrogatepass"), "password")

    def given(self, action: Action) -> Given | None:
        """See `Told`: a replay compares what the browser says."""
        return None

    def served(self, action: Action) -> Given | None:
        """See `Told`."""
        if action.kind != "read":
            expected = self._on.get(action.number)
            if self.over or expected is None:
                return None
            said = expected.said
            error = said.get("error")
            if error is None:
                return Given(self._serving.secrets.reveal(said.get("result")))
        else:
            effect = self._reads.get(action.number, (None, None))[1]
            if self.over or effect is None or not effect.ended:
                return None
            seq, event, _ = effect.pieces[-1]
            body: Any = self._serving.tape.body(seq)
            if event.what == Status.OK:
                return Given(self._serving.secrets.reveal(body))
            error = {"name": body.get("name"), "message": " ".join(map(str, body.get("args") or ()))}
        told = {name: str(each or "") for name, each in error.items()}
        return Given(error={**told, "message": told.get("message", "").removeprefix(f"{action.api}: ")})

    def expected(self, action: Action) -> tuple[str, str] | None:
        """See `Told`."""
        expected = self._on.get(action.number)
        if expected is None or not expected.settled:
            return None
        return expected.after("dom"), expected.after("storage")

    def fault(self, where: str, error: BaseException) -> None:
        self._serving.fault(where, error)

    # Reads.

    def _look(self, action: Action) -> Awaitable[None] | None:
        serving, lane = self._serving, layout.read_lane(layout.action_lane(action.page))
        strand = serving.strand(lane)
        request: Value = {"api": action.api, "arguments": action.arguments}
        name, hidden, key = serving.recognised(strand, layout.BROWSER, action.name, request, request)
        effect = serving.take(strand, key)
        if effect is None:
            self._stopped = True
            serving.match(strand, layout.BROWSER, name, key, hidden)
            serving.latched.come_to_cut()
            serving.latched.raise_it()
        call = NativeCall(serving, strand, layout.BROWSER)
        call.name = name
        call.answered_by(effect, key)
        self._reads[action.number] = call, effect
        # A read does not wait until a page has been looked at, which may wait for what comes behind the read.
        for number in self._closing & self._on.keys():
            if self._on[number].pos < effect.begin.pos:
                self._is_seen(number)
        return self._apart.arun(self._pace.caught_up(effect.begin.pos))

    def _looked(self, action: Action, done: Done) -> None:
        call, effect = self._reads.pop(action.number, (None, None))
        if call is None or effect is None:
            return
        self._taken.append(self._apart.start(call.atake()))
        if not effect.ended or self._serving.latched.stopped:
            return
        seq, event, _ = effect.pieces[-1]
        body = self._serving.tape.body(seq)
        found = _read_differs(event.what, body, done, self.hide)
        if found is not None:
            self._stopped = True
            self._serving.diverge(
                found.code, found.reason, lane=effect.begin.lane, kind=layout.BROWSER, name=effect.begin.name,
                at=effect, path=found.path, expected=found.expected, actual=found.actual, source=action.site,
            )  # fmt: skip

    # The end.

    def finish(self, raised: BaseException | None = None) -> None:
        """The program is through: latches a recorded action that it did not make. `raised`: what it ended with
        by itself, which then is why."""
        for future in self._taken:
            try:
                future.result(_ENDS)
            except Stop:
                break  # it is latched
            except Exception as error:
                self._serving.fault("what was handed out", error)
        serving = self._serving
        latch = serving.latched
        if latch.stopped:
            return
        if serving.interrupted and self._until is None:
            latch.come_to_cut()  # what follows is not known: it was cut off
            return
        left = sorted((each[0] for each in self._left.values() if each), key=lambda each: each.pos)
        if left:
            missing = left[0]
            if raised is not None:
                serving.differs(
                    Code.END, "the function raised an exception, where the recorded one went on", lane=missing.lane,
                    kind="end", name=f"before {missing.name}", at=missing.pos, path="error", expected="no exception",
                    actual=f"{type(raised).__name__}: {raised}", source=sites.of_exception(raised),
                )  # fmt: skip
                return
            serving.differs(
                Code.MISSING, "a recorded action was never made", lane=missing.lane, kind=layout.ACTION,
                name=missing.name, at=missing.pos, expected=f"{missing.name} ({missing.said.get('api')})",
                actual="(nothing)", source=str(missing.said.get("source") or ""),
            )  # fmt: skip
            return
        unread = next((each for each in serving.left() if each.begin.what == layout.BROWSER), None)
        if unread is not None:
            latch.stop_at(findings.never_made(serving.tape, unread.seq, unread.begin, unread))


def _read_differs(status: str, body: Any, done: Done, hide: Callable[[Value], Value]) -> Found | None:
    """Whether the agent was told something else than when it was recorded."""
    if (status == Status.OK) != (done.error is None):
        was = "(it failed)" if status != Status.OK else difference.shown(body)
        now = "(it fails)" if done.error is not None else difference.shown(hide(done.result))
        return Found(Code.STATE, "the page says something else", "", was, now)
    if status != Status.OK:
        return None
    first = difference.first(body, hide(done.result))
    return None if first is None else Found(Code.STATE, "the page says something else", *first)
