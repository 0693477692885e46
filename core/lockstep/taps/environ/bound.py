"""Which variables belong to a machine and not to a run."""

from __future__ import annotations

_NAMES = frozenset({
    "PATH", "HOME", "TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV", "CONDA_PREFIX", "PWD", "OLDPWD", "SHLVL", "_", "SHELL",
    "TZ",  # restored by the clock tap
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    "SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
})  # fmt: skip
_BEGINNINGS = ("LD_", "DYLD_", "PYTHON", "LOCKSTEP_", "SSL_CERT_", "XDG_", "COV_", "COVERAGE_", "PYTEST_")

OURS = "LOCKSTEP_"


def is_bound(name: str) -> bool:
    """Whether the variable tells where things are on this machine, or how this process was started."""
    return name in _NAMES or name.startswith(_BEGINNINGS)
