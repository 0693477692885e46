"""One probe of a bisect as a value: all that another process needs to make it, on this machine or on another one.

It names things and holds none: the store is given apart, since it may lie elsewhere where the probe is made. Who makes
one is `lockstep.performing`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep.debugger.cuts import Cut
from lockstep.session.policy import Tail


class Order(msgspec.Struct, frozen=True):
    """A probe to be made.

    run        address of the run, without a step: `refund`, `refund@try-2`, `langgraph/t-91`
    cut        where it leaves, and what it is given
    branch     the name of the branch that it makes
    command    what runs in the place of the recorded command; empty for the recorded one
    target     `module:name` to call in the process that performs it; "" for a command
    directory  where a target and a command that was given are looked for, and the project's rules; "" for where the
               process is that performs it
    live       names and patterns of calls that may run for real; `tail` as in `lockstep.fork`
    trust      the recorded command of an imported run may be run
    isolate    the command is kept off the network
    debug      tracebacks of ours are shown
    """

    run: str
    cut: Cut
    branch: str
    command: tuple[str, ...] = ()
    target: str = ""
    directory: str = ""
    live: tuple[str, ...] = ()
    tail: Tail = ""
    trust: bool = False
    isolate: bool = False
    debug: bool = False


def encode(order: Order) -> bytes:
    """An order for another process of ours."""
    return msgspec.msgpack.encode(order)


def decode(data: bytes) -> Order:
    """The reverse."""
    # By hand: msgspec makes no values that may be text as well as bytes, which answers are.
    told: Any = msgspec.msgpack.decode(data)
    words = {name: tuple(told[name]) for name in ("command", "live")}
    return Order(**{**told, **words, "cut": Cut(**told["cut"])})
