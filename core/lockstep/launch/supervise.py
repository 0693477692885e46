"""Runs a command as if it had been started without us: its signals, its exit status, its terminal.

The supervisor stays in the command's process group and session, waits in `sigwaitinfo`, and passes on
what was sent to it alone. No handlers and no threads, so there is no moment at which a signal is lost.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from lockstep.launch.group import Canary

FORWARDED = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH}
)
SI_KERNEL = 0x80  # asm-generic/siginfo.h: sent by the kernel, which for these means by the terminal


class NotStarted(Exception):
    """The command could not be started; the operating system's reason is the cause."""


def run(
    command: list[str], environment: dict[str, str], *, stdout: int | None = None, stderr: int | None = None
) -> int:
    """Starts the command, waits for it, and returns its status: 0 to 255, or -N when signal N ended it.

    stdout, stderr  file descriptors to put in the place of the command's; None leaves ours
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    canary = Canary()
    try:
        pid = _start(command, environment, before, stdout, stderr)
        return _wait(pid, canary)
    finally:
        canary.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(
    command: list[str],
    environment: dict[str, str],
    mask: set[int] | set[signal.Signals],
    stdout: int | None,
    stderr: int | None,
) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, fd, to) for fd, to in ((stdout, 1), (stderr, 2)) if fd is not None]
    try:
        return os.posix_spawnp(
            command[0],
            command,
            environment,
            file_actions=actions,
            setsigmask=mask,
            # Python ignores these two for itself; a program must find them as a shell would leave them.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
    except (OSError, ValueError) as error:
        raise NotStarted(command[0]) from error


def _wait(pid: int, canary: Canary) -> int:
    while True:
        # Asked first each time: several children's signals arrive as one.
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        info = signal.sigwaitinfo(FORWARDED | {signal.SIGCHLD})
        if info.si_signo == signal.SIGCHLD or info.si_code == SI_KERNEL or canary.got(info.si_signo):
            continue
        try:
            os.kill(pid, info.si_signo)
        except ProcessLookupError:
            continue  # ended a moment ago: the next round collects it


def leave(status: int) -> None:
    """Ends this process the way the command ended: with its status, or by the same signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    if status >= 0:
        raise SystemExit(status)
    number = -status
    if number in (signal.SIGQUIT, signal.SIGILL, signal.SIGABRT, signal.SIGFPE, signal.SIGSEGV, signal.SIGBUS):
        import resource

        # The command has left its core file; ours would overwrite it.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    time.sleep(1)  # delivery to the own process is immediate; an ignored signal falls through
    raise SystemExit(128 + number)
