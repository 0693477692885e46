"""Every error that Lockstep raises, each with a stable code.

A code is `LS` and three digits. The hundreds say whose fault it is:

* 1xx  the replayed program is not the recorded run (`Divergence`)
* 2xx  the store, a run or an address (`StoreError`, `AddressError`), or something not covered
* 3xx  the policy forbids a call (`Refused`)
* 4xx  the target cannot be imported, started or used as asked (`TargetError`), or an adapter (`AdapterError`)

`docs/troubleshooting.md` has an entry for each code.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec


class Code(enum.StrEnum):
    """The stable codes. A code, once released, keeps its meaning."""

    REQUEST = "LS101"  # the next call of the lane is another one than recorded
    ORDER = "LS102"  # the call was recorded, but not at this place of its lane
    EXTRA = "LS103"  # the lane makes a call after its last recorded one
    MISSING = "LS104"  # a recorded call was never made
    READS = "LS105"  # more or fewer clock or random reads, or files opened, than recorded
    OUTPUT = "LS106"  # the program printed something else
    END = "LS107"  # another exit status, exception or result
    PAST_END = "LS108"  # a stream was read further than it was recorded
    STUCK = "LS109"  # no lane made progress within the deadline
    UNSERVABLE = "LS110"  # the recorded outcome cannot be rebuilt here
    ENVIRONMENT = "LS111"  # this environment cannot take the recorded answer
    STATE = "LS112"  # a checkpoint, or what a task wrote, holds something else than recorded

    NOT_A_STORE = "LS201"
    DAMAGED = "LS202"
    UNWRITABLE = "LS203"
    TOO_NEW = "LS204"
    NO_RUN = "LS205"
    NO_ADDRESS = "LS206"
    UNSTORABLE = "LS207"
    NO_KEY = "LS208"
    NOT_COVERED = "LS210"
    BAD_EDIT = "LS211"
    NO_PLACE = "LS212"
    UNEDITABLE = "LS213"
    BAD_FILE = "LS214"  # a file of a framework's that cannot be imported
    NO_FORMAT = "LS215"  # a run, or this step of it, cannot be written that way

    REFUSED = "LS301"
    UNTRUSTED = "LS302"  # the command of a run that came from elsewhere

    NO_TARGET = "LS401"
    BAD_TARGET = "LS402"
    NOT_LOADED = "LS403"
    MISSING_FRAMEWORK = "LS404"
    NOT_ISOLATED = "LS405"
    NO_PREDICATE = "LS406"  # what says whether a run is bad cannot be asked
    BAD_ADAPTER = "LS407"  # a registered adapter is not one
    NO_ADAPTER = "LS408"
    CONFLICT = "LS409"  # two turns at once on one thread
    UNFIT_FRAMEWORK = "LS410"  # the installed version of a framework lacks what its adapter needs
    UNSUPPORTED = "LS411"  # a feature of a framework that its adapter does not know how to run again
    NO_BROWSER = "LS412"  # no browser that could be started
    WORKERS = "LS413"  # the workers of a bisect are not there, or of no use


class LockstepError(Exception):
    """What went wrong, with its code. `str()` is one line a user can act on."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code} {message}")
        self.code = code
        self.message = message


class StoreError(LockstepError):
    """The store or a run in it cannot be used: LS201 to LS205, LS207, LS208, LS214, LS215, LS411."""


class NoRoom(StoreError):
    """There is no room to write (LS203): the disk is full, or files may not grow. Trying again rarely helps soon."""


class AddressError(LockstepError):
    """An address names nothing: LS205, LS206."""


class EditError(LockstepError):
    """An edit of an answer cannot be read, or the answer not be made: LS211 to LS213."""


class TargetError(LockstepError):
    """The program to run cannot be imported, started or used: LS401 to LS406, LS411, LS413."""


class AdapterError(LockstepError):
    """An adapter is none, or there is none of that name, or it does not fit its framework: LS407, LS408, LS410."""


class Difference(msgspec.Struct, frozen=True):
    """The first place where a replay is not the recorded run.

    `path` names the field inside the request (`messages[0].content`), "" for the whole.
    `expected` and `actual` are short renderings of the recorded and the present value.
    `nearest` are up to three recorded calls that look most like the present one.
    `same_until` is the last step that was identical, None if none was.
    `beside`: what was recorded and what is there now, in rows, where one stands for the other; the first row differs.
    `hint`: a rule of the user's that would let this differ, in words.
    """

    code: Code
    reason: str
    step: int | None
    lane: str
    kind: str
    name: str
    source: str
    path: str = ""
    expected: str = ""
    actual: str = ""
    nearest: tuple[str, ...] = ()
    same_until: int | None = None
    beside: tuple[tuple[str, str], ...] = ()
    hint: str = ""


class Stop(BaseException):
    """What a session stops the program with.

    A `BaseException`, so that `except Exception` in the agent, a retry layer or a framework cannot take it for a
    failure of the call. It is also latched in the session: a program that hides it still ends with exit status 1.
    """


class Divergence(Stop):
    """The replayed code asked something that the record does not answer."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(f"{difference.code} {difference.reason}")
        self.difference = difference


class Refusal(Stop):
    """A call past a fork point that may not run for real (LS301), and that nothing answers: an agent cannot take it
    for the answer of a tool, and talk over it."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{Code.REFUSED} {message}")
        self.code = Code.REFUSED
        self.message = message


class Refused(LockstepError):
    """A fork was stopped at a call that may not run for real (LS301). `run`: the branch."""

    def __init__(self, message: str, run: Any) -> None:
        super().__init__(Code.REFUSED, message)
        self.run = run


class Cut(Stop):
    """The end of an interrupted recording was reached: the replay stops the program here.

    Not a divergence. The recording was killed at this point, so nothing is known of what follows.
    """
