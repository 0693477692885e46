"""The options of a browser context: kept with a run, given to the context of its replay, and compared.

    found = given(context)                                  # {"viewport": …, "userAgent": …}, as Playwright has them
    browser.new_context(**keywords(found, state))           # the same again
    differences(recorded, now)                              # what is another one, in words

Playwright keeps the options on the context by the names of its protocol, the same in every version that is supported.
What it does not keep is the state that a context began with; that is asked of the context itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from lockstep.log.model import Value

# What a context of a replay is not given: where it writes to, and what reaches the network by itself.
_LEFT_OUT = frozenset(
    {"recordVideo", "recordHar", "selectorEngines", "testIdAttributeName", "proxy", "clientCertificates"}
)
_NAMES = {
    "acceptDownloads": "accept_downloads", "baseURL": "base_url", "bypassCSP": "bypass_csp",
    "colorScheme": "color_scheme", "contrast": "contrast", "deviceScaleFactor": "device_scale_factor",
    "extraHTTPHeaders": "extra_http_headers", "forcedColors": "forced_colors", "geolocation": "geolocation",
    "hasTouch": "has_touch", "httpCredentials": "http_credentials", "ignoreHTTPSErrors": "ignore_https_errors",
    "isMobile": "is_mobile", "javaScriptEnabled": "java_script_enabled", "locale": "locale",
    "noDefaultViewport": "no_viewport", "offline": "offline", "permissions": "permissions",
    "reducedMotion": "reduced_motion", "screen": "screen", "serviceWorkers": "service_workers",
    "strictSelectors": "strict_selectors", "timezoneId": "timezone_id", "userAgent": "user_agent",
    "viewport": "viewport",
}  # fmt: skip
_UNSET = "no-override"
_SECRET = frozenset({"extraHTTPHeaders", "httpCredentials"})

# Of a run's `browser`: what is compared in a replay, and what it is called.
_COMPARED = {
    "version": "the browser", "headless": "headless", "user_agent": "the user agent", "viewport": "the viewport",
    "locale": "the locale", "timezone": "the time zone",
}  # fmt: skip


def given(context: Any) -> dict[str, Value]:
    """The options of a context that are worth keeping: inert data."""
    options = getattr(context._impl_obj, "_options", None)
    found = options if isinstance(options, Mapping) else {}
    return {name: _inert(value) for name, value in found.items() if name not in _LEFT_OUT}


def _inert(value: Any) -> Value:
    if isinstance(value, Mapping):
        return {str(name): _inert(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_inert(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str | bytes) else str(value)


def keywords(options: Mapping[str, Any], state: Any = None) -> dict[str, Any]:
    """The keyword arguments of `new_context` for these options. `state`: the storage state that it began with."""
    made: dict[str, Any] = {}
    for name, value in options.items():
        keyword = _NAMES.get(name)
        if keyword is not None and value is not None:
            made[keyword] = _argument(name, value)
    if made.get("no_viewport"):
        made.pop("viewport", None)
    else:
        made.pop("no_viewport", None)
    if state and (state.get("cookies") or state.get("origins")):
        made["storage_state"] = state
    return made


def _argument(name: str, value: Any) -> Any:
    match name:
        case "extraHTTPHeaders":
            return {each["name"]: each["value"] for each in value}
        case "acceptDownloads":
            return value != "deny"
        case "httpCredentials":
            one = value[0] if isinstance(value, list) else value
            return dict(one)
    return "null" if value == _UNSET else value


def browser(options: Mapping[str, Value], about: Mapping[str, Any]) -> dict[str, Value]:
    """What the meta of a run says of its browser. `about`: what that says of itself, as `Browser.getVersion` does.
    Options that hold secrets are in the turn's request only."""
    told = {name: value for name, value in options.items() if name not in _SECRET}
    agent = str(about.get("userAgent") or "")
    return {
        "version": str(about.get("product") or "").partition("/")[2], "headless": "Headless" in agent,
        "user_agent": options.get("userAgent") or agent, "viewport": options.get("viewport"),
        "locale": options.get("locale") or "", "timezone": options.get("timezoneId") or _zone(), "options": told,
    }  # fmt: skip


def _zone() -> str:
    return datetime.datetime.now().astimezone().tzname() or ""


def differences(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """By what it is called, what was recorded and what it is now, of all that is another one."""
    found: dict[str, str] = {}
    for name, called in _COMPARED.items():
        was, is_ = recorded.get(name), now.get(name)
        if was is not None and is_ is not None and was != is_:
            found[called] = f"it was {_text(was)}, now it is {_text(is_)}"
    return found


def _text(value: Any) -> str:
    if isinstance(value, Mapping) and {"width", "height"} <= value.keys():
        return f"{value['width']}x{value['height']}"
    return str(value)
