"""Runs a command as if it had been started without us: its signals, its exit status, its terminal.

The supervisor stays in the command's process group and session, waits in `sigwaitinfo`, and passes on
what was sent to it alone. No handlers and no threads, so there is no moment at which a signal is lost.
Where the system has no `sigwaitinfo` (only Linux is known to do), `launch.portable` does what it can.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection

# Signals that ask a program to end.
ENDING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
SI_KERNEL = 0x80  # asm-generic/siginfo.h: sent by the kernel, which for these means by the terminal


class NotStarted(Exception):
    """The command could not be started; the operating system's reason is the cause."""


class NotIsolated(Exception):
    """The command was not started, since nothing here can keep it off the network; the message says why."""


class Ended:
    """status    0 to 255, or -N when signal N ended the command
    asked     whether somebody asked the command, or us for it, to end by a signal
    isolated  by what it was kept off the network; "" where nobody asked for that
    """

    __slots__ = ("asked", "isolated", "status")

    def __init__(self, status: int, asked: bool, isolated: str = "") -> None:
        self.status = status
        self.asked = asked
        self.isolated = isolated


def run(
    command: list[str],
    environment: dict[str, str],
    *,
    stdout: int | None = None,
    stderr: int | None = None,
    isolate: bool = False,
) -> Ended:
    """Starts the command and waits for its end.

    stdout, stderr  file descriptors to put in the place of the command's; None leaves ours
    isolate         keep it off the network; NotIsolated where that is not possible
    """
    if sys.platform != "linux":
        if isolate:
            raise NotIsolated(f"on {sys.platform} nothing is known that does it")
        from lockstep.launch import portable

        return portable.run(command, environment, stdout=stdout, stderr=stderr)
    from lockstep.launch.group import Canary

    watched = frozenset(
        {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
        | {signal.SIGWINCH, signal.SIGCHLD}
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    canary = Canary()
    try:
        pid, isolated = (
            _start_isolated(command, environment, before, stdout, stderr)
            if isolate
            else (_start(command, environment, before, stdout, stderr), "")
        )
        asked = False
        while True:
            # Asked first each time: several children's signals arrive as one.
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                # What was sent to a command that has ended must not end us in its place.
                while (late := signal.sigtimedwait(watched, 0)) is not None:
                    asked = asked or signal.Signals(late.si_signo).name in ENDING
                return Ended(os.waitstatus_to_exitcode(status), asked, isolated)
            info = signal.sigwaitinfo(watched)
            asked = asked or signal.Signals(info.si_signo).name in ENDING
            if info.si_signo == signal.SIGCHLD or info.si_code == SI_KERNEL or canary.got(info.si_signo):
                continue
            try:
                os.kill(pid, info.si_signo)
            except ProcessLookupError:
                continue  # ended a moment ago: the next round collects it
    finally:
        canary.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(
    command: list[str],
    environment: dict[str, str],
    mask: Collection[int],
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


def _start_isolated(
    command: list[str],
    environment: dict[str, str],
    mask: Collection[int],
    stdout: int | None,
    stderr: int | None,
) -> tuple[int, str]:
    """As `_start`, by way of a process of ours that takes the network from itself and then becomes the
    command. Returns its pid and how it did that."""
    from lockstep.launch import isolate

    told, tell = os.pipe()  # closed by a successful exec
    pid = os.fork()
    if pid == 0:
        try:
            for fd, to in ((stdout, 1), (stderr, 2)):
                if fd is not None:
                    os.dup2(fd, to)
            os.write(tell, isolate.enter().encode())
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execvpe(command[0], command, environment)
        except isolate.Impossible as refused:
            os.write(tell, f"\0{refused}".encode())
        except OSError as error:
            os.write(tell, f"\0\0{error.errno or 0}".encode())
        finally:
            os._exit(127)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        way, failed, why = pipe.read().decode().partition("\0")
    if failed:
        os.waitpid(pid, 0)
        if why.startswith("\0"):
            number = int(why[1:])
            raise NotStarted(command[0]) from OSError(number, os.strerror(number))
        raise NotIsolated(why)
    return pid, way


def leave(status: int) -> None:
    """Ends this process the way the command ended: with its status, or by the same signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    if status >= 0:
        raise SystemExit(status)
    if sys.platform == "win32":
        raise SystemExit(status & 0xFFFFFFFF)
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
