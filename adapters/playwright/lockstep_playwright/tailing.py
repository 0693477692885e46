"""What a fork does with the agent's actions and calls: played up to its cut, and recorded from there.

Calls that belong past the cut may come early: a page asks by itself, whatever the agent does. They wait until the last
action of the part before has left its page, so that this is what it was when it was recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from lockstep.log.model import Status, Value
from lockstep.session.call import Asked, Call, Piece
from lockstep.session.native.calls import Strand
from lockstep.session.native.forking import Forking, Undecided
from lockstep.session.native.gate import Gate
from lockstep.session.tail import Edit, Refuse
from lockstep.taps.http import request as requests
from lockstep_playwright import layout
from lockstep_playwright.actions import Action, Done, Given
from lockstep_playwright.playing import Player
from lockstep_playwright.recording import LOOKS, Recorder, answered, record_of


class Early(Undecided):
    """A call of a fork that is decided when the gate opens, where the part before has it not."""

    __slots__ = ()

    session: Tailing

    async def aready(self) -> None:
        if self._to is None:
            await self.session.gate.passed(lambda: self.session.latch.stopped)
            self._decide()


class Tailing(Forking):
    """The calls of a fork of a browser's run. `gate`: where what is past the cut waits."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.gate = Gate()

    def undecided(self, strand: Strand, kind: str) -> Call:
        """See `Forking`."""
        return Early(self, strand, kind)

    def look(self, lane: str, name: str, request: Value) -> tuple[Call, Edit | None]:
        """A look at a page, past the cut: the branch has it as it is now, with its edit, if it has one. No policy is
        asked, since nothing of it leaves the browser."""
        later = self.later
        key = later.recognised(later.strand(lane), layout.BROWSER, name, request, request)[2]
        edit = self.tail.edit_of(lane, key)
        call = self.journal.call(lane, layout.BROWSER)
        call.ask(name, request, request, declared=LOOKS)
        if edit is not None:
            self.went("edited", 0)
        return call, edit

    def let_go(self, told: Asked) -> None:
        """A request that the program makes without the browser, past the cut: the policy is asked, and its action says
        what came of it. Raises Refusal."""
        call: Any = self.call(layout.LANE, told.kind)
        call.ask(told.name, told.request, told.key)
        hidden, request, digest = self.later.recognised(
            self.later.strand(layout.LANE), told.kind, told.name, told.request, told.key
        )
        verdict = self.tail.decide(layout.LANE, told.kind, hidden, digest, request, None, 0)
        if isinstance(verdict, Refuse):
            self.refuse(call, verdict, hidden, request)
        self.went("", 0)

    def read_before(self, action: Action) -> Given | None:
        """What a read gave when it was recorded; None of one that was not."""
        later, lane = self.later, layout.read_lane(layout.action_lane(action.page))
        request: Value = {"api": action.api, "arguments": action.arguments}
        key = later.recognised(later.strand(lane), layout.BROWSER, action.name, request, request)[2]
        for effect in later.tape.lane(lane).effects:
            if effect.begin.key == key and effect.ended and effect.pieces[-1][1].what == Status.OK:
                return Given(later.secrets.reveal(later.tape.body(effect.pieces[-1][0])))
        return None

    def past(self) -> None:
        """The part that is served is over: no call of it is expected any more."""
        self.journal.looped = self.journal.looped | {layout.LANE}


class Crossing:
    """Is `lockstep_playwright.actions.Told`: of a player up to the cut, of a recorder from there."""

    def __init__(
        self, calls: Tailing, player: Player, recorder: Recorder, crossed: Callable[[], Any],
        amid: Mapping[str, int],
    ) -> None:  # fmt: skip
        """`crossed` is told when the part that is served is over. `amid`: by lane, where the
        action began that was on in it then."""
        self.over = False
        self._calls = calls
        self._player = player
        self._recorder = recorder
        self._crossed = crossed
        self._amid = dict(amid)
        self._is_amid = bool(amid)
        self._played: set[int] = set()  # numbers of actions that the player has begun
        self._reads: dict[int, Call] = {}
        self._edited: dict[int, Piece] = {}  # what reads give

    def start(self, context: Any) -> None:
        """The context is there. A fork of its beginning is past its cut now."""
        self._player.start(context)
        if self._player.done:
            self._cross()

    def _cross(self) -> None:
        if not self._calls.gate.is_open:
            self._crossed()
            self._calls.gate.open()
            if not self._is_amid:
                self._calls.past()

    def begin(self, action: Action) -> Awaitable[None] | None:
        """See `Told`."""
        if self.over:
            return None
        if self._calls.latch.stopped:
            self._calls.latch.raise_it()
        if self._player.expects(action):
            self._played.add(action.number)
            return self._player.begin(action)
        if action.kind == "read":
            self._look(action)
            return None
        if action.alone:
            return self._later(action)
        if self._calls.gate.is_open:
            self._recorder.began(action)
            return None
        at = self._amid.pop(layout.action_lane(action.page), None)
        if at is None:
            return self._later(action)
        self._recorder.began(action)
        return self._player.begins(at)

    async def _later(self, action: Action) -> None:
        """An action past the cut, while the part before has not left all pages."""
        latch = self._calls.latch
        await self._calls.gate.passed(lambda: latch.stopped)
        if latch.stopped:
            latch.raise_it()
        if action.alone:
            said = action.arguments
            self._calls.let_go(requests.asked(str(said.get("method") or "GET"), str(said.get("url")), [], b""))
        self._recorder.began(action)

    def _look(self, action: Action) -> None:
        lane = layout.read_lane(layout.action_lane(action.page))
        request: Value = {"api": action.api, "arguments": action.arguments}
        call, edit = self._calls.look(lane, action.name, request)
        self._reads[action.number] = call
        if edit is not None:
            for piece in edit.pieces:
                if piece.status is not None:
                    self._edited[action.number] = piece

    def given(self, action: Action) -> Given | None:
        """See `Told`."""
        piece = self._edited.get(action.number)
        if piece is None:
            return None
        value = self._calls.journal.reveal(piece.value)
        if piece.status is Status.OK:
            return Given(value)
        raised: Any = value
        return Given(error={"name": str(raised.get("name")), "message": " ".join(map(str, raised.get("args") or ()))})

    def served(self, action: Action) -> Given | None:
        """See `Told`: past the cut it is made. What is read there of an answer from before, nobody else has."""
        if action.number in self._played:
            return self._player.served(action)
        return self._calls.read_before(action) if action.kind == "read" else None

    def closing(self, action: Action) -> None:
        """See `Told`."""
        if action.number in self._played:
            self._player.closing(action)
        else:
            self._recorder.closing(action)

    def seen(self, action: Action) -> None:
        """See `Told`."""
        if action.number in self._played:
            self._player.seen(action)

    def end(self, action: Action, done: Done) -> None:
        """See `Told`."""
        if self.over:
            return
        if action.number in self._played:
            self._played.discard(action.number)
            self._player.end(action, done)
            if self._player.done:
                self._cross()
        elif action.kind == "read":
            call, edited = self._reads.pop(action.number), self._edited.pop(action.number, None)
            if edited is not None:
                made: Any = call
                made.end(edited.status, edited.value, how="edited")
            else:
                answered(call, done)
        else:
            self._recorder.stepped(action, record_of(action, done))
            self._calls.past()

    def attach(self, action: Action, name: str, content: str | bytes) -> None:
        """See `Told`."""
        self._recorder.attach(action, name, content)

    def hide(self, value: Value) -> Value:
        return self._recorder.hide(value) if self._calls.gate.is_open else self._player.hide(value)

    def secret(self, value: str) -> None:
        """See `Told`."""
        self._player.secret(value)
        self._recorder.secret(value)

    def expected(self, action: Action) -> tuple[str, str] | None:
        return self._player.expected(action)

    def fault(self, where: str, error: BaseException) -> None:
        self._recorder.fault(where, error)
