"""The hash chain of a stream: shows that no event was changed, dropped, added or moved, times included.

    head(-1) = base(run's start and meta, process), or of a branch `branch_base`
    head(n)  = H(head(n-1), n, all fields of event n, content code of its body)

It covers content, not stored bytes: folding, recompression, export and import keep it valid. The run's
name is not in it, since an import may have to change that.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from lockstep.log.model import Event

HEAD_SIZE = 32

_encode = msgspec.msgpack.Encoder().encode


def base(started: int, meta: bytes, process: str) -> bytes:
    """The head before a stream's first event: binds the stream to its run and process."""
    record = _encode((started, meta, process))
    return blake2b(record, digest_size=HEAD_SIZE, person=b"lockstep.base").digest()


def branch_base(started: int, meta: bytes, process: str, name: str, pos: int, seq: int, head: bytes) -> bytes:
    """The same for a stream of a branch: binds it also to what it shares with its parent. `head`: that of the parent's
    chain before its event number `seq`, the first one that is not shared."""
    record = _encode((started, meta, process, name, pos, seq, head))
    return blake2b(record, digest_size=HEAD_SIZE, person=b"lockstep.branch").digest()


def link(head: bytes, seq: int, event: Event, code: bytes) -> bytes:
    """The head after event number `seq` of the stream; `code` is the content code of its body, b"" for None."""
    record = _encode(
        (
            seq,
            int(event.kind),
            event.pos,
            event.at,
            event.lane,
            event.what,
            event.name,
            event.of,
            event.tick,
            event.key,
        )
    )
    return blake2b(head + record + code, digest_size=HEAD_SIZE, person=b"lockstep.event").digest()
