"""Two turns at once on one thread: found, and warned of or refused.

LangGraph has no lock on a thread. Two turns that go on from the same checkpoint both succeed with its own savers, and
what one of them did is in no later state. Here each stays on a branch, and the program is told.
"""

from __future__ import annotations

import logging
from typing import Literal

from lockstep.errors import Code, LockstepError

log = logging.getLogger("lockstep")


class ConflictError(LockstepError):
    """Two turns ran at once on one thread, and the checkpointer was told to refuse that: LS409."""


def met(on_conflict: Literal["warn", "raise"], thread: str, checkpoint: str | None) -> None:
    """Tells of a turn that goes on from where another one has gone on already, or still does."""
    where = f"from checkpoint {checkpoint}" if checkpoint is not None else "from its beginning"
    if on_conflict == "raise":
        raise ConflictError(
            Code.CONFLICT,
            f"another turn has gone on {where} of thread {thread!r} meanwhile, so that this one is refused. Run the "
            "turns of a thread one after the other, or leave on_conflict at 'warn' to keep both as branches",
        )
    log.warning(
        "%s two turns at once on thread %r: another one has gone on %s meanwhile; both are kept, this one as a branch "
        "of its own, and the thread's latest checkpoint is that of the turn that writes last",
        Code.CONFLICT,
        thread,
        where,
    )
