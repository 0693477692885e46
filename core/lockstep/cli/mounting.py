"""Commands that adapters bring: `lockstep temporal pull`. They are looked for only where a line has none of ours."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import typer

from lockstep.errors import AdapterError, Code


def mount(app: typer.Typer, words: Sequence[str]) -> None:
    """Adds to the command line the commands that the words may mean: all adapters' where help is asked for."""
    own = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb in own:
        return
    from lockstep.adapter import registry

    for adapter in registry.installed():
        if adapter.commands and (adapter.name == verb or not verb):
            app.add_typer(_load(adapter.name, adapter.commands), name=adapter.name)


def _load(name: str, reference: str) -> typer.Typer:
    module, _, attribute = reference.partition(":")
    found = getattr(import_module(module), attribute, None)
    if not isinstance(found, typer.Typer):
        raise AdapterError(Code.BAD_ADAPTER, f"the adapter {name} cannot be used: {reference} is no typer application")
    return found
