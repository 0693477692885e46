"""What a bisect and its Temporal workers tell each other of a probe.

An order says which probe is wanted, of which recording. It never says what is executed: a worker runs what its own user
gave it, and refuses an order that is for something else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version

import msgspec

from lockstep.debugger.probes import Made
from lockstep.errors import Code, TargetError
from lockstep.log.placeholders import MARK
from lockstep_temporal.probe_parts import Content

FORMAT = 1  # of what is sent
_INTERPRETER = re.compile(r"python[\d.]*(\.exe)?")


class Recording(msgspec.Struct, frozen=True):
    """A run that a probe needs, and what it is in a store elsewhere.

    identity  what it holds (`lockstep.log.carried`); content: as it is carried
    """

    run: str
    identity: str
    content: Content


class Sent(msgspec.Struct, frozen=True):
    """An order on its way.

    order       an `Order`, packed
    recordings  the run, and another one whose answers the probe gives
    sources     what the program's files are where the bisect is made: digests by name; those that are not there are
                left out
    again       of a probe that is made again although it has been: what tells it from the one before
    """

    format: int
    version: str
    order: bytes
    recordings: tuple[Recording, ...]
    sources: Mapping[str, bytes]
    again: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What became of it. `branch`: what the probe's branch wrote, as it is carried. `worker`: who made it. `unmade`:
    code and reason of an answer that cannot be given, so that nothing ran. Of a probe that was ended before its end
    there is at most a branch."""

    worker: str
    made: Made | None = None
    branch: Content = Content(b"")
    unmade: tuple[str, str] | None = None


class _Head(msgspec.Struct):
    """What any version can read of an order."""

    format: int = 0
    version: str = ""


encode = msgspec.msgpack.Encoder().encode
read_answer = msgspec.msgpack.Decoder(Answer).decode
read_content = msgspec.msgpack.Decoder(Content).decode
_read_head = msgspec.msgpack.Decoder(_Head).decode
_read_sent = msgspec.msgpack.Decoder(Sent).decode


def here() -> str:
    """This Lockstep's version, "" in a checkout that is not installed."""
    try:
        return version("lockstep-replay")
    except PackageNotFoundError:
        return ""


def read(data: bytes, worker: str) -> Sent:
    """An order as it came. Raises TargetError LS413 where another version of Lockstep wrote it: its probes might not be
    those of this one."""
    try:
        head = _read_head(data)
        if head.format == FORMAT and head.version == here():
            return _read_sent(data)
    except msgspec.DecodeError as error:
        raise TargetError(Code.WORKERS, f"worker {worker} was sent what is no order: {error}") from error
    mine, theirs = (one or "(a checkout)" for one in (here(), head.version))
    raise TargetError(
        Code.WORKERS,
        f"worker {worker} has lockstep {mine}, and the bisect lockstep {theirs}: a probe has to be the same probe "
        "everywhere. Install the same version on both",
    )


# What is run.


def sources(words: Sequence[str], target: str, directory: str) -> dict[str, bytes]:
    """The files that a command or target names, by the words: digests of what is in them."""
    named = {str(number): word for number, word in enumerate(words) if number or word.endswith(".py")}
    modules = (
        [target.partition(":")[0]] if target else list(words[words.index("-m") + 1 :][:1]) if "-m" in words else []
    )
    for module in modules:
        path = module.replace(".", os.sep)
        named |= {
            f"{module} module": f"{path}.py", f"{module} package": os.path.join(path, "__init__.py"),
            f"{module} main": os.path.join(path, "__main__.py"),
        }  # fmt: skip
    found = {}
    for name, word in named.items():
        path = os.path.join(directory, word)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[name] = blake2b(file.read(), digest_size=16).digest()
    return found


def same(ours: Sequence[str], asked: Sequence[str]) -> bool:
    """Whether two commands are the same one on two machines: paths may lead elsewhere, and secrets differ."""
    return len(ours) == len(asked) and all(
        _same_word(mine, theirs, first=number == 0)
        for number, (mine, theirs) in enumerate(zip(ours, asked, strict=True))
    )


def _same_word(mine: str, theirs: str, *, first: bool) -> bool:
    if mine == theirs or MARK in theirs.encode("utf-8", "surrogateescape"):
        return True
    names = os.path.basename(mine), os.path.basename(theirs)
    if first and all(_INTERPRETER.fullmatch(name) for name in names):
        return True
    return names[0] == names[1] and bool(names[0]) and (os.path.isabs(mine) or os.path.isabs(theirs))
