"""The tables, all SQL that makes them, and the format's version.

A row of `segment` or `big` belongs to a stream by its key: `stream << 40 | number`. So a run is read,
deleted and exported by ranges of keys, and needs no secondary index and no garbage collection.
"""

from __future__ import annotations

APPLICATION_ID = 0x4C535470  # "LStp"
FORMAT = 1

# Columns that listing and seeking need stand before the payloads: SQLite reads no further than it is asked.
TABLES = (
    """CREATE TABLE store (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    # origin: the file that it was imported from; empty for what was recorded here
    """CREATE TABLE run (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, started INTEGER NOT NULL,
 origin TEXT NOT NULL, meta BLOB NOT NULL) STRICT""",
    # Of one that left another (else 0 and empty): its parent, the position up to which it shares the parent's events,
    # the number of its first own event, the steps closed before that, the head of the parent's chain there, and the
    # calls in flight there (see lockstep.log.cut)
    """CREATE TABLE branch (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, name TEXT NOT NULL, parent INTEGER NOT NULL,
 pos INTEGER NOT NULL, seq INTEGER NOT NULL, steps INTEGER NOT NULL, head BLOB NOT NULL, flying BLOB NOT NULL,
 UNIQUE (run, name)) STRICT""",
    # state: 0 open, 1 complete, 2 failed, 3 refused; events, steps, size and head are those at its end
    """CREATE TABLE stream (id INTEGER PRIMARY KEY, branch INTEGER NOT NULL, process TEXT NOT NULL,
 base BLOB NOT NULL, state INTEGER NOT NULL, events INTEGER NOT NULL, steps INTEGER NOT NULL,
 size INTEGER NOT NULL, faults INTEGER NOT NULL, head BLOB NOT NULL) STRICT""",
    # steps, size, late: totals of the stream up to the row's end; blob: number of its first blob
    """CREATE TABLE segment (id INTEGER PRIMARY KEY, count INTEGER NOT NULL, steps INTEGER NOT NULL,
 size INTEGER NOT NULL, late INTEGER NOT NULL, blob INTEGER NOT NULL, head BLOB NOT NULL,
 cols BLOB NOT NULL, body BLOB NOT NULL) STRICT""",
    """CREATE TABLE big (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT""",
    # of a keyed stream, up to its last commit; see lockstep.log.seal
    """CREATE TABLE seal (stream INTEGER PRIMARY KEY, key TEXT NOT NULL, events INTEGER NOT NULL,
 mac BLOB NOT NULL) STRICT""",
    """CREATE INDEX stream_branch ON stream (branch)""",
)

# A tape holds one run and is only read: what a store needs to find one of many would be most of a small tape.
TAPE = tuple(
    sql.replace(" NOT NULL UNIQUE", " NOT NULL").replace(",\n UNIQUE (run, name)", "").replace(",\n", ", ")
    for sql in TABLES
    if sql.startswith("CREATE TABLE")
)


def _listed(statements: tuple[str, ...]) -> frozenset[tuple[str, str, str, str | None]]:
    """What sqlite_schema holds after these statements."""
    found: list[tuple[str, str, str, str | None]] = []
    for sql in statements:
        kind, name = sql.split(maxsplit=3)[1:3]
        table = sql.split(" ON ", 1)[1].split()[0] if kind == "INDEX" else name
        found.append((kind.lower(), name, table, sql))
        # A key that is not the row's number, and each UNIQUE, has an index of its own.
        keys = sql.count("UNIQUE") + (" TEXT PRIMARY KEY" in sql and "WITHOUT ROWID" not in sql)
        found += [("index", f"sqlite_autoindex_{name}_{number + 1}", name, None) for number in range(keys)]
    return frozenset(found)


# The schemas that are read, word for word: that of a store and that of a tape.
KNOWN = (_listed(TABLES), _listed(TAPE))

STATES = {"complete": 1, "failed": 2, "refused": 3}

SHIFT = 40


def first_key(stream: int) -> int:
    """The smallest key of a stream's rows."""
    return stream << SHIFT


def last_key(stream: int) -> int:
    """The largest possible key of a stream's rows."""
    return ((stream + 1) << SHIFT) - 1


def number(key: int) -> int:
    """The event's or leaf's number in its stream, from a key."""
    return key & ((1 << SHIFT) - 1)
