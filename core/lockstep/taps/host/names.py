"""What the machine and its user are called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.log.model import Value
from lockstep.session.firsts import Firsts
from lockstep.session.lanes import current
from lockstep.taps.patches import Patches, disguise, stand_in

_uname = getattr(os, "uname", None)
_login = getattr(os, "getlogin", None)


class Lookups:
    """Names that are looked up where the program first asks. Recording: noted; replay: told."""

    def __init__(self, firsts: Firsts | None, told: dict[str, Value]) -> None:
        self._firsts = firsts
        self.told = told

    def ask(self, name: str, real: Callable[[], str]) -> str:
        if current() is None:
            return real()
        told = self.told.get(name)
        if isinstance(told, str):
            return told
        found = real()
        if self._firsts is not None:
            self.told[name] = found
            self._firsts.note(name, found)
        return found


lookups: Lookups | None = None


def tap_getpass(module: ModuleType) -> None:
    """The user's name comes from variables, or else from a directory service."""
    real = module.getuser

    def getuser() -> str:
        asked = lookups
        return real() if asked is None else asked.ask("user", real)

    disguise(getuser, real, "getpass")
    module.getuser = getuser  # type: ignore[attr-defined]


def tap_socket(module: ModuleType) -> None:
    """The full name of the host is a question to the network."""
    real = module.getfqdn

    def getfqdn(name: str = "") -> str:
        asked = lookups
        return real(name) if asked is None or name not in ("", "0.0.0.0", "::") else asked.ask("fqdn", real)

    disguise(getfqdn, real, "socket")
    module.getfqdn = getfqdn  # type: ignore[attr-defined]


def tap_login(patches: Patches) -> None:
    """For the length of a session."""
    if _login is None:
        return
    real = _login

    def getlogin(_: object) -> str:
        asked = lookups
        return real() if asked is None else asked.ask("login", real)

    patches.set(os, "getlogin", stand_in(getlogin, real, "os"))


def tell(patches: Patches, told: dict[str, Any], here: dict[str, Any]) -> None:
    """Replay: host name and kernel as recorded. The system and the machine's kind stay: code is made for them."""
    names = told.get("uname")
    if _uname is None or not isinstance(names, list) or names == here.get("uname"):
        return
    real = _uname

    def uname(_: object) -> os.uname_result:
        found = real()
        return found if current() is None else os.uname_result((found[0], *map(str, names[:3]), found[4]))

    patches.set(os, "uname", stand_in(uname, real, "os"))
    socket = sys.modules.get("socket")
    for module in (sys.modules.get("_socket"), socket):
        if module is not None:
            _tell_host(patches, module, str(names[0]))
    forget_platform()


def _tell_host(patches: Patches, module: ModuleType, name: str) -> None:
    real = module.gethostname

    def gethostname(_: object) -> str:
        return name if current() is not None else str(real())

    patches.set(module, "gethostname", stand_in(gethostname, real, "socket"))


def forget_platform() -> None:
    """Module `platform` keeps what it was told."""
    platform: Any = sys.modules.get("platform")
    if platform is not None:
        platform._uname_cache = None
        platform._platform_cache.clear()
