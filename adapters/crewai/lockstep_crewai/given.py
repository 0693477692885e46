"""What a kickoff is given that lies elsewhere: files, and a native checkpoint that it goes on from.

Both are recorded by their content, as they were when the kickoff began, and a replay or fork is given that again, in
files of its own that are gone when the turn is over: what lies there now may be another, or nothing.

    {"name", "bytes"}                           a file that was given by its path
    {"name", "bytes", "class", "mode", "from"}  one of `crewai_files`, by its class; "from": "path" or "data"
    {"url", "class", "mode"}                    likewise: the provider fetches it, or CrewAI, which no replay does
    {"state": {…}}                              a checkpoint: all that CrewAI goes on from, with secrets hidden

A checkpoint may be torn, since CrewAI makes it while its crew goes on; what was made of it then is made of it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crewai.state.provider.utils import detect_provider

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep_crewai.canonical import inert

# Arguments of a kickoff.
INPUTS, INPUT_FILES, CHECKPOINT = "inputs", "input_files", "from_checkpoint"
STATE = "state"
_LIBRARY = "crewai_files"  # comes with the extra `file-processing` of CrewAI's


def is_file(value: Any) -> bool:
    """Whether it is a file of `crewai_files`, without importing that."""
    return any(cls.__module__.startswith(f"{_LIBRARY}.") and cls.__name__ == "BaseFile" for cls in type(value).__mro__)


def file(value: Any) -> Value:
    """A file as data. Raises OSError for one that cannot be read, TypeError for what is none."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str | Path):
        return {"name": Path(value).name, "bytes": Path(value).read_bytes()}
    if not is_file(value):
        raise TypeError(f"a {type(value).__name__} is no file")
    source = value.source
    about: dict[str, Value] = {"class": type(value).__name__, "mode": str(value.mode)}
    if hasattr(source, "url"):
        return {**about, "url": str(source.url)}
    origin = "path" if hasattr(source, "path") else "data"
    return {**about, "from": origin, "name": str(value.filename or ""), "bytes": source.read()}


def content(value: Any) -> Value:
    """A file as a model is asked with it: where it lies does not count."""
    try:
        return file(value)
    except Exception:  # what cannot be read, the provider is not given either
        return inert(value)


def file_again(told: Any, place: Path) -> Any:
    """The file that `file` was given. `place`: a directory for its content. Raises TargetError LS402."""
    if isinstance(told, bytes):
        return told
    if "class" not in told:
        return str(_written(told, place))
    try:
        import crewai_files
    except ImportError as error:
        raise TargetError(
            Code.BAD_TARGET,
            f'the kickoff was given a file of {_LIBRARY}, which is not here: pip install "crewai[file-processing]"',
        ) from error
    cls: Any = getattr(crewai_files, told["class"], None)
    if not isinstance(cls, type) or not issubclass(cls, crewai_files.BaseFile):
        raise TargetError(Code.BAD_TARGET, f"the kickoff was given a {told['class']}, which {_LIBRARY} has not here")
    if "url" in told:
        source: Any = crewai_files.FileUrl(url=told["url"])
    elif told.get("from") == "path":
        source = crewai_files.FilePath(path=_written(told, place))
    else:
        source = crewai_files.FileBytes(data=told["bytes"], filename=told["name"] or None)
    return cls(source=source, mode=told["mode"])


def _written(told: Mapping[str, Any], place: Path) -> Path:
    """A file of that name and content. Each in a folder of its own: two may have one name."""
    folder = place / str(sum(1 for _ in place.iterdir()))
    folder.mkdir()
    found = folder / (Path(str(told["name"])).name or "file")
    found.write_bytes(told["bytes"])
    return found


def checkpoint(config: Any) -> Value:
    """The checkpoint that a kickoff goes on from, as data; None where it goes on from none, and is only told to make
    some. Raises what CrewAI raises where there is none."""
    if config.restore_from is None:
        return None
    location = str(config.restore_from)
    return {STATE: json.loads(detect_provider(location).from_checkpoint(location))}


def checkpoint_again(told: Mapping[str, Any], place: Path) -> Any:
    """A checkpoint with that content, for `from_checkpoint`. `place`: a directory for it."""
    from crewai.state.checkpoint_config import CheckpointConfig

    found = place / "checkpoint.json"
    found.write_text(json.dumps(told[STATE]), "utf-8")
    return CheckpointConfig(location=str(place), restore_from=found)
