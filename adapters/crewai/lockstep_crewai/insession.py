"""Crews, agents and flows while a core session is on (`lockstep record`, `with lockstep.record`).

Their calls are effects of the session, as everywhere. Each is a lane of the session's run: its steps are steps of the
run and, counted by themselves, of it (`nightly/research:7`). Those that nobody has wrapped are too, as they are kicked
off: see `attached`.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from lockstep.errors import Code, TargetError
from lockstep.log.address import quote
from lockstep.log.checkpoints import record
from lockstep.session import current as sessions
from lockstep.session import lanes
from lockstep_crewai import layout, wrapping
from lockstep_crewai.adapter import adapter
from lockstep_crewai.layout import Moment
from lockstep_crewai.wrapping import Root

if TYPE_CHECKING:
    from lockstep.session.lanes import Lane


def step(session: Any, moment: Moment) -> None:
    """Notes a step of the session's run. A replay compares it: raises Divergence.

    Each is told whole. Of two tasks at once it is not known which is done first before the session says so, and what a
    step is told by may not hang on that.
    """
    settled = layout.settled(moment, {})
    body = record(None, settled.channels)
    told = {name: value for name, value in settled.annotations.items() if name != layout.STATE}
    if told:
        body[layout.ANNOTATIONS] = told
    session.checkpoint(f"{adapter.name}/{moment.lane}", moment.name, {**body, "source": moment.source})


def root_for(target: Any) -> Root | None:
    """What records the kickoff of something that nobody has wrapped: the session that is on. None without one, and in
    a call of it, of which the kickoff is a part."""
    session = sessions.session
    lane = lanes.current()
    if session is None or lane is None:
        return None
    try:
        return _root(session, lane.strand, target)
    except Exception as error:
        session.fault(f"a kickoff of a {type(target).__name__}", error)
        return None


def _root(session: Any, strand: Lane, target: Any) -> Root:
    """The same one for the same object, as long as it is kicked off in the same thread and one after the other."""
    known: dict[tuple[str, int], tuple[Any, Root]] = session.adapters.setdefault(adapter.name, {})
    key = strand.name, id(target)
    held, root = known.get(key, (None, None))
    if root is not None and held is not None and held() is target and not root.on:
        return root
    from lockstep_crewai import refused
    from lockstep_crewai.recording import Recording
    from lockstep_crewai.seams import Seams

    wrapping.install(type(target))  # classes of models and tools, too, that there were not before
    recording = Recording(None, None)
    root = Root(target, Seams(recording, recording), lane=_lane(session, strand, wrapping.name_of(target)))
    recording.of(root)
    for unseen in refused.unseen(target):  # by its own wish it would be refused; the program is not to notice this
        recording.fault(f"{root.kind} {root.name}", TargetError(Code.UNSUPPORTED, unseen))
    known[key] = weakref.ref(target, lambda _: known.pop(key, None)), root
    return root


def _lane(session: Any, strand: Lane, name: str) -> str:
    """The n-th of this name that is kicked off in a thread; nobody says which of two threads is first."""
    number = strand.ordinal(f"{adapter.name} {name}")
    above = strand.name.removeprefix(session.process).strip("/").replace("/", "-")
    called = quote(f"{above}-{name}" if above else name)
    return f"{called}~{number}" if number > 1 else called
