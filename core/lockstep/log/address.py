"""Addresses: `RUN[/THREAD][@BRANCH][:STEP[.EFFECT[/CHILD]]]`, as in `refund@try-2:7.1`, and `RUN…:NAME#N` of a call by
its name, as in `refund:get_order#2`.

A name that holds `%`, `@`, `:` or (inside one part) `/` stands in an address with these percent-encoded. The
name of a run may itself have parts (`langgraph/t-91`), so where RUN ends and THREAD begins is for the
store to say: `split` takes the longest run there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from lockstep.errors import AddressError, Code

MAIN = "main"
LONGEST = 200  # characters of a branch's name

_FORM = re.compile(
    r"(?P<path>[^@:]+)(@(?P<branch>[^@:/]+))?"
    r"(:(?:(?P<step>\d{1,9})(\.(?P<effect>\d{1,9})(/(?P<child>\d{1,9}(/\d{1,9})*))?)?|(?P<call>[^@:]+#\d{1,9})))?",
    re.ASCII,
)
CALL = re.compile(r"(?P<name>.+)#(?P<nth>\d{1,9})", re.ASCII)
_RESERVED = re.compile("[%@:/\x00-\x20\x7f]")
_ENCODED = re.compile("%([0-9A-Fa-f]{2})")


class Address(msgspec.Struct, frozen=True):
    """A parsed address. `path` is RUN or RUN/THREAD as written; `child` numbers nested calls, outermost first. `call`:
    NAME#N as written, in the place of numbers; what is found in a store has numbers."""

    path: str
    branch: str = MAIN
    step: int | None = None
    effect: int | None = None
    child: tuple[int, ...] = ()
    call: str = ""

    def __str__(self) -> str:
        branch = "" if self.branch == MAIN else f"@{quote(self.branch)}"
        step = (f":{self.call}" if self.call else "") if self.step is None else f":{self.step}"
        effect = "" if self.effect is None else f".{self.effect}"
        return self.path + branch + step + effect + "".join(f"/{number}" for number in self.child)


def parse(text: str) -> Address:
    """Reads an address. Raises AddressError LS206 where it is none."""
    match = _FORM.fullmatch(text)
    if match is None or match["path"].startswith("/") or match["path"].endswith("/"):
        raise AddressError(Code.NO_ADDRESS, f"not an address: {text!r}. One looks like refund:7.1 or refund@try-2:7")
    child = match["child"]
    return Address(
        match["path"],
        unquote(match["branch"] or MAIN),
        int(match["step"]) if match["step"] is not None else None,
        int(match["effect"]) if match["effect"] is not None else None,
        tuple(int(number) for number in child.split("/")) if child is not None else (),
        match["call"] or "",
    )


def named(call: str) -> tuple[str, int]:
    """The name and the number that NAME#N has. Raises AddressError LS206."""
    match = CALL.fullmatch(call)
    if match is None or int(match["nth"]) < 1:
        raise AddressError(Code.NO_ADDRESS, f"not a call: {call!r}. The first one of a name is called get_order#1")
    return unquote(match["name"]), int(match["nth"])


def split(address: Address, exists: Callable[[str], bool]) -> tuple[str, str]:
    """The run's name and the thread's ("" for none), by what runs exist. Raises AddressError LS205."""
    parts = address.path.split("/")
    for length in range(len(parts), 0, -1):
        run = "/".join(parts[:length])
        if exists(run):
            return run, "/".join(unquote(part) for part in parts[length:])
    raise AddressError(Code.NO_RUN, f"no run named {address.path}. See: lockstep runs")


def called(run: str, branch: str) -> str:
    """How a branch of a run is called: as in an address, main by the run's name alone."""
    return run if branch == MAIN else f"{run}@{quote(branch)}"


def is_branch(name: str) -> bool:
    """Whether a branch can be called so."""
    return bool(name) and len(name) <= LONGEST and name.isprintable() and not set(name) & set("@:/")


def quote(part: str) -> str:
    """A name as one part of an address, or of a run's name: an id with `/` or `:` stays one part."""
    return _RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", part)


def unquote(part: str) -> str:
    """The reverse of `quote`."""
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)), part)
