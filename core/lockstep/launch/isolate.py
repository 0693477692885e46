"""Takes the network away from a command before it starts, so that nothing it does can reach outside.

The kernel does it, so it holds for clients in C and Rust and for child processes alike. Linux, without
privileges: a network namespace of its own where that is allowed, in which the program's own servers
work, else a filter that refuses it sockets of the internet. Sockets with a path in the file system stay.

Runs in a fork of the supervisor that is about to become the command: all is imported before.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Callable

NAMESPACE = "network namespace"
FILTER = "system call filter"


class Impossible(Exception):
    """Neither way is allowed here; says what each was refused with."""


def enter() -> str:
    """Cuts this process off, and whatever it becomes or starts. Returns the way that worked; Impossible."""
    refused = []
    for way, cut_off in WAYS.items():
        try:
            cut_off()
        except (OSError, AttributeError) as error:
            refused.append(f"{way}: {error}")
        else:
            return way
    raise Impossible("; ".join(refused))


# A network namespace.


def _namespace() -> None:
    try:
        # As root of this machine or container the user namespace is left as it is: in a new one, files of
        # other users would belong to nobody.
        os.unshare(os.CLONE_NEWNET)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _loopback_up()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack_from("16xh", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[0]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))


# A seccomp filter: https://docs.kernel.org/userspace-api/seccomp_filter.html

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF instructions
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16 if sys.byteorder == "little" else 20  # in struct seccomp_data
_ALLOW, _DENY = 0x7FFF0000, 0x00050000
_X32 = 0x40000000  # x86-64 has a second set of numbers for the same calls
_AF_UNIX, _AF_NETLINK = 1, 16
_IO_URING_SETUP = 425  # everywhere; a ring would open sockets past the filter
# Machine: (AUDIT_ARCH_…, number of `socket`).
_MACHINES = {
    "x86_64": (0xC000003E, 41),
    "aarch64": (0xC00000B7, 198),
    "riscv64": (0xC00000F3, 198),
    "ppc64le": (0xC0000015, 326),
    "s390x": (0x80000016, 359),
}


def _filter() -> None:
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(f"not known for {machine}")
    program = b"".join(struct.pack("HBBI", *step) for step in _program(*_MACHINES[machine], errno.EACCES, errno.ENOSYS))
    code = ctypes.create_string_buffer(program)

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    given = Filter(len(program) // 8, ctypes.addressof(code))
    for option, value, pointer in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(given)),
    ):
        if prctl(option, value, pointer, 0, 0) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _program(architecture: int, opening: int, refused: int, unknown: int) -> list[tuple[int, int, int, int]]:
    """The filter: (instruction, steps to skip if it holds, if it does not, operand)."""
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 0, 8, architecture),  # else: refused, whatever it is
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 6, 0, _X32),  # refused
        (_EQUAL, 6, 0, _IO_URING_SETUP),  # there is no such call
        (_EQUAL, 0, 3, opening),  # else: allowed
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 1, 0, _AF_UNIX),
        (_EQUAL, 0, 1, _AF_NETLINK),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _DENY | refused),
        (_RETURN, 0, 0, _DENY | unknown),
    ]


# In the order of trying.
WAYS: dict[str, Callable[[], None]] = {NAMESPACE: _namespace, FILTER: _filter}
