"""Which calls of Playwright's are steps, which only look, and how each is named.

A step is what may change a page, or what waits for it: goto, click, fill, evaluate, expect. What only looks (title,
inner_text, cookies) is an effect of the step around it. All else (routes, listeners, tracing, timeouts, sessions of the
user's own) does nothing to the page and is neither.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from lockstep.log.model import Value
from lockstep_playwright.actions import values
from lockstep_playwright.actions.values import Find

ACTION, READ = "action", "read"
_WIDE = 60  # characters of a text in a name


class Method(msgspec.Struct, frozen=True):
    """One message of the protocol.

    verb    what it is called
    text    the argument that is shown behind the target, "" for none
    target  likewise, before it
    waits   whether the page is as the call before left it when it begins: it waits until that has been looked at.
            What waits itself, or runs code of the user's in the page, does not
    frees   whether the page stands still until it comes: nothing holds it
    """

    kind: str
    verb: str
    text: str = ""
    target: str = "selector"
    waits: bool = True
    frees: bool = False


def _actions() -> dict[str, Method]:
    on_element = {
        "click": "click", "dblclick": "double-click", "check": "check", "uncheck": "uncheck", "hover": "hover",
        "tap": "tap", "focus": "focus", "blur": "blur", "selectText": "select text of",
        "scrollIntoViewIfNeeded": "scroll to", "setInputFiles": "upload", "drop": "drop on",
    }  # fmt: skip
    with_text = {
        "fill": ("fill", "value"), "press": ("press", "key"), "type": ("type", "text"),
        "selectOption": ("select", "options"), "dispatchEvent": ("dispatch", "type"),
    }  # fmt: skip
    found: dict[str, Method] = {}
    for type in ("Frame", "ElementHandle"):
        for name, verb in on_element.items():
            found[f"{type}.{name}"] = Method(ACTION, verb)
        for name, (verb, text) in with_text.items():
            found[f"{type}.{name}"] = Method(ACTION, verb, text)
        found[f"{type}.waitForSelector"] = Method(ACTION, "wait for", "state", waits=False)
    for type in ("Frame", "JSHandle", "ElementHandle", "Worker"):
        for name in ("evaluateExpression", "evaluateExpressionHandle", "evalOnSelector", "evalOnSelectorAll"):
            found[f"{type}.{name}"] = Method(ACTION, "evaluate", "expression", waits=False)
    return found


_METHODS: dict[str, Method] = {
    **_actions(),
    "Frame.goto": Method(ACTION, "goto", "", "url"),
    "Frame.setContent": Method(ACTION, "set content"),
    "Frame.addScriptTag": Method(ACTION, "add script", "url"),
    "Frame.addStyleTag": Method(ACTION, "add style", "url"),
    "Frame.dragAndDrop": Method(ACTION, "drag", "target", "source"),
    "Frame.expect": Method(ACTION, "expect", waits=False),
    "Frame.waitForFunction": Method(ACTION, "wait for", "expression", "", waits=False),
    "Frame.webmcpCallTool": Method(ACTION, "call tool", "name", ""),
    "ElementHandle.waitForElementState": Method(ACTION, "wait for", "state", "", waits=False),
    "Page.reload": Method(ACTION, "reload"),
    "Page.goBack": Method(ACTION, "go back"),
    "Page.goForward": Method(ACTION, "go forward"),
    "Page.close": Method(ACTION, "close page"),
    "Page.bringToFront": Method(ACTION, "bring to front"),
    "Page.setViewportSize": Method(ACTION, "set viewport", "viewportSize"),
    "Page.emulateMedia": Method(ACTION, "emulate media"),
    "Page.keyboardDown": Method(ACTION, "key down", "key"),
    "Page.keyboardUp": Method(ACTION, "key up", "key"),
    "Page.keyboardPress": Method(ACTION, "press", "key"),
    "Page.keyboardType": Method(ACTION, "type", "text"),
    "Page.keyboardInsertText": Method(ACTION, "insert text", "text"),
    "Page.mouseMove": Method(ACTION, "mouse move", "at"),
    "Page.mouseDown": Method(ACTION, "mouse down"),
    "Page.mouseUp": Method(ACTION, "mouse up"),
    "Page.mouseClick": Method(ACTION, "mouse click", "at"),
    "Page.mouseWheel": Method(ACTION, "mouse wheel", "by"),
    "Page.touchscreenTap": Method(ACTION, "tap", "at"),
    "Page.webStorageSetItem": Method(ACTION, "set storage", "key"),
    "Page.webStorageRemoveItem": Method(ACTION, "remove from storage", "key"),
    "Page.webStorageClear": Method(ACTION, "clear storage"),
    "Dialog.accept": Method(ACTION, "accept dialog", "promptText", "", waits=False, frees=True),
    "Dialog.dismiss": Method(ACTION, "dismiss dialog", "", "", waits=False, frees=True),
    "CDPSession.send": Method(ACTION, "cdp", "", "method", waits=False),
    "APIRequestContext.fetch": Method(ACTION, "fetch", "", "url", waits=False),
    "BrowserContext.newPage": Method(ACTION, "new page"),
    "BrowserContext.addCookies": Method(ACTION, "add cookies"),
    "BrowserContext.clearCookies": Method(ACTION, "clear cookies"),
    "BrowserContext.setStorageState": Method(ACTION, "set storage state"),
    "BrowserContext.grantPermissions": Method(ACTION, "grant permissions"),
    "BrowserContext.clearPermissions": Method(ACTION, "clear permissions"),
    "BrowserContext.setGeolocation": Method(ACTION, "set geolocation"),
    "BrowserContext.setOffline": Method(ACTION, "set offline", "offline"),
    "BrowserContext.setExtraHTTPHeaders": Method(ACTION, "set headers"),
    "Page.setExtraHTTPHeaders": Method(ACTION, "set headers"),
    "BrowserContext.clockInstall": Method(ACTION, "install clock"),
    "BrowserContext.clockFastForward": Method(ACTION, "fast-forward clock"),
    "BrowserContext.clockRunFor": Method(ACTION, "run clock"),
    "BrowserContext.clockPauseAt": Method(ACTION, "pause clock"),
    "BrowserContext.clockResume": Method(ACTION, "resume clock"),
    "BrowserContext.clockSetFixedTime": Method(ACTION, "fix clock"),
    "BrowserContext.clockSetSystemTime": Method(ACTION, "set clock"),
}

# Of requests that the program makes without the browser.
ALONE = frozenset({"fetch", "fetchResponseBody"})

_READS = {
    "Frame": "title content innerText innerHTML textContent getAttribute inputValue isChecked isDisabled isEnabled "
    "isHidden isVisible isEditable querySelector querySelectorAll queryCount ariaSnapshot ariaSnapshotJSON "
    "frameElement webmcpTools",
    "ElementHandle": "innerText innerHTML textContent getAttribute inputValue isChecked isDisabled isEnabled isHidden "
    "isVisible isEditable querySelector querySelectorAll boundingBox contentFrame ownerFrame screenshot jsonValue "
    "getPropertyList getProperty",
    "JSHandle": "jsonValue getPropertyList getProperty",
    "Page": "screenshot expectScreenshot pdf consoleMessages pageErrors requests webStorageItems webStorageGetItem",
    "BrowserContext": "cookies storageState",
    "APIRequestContext": "fetchResponseBody cookies storageState",
    "Response": "body",
}
_WORDS = {"queryCount": "count", "querySelector": "query", "querySelectorAll": "query all", "jsonValue": "value"}

for _type, _names in _READS.items():
    for _name in _names.split():
        _spaced = re.sub("(?<!^)([A-Z])", lambda found: " " + found[1].lower(), _name)
        _METHODS[f"{_type}.{_name}"] = Method(READ, _WORDS.get(_name, _spaced), "name", waits=False)

# Arguments that say how long to wait or that the client adds of itself, and those that are said in another way.
_LEFT_OUT = frozenset(
    {"timeout", "strict", "streams", "directoryStream", "localPaths", "localDirectory", "payloads", "elements"}
)
_SECRET = re.compile(r"pass(word|wd|phrase|code)?\b|pwd|secret|token|otp|one.?time|\bpin\b|cvv|cvc|card.?num", re.I)
HIDDEN = "…"


def known(type: str, method: str) -> Method | None:
    """What a message is; None of one that does nothing to a page."""
    return _METHODS.get(f"{type}.{method}")


def arguments(params: Mapping[str, Any], find: Find) -> dict[str, Value]:
    """What a call was given, by the names of the protocol."""
    made: dict[str, Value] = {}
    for name, value in params.items():
        if value is None or name in _LEFT_OUT:
            continue
        if name in ("arg", "eventInit", "expectedValue"):
            found = values.argument(value, find)
            if found is not None:
                made[name] = found
        else:
            made[name] = _inert(value, find)
    files = _files(params)
    if files:
        made["files"] = files
    elements = params.get("elements")
    if elements:
        made["options"] = [values.handle(one, find) for one in elements]
    return made


def _files(params: Mapping[str, Any]) -> list[Value]:
    """Uploads by the files' names: their content is in the request that sends them."""
    paths = params.get("localPaths") or ([params["localDirectory"]] if params.get("localDirectory") else [])
    given = [re.split(r"[\\/]", str(path))[-1] for path in paths]
    return [*given, *(str(one.get("name")) for one in params.get("payloads") or ())]


def _inert(value: Any, find: Find) -> Value:
    if isinstance(value, Mapping):
        if set(value) == {"guid"}:
            return values.handle(value, find)
        return {str(name): _inert(each, find) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_inert(each, find) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str | bytes) else str(value)


TYPES = frozenset({"fill", "type", "keyboardType", "keyboardInsertText"})  # methods that put a text into a field


def secret(type: str, method: str, arguments: Mapping[str, Value], of: str) -> bool:
    """Whether what is typed goes into a field for secrets, by its name. `of`: the element that a handle is of."""
    return method in TYPES and bool(_SECRET.search(f"{arguments.get('selector', '')!s} {of}"))


def without(arguments: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments without what was typed."""
    return {name: HIDDEN if name in ("value", "text") else value for name, value in arguments.items()}


def name(found: Method, type: str, method: str, arguments: Mapping[str, Any], of: str) -> str:
    """A call in a line: `fill "#q" = "shoes"`. `of`: the element that a handle is of, "" for none."""
    if method == "expect" and type == "Frame":
        return _expectation(arguments)
    target = arguments.get(found.target) if found.target else None
    said = [found.verb]
    if isinstance(target, str) and target:
        said.append(target if found.target in ("url", "method") else _selector(target))
    elif of and type in ("ElementHandle", "JSHandle"):
        said.append(_selector(of))
    if arguments.get("files"):
        said.append("= " + ", ".join(map(str, arguments["files"])))
    text = _text(found.text, arguments)
    if text:
        joins = found.text in ("value", "options") and method in ("fill", "selectOption")
        said.append(f"= {text}" if joins else text)
    return " ".join(said)


def _text(argument: str, arguments: Mapping[str, Any]) -> str:
    match argument:
        case "at":
            return f"{_number(arguments.get('x', 0))},{_number(arguments.get('y', 0))}"
        case "by":
            return f"{_number(arguments.get('deltaX', 0))},{_number(arguments.get('deltaY', 0))}"
        case "viewportSize":
            size = arguments.get(argument)
            return f"{size.get('width')}x{size.get('height')}" if isinstance(size, Mapping) else ""
        case "options":
            given = arguments.get(argument) or ()
            return ", ".join(_shown(_option(one)) for one in given)
        case "expression":
            return _short(str(arguments.get(argument, "")))
        case "key" | "state" | "type" | "name" | "url":
            return _short(str(arguments.get(argument, "")))
    value = arguments.get(argument) if argument else None
    return "" if value is None else _selector(value) if argument == "target" else _shown(value)


def _option(one: Any) -> Any:
    if not isinstance(one, Mapping):
        return one
    for name in ("valueOrLabel", "value", "label", "index", "of"):
        if one.get(name) is not None:
            return one[name]
    return ""


def _expectation(arguments: Mapping[str, Any]) -> str:
    """`expect "h1" to have text "Done"`."""
    said = ["expect"]
    if arguments.get("selector"):
        said.append(_selector(arguments["selector"]))
    if arguments.get("isNot"):
        said.append("not")
    said.append(str(arguments.get("expression", "")).replace(".", " "))
    if arguments.get("expressionArg") is not None:
        said.append(_shown(arguments["expressionArg"]))
    wanted = [
        f"/{one['regexSource']}/" if isinstance(one, Mapping) and one.get("regexSource") else _shown(one.get("string"))
        for one in arguments.get("expectedText") or ()
        if isinstance(one, Mapping)
    ]
    said += [", ".join(wanted)] if wanted else []
    for name in ("expectedNumber", "expectedValue"):
        if arguments.get(name) is not None:
            said.append(_shown(arguments[name]))
    return " ".join(said)


def _selector(text: str) -> str:
    """A locator's text, without what Playwright writes for itself: `"#buy"`, `role=button[name="Buy"]`."""
    if "internal:" not in text:
        return f'"{_short(text)}"'
    return _short(re.sub(r'(?<=")[is](?=\])|(?<=")[is]$', "", re.sub(r"(^|>> ?)internal:", r"\1", text)))


def _shown(value: Any) -> str:
    return f'"{_short(value)}"' if isinstance(value, str) else _short(str(value))


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDE else f"{line[: _WIDE - 1]}…"
