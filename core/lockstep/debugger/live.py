"""What of a run was live while it was recorded: known before anybody replays it."""

from __future__ import annotations

from lockstep.debugger.words import NOT_COVERED
from lockstep.log.model import Kind
from lockstep.log.store import RunReader
from lockstep.session.report import Coverage


def recorded(reader: RunReader) -> tuple[Coverage, ...]:
    """The sources that nobody recorded, of all processes. Looks at the last event of each."""
    found: dict[tuple[str, str], int] = {}
    for stream in reader.streams:
        last = stream.events - 1
        for event in reader.events(stream.id, last) if last >= 0 else ():
            body = event.body
            notes = body.get("notes") if event.kind is Kind.FINISH and isinstance(body, dict) else None
            for note in notes if isinstance(notes, list) else ():
                if isinstance(note, list) and len(note) == 3 and isinstance(note[2], int):
                    key = (str(note[0]), str(note[1]))
                    found[key] = found.get(key, 0) + note[2]
    return tuple(Coverage(source, NOT_COVERED, count, detail) for (source, detail), count in sorted(found.items()))
