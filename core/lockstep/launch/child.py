"""What the command's processes get beside what they would get without us: environment and memory layout.

Every variable that is set here is put back, in the program's own view of its environment, to what it
was (`BARE` carries that), while the real environment keeps ours for its children.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.launch.inherit import BARE, Ours
from lockstep.log import place

BOOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "boot")


def environment(
    *,
    mode: str,
    meeting: str,
    run: str,
    store: str,
    branch: str = "",
    speed: float = 0.0,
    hash_seed: str | None = None,
    images: int = 0,
    foreign: bool = False,
    debug: bool = False,
    nursery: str = "",
) -> dict[str, str]:
    """The environment of the command.

    run        name of the run; "" lets the recorded process take its script's
    hash_seed  recorded PYTHONHASHSEED; None (a recording) draws one, or keeps what the user set. A new one
               each time: with a constant, every recording would iterate its sets in the same order and
               hide that the program depends on it
    images     replay: how many programs the recorded process was before the one that was recorded
    foreign    replay: whether the recording was started through an interpreter without lockstep
    nursery    it is to be one, see `launch.nursery`: the pipes by which it is told
    """
    here = os.environ
    if hash_seed is None:
        given = here.get("PYTHONHASHSEED", "")
        hash_seed = given if given.isdigit() else str(int.from_bytes(os.urandom(4)) % 4294967295 + 1)
    values = {
        "PYTHONPATH": "",
        "PYTHONHASHSEED": hash_seed,
        "LOCKSTEP_MODE": mode,
        "LOCKSTEP_RUN": run,
        "LOCKSTEP_STORE": store,
        "LOCKSTEP_BRANCH": branch,
        "LOCKSTEP_REPORT": meeting,
        "LOCKSTEP_SPEED": repr(speed),
        "LOCKSTEP_IMAGE": "0",
        "LOCKSTEP_IMAGES": str(images),
        "LOCKSTEP_FOREIGN": "1" if foreign else "",
        "LOCKSTEP_LANE": "main",
        "LOCKSTEP_DEBUG": "1" if debug else "",
        BARE: "",
    }
    if nursery:
        values["LOCKSTEP_NURSERY"] = nursery
    # The key of the seals is for us and for our like in children, not for the program to see.
    keys = {name: here[name] for name in (place.KEY, place.KEY_FILE) if name in here}
    return Ours(BOOT, values | keys).dress({name: value for name, value in here.items() if name not in keys})


ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h
QUERY = 0xFFFFFFFF


@contextmanager
def fixed_addresses() -> Iterator[bool]:
    """Asks Linux to lay out the memory of processes started in this block alike in every run.

    Objects without a `__hash__` of their own hash by address, so a set of them iterates in an order that
    address randomisation changes. Yields whether it is off: a kernel, a container's filter or another
    system may not allow it.
    """
    try:
        import ctypes

        personality = ctypes.CDLL(None).personality
    except (ImportError, OSError, AttributeError):
        yield False
        return
    personality.argtypes = [ctypes.c_ulong]
    before = personality(QUERY)
    fixed = before != -1 and personality(before | ADDR_NO_RANDOMIZE) != -1
    try:
        yield fixed
    finally:
        if fixed:
            personality(before)
