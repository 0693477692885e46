"""Writes the picture of a page that a step was kept with, for `lockstep show`."""

from __future__ import annotations

import os

from msgspec.structs import replace

from lockstep.debugger import acted, listing
from lockstep.errors import AddressError, Code, StoreError
from lockstep.log import address as addresses
from lockstep.log.timeline import Place

_FOLDER = "pictures"  # beside the store


def written(found: listing.Acted, place: Place, store: str, file: str) -> listing.Acted:
    """The same with its picture written, if it has one.

    store  path of the store
    file   where to; "" for beside the store, where a place that cannot be written is only said

    Raises AddressError LS206 where a file is named and there is no picture, StoreError LS214 where it cannot be
    written."""
    timeline, step = place.timeline, place.step
    assert step is not None
    kept = acted.attachments(timeline, step).get(acted.PICTURE)
    picture = acted.content(timeline, step, kept) if kept is not None else b""
    if not isinstance(picture, bytes) or not picture:
        if file:
            raise AddressError(
                Code.NO_ADDRESS, f"{found.address} has no picture: one is kept where an action changed the page"
            )
        return found
    path = file or os.path.join(os.path.dirname(store) or ".", _FOLDER, _name(found.address))
    try:
        if not file:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as target:
            target.write(picture)
    except OSError as error:
        if file:
            raise StoreError(Code.UNWRITABLE, f"the picture could not be written: {error}") from error
        return replace(found, picture=f"(not written: {error.strerror or error})")
    relative = os.path.relpath(path)
    return replace(found, picture=path if relative.startswith("..") else relative)


def _name(address: str) -> str:
    """A file's name for an address: `playwright/shop:3` is playwright-shop-3.png."""
    parsed = addresses.parse(address)
    parts = [parsed.path, *([parsed.branch] if parsed.branch != addresses.MAIN else []), str(parsed.step)]
    return (
        "".join(character if character.isalnum() or character in "._%" else "-" for character in "-".join(parts))
        + ".png"
    )
