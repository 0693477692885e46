"""Runs whose payloads are as a codec of the user's has them: what decodes them, and what is said where nothing can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from temporalio.api.common.v1 import Payload

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep.log.store import RunReader
from lockstep_temporal import layout
from lockstep_temporal.awaiting import wait
from lockstep_temporal.decoding import encodings
from lockstep_temporal.prepared import prepare
from lockstep_temporal.protos import ToPayload, is_encoded, of_payload_value, plain
from lockstep_temporal.recorded import Recorded
from lockstep_temporal.setup import setup_of
from lockstep_temporal.wording import codec_of

_SAY = "Give the data converter that the workflow ran with: data_converter=, or in a lockstep_temporal.Setup"


def decoding(recorded: Recorded, converter: Any, address: str) -> ToPayload | None:
    """What `Recorded` takes as its `decode`, by the data converter of the target; None for a run in clear.

    Raises TargetError LS402 where the run is encoded and the converter has no codec. What is returned raises it where
    the codec is another one.
    """
    if not recorded.meta.get("coded"):
        return None
    native = recorded.native
    codec = codec_of(converter, str(native.get("namespace")), str(native.get("workflow_id")))
    if codec is not None:
        return _Decoding(codec, _known(converter), address)
    if recorded.origin != layout.HISTORY:
        raise TargetError(
            Code.BAD_TARGET, f"payloads of {address} were encoded by a codec, and the target has none. {_SAY}"
        )
    return None


def plainly(reader: RunReader, target: Any, own: Mapping[str, Any]) -> Callable[[Value], Value] | None:
    """What makes plain values of what is stored of a run, by a target's data converter; None for a run in clear.

    Raises TargetError LS402 where the target has no codec.
    """
    recorded = Recorded(reader)
    if not recorded.meta.get("coded"):
        return None
    with prepare(setup_of(target, own)) as prepared:
        decode = decoding(recorded, prepared.data_converter, reader.info.name)

    def plain_of(value: Value) -> Value:
        if isinstance(value, list):
            return [plain_of(each) for each in value]
        if not isinstance(value, dict):
            return value
        if decode is not None and is_encoded(value):
            return plain(decode(value))
        return {name: plain_of(each) for name, each in value.items()}

    return plain_of


def check(events: Any, converter: Any, address: str) -> None:
    """Whether a history's events can be read by a converter without a codec. Raises TargetError LS402."""
    if converter.payload_codec is not None:
        return
    known = _known(converter)
    strange = sorted(encodings(events) - known) if known else []
    if strange:
        raise TargetError(
            Code.BAD_TARGET,
            f"the history of {address} has payloads of encoding {', '.join(strange)}, and the target's data converter"
            f" knows neither that nor has a codec for it. {_SAY}",
        )


class _Decoding:
    def __init__(self, codec: Any, known: frozenset[str], address: str) -> None:
        self._codec = codec
        self._known = known
        self._address = address

    def __call__(self, entry: Mapping[str, Any]) -> Payload:
        payload = of_payload_value(entry)
        if not is_encoded(dict(entry)):
            return payload
        try:
            (found,) = wait(lambda: self._codec.decode([payload]))
        except Exception as error:
            raise self._wrong(f"{type(error).__name__}: {error}") from error
        encoding = found.metadata.get("encoding", b"").decode("utf-8", "replace")
        if self._known and encoding not in self._known:
            raise self._wrong(f"what it gives has encoding {encoding!r}")
        made: Payload = found
        return made

    def _wrong(self, why: str) -> TargetError:
        return TargetError(
            Code.BAD_TARGET, f"the target's codec cannot decode what {self._address} was recorded with ({why}). {_SAY}"
        )


def _known(converter: Any) -> frozenset[str]:
    """The encodings that the payload converter knows; none where it does not say."""
    converters = getattr(converter.payload_converter_class(), "converters", None)  # that of the SDK is wrapped
    if not isinstance(converters, Mapping):
        return frozenset()
    return frozenset(key.decode("utf-8", "replace") for key in converters)
