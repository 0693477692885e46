"""LangGraph while a core session is on (`lockstep record`, `with lockstep.record`).

Model and tool calls are then effects of the session, as everywhere. A thread is a lane of its run: its checkpoints are
steps of the run and, counted by themselves, of the thread (`refund/thread-1:7`). The saver keeps threads as ever,
whoever made it; what it held before the session is recorded as it is read, and replays and forks never touch it.
"""

from __future__ import annotations

from lockstep.log import untapped

_watching = _attached = False
_lock = untapped.allocate_lock()


def attach() -> None:
    """All graphs of the program are recorded from now on, whatever their savers are: in a session, and, of savers of
    ours, in none.

    For as long as the process lives. Not until the last saver is gone: the collector decides when that is, and a
    replay would stop to see its graph in the middle of it.

    Raises AdapterError LS410 for a version of LangGraph that has not what is needed.
    """
    global _attached
    from lockstep_langgraph import patches, turns

    with _lock:
        if not _attached:
            patches.install()
            turns.install()
            _attached = True
    watch()


def watch() -> None:
    """Has savers and graphs ask the session that is on. Done once, and nothing comes of it where none is."""
    global _watching
    from lockstep.taps.imports import when_imported
    from lockstep_langgraph import turns
    from lockstep_langgraph.insession import databases, running, savers

    with _lock:
        if _watching:
            return
        _watching = True
    turns.in_session = running
    savers.watch()
    when_imported("aiosqlite.core", databases.carry)
