"""Group commit: what journals have been told is stored within 5 ms, by one thread for all of them.

The thread begins with the first event and ends where a process forks, so that a child inherits neither it nor what it
holds, and CPython has no threads to warn about. Where none can start, what is told is stored at once.
"""

from __future__ import annotations

import atexit
import os
import weakref
from contextlib import suppress
from typing import Any, Protocol

from lockstep.log import untapped
from lockstep.session import lanes
from lockstep.session.writer import start_thread, wait_until_gone

LINGER = 0.002  # seconds in which more may join a commit
RETRY = 0.2  # seconds between attempts on a store that cannot be written
FORK_WAIT = 2.0


class Member(Protocol):
    """What stores what it has been told."""

    def store_told(self) -> bool:
        """Stores all of it. Never raises. False: it could not, and it is worth trying again."""
        ...

    def before_fork(self) -> None: ...

    def after_in_parent(self) -> None: ...

    def after_in_child(self) -> None: ...


class Group:
    """The thread, and who waits for it."""

    def __init__(self) -> None:
        self._members: weakref.WeakSet[Any] = weakref.WeakSet()
        self._hooked = False
        self._forking: list[Member] = []
        self._reset()

    def _reset(self) -> None:
        self._lock: Any = untapped.RLock()
        self._due: list[Member] = []
        self._failed: list[Member] = []
        self._wake = untapped.allocate_lock()  # free: somebody waits
        self._wake.acquire()
        self._running = False
        self._stopping = False

    def join(self, member: Member) -> None:
        """This member will be stored at the end of the process, and follows a fork."""
        with self._lock:
            self._members.add(member)
            if not self._hooked:
                self._hooked = True
                atexit.register(self._exit)
                if hasattr(os, "register_at_fork"):
                    os.register_at_fork(before=self._before, after_in_parent=self._parent, after_in_child=self._child)

    def nudge(self, member: Member) -> None:
        """Has it stored within a few milliseconds."""
        with self._lock:
            self._due.append(member)
            begun = self._running or self._begin()
        if begun:
            with suppress(RuntimeError):  # it is awake
                self._wake.release()
        else:
            self._round()

    def _begin(self) -> bool:
        self._running = start_thread(self._run)
        return self._running

    def _run(self) -> None:
        lanes.INSIDE.set(True)
        while True:
            self._wake.acquire(timeout=RETRY if self._failed else -1)
            if not self._stopping:
                untapped.sleep(LINGER)
            self._round()
            with self._lock:
                if self._stopping and not self._due:
                    self._running = False
                    return

    def _round(self) -> None:
        with self._lock:
            due, self._due = dict.fromkeys([*self._failed, *self._due]), []
            self._failed = []
        failed = [member for member in due if not member.store_told()]
        with self._lock:
            self._failed += failed

    def _all(self) -> list[Member]:
        return sorted(self._members, key=id)

    def _exit(self) -> None:
        for member in self._all():
            member.store_told()

    def _before(self) -> None:
        if self._running:
            threads = untapped.threads()
            self._stopping = True
            with suppress(RuntimeError):
                self._wake.release()
            deadline = untapped.monotonic() + FORK_WAIT
            while (gone := not self._running) is False and untapped.monotonic() < deadline:
                untapped.sleep(0.0002)
            if gone:
                wait_until_gone(threads)
        # Nobody may be inside SQLite while the process forks: its locks would stay locked in the child.
        self._forking = self._all()
        for member in self._forking:
            member.before_fork()

    def _parent(self) -> None:
        self._stopping = False
        for member in self._forking:
            member.after_in_parent()
        self._forking = []

    def _child(self) -> None:
        members, self._forking = self._forking, []
        self._reset()
        for member in members:
            member.after_in_child()


group = Group()
