"""What stands in the place of a process that is served: one that ends at once, with the recorded status.

The program may signal it, ask whether it is there, or wait for it: until somebody takes its status, its number is
its own. It delivers nothing; reads and waits are answered by the record.
"""

from __future__ import annotations

from typing import Any

_SHELL = "/bin/sh"
# What of `Popen`'s arguments is about the parent's side, or about whom a signal reaches.
_KEPT = frozenset({
    "bufsize", "stdin", "stdout", "stderr", "universal_newlines", "encoding", "errors", "text", "pipesize",
    "restore_signals", "start_new_session", "process_group",
})  # fmt: skip


def arguments(given: dict[str, Any], status: int) -> dict[str, Any]:
    """`Popen`'s arguments for it. `status` as `Popen.returncode` has it."""
    kept = {name: value for name, value in given.items() if name in _KEPT}
    return {**kept, "args": words(status), "env": {}}


def words(status: int) -> list[str]:
    """Its command."""
    # A signal that dumps memory by default dumps none.
    script = f"exit {status}" if status >= 0 else f"ulimit -c 0; kill -{-status} $$; exit {128 - status}"
    return [_SHELL, "-c", script]
