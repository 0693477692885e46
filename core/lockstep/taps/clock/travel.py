"""time-machine used by the program: our patches make way while it is loaded and while it travels.

When it is loaded it keeps what it finds as `time.time`, `datetime.now` and the like; when it travels, it
swaps the C function behind each. It takes all of them for builtins of C: with anything of ours among
them it travels nowhere or the interpreter crashes (rc 139). Tried with time-machine 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.session import current
from lockstep.taps.imports import during_import, when_imported


class _Aside:
    """Our patches are off for the length of a block."""

    def __init__(self, step_aside: Callable[[], object], come_back: Callable[[], object]) -> None:
        self.step_aside = step_aside
        self.come_back = come_back

    def __enter__(self) -> None:
        self.step_aside()

    def __exit__(self, *_: object) -> None:
        self.come_back()


def install(step_aside: Callable[[], object], come_back: Callable[[], object]) -> None:
    """Calls `step_aside` before time-machine is loaded or patches, and `come_back` after that or its unpatching."""
    during_import("_time_machine", lambda: _Aside(step_aside, come_back))

    def wrap(module: ModuleType) -> None:
        patch, unpatch = module.patch, module.unpatch

        def patch_without_ours() -> None:
            step_aside()
            try:
                patch()
            except BaseException:
                come_back()
                raise

        def unpatch_then_ours() -> None:
            unpatch()
            come_back()

        module.patch = patch_without_ours  # type: ignore[attr-defined]
        module.unpatch = unpatch_then_ours  # type: ignore[attr-defined]

    when_imported("_time_machine", wrap)
    when_imported("time_machine", _wrap_start)


def _wrap_start(module: ModuleType) -> None:
    start = module.travel.start

    def start_and_say(self: Any) -> Any:
        traveller = start(self)
        session = current.session
        # Standing still, its clock is the program's own; ticking, it is a real one that nobody records.
        if self.tick and session is not None:
            session.note("clock", "time-machine travelled with a ticking clock")
        return traveller

    module.travel.start = start_and_say
