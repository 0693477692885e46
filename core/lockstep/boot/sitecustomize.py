"""The door into a command's Python processes: the supervisor puts this directory first on PYTHONPATH.

Runs before the program in whatever interpreter the command starts, also one that has no lockstep, so
it needs nothing but the standard library. It starts lockstep, takes its directory off `sys.path`
again, and hands over to the `sitecustomize` that would have run without us.
"""

import os
import sys


def _open() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != here]
    try:
        from lockstep import bootstrap
    except ImportError:
        _foreign()
    else:
        bootstrap.start(here)


def _foreign() -> None:
    """This interpreter cannot import lockstep. While recording it runs on, since it may be a wrapper (a
    package manager) whose own child is the program; whether anything was recorded is the supervisor's to
    say. Its environment stays as it is, so that the child is still reached. In a replay it would run for
    real: that is only allowed where the recording went through such a wrapper too."""
    meeting = os.environ.get("LOCKSTEP_REPORT", "")
    if not meeting:
        return
    try:
        with open(os.path.join(meeting, "hello"), "a", encoding="utf-8", errors="surrogateescape") as hello:
            lane = os.environ.get("LOCKSTEP_LANE", "")
            hello.write(f"{os.getpid()}\tforeign\t{lane}\t{sys.executable}\n")
    except OSError:
        return  # the supervisor has ended: nobody is left to tell
    if os.environ.get("LOCKSTEP_MODE") in ("replay", "fork") and not os.environ.get("LOCKSTEP_FOREIGN"):
        os._exit(2)


def _next() -> None:
    """Runs the sitecustomize that this one stands in front of. Without one, ours stays in
    `sys.modules`: `site` looks it up there and would complain on stderr."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_open()
_next()
