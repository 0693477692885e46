"""ctypes: a program that calls C by hand, which no other tap can see.

An installed package that loads a library of its own is judged as any extension module is: by
`clients`, which knows the ones with connections. What is named here is a library that the program's
own code loads, and each function of the C library that reaches outside, whoever looks it up.
"""

from __future__ import annotations

import sys
from typing import Any

from lockstep.session import lanes, sites
from lockstep.taps.guard import uncovered

_REACHES = frozenset({
    "connect", "sendto", "sendmsg", "sendmmsg", "bind", "accept", "accept4", "getaddrinfo", "gethostbyname",
    "gethostbyname2", "gethostbyname_r", "system", "popen", "posix_spawn", "posix_spawnp", "fork", "vfork", "clone",
    "execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "syscall",
})  # fmt: skip
_VARIES = frozenset({
    "getrandom", "getentropy", "arc4random", "arc4random_buf", "arc4random_uniform", "rand", "rand_r", "random",
    "drand48", "lrand48", "mrand48", "RAND_bytes", "RAND_priv_bytes", "time", "gettimeofday", "clock_gettime",
    "uuid_generate", "uuid_generate_random", "uuid_generate_time",
})  # fmt: skip

_BETWEEN = (__name__, __package__, f"{__package__}.entries", "ctypes", "cffi.api")


def library(args: tuple[Any, ...]) -> None:
    """The event `ctypes.dlopen`. Without a name it is the process itself, whose functions are told one by one."""
    name = args[0]
    if name and lanes.inside() is None and by_the_program():
        uncovered.name("ctypes", f"library {name}")


def function(args: tuple[Any, ...]) -> None:
    """The event `ctypes.dlsym`."""
    name = args[1]
    if isinstance(name, bytes):
        name = name.decode("latin-1")
    if lanes.inside() is not None:
        return
    if name in _REACHES:
        uncovered.refuse("ctypes", f"{name}()")
    elif name in _VARIES:
        uncovered.name("ctypes", f"{name}()")


def by_the_program() -> bool:
    """Whether the code that uses ctypes is the program's own, not a package's or the standard library's."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and sites.users(frame.f_code.co_filename)
