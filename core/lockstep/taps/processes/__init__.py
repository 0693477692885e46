"""Processes that the program starts: an effect of kind `process` each, with what they delivered and how they ended.

What is recorded is what reached the program, at the seam where it reached it: a read of a pipe, a `wait` that
returned, a `poll` that said "not yet", a callback of its event loop. Nothing stands between the process and the
program: pipes, terminals, signals and statuses are the system's own. In a replay a process that ends at once, with
the recorded status, stands in the place of each (a process number, to be signalled and waited for), and the record
answers at those same seams. A Python child that was followed is started for real, replays its own stream, and what
it delivers is compared.

The modules: `request` (what was asked), `process` (the effect: one that records, one that is served), `popen` (the
seams of `subprocess`), `pipes` (of file objects), `descriptors` (of `os`), `waiting` (of `select`), `loops` (of
asyncio), `shell` (`os.system`, `os.posix_spawn`), `readiness` (what `communicate` is served), `stand_in`, `files`.
"""

from __future__ import annotations

from typing import Any

from lockstep.log.model import Value
from lockstep.taps.imports import when_imported
from lockstep.taps.processes import descriptors, shell

_installed = False


def install() -> None:
    """Patches `os`, and `subprocess` and asyncio when they are imported. Once."""
    global _installed
    if _installed:
        return
    _installed = True
    descriptors.install()
    shell.install()
    when_imported("select", _waiting)
    when_imported("selectors", _selectors)
    when_imported("subprocess", _popen)
    when_imported("asyncio.selector_events", _loops)


def start(session: Any, facts: Value) -> Value:
    descriptors.forget()
    return None


def stop(session: Any) -> None:
    descriptors.forget()


def _popen(module: Any) -> None:
    from lockstep.taps.processes import popen

    popen.install(module)


def _loops(module: Any) -> None:
    from lockstep.taps.processes import loops

    loops.install(module)


def _waiting(module: Any) -> None:
    from lockstep.taps.processes import waiting

    waiting.install()


def _selectors(module: Any) -> None:
    from lockstep.taps.processes import waiting

    waiting.install_selectors(module)
