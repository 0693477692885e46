"""What `attach` cannot see: a model's client or a tool that an agent's own code has somewhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, cast

from autogen_core import MessageHandlerContext
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import BaseTool, Workbench

from lockstep.errors import Code, TargetError
from lockstep.session import snapshot
from lockstep.session.call import Call
from lockstep_autogen import attaching
from lockstep_autogen.layout import TOOL
from lockstep_autogen.models import Model
from lockstep_autogen.places import Place
from lockstep_autogen.tools import Bench, Tool, effect_of, outside, question


def record_model[T](client: T) -> T:
    """A stand-in for a model's client whose calls are recorded with the team that is running when it is asked. For a
    client that an agent's own code keeps where `attach` does not find it."""
    if not isinstance(client, ChatCompletionClient):
        raise TargetError(Code.BAD_TARGET, f"record_model takes a ChatCompletionClient, not a {type(client).__name__}")
    return cast("T", Model(client, cast("Place", _Anywhere())))


def record_tool[T](tool: T) -> T:
    """The same for a tool or a workbench, or a function that an agent's own code calls: its calls are effects."""
    place = cast("Place", _Anywhere())
    if isinstance(tool, Workbench):
        return cast("T", Bench(tool, place))
    if isinstance(tool, BaseTool):
        return cast("T", Tool(tool, place))
    if iscoroutinefunction(tool):
        return cast("T", _function(tool, place))
    raise TargetError(
        Code.BAD_TARGET,
        f"record_tool takes a tool, a workbench or an async function, not {tool!r}: of a plain function make a"
        " FunctionTool",
    )


def _function(plain: Callable[..., Any], place: Place) -> Any:
    from inspect import signature

    shape = signature(plain)

    @functools.wraps(plain)
    async def function(*args: Any, **options: Any) -> Any:
        given = dict(shape.bind(*args, **options).arguments)
        asked = question(plain.__name__, given, None, effect_of(None, plain, plain.__name__))
        return await outside(
            place, TOOL, asked, lambda: plain(*args, **options), snapshot.to_value, snapshot.from_value
        )  # fmt: skip

    return function


class _Anywhere:
    """The place of whoever calls: an agent of the attached team that is running."""

    def asked(self, kind: str, make: Any) -> Call | None:
        """See `Place.asked`. None where no attached team is running."""
        place = _here()
        return place.asked(kind, make) if place is not None else None

    def fault(self, where: str, error: BaseException) -> None:
        """See `Place.fault`."""
        place = _here()
        if place is not None:
            place.fault(where, error)

    def broke(self, error: BaseException) -> None:
        """See `Place.broke`."""
        place = _here()
        if place is not None:
            place.broke(error)


def _here() -> Place | None:
    """The agent whose code is running, as AutoGen knows it. Of an agent by itself it knows nothing: then the one
    attached agent whose turn is on."""
    roots = attaching.running()
    try:
        topic = str(MessageHandlerContext.agent_id().type)
    except RuntimeError:
        topic = ""
    for root in roots if topic else ():
        for lane, ear in root.ears.items():
            if name := ear.named(topic):
                return Place(root, f"{lane}/{name}")
    if len(roots) == 1:
        return Place(roots[0], roots[0].lane)
    for root in roots:
        root.seams.told.fault(
            "a call of record_model or record_tool", LookupError("several agents run, and any may be it")
        )
    return None
