"""Has all of `lockstep` loaded, and becomes it in a fork for each request: nurse.py SOCKET.

A request comes with four file descriptors: the streams, and a pipe which is told the fork's process id, and then how it
ended. It ends as its last client closes the socket.
"""

import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
from contextlib import suppress
from importlib import import_module

NUMBER = struct.Struct("i")
WORDS = 1 << 20


def load() -> None:
    """What commands import, and nothing that only a recorded program has."""
    for name in ("cli", "debugger", "log", "log.sqlite", "launch"):
        package = import_module(f"lockstep.{name}")
        for found in pkgutil.iter_modules(package.__path__):
            import_module(f"{package.__name__}.{found.name}")
    sys.argv[:] = ["lockstep", "explain", "LS101"]
    with suppress(SystemExit):  # what the command line loads as it runs
        import_module("lockstep.cli").main()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page of it


def serve(client: socket.socket) -> dict:
    """Returns in each fork, with what was asked of it; ends the process otherwise."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    tell: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([client, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            for pid in [*tell]:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    to = tell.pop(pid)
                    say(to, status)
                    os.close(to)
        if client not in ready:
            continue
        request, given, _, _ = socket.recv_fds(client, WORDS, 4)
        if not request:
            os._exit(0)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, stream in enumerate(given[:3]):
                os.dup2(stream, number)
            client.detach()
            os.closerange(3, 4096)
            return json.loads(request)
        for stream in given[:3]:
            os.close(stream)
        tell[pid] = given[3]
        say(given[3], pid)


def say(to: int, number: int) -> None:
    try:
        os.write(to, NUMBER.pack(number))
    except BrokenPipeError:
        return  # who asked has gone


def become(asked: dict) -> None:
    """Is from here on what `python -m lockstep WORDS` would be."""
    if asked["session"]:
        os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.path[0] = os.getcwd()
    sys.orig_argv[:] = asked["words"]
    sys.argv[:] = ["-m", *asked["words"][3:]]
    runpy._run_module_as_main("lockstep")


if __name__ == "__main__":
    given = socket.socket(fileno=int(sys.argv[1]))
    load()
    become(serve(given))
