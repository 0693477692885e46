"""Commands that wait for their answers: what follows of one that is asked for, tried again or cancelled. All pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lockstep.log.model import Value
from lockstep_temporal import commands, layout
from lockstep_temporal.commands import Answered, Command
from lockstep_temporal.wording import Asked

type At = tuple[str, int]  # a command: its family and number


class Open(msgspec.Struct):
    """A command that waits for its answer.

    pos      of its BEGIN: negative where that was written here, which is as good; 0 where somebody else writes it
    key      its match key
    local    whether it is a local activity, and `backoff` which attempt of it begins next once a timer has fired
    cancel   how its end is waited for once it is cancelled (`layout.cancellation`): core answers at once if it is not
    id       of the activity, where that is not its number
    """

    kind: str
    name: str
    pos: int = 0
    key: bytes = b""
    local: bool = False
    backoff: tuple[int, int, int] | None = None
    cancel: str = ""
    id: str = ""

    @property
    def on(self) -> bool:
        """Whether a local activity of the workflow task that is on."""
        return self.local and self.backoff is None


def backoff_of(answer: Answered) -> tuple[int, int, int]:
    """Which attempt of a local activity begins once its timer has fired, and when the first one was asked for."""
    said = answer.variant.result.backoff
    return said.attempt, said.original_schedule_time.seconds, said.original_schedule_time.nanos


def attempt_of(command: Command) -> tuple[int, int, int]:
    """The same of the command that begins it."""
    said = command.variant
    return said.attempt, said.original_schedule_time.seconds, said.original_schedule_time.nanos


def waiting(command: Command, asked: Asked) -> Open:
    """A command that has been given."""
    if commands.FAMILY[command.kind] != commands.ACTIVITY:
        return Open(asked.kind, asked.name, cancel=layout.cancellation(command))
    said = command.variant
    own = said.activity_id if said.activity_id != str(command.seq) else ""
    local = command.kind == commands.LOCAL_ACTIVITY
    return Open(asked.kind, asked.name, local=local, cancel=layout.cancellation(command), id=own)


def runs_locally(open_: Mapping[At, Open]) -> bool:
    return any(each.on for each in open_.values())


def goes_on(open_: Mapping[At, Open], given: Sequence[Command]) -> bool:
    """Whether another activation follows within this workflow task: local activities are on, or core says at once that
    an activity is cancelled, since the workflow does not wait for that."""
    if runs_locally(open_):
        return True
    unsent = layout.unsent(given)
    cancelled = [(layout.CANCELS[each.kind], each.seq) for each in given if each.kind in _ANSWERED_AT_ONCE]
    return any(at in unsent or (at in open_ and open_[at].cancel in ("try", "abandon")) for at in cancelled)


_ANSWERED_AT_ONCE = frozenset({"cancel_activity", "cancel_child"})  # unless their end is waited for


def target(command: Command, open_: Mapping[At, Open]) -> str:
    """The name of what a command cancels."""
    family = layout.CANCELS.get(command.kind)
    found = open_.get((family, command.seq)) if family is not None else None
    return found.name if found is not None else ""


def targets(given: Sequence[Command], open_: Mapping[At, Open]) -> dict[At, str]:
    found: dict[At, str] = {}
    for command in given:
        family = layout.CANCELS.get(command.kind)
        meant = open_.get((family, command.seq)) if family is not None else None
        if family is not None and meant is not None and not meant.local and meant.cancel != "abandon":
            found[family, command.seq] = meant.name
    return found


def tried(command: Command, open_: Mapping[At, Open]) -> At | None:
    """The local activity of which a command begins the next attempt."""
    attempt = attempt_of(command)
    if attempt[0] < 2:
        return None
    local = [(at, each) for at, each in open_.items() if each.local]
    same = [at for at, each in local if each.backoff == attempt]
    # Of one that another process has begun, the log does not say the attempt.
    return next(iter(same or (at for at, each in local if each.name == command.name and each.backoff is None)), None)


def found_open(effect: Any, body: Value) -> Open:
    """A command that waits, as the log has it."""
    said: Mapping[str, Any] = body if isinstance(body, dict) else {}
    return Open(
        effect.kind, effect.name, effect.begin.pos, effect.begin.key, said.get("local") is True,
        cancel=str(said.get("cancellation", "")), id=str(said.get("id", "")),
    )  # fmt: skip
