"""How a failed request is called: by the Fetch domain, which knows fourteen reasons, and by everybody else."""

from __future__ import annotations

# `Network.ErrorReason`, and the error that a page, DevTools and Playwright then see.
_CALLED = {
    "Failed": "net::ERR_FAILED",
    "Aborted": "net::ERR_ABORTED",
    "TimedOut": "net::ERR_TIMED_OUT",
    "AccessDenied": "net::ERR_ACCESS_DENIED",
    "ConnectionClosed": "net::ERR_CONNECTION_CLOSED",
    "ConnectionReset": "net::ERR_CONNECTION_RESET",
    "ConnectionRefused": "net::ERR_CONNECTION_REFUSED",
    "ConnectionAborted": "net::ERR_CONNECTION_ABORTED",
    "ConnectionFailed": "net::ERR_CONNECTION_FAILED",
    "NameNotResolved": "net::ERR_NAME_NOT_RESOLVED",
    "InternetDisconnected": "net::ERR_INTERNET_DISCONNECTED",
    "AddressUnreachable": "net::ERR_ADDRESS_UNREACHABLE",
    "BlockedByClient": "net::ERR_BLOCKED_BY_CLIENT",
    "BlockedByResponse": "net::ERR_BLOCKED_BY_RESPONSE",
}
CUT_SHORT = "net::ERR_CONTENT_LENGTH_MISMATCH"
_REASONS = {error: reason for reason, error in _CALLED.items()}


def called(reason: str) -> str:
    """The error of a reason."""
    return _CALLED.get(reason, _CALLED["Failed"])


def reason(error: str) -> str:
    """The reason with which a request is failed so that this error comes of it; "Failed" where there is none."""
    return _REASONS.get(error, "Failed")
