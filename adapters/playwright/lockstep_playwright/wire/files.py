"""Files that Playwright's driver writes by itself, which a replay has not got: they come through the pipe.

A download stands in a folder of the driver's, whose path the program is told; and since 1.65 the driver also writes the
copy that a program saves, where it runs on this machine. With a session on, the client writes the copy from what the
driver sends, as it does for a browser elsewhere, and what is told by its path is sent too: a replay puts it there.

Tried with playwright 1.60 to 1.65.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from lockstep.session import current

_MODULES = ("playwright._impl.artifact", "playwright._impl._artifact")  # since 1.65, and before


def come_through_the_pipe() -> None:
    """Once; without a session it costs one comparison. Raises AttributeError where no version is like this one."""
    kind: Any = _artifact()
    if not hasattr(kind.save_as, "_lockstep"):
        save_as, path = kind.save_as, kind.path_after_finished
        kind.path_after_finished = _marked(path, functools.partial(_path, path, save_as))
        kind.save_as = _marked(save_as, functools.partial(_save, save_as))


def _artifact() -> Any:
    for name in _MODULES:
        try:
            return import_module(name).Artifact
        except ImportError:
            continue
    raise AttributeError(f"no Artifact in {' or '.join(_MODULES)}")


def _marked(real: Any, ours: Callable[..., Any]) -> Any:
    @functools.wraps(real)
    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current.session is None:
            return await real(self, *args, **kwargs)
        return await ours(self, *args, **kwargs)

    method.__dict__["_lockstep"] = True
    return method


async def _save(save_as: Any, artifact: Any, path: Any) -> Any:
    return await save_as(_elsewhere(artifact), path)


async def _path(path_after_finished: Any, save_as: Any, artifact: Any) -> Any:
    path = await path_after_finished(artifact)
    recording = current.session is None or current.session.recording
    # The same is asked of the driver in both, and only a replay needs it.
    await save_as(_elsewhere(artifact), os.devnull if recording or os.path.exists(path) else path)
    return path


def _elsewhere(artifact: Any) -> Any:
    """All that the methods ask of their object, as if its browser ran on another machine."""
    remote = artifact._connection.is_remote
    return SimpleNamespace(
        _channel=artifact._channel, _connection=SimpleNamespace(is_remote=(lambda: True) if callable(remote) else True)
    )
