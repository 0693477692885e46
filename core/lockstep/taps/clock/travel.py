"""time-machine used by the program: our patches make way while it travels.

Its C code swaps the functions behind `time.time`, `datetime.now` and the like, and takes whatever it
finds there for a builtin of C: with anything of ours in place the interpreter crashes (rc 139). So
ours come off before its patch and go back on after. Tried with time-machine 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from lockstep.session import current
from lockstep.taps.imports import when_imported

_steps: list[Callable[[], object]] = []


def install(step_aside: Callable[[], object], come_back: Callable[[], object]) -> None:
    """Calls `step_aside` before time-machine patches, and `come_back` after it has unpatched."""
    _steps[:] = [step_aside, come_back]
    when_imported("_time_machine", _wrap)


def _wrap(module: ModuleType) -> None:
    patch, unpatch = module.patch, module.unpatch

    def patch_without_ours() -> None:
        step_aside, come_back = _steps
        step_aside()
        session = current.session
        if session is not None:
            session.note("clock", "time-machine travelled: clock reads in it were its own")
        try:
            patch()
        except BaseException:
            come_back()
            raise

    def unpatch_then_ours() -> None:
        unpatch()
        _steps[1]()

    module.patch = patch_without_ours  # type: ignore[attr-defined]
    module.unpatch = unpatch_then_ours  # type: ignore[attr-defined]
