"""How what payloads hold is written: in clear, or as the user's codec has it.

With a codec nothing that it encrypts is written in clear: the payloads in tasks, requests and values are written as the
codec encodes them, names that come out of them are not used, and match keys, which are of the decoded content, are made
with a key that stays in the run's vault.

    wording = Clear() or Coded(codec, key)
    with wording.task() as written:
        written.message(activation)      a message as data
        written.asked(command)           kind, name, request and match key of a command as an effect
        written.value(answer), written.key(normal)
    # the entries of encoded payloads are filled in at the end of the block
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Protocol

import msgspec
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload

from lockstep.log import canonical
from lockstep.log.model import Value
from lockstep.log.untapped import urandom
from lockstep.log.vault import Vault
from lockstep.session.policy import Declared
from lockstep.session.secrets import KEPT
from lockstep_temporal import commands, layout, naming
from lockstep_temporal.awaiting import wait
from lockstep_temporal.commands import Answered, Command
from lockstep_temporal.naming import Named
from lockstep_temporal.protos import (
    encoded_value,
    is_encoded,
    json_payload,
    of_payload_value,
    to_value,
)

type Namer = Callable[[Command], Named]

CODEC = 1.0  # seconds that it may take: a workflow's thread waits for it
_KEY = 32
_KEY_NAME = f"{KEPT}-temporal"  # of a kind that stands nowhere in a text


class Asked(msgspec.Struct, frozen=True):
    """A command as an effect.

    request   as it is stored
    matched   what its match key is made of, as `Call.ask` takes it
    """

    kind: str
    name: str
    request: Value
    matched: Value
    declared: Declared | None = None


class Written(Protocol):
    """What is written of one workflow task. Values may be incomplete until its `finish`."""

    def message(self, message: Message) -> Value: ...
    def asked(self, command: Command) -> Asked: ...
    def answers(self, activation: Any) -> tuple[Answered, ...]: ...
    def outcome(self, answer: Answered) -> Value: ...
    def ending(self, completion: Any, given: Sequence[Command], type_: str) -> tuple[str, Value] | None: ...
    def key(self, normal: Value) -> Value: ...
    def finish(self) -> None: ...


class Wording(Protocol):
    """How the tasks of a run are written."""

    coded: bool

    def task(self) -> Written: ...


class Clear:
    """As it is."""

    coded = False

    def __init__(self, namer: Namer = naming.effect_of) -> None:
        self._namer = namer

    def task(self) -> Clear:
        return self

    def message(self, message: Message) -> Value:
        return to_value(message)

    def asked(self, command: Command) -> Asked:
        named = self._namer(command)
        return Asked(named.kind, named.name, command.request, command.request, named.declared)

    def answers(self, activation: Any) -> tuple[Answered, ...]:
        return commands.answers_of(activation)

    def outcome(self, answer: Answered) -> Value:
        return layout.outcome(answer)

    def ending(self, completion: Any, given: Sequence[Command], type_: str) -> tuple[str, Value] | None:
        return layout.ending(given, type_)

    def key(self, normal: Value) -> Value:
        return normal

    def finish(self) -> None:
        """Everything is written already."""


class Coded:
    """As the user's codec has it.

    key  of the run, from its vault: what match keys are made with
    """

    coded = True

    def __init__(self, codec: Any, key: bytes, namer: Namer = naming.effect_of) -> None:
        self.codec = codec
        self._key = key
        self._namer = namer

    def task(self) -> CodedTask:
        return CodedTask(self, self._namer)

    def keyed(self, value: Value) -> Value:
        """What stands for a value where only its sameness counts."""
        return {"keyed": blake2b(canonical.canonical(value), digest_size=16, key=self._key).hexdigest()}

    def payload(self, entry: Mapping[str, Any]) -> Payload:
        """The payload of an entry, decoded: what `recorded.Recorded` takes as `decode`."""
        payload = of_payload_value(entry)
        if not is_encoded(dict(entry)):
            return payload
        found: Payload = wait(lambda: self.codec.decode([payload]))[0]
        return found


class CodedTask:
    """What is written of one workflow task."""

    def __init__(self, wording: Coded, namer: Namer) -> None:
        self._wording = wording
        self._namer = namer
        self._due: list[tuple[Payload, dict[str, Value]]] = []

    def message(self, message: Message) -> Value:
        return to_value(message, self._later)

    def asked(self, command: Command) -> Asked:
        named = self._namer(command)
        (stored,) = commands.read_commands([command.message], self._later)
        # A name that a framework's request says was encrypted with it.
        declared = named.declared
        return Asked(named.kind, command.name, stored.request, self._wording.keyed(command.request), declared)

    def answers(self, activation: Any) -> tuple[Answered, ...]:
        return commands.answers_of(activation, self._later)

    def outcome(self, answer: Answered) -> Value:
        if answer.failure is None:
            return answer.value
        return layout.failure_form(answer.failure, write=self.message)

    def ending(self, completion: Any, given: Sequence[Command], type_: str) -> tuple[str, Value] | None:
        if not any(each.kind in commands.ENDS for each in given):
            return None
        return layout.ending(commands.commands_of(completion, self._later), type_, self.message)

    def key(self, normal: Value) -> Value:
        return self._wording.keyed(normal)

    def finish(self) -> None:
        """Has the codec encode all payloads so far, equal ones once."""
        if not self._due:
            return
        kinds: dict[bytes, Payload] = {}
        for payload, _ in self._due:
            kinds.setdefault(payload.SerializeToString(deterministic=True), payload)
        encoded = wait(lambda: self._wording.codec.encode(list(kinds.values())), CODEC)
        made = dict(zip(kinds, encoded, strict=True))
        for payload, entry in self._due:
            entry.update(encoded_value(made[payload.SerializeToString(deterministic=True)]))  # type: ignore[arg-type]
        self._due = []

    def _later(self, payload: Payload) -> Value:
        kept = Payload()
        kept.CopyFrom(payload)
        entry: dict[str, Value] = {}
        self._due.append((kept, entry))
        return entry


def codec_of(converter: Any, namespace: str, workflow_id: str) -> Any:
    """The codec of a DataConverter for a workflow's payloads, None where it has none."""
    if converter is None or converter.payload_codec is None:
        return None
    from temporalio.converter import WorkflowSerializationContext

    context = WorkflowSerializationContext(namespace=namespace, workflow_id=workflow_id)
    return converter.with_context(context).payload_codec


def run_key(vault: Vault | None) -> bytes:
    """The key that match keys of a run with a codec are made with: it is drawn with the run, and stays in its vault.
    Without a vault it is another one each time, and nothing matches."""
    if vault is None:
        return urandom(_KEY)
    known = vault.read()[0].get(_KEY_NAME)
    if known is None:
        known = urandom(_KEY)
        vault.put(_KEY_NAME, known)
    return known


def of_run(converter: Any, meta: Mapping[str, Any], vault: Vault | None, namer: Namer = naming.effect_of) -> Wording:
    """How a recorded run is gone on with. `converter`: the DataConverter of its target."""
    codec = _codec(converter, meta)
    return Clear(namer) if codec is None else Coded(codec, run_key(vault), namer)


def _codec(converter: Any, meta: Mapping[str, Any]) -> Any:
    if not meta.get("coded"):
        return None
    native = layout.native(dict(meta))
    return codec_of(converter, str(native.get("namespace", "")), str(native.get("workflow_id", "")))


def stored(value: Value, converter: Any, meta: Mapping[str, Any]) -> Value:
    """A value of the user's, such as an edit, as it is written in a run."""
    codec = _codec(converter, meta)
    if codec is None:
        return value
    return encoded_value(wait(lambda: codec.encode([json_payload(value)]))[0])
