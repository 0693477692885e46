"""The `lockstep` command without the start of an interpreter: a fork of a process that has it loaded runs it.

Tests run it thousands of times, and most of what each costs is importing the same modules. The fork has the words, the
environment, the directory, the three streams and the session that a process of its own would have, and ends as one
does. What it does not show is that a command imports what it needs, and how it begins: `tests/cli/test_starts.py` sees
to that, as do tests that start an interpreter themselves.
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NURSE = Path(__file__).parent / "nurse.py"

_BIRTH = dict(os.environ)  # as it was before any test changed it
_NUMBER = struct.Struct("i")


def start(*words: str, **options: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen` of `lockstep WORDS`."""
    return _Command([sys.executable, "-m", "lockstep", *words], **options)


def run(
    *words: str, input: str | None = None, timeout: float | None = 60, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` of `lockstep WORDS`, with its output as text unless `options` say otherwise."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    if input is None:
        options.setdefault("stdin", subprocess.DEVNULL)
    else:
        options["stdin"] = subprocess.PIPE
    with start(*words, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class _Nurse:
    """The process that has everything loaded."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(NURSE), str(theirs.fileno())], pass_fds=[theirs.fileno()], env=_BIRTH,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip

    def bear(self, streams: list[int], **asked: Any) -> tuple[int, int]:
        """The new process's id, and a file descriptor that will tell how it ended."""
        told, tell = os.pipe()
        try:
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [*streams, tell]))
            self._socket.sendmsg([json.dumps(asked).encode()], [rights])
        finally:
            os.close(tell)
        return _read(told), told


_nurse: _Nurse | None = None
_one = threading.Lock()


def _get_nurse() -> _Nurse:
    global _nurse
    with _one:
        if _nurse is None:
            _nurse = _Nurse()
        return _nurse


def _read(told: int) -> int:
    number: int = _NUMBER.unpack(os.read(told, _NUMBER.size))[0]
    return number


def _interpreter(env: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter reads of its environment as it starts: a fork can't have another one."""
    return {name: value for name, value in env.items() if name.startswith(("PYTHON", "LANG", "LC_", "LD_"))}


class _Command(subprocess.Popen[Any]):
    """Born by the nurse instead of by the system, which so knows it as no child of this process."""

    _told = -1

    def _execute_child(
        self, args: list[str], executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any,
        startupinfo: Any, creationflags: Any, shell: Any, stdin: int, p2cwrite: int, c2pread: int, stdout: int,
        errread: int, stderr: int, restore_signals: Any, gid: Any, gids: Any, uid: Any, umask: Any, session: bool,
        *more: Any,
    ) -> None:  # fmt: skip
        environ = dict(os.environ) if env is None else {key: str(value) for key, value in env.items()}
        if pass_fds or preexec_fn or _interpreter(environ) != _interpreter(_BIRTH):
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell, stdin,
                p2cwrite, c2pread, stdout, errread, stderr, restore_signals, gid, gids, uid, umask, session, *more,
            )  # fmt: skip
            return
        streams = [own if given == -1 else given for own, given in enumerate((stdin, stdout, stderr))]
        self.pid, self._told = _get_nurse().bear(
            streams, words=args, cwd=str(cwd or os.getcwd()), env=environ, session=session
        )
        self._child_created = True
        self._close_pipe_fds(stdin, p2cwrite, c2pread, stdout, errread, stderr)  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._told == -1:
            found: tuple[int, int] = super()._try_wait(flags)  # type: ignore[misc]
            return found
        if flags & os.WNOHANG and not select.select([self._told], [], [], 0)[0]:
            return 0, 0
        status = _read(self._told)
        os.close(self._told)
        return self.pid, status

    def _internal_poll(self, *given: Any, **more: Any) -> int | None:
        own: Any = self
        if self._told == -1:
            found: int | None = super()._internal_poll(*given, **more)  # type: ignore[misc]
            return found
        if self.returncode is None and own._waitpid_lock.acquire(False):
            try:
                pid, status = self._try_wait(os.WNOHANG) if self.returncode is None else (0, 0)
                if pid:
                    own._handle_exitstatus(status)
            finally:
                own._waitpid_lock.release()
        return self.returncode
