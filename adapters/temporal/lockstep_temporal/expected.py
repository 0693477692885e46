"""Whether today's code gives the commands that a history has: kind, order, type, id, arguments, timeouts, retry policy,
result. What the SDK's Replayer checks of it is kind, order, type and id only.

    expecting = Expecting(events)
    for step …:
        found = expecting.step(events of the step, pairs)        # None where they say the same

Both sides are made alike first: what the server filled in is computed for the code's commands too (`filling`), and what
it is never told of is left out: what was begun and cancelled in one task, requests that are abandoned, local
activities, of which there are only markers. Steps are given in their order, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.errors import Code
from lockstep_temporal.compare import Drift, Found, Volatile, compare
from lockstep_temporal.filling import filled
from lockstep_temporal.rebuilt import Origins, Rebuilt, commands_in
from lockstep_temporal.tasks import COMMANDS, kind_of
from lockstep_temporal.walk import Pair, Verdict

# Which family a command begins, and the field of its number.
_FAMILY = {
    "schedule_activity": "activity", "schedule_local_activity": "activity", "start_timer": "timer",
    "start_child_workflow_execution": "child", "signal_external_workflow_execution": "signal_external",
    "request_cancel_external_workflow_execution": "cancel_external",
}  # fmt: skip
_CANCELS = {
    "request_cancel_activity": ("activity", "seq"), "request_cancel_local_activity": ("activity", "seq"),
    "cancel_timer": ("timer", "seq"), "cancel_child_workflow_execution": ("child", "child_workflow_seq"),
    "cancel_signal_workflow": ("signal_external", "seq"),
}  # fmt: skip
_NEVER = frozenset({"schedule_local_activity", "request_cancel_local_activity", "cancel_signal_workflow"})
_ABANDONS = {"schedule_activity": 2, "start_child_workflow_execution": 0}  # enums of how a cancellation is waited for


class Differs(msgspec.Struct, frozen=True):
    """The first difference of a step. `pair`: which of its pairs has the command, or, where none is there, which was
    the last; `found.index` is that of the command in its completion."""

    found: Found
    pair: int


class Expecting:
    """One history, being compared step by step. `events`: as the workflow's code sees payloads, so decoded."""

    def __init__(self, events: Sequence[Any]) -> None:
        self.started = events[0].workflow_execution_started_event_attributes
        self._origins = Origins()
        self._recorded: _Sent = _Sent()
        self._now: _Sent = _Sent()
        self._ahead: list[WorkflowCommand] = []  # that the history has later, if at all
        self._accepted: set[str] = set()
        self._abandoned: set[tuple[str, int]] = set()
        self._over: set[tuple[str, int]] = set()  # what has been answered: core asks for nothing to be cancelled then
        self._locals: dict[int, str] = {}  # types of local activities that the code has begun, by number
        self._memo: dict[str, Any] = dict(self.started.memo.fields)
        self._search: dict[str, Any] = dict(self.started.search_attributes.indexed_fields)

    def step(
        self,
        events: Iterable[Any],
        pairs: Sequence[Pair],
        volatile: Volatile | None = None,
        drifts: list[Drift] | None = None,
    ) -> Differs | None:
        """Compares a step. `volatile` and `drifts` as of `compare`."""
        rebuilt = commands_in((event for event in events if kind_of(event) in COMMANDS), self._origins)
        failed = next((n for n, (_, completion) in enumerate(pairs) if completion.HasField("failed")), None)
        if failed is not None:
            recorded = self._completion(_alike(each.message) for each in rebuilt)
            found = compare(recorded, pairs[failed][1], volatile, drifts)
            return None if found is None else Differs(found, failed)
        wrong = self._differing_local(rebuilt, pairs)
        if wrong is not None:
            return wrong
        was = self._as_recorded(rebuilt, pairs)
        places, now = self._as_now(rebuilt, pairs)
        now = self._in_time(places, now, len(was), pairs)
        found = compare(self._completion(was), self._completion(now), volatile, drifts)
        if found is None:
            return None
        last = max(len(pairs) - 1, 0)
        pair, index = places[found.index] if 0 <= found.index < len(places) else (last, -1)
        return Differs(msgspec.structs.replace(found, index=index), pair)

    def _completion(self, commands: Iterable[WorkflowCommand]) -> WorkflowActivationCompletion:
        made = WorkflowActivationCompletion()
        made.successful.SetInParent()
        made.successful.commands.extend(commands)
        return made

    def _in_time(
        self, places: list[tuple[int, int]], now: list[WorkflowCommand], count: int, pairs: Sequence[Pair]
    ) -> list[WorkflowCommand]:  # fmt: skip
        """The commands that may be in the history by now. A worker that is not through with its local activities within
        a workflow task gives the commands behind their markers with the next one, which may not have been yet."""
        given = [*self._ahead, *now]
        places[:0] = [(0, -1)] * len(self._ahead)
        self._ahead = []
        local = next((n for n, pair in enumerate(pairs) if _resolves_locally(pair)), len(pairs))
        if len(given) > count and places[count][0] >= local:
            self._ahead = given[count:]
            return given[:count]
        return given

    # What the history has.

    def _as_recorded(self, rebuilt: Sequence[Rebuilt], pairs: Sequence[Pair]) -> list[WorkflowCommand]:
        called = {patch.patch_id for patch in _patches(_all(pairs))}
        found = []
        for each in rebuilt:
            command = each.message
            which = command.WhichOneof("variant")
            if which in _NEVER:
                continue
            patch = command.set_patch_marker
            if which == "set_patch_marker" and patch.deprecated and patch.patch_id not in called:
                continue  # a call of deprecate_patch may go at any time
            found.append(self._recorded.numbered(_alike(command)))
        return found

    # What the code does now.

    def _as_now(
        self, rebuilt: Sequence[Rebuilt], pairs: Sequence[Pair]
    ) -> tuple[list[tuple[int, int]], list[WorkflowCommand]]:
        there = {patch.patch_id for patch in _patches(each.message for each in rebuilt)}
        places, found = [], []
        unsent = _unsent(pairs)
        for number, (activation, completion) in enumerate(pairs):
            self._over |= _answered(activation)
            for index, command in enumerate(completion.successful.commands):
                if not self._is_told(command, activation, unsent, there):
                    continue
                made = self._continued(filled(command, self.started))
                places.append((number, index))
                found.append(self._now.numbered(_alike(made)))
                self._follow(command)
        return places, found

    def _is_told(
        self, command: WorkflowCommand, activation: Any, unsent: set[tuple[int, str, int]],
        there: set[str],
    ) -> bool:  # fmt: skip
        """Whether the server is told of a command."""
        which = command.WhichOneof("variant") or ""
        if which in _NEVER:
            return False
        if which in _FAMILY:
            said = getattr(command, which)
            at = _FAMILY[which], said.seq
            if which in _ABANDONS and said.cancellation_type == _ABANDONS[which]:
                self._abandoned.add(at)
            return (activation.history_length, *at) not in unsent
        if which in _CANCELS:
            family, field = _CANCELS[which]
            at = family, getattr(getattr(command, which), field)
            return at not in self._abandoned | self._over and (activation.history_length, *at) not in unsent
        if which == "set_patch_marker":
            return not command.set_patch_marker.deprecated or command.set_patch_marker.patch_id in there
        if which == "update_response":
            said = command.update_response
            if said.WhichOneof("response") == "accepted":
                self._accepted.add(said.protocol_instance_id)
            return said.WhichOneof("response") != "rejected" or said.protocol_instance_id in self._accepted
        return which != "respond_to_query"

    def _continued(self, command: WorkflowCommand) -> WorkflowCommand:
        """Whoever continues as new takes memo and search attributes along, unless it says others."""
        if command.HasField("continue_as_new_workflow_execution"):
            said: Any = command.continue_as_new_workflow_execution
            if not said.memo:
                for name, payload in self._memo.items():
                    said.memo[name].CopyFrom(payload)
            there = _map(said.search_attributes)
            if not there:
                for name, payload in self._search.items():
                    there[name].CopyFrom(payload)
        return command

    def _follow(self, command: WorkflowCommand) -> None:
        if command.HasField("upsert_workflow_search_attributes"):
            said: Any = command.upsert_workflow_search_attributes
            there = _map(said.search_attributes)
            self._search |= {name: there[name] for name in there}

    # Local activities.

    def _differing_local(self, rebuilt: Sequence[Rebuilt], pairs: Sequence[Pair]) -> Differs | None:
        """A marker says which local activity has ended; neither when it began nor with which arguments."""
        for command in _all(pairs):
            if command.HasField("schedule_local_activity"):
                said = command.schedule_local_activity
                self._locals[said.seq] = said.activity_type
        for each in rebuilt:
            if not each.message.HasField("schedule_local_activity"):
                continue
            marker = each.message.schedule_local_activity
            now = self._locals.get(marker.seq)
            if now == marker.activity_type:
                continue
            name, last = marker.activity_type, max(len(pairs) - 1, 0)
            if now is None:
                reason = f"local_activity {name} is missing here"
                return Differs(Found(Code.MISSING, reason, -1, "local_activity", name, expected=name), last)
            reason = f"local_activity {now} stands where local_activity {name} was recorded"
            return Differs(Found(Code.REQUEST, reason, -1, "local_activity", name, "", name, now), last)
        return None


class _Sent:
    """Numbers the commands of each family that were sent, from 1: what was not sent takes a number too, and of what
    the program has named itself it is in no history."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._counts: dict[str, int] = {}

    def numbered(self, command: WorkflowCommand) -> WorkflowCommand:
        which = command.WhichOneof("variant") or ""
        said: Any = getattr(command, which) if which else None
        if which in _FAMILY:
            family = _FAMILY[which]
            self._counts[family] = said.seq if family == "timer" else self._counts.get(family, 0) + 1
            self._numbers[family, said.seq] = self._counts[family]
            said.seq = self._counts[family]
        elif which in _CANCELS:
            family, field = _CANCELS[which]
            setattr(said, field, self._numbers.get((family, getattr(said, field)), 0))
        return command


def beyond(verdict: Verdict) -> Found:
    """What core has against the code, where nothing here has."""
    code = Code.END if verdict.code else Code.REQUEST
    where = f" (event {verdict.event_id})" if verdict.event_id else ""
    return Found(code, f"Temporal's own replay stops: {verdict.told}{where}", -1, "workflow task", "")


def _alike(command: WorkflowCommand) -> WorkflowCommand:
    """A copy without what a history and a command say in different ways."""
    made = WorkflowCommand()
    made.CopyFrom(command)
    which = made.WhichOneof("variant") or ""
    clean = _CLEAN.get(which)
    if clean is not None:
        clean(getattr(made, which))
    if made.HasField("user_metadata") and not made.user_metadata.ByteSize():
        made.ClearField("user_metadata")
    if "event_group_markers" in made.DESCRIPTOR.fields_by_name:
        made.ClearField("event_group_markers")
    return made


def _typeless(said: Any) -> None:
    """The server notes the type of a search attribute that the program has not said."""
    there = _map(said.search_attributes)
    for name in there:
        there[name].metadata.pop("type", None)


def _patch(said: Any) -> None:
    said.ClearField("deprecated")  # a patch becomes a deprecated one without being another


def _own_reason(said: Any) -> None:
    """Core tells the server the reason with who it is that asks."""
    said.reason = said.reason.rpartition(" with reason: ")[2]


def _reasonless(said: Any) -> None:
    said.ClearField("reason")  # core of some versions does not pass it on


_CLEAN: dict[str, Callable[[Any], None]] = {
    "upsert_workflow_search_attributes": _typeless,
    "start_child_workflow_execution": _typeless,
    "continue_as_new_workflow_execution": _typeless,
    "set_patch_marker": _patch,
    "cancel_child_workflow_execution": _reasonless,
    "request_cancel_external_workflow_execution": _own_reason,
}


def _map(attributes: Any) -> Any:
    """The payloads of search attributes, by name. Before 1.30 a command had them without a message around."""
    return attributes.indexed_fields if hasattr(attributes, "indexed_fields") else attributes


def _all(pairs: Iterable[Pair]) -> Iterable[WorkflowCommand]:
    return (command for _, completion in pairs for command in completion.successful.commands)


_ANSWERS = {
    "resolve_activity": "activity", "fire_timer": "timer", "resolve_child_workflow_execution": "child",
    "resolve_signal_external_workflow": "signal_external",
}  # fmt: skip


def _answered(activation: Any) -> set[tuple[str, int]]:
    """Family and number of the commands that an activation brings the last answer to."""
    found = set()
    for job in activation.jobs:
        which = job.WhichOneof("variant")
        if which in _ANSWERS and not job.resolve_activity.result.HasField("backoff"):
            found.add((_ANSWERS[which], getattr(job, which).seq))
    return found


def _resolves_locally(pair: Pair) -> bool:
    return any(job.HasField("resolve_activity") and job.resolve_activity.is_local for job in pair[0].jobs)


def _patches(commands: Iterable[WorkflowCommand]) -> list[Any]:
    return [command.set_patch_marker for command in commands if command.HasField("set_patch_marker")]


def _unsent(pairs: Sequence[Pair]) -> set[tuple[int, str, int]]:
    """What was begun and cancelled in one workflow task: by the task's history length, family and number."""
    begun: set[tuple[int, str, int]] = set()
    found: set[tuple[int, str, int]] = set()
    for activation, completion in pairs:
        for command in completion.successful.commands:
            which = command.WhichOneof("variant") or ""
            if which in _FAMILY:
                begun.add((activation.history_length, _FAMILY[which], getattr(command, which).seq))
            elif which in _CANCELS:
                family, field = _CANCELS[which]
                found.add((activation.history_length, family, getattr(getattr(command, which), field)))
    return begun & found
