"""Which runs and branches a list of names deletes: what comes from a branch goes with it, and only if that was said."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.address import MAIN, called
from lockstep.log.store import RunReader, Store
from lockstep.log.timeline import branch_of


class Removed(msgspec.Struct, frozen=True):
    """One run, or one branch of one. `size` in bytes, of a run with all its branches."""

    run: str
    branch: str
    address: str
    size: int


def find(store: Store, names: Sequence[str], *, force: bool) -> list[Removed]:
    """What these names mean, each once, in the order in which it can be deleted.

    force  takes also the branches that come from those that are named

    Raises AddressError LS205, LS206, and StoreError LS203 where a branch has others that are not named.
    """
    readers = {(reader.info.name, reader.branch): reader for reader in (branch_of(store, name) for name in names)}
    found = []
    for (run, branch), reader in readers.items():
        if branch == MAIN:
            found.append(Removed(run, MAIN, run, sum(one.size for one in reader.branches)))
        elif (run, MAIN) not in readers:
            others = _below(reader, branch)
            if not force:
                _all_named(run, branch, [one for one in others if (run, one) not in readers])
            found += [_branch(reader, one) for one in [*reversed(others), branch]]
    # What comes from a branch goes before it, so a later mention of the same says nothing new.
    return list({(one.run, one.branch): one for one in found}.values())


def _below(reader: RunReader, branch: str) -> list[str]:
    """The branches that come from one, the older first."""
    gone = {branch}
    found = []
    for one in sorted(reader.branches, key=lambda each: each.id):
        if one.parent in gone and one.name not in gone:
            gone.add(one.name)
            found.append(one.name)
    return found


def _branch(reader: RunReader, name: str) -> Removed:
    info = next(one for one in reader.branches if one.name == name)
    return Removed(reader.info.name, name, called(reader.info.name, name), info.size)


def _all_named(run: str, branch: str, others: Sequence[str]) -> None:
    if others:
        listed = ", ".join(called(run, one) for one in others[:5]) + (", …" if len(others) > 5 else "")
        raise StoreError(
            Code.UNWRITABLE,
            f"{called(run, branch)} has branches that come from it: {listed}. To delete these too: --force",
        )


def remove(store: Store, one: Removed) -> None:
    """Deletes it. Raises StoreError LS203 while it is written."""
    if one.branch == MAIN:
        store.delete_run(one.run)
    else:
        store.delete_branch(one.run, one.branch)
