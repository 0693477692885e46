"""What a recorded exchange is for the browser: an answer that it is given whole, one that comes in pieces, a failure.

Plain functions. The pieces of an exchange are a head, its body in one or more parts, and its end.
"""

from __future__ import annotations

import enum
from typing import Any

from lockstep.log.model import Kind, Status
from lockstep.session.call import Piece
from lockstep.session.tape import Recorded

EMPTY_RESPONSE = "net::ERR_EMPTY_RESPONSE"  # the one error that a server of ours makes, and nothing else does

_AT_ONCE = 20_000_000  # ns between the body of an answer and its end, where it came as one
LEFT = (Status.CANCELLED, Status.CLOSED)  # ends that the browser made itself


class Shape(enum.Enum):
    """How an exchange is answered."""

    HELD = enum.auto()  # not at all: it had no answer when its page left it
    WHOLE = enum.auto()
    STREAM = enum.auto()
    FAILED = enum.auto()


def shape(recorded: Recorded) -> Shape:
    """The shape of what came of a request. Reads no bodies."""
    kinds = [event.kind for _, event, _ in recorded.pieces]
    if not kinds:
        return Shape.HELD
    parts = kinds.count(Kind.PART)
    end = Status(recorded.pieces[-1][1].what) if recorded.ended else None
    if not parts:
        return Shape.FAILED if end is Status.ERROR else Shape.HELD
    if end is not Status.OK or parts > 2:
        return Shape.STREAM
    if parts < 2:
        return Shape.WHOLE  # a redirect above all, which would lead on from the address of the stream
    (_, last, _), (_, over, _) = recorded.pieces[-2:]
    return Shape.STREAM if over.at - last.at > _AT_ONCE else Shape.WHOLE


def leaves_off(recorded: Recorded) -> bool:
    """Whether an answer in pieces has no end of its own: it goes on until its page is gone."""
    return not recorded.ended or recorded.pieces[-1][1].what in LEFT


def error_of(piece: Piece) -> str:
    """What an exchange failed with, as the browser says it; "" where it did not."""
    value: Any = piece.value
    if piece.status is not Status.ERROR or not isinstance(value, dict):
        return ""
    said = value.get("error") or next(iter(value.get("args") or ()), "")
    return said if isinstance(said, str) else ""
