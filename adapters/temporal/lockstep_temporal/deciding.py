"""Who answers what a forked workflow asks for: an edit, the record, a function of the user's, or nobody.

As for every fork (`lockstep.session.tail`), with what workflows have of their own: a timer is nobody's answer; a child
of the target's own workflows is driven, unless the record has the same one; a local activity that a timer has waited
for goes on; and where a framework puts clocks and ids into what it calls, calls are found by their place: the first
unused one of their kind and name that differs in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NoReturn

import msgspec

from lockstep.log.model import Status, Value
from lockstep.session import difference, refusal
from lockstep.session.call import Piece
from lockstep.session.forked import revealed
from lockstep.session.native.forking import Forking
from lockstep.session.policy import Declared
from lockstep.session.tail import Answer, Live
from lockstep.session.tape import Recorded as Taped
from lockstep_temporal.actors import Actor, Given
from lockstep_temporal.asks import Ask
from lockstep_temporal.branching import Asked, Branch, command_of
from lockstep_temporal.commands import Command
from lockstep_temporal.drift import Drifts
from lockstep_temporal.edited import Converter, Edits
from lockstep_temporal.live import Live as Functions
from lockstep_temporal.naming import Naming
from lockstep_temporal.past import Past
from lockstep_temporal.wording import Wording

_DRIVEN = Declared("read", "it is a workflow of the target's, which is driven here")
BY_POSITION = "matched by position"
_ALIKE = 8  # recorded calls that one is compared with by its place


class Decider:
    """Decides for all executions of a fork. `functions`: those that may run for real."""

    def __init__(
        self, calls: Forking, past: Past, branch: Branch, edits: Edits, converter: Converter, functions: Functions,
        naming: Naming, wording: Wording, has_workflow: Callable[[str], bool], drifts: Drifts,
    ) -> None:  # fmt: skip
        self.calls = calls
        self.past = past
        self.branch = branch
        self.edits = edits
        self.converter = converter
        self.functions = functions
        self.naming = naming
        self.wording = wording
        self.has_workflow = has_workflow
        self.drifts = drifts

    def __call__(self, actor: Actor, ask: Ask) -> Given | None:
        """See `stage.Hooks`. Raises Refusal."""
        if self.branch.goes_on(actor, ask):
            return None
        asked = self._asked(actor, ask)
        verdict = self.calls.tail.decide(
            actor.lane, asked.kind, asked.name, asked.key, asked.request, asked.declared, 0
        )
        if isinstance(verdict, Answer):
            return self._answered(actor, ask, asked, verdict)
        cancelled = self._given_up(asked) if not isinstance(verdict, Live) else None
        if cancelled is not None:
            self._begin(actor, ask, asked, "served")
            effect = self.past.effect(cancelled.begin.pos)
            before = self.past.answer(effect) if effect is not None else None
            if before is None:
                return Given(never=True, signals=self.past.signals(effect) if effect is not None else ())
            return msgspec.structs.replace(before, never=True)
        if not isinstance(verdict, Live):
            self._begin(actor, ask, asked, "")
            self.calls.refuse(_Kind(asked.kind), verdict, asked.name, asked.request)
        if ask.sort == "activity" and not self.functions.knows(ask.command.activity_type):
            self._missing(actor, ask, asked, "activity", ask.command.activity_type)
        if ask.sort == "child" and not self._drives(ask):
            self._missing(actor, ask, asked, "workflow", ask.command.workflow_type)
        if ask.sort in ("signal", "cancel"):
            self._begin(actor, ask, asked, "")
            self._refuse(f"{refusal.brief(asked.kind, asked.name, asked.request)} cannot be sent: a fork has no server")
        self._begin(actor, ask, asked, "live")
        return None

    def unanswered(self, actor: Actor, ask: Ask) -> None:
        """Nothing else happens any more, and the workflow waits for what has no answer in the record. A child is driven
        then, where it can be. Raises Refusal."""
        asked = self._asked(actor, ask)
        if ask.sort == "child" and self._drives(ask):
            return
        self._refuse(
            f"{refusal.brief(asked.kind, asked.name, asked.request)} would run for real\n"
            "it had no answer when this was recorded, and here the workflow waits for one\n"
            f"let it run:    --live {asked.name}"
        )

    # What is asked.

    def _asked(self, actor: Actor, ask: Ask) -> Asked:
        command = command_of(ask)
        said = self.wording.task()
        told = said.asked(command)
        said.finish()
        declared = told.declared or self.naming(command).declared
        strand = self.calls.later.strand(actor.lane)
        name, request, key = self.calls.later.recognised(strand, told.kind, told.name, told.request, told.matched)
        if ask.sort == "child" and self._drives(ask) and not self.branch.has(key):
            declared = _DRIVEN
        if not self._has(actor, key):
            key = self._by_position(told.kind, command, name, request, key)
        return Asked(told.kind, name, request, key, declared)

    def _drives(self, ask: Ask) -> bool:
        """Whether the target has a child's workflow."""
        return self.has_workflow(ask.command.workflow_type)

    def _has(self, actor: Actor, key: bytes) -> bool:
        """Whether the record has such a call past the cut, in this strand or another."""
        return key in self.branch.later_keys

    def _by_position(self, kind: str, command: Command, name: str, request: Value, key: bytes) -> bytes:
        """The key of the recorded call that stands in this one's place, if what differs is a framework's, or was found
        to be drawn anew."""
        for effect in islice(self.branch.later(kind, name), _ALIKE):
            asked: Any = self.calls.later.tape.request(effect).get("request")
            if isinstance(asked, dict) and asked.get("arguments", ()) is None:
                known = self.past.effect(effect.begin.pos)
                if known is not None and self.past.request(known) == command.request:
                    self.branch.take(effect)
                    return effect.begin.key
                continue
            paths = [path for path, _, _ in difference.each(asked, request)]
            if paths and all(self.drifts.volatile(command.kind, command.name, path) for path in paths):
                self.branch.take(effect)
                self.calls.note(BY_POSITION, f"{kind} {name}: {', '.join(paths[:3])} differs from what was recorded")
                return effect.begin.key
        return key

    # What it gets.

    def _answered(self, actor: Actor, ask: Ask, asked: Asked, verdict: Answer) -> Given:
        if verdict.edit is not None:
            self._begin(actor, ask, asked, verdict.how)
            effect = self.past.effect(verdict.edit.pos)
            before = self.past.answer(effect) if effect is not None else None
            piece = [*revealed(self.calls.later, verdict.edit.pieces)][-1]
            error = self.edits.objects.get(verdict.edit.pos)
            result = self.converter.result(actor.world, ask, piece, before.result if before else None, error)
            run_id = (before.run_id if before else "") or self.branch.run_id(actor, ask)
            after, started = (before.after, before.started) if before else (0, 0)
            return Given(result, after, run_id, started, signals=before.signals if before else ())
        assert verdict.effect is not None
        self.branch.take(verdict.effect)
        effect = self.past.effect(verdict.effect.begin.pos)
        assert effect is not None
        return self._recorded(actor, ask, asked, effect, verdict.how)

    def _recorded(self, actor: Actor, ask: Ask, asked: Asked, effect: Any, how: str) -> Given:
        self._begin(actor, ask, asked, how)
        given = self.past.answer(effect)
        if given is None and effect.end is not None and effect.end.what in (Status.OK, Status.ERROR):
            # The worker died in the workflow task that the answer came with: what it says is there, its bytes are not.
            piece = Piece(self.past.recorded.answer(effect), Status(effect.end.what))
            given = Given(self.converter.result(actor.world, ask, piece, None, None), 0, self.branch.run_id(actor, ask))
        if given is None:
            self._refuse(f"what was answered to {asked.kind} {asked.name} is not in the record")
        return given

    def _given_up(self, asked: Asked) -> Taped | None:
        """The recorded call like this one that the workflow cancelled before it had an answer, or ended without one:
        here too nothing answers, and the workflow does what it did."""
        for effect in self.branch.later(asked.kind, asked.name):
            ended = effect.pieces[-1][1] if effect.ended else None
            if effect.begin.key == asked.key and (ended is None or ended.what == Status.CANCELLED):
                self.branch.take(effect)
                return effect
        return None

    def _begin(self, actor: Actor, ask: Ask, asked: Asked, how: str) -> None:
        pos = self.branch.begin(actor, ask, asked, how)
        if how:
            self.calls.went("" if how == "live" else how, pos)

    def _missing(self, actor: Actor, ask: Ask, asked: Asked, what: str, name: str) -> NoReturn:
        self._begin(actor, ask, asked, "")
        self._refuse(
            f"{refusal.brief(asked.kind, asked.name, asked.request)} would run for real\n"
            f"and the target has no {what} of that name\n"
            f"bring it:      --target with a module or lockstep_temporal.Setup that has {name}"
        )

    def _refuse(self, text: str) -> NoReturn:
        self.calls.latch.refuse(text)
        self.calls.latch.raise_it()


class _Kind(msgspec.Struct, frozen=True):
    """What a refusal is told of."""

    kind: str
