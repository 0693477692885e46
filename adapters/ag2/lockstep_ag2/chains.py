"""The chains that AG2 makes of an agent's middleware, taken apart, so that ours can stand innermost.

AG2 calls the outermost middleware with the next one as `call_next`, down to the client, tool or human. What comes back
from there is from outside; all middleware is the program's own, so that it has to run in a replay too. `inmost` gives
what is at the end of a chain, and `rebuilt` the chain again with another end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any


def inmost(chain: Any) -> Any:
    """The end of a chain; all of it where it is made in a way that is not known here: then what stands outermost is
    what is recorded, which is as exact."""
    while (inner := _inner(chain)) is not None:
        chain = inner[1]
    return chain


def rebuilt(chain: Any, end: Callable[..., Any]) -> Any:
    """The chain with another end."""
    found = _inner(chain)
    if found is None:
        return end
    return _linked(found[0], rebuilt(found[1], end))


def _linked(hook: Any, inner: Any) -> Any:
    async def call(given: Any, context: Any) -> Any:
        return await hook(inner, given, context)

    return call


def _inner(chain: Any) -> tuple[Any, Any] | None:
    """The outermost middleware's hook, and the rest of the chain."""
    if isinstance(chain, partial) and len(chain.args) == 1 and not chain.keywords:
        return chain.func, chain.args[0]
    if isinstance(chain, FunctionType) and chain.__code__.co_freevars == ("hook", "inner"):
        closure = chain.__closure__ or ()
        return closure[0].cell_contents, closure[1].cell_contents
    return None
