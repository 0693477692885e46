"""Makes a random concurrent program from a seed: a tree of `Node`s that an interpreter runs.

A node's `op` is one way of writing concurrency (gather, a pool's map, a queue with workers, …), its
children run inside it. A program holds about thirty events (answers, chunks, timers) and ends by
itself: each lock, queue and event belongs to the one node that uses it, and every wait is bounded.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

KINDS = ("asyncio", "threads", "mixed", "raw", "polls")
EVENTS = 30
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Node:
    """One construct. `sync` says which interpreter runs it; `label` is unique in the program."""

    op: str
    label: str
    sync: bool
    args: dict[str, Any] = field(default_factory=dict)
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program. `lines` says how threads share the trace.

    own     each strand writes lines of its own, which its parent takes over when it joins
    locked  one list, appended to under a lock
    raw     one list, appended to without: a race, and not part of what replay promises
    """

    kind: str
    seed: int
    root: Node
    latency: str
    lines: str
    tidy: bool


def build(kind: str, seed: int) -> Program:
    """The program of that kind and seed, always the same one."""
    rng = random.Random(f"{kind}/{seed}")
    maker = _Maker(rng, kind)
    sync = kind in ("threads", "raw", "polls") or (kind == "mixed" and rng.random() < 0.35)
    lines = {"raw": "raw", "mixed": "own"}.get(kind) or rng.choice(("own", "own", "locked"))
    latency = rng.choice(("quantised", "bursty", "continuous"))
    parts: list[Node] = []
    while maker.spent < EVENTS:
        parts.append(maker.node(sync, EVENTS - maker.spent, 0))
    root = Node("seq", "main", sync, {"careful": True}, tuple(parts))
    return Program(kind, seed, root, latency, lines, tidy=rng.random() < 0.9)


def census(kind: str, seeds: range) -> dict[str, int]:
    """How often each construct occurs in these programs."""
    counts: collections.Counter[str] = collections.Counter()
    for seed in seeds:
        for node in build(kind, seed).root.walk():
            variant = node.args.get("how", "")
            counts[("sync " if node.sync else "async ") + node.op + (f" {variant}" if variant else "")] += 1
    return dict(sorted(counts.items()))


class _Maker:
    """Draws nodes until the events are spent."""

    def __init__(self, rng: random.Random, kind: str) -> None:
        self.rng = rng
        self.kind = kind
        self.spent = 0
        self._labels = 0
        self._bridged = 0
        self._under_loop = False

    def node(self, sync: bool, budget: int, depth: int) -> Node:
        """A leaf where the budget or the depth is used up, else mostly a composite."""
        if budget < 3 or depth >= _DEPTH or (depth > 0 and self.rng.random() < 0.2):
            return self._leaf(sync)
        table = _SYNC if sync else _ASYNC
        if self.kind == "polls":
            table = {**table, **_POLLS}
        if self.kind == "mixed" and self._bridged < 2:
            table = {**table, **(_SYNC_BRIDGES if sync else _ASYNC_BRIDGES)}
            if sync and self._under_loop:
                table["threadsafe"] = (40, _Maker.crossing)
        op = self.rng.choices(list(table), [weight for weight, _ in table.values()])[0]
        return table[op][1](self, op, sync, budget, depth)

    def label(self) -> str:
        self._labels += 1
        return f"n{self._labels}"

    def children(self, sync: bool, budget: int, depth: int, least: int = 2, most: int = 4) -> tuple[Node, ...]:
        number = max(least, min(self.rng.randint(least, most), budget // 2))
        share = max(1, budget // number)
        return tuple(self.node(sync, self.rng.randint(1, share), depth + 1) for _ in range(number))

    def _leaf(self, sync: bool) -> Node:
        rng = self.rng
        op = rng.choices(
            ("call", "stream", "retry", "sleep", "spin", "hurry"), (50, 16, 12, 8, 8 if not sync else 0, 6)
        )[0]
        self.spent += {"call": 1, "stream": 3, "retry": 2, "sleep": 1, "spin": 0, "hurry": 3}[op]
        args: dict[str, Any] = {"key": rng.choice("ab"), "raises": rng.random() < 0.3}
        if op == "call":
            args |= {
                "method": rng.choice(("GET", "POST")),
                "counted": rng.random() < 0.4,
                "limit": rng.choice((None, None, None, None, 2)),
                "hops": rng.choice((0, 0, 1, 2, 3)),
            }
        elif op == "stream":
            args |= {"how": rng.choice(("lines", "lines", "text", "bytes")), "stop": rng.choice((None, None, 1, 2))}
        elif op == "sleep":
            args |= {"ms": rng.choice((0, 1, 1, 2, 3))}
        elif op == "spin":
            args |= {"times": rng.randint(1, 5)}
        elif op == "hurry":
            args |= {"ms": rng.choice((2, 4, 6))}
        return Node(op, self.label(), sync, args)

    def _composite(self, op: str, sync: bool, children: tuple[Node, ...], **args: Any) -> Node:
        return Node(op, self.label(), sync, args, children)

    def plain(self, op: str, sync: bool, budget: int, depth: int) -> Node:
        """A construct over two to four children, with the choices that any of them may use."""
        rng = self.rng
        children = self.children(sync, budget, depth)
        return self._composite(
            op,
            sync,
            children,
            how=_VARIANTS[op](rng) if op in _VARIANTS else "",
            collect=rng.random() < 0.6,
            size=rng.randint(1, 4),
            room=rng.choice((0, 0, 1, 2)),
            ms=rng.choice((1, 2, 3, 5, 8)),
            settle=rng.random() < 0.6,
        )

    def single(self, op: str, sync: bool, budget: int, depth: int) -> Node:
        """A construct around one child: a time limit, a callback, a shield."""
        rng = self.rng
        children = (self.node(sync, budget - 1, depth + 1),)
        how = _VARIANTS[op](rng) if op in _VARIANTS else ""
        self.spent += 1
        return self._composite(op, sync, children, how=how, ms=rng.choice((1, 2, 3, 5, 8)), size=rng.randint(1, 3))

    def crossing(self, op: str, sync: bool, budget: int, depth: int) -> Node:
        """Children of the other world: threads under a loop, a loop under threads."""
        rng = self.rng
        outer = self._bridged, self._under_loop
        # What runs on a loop for a thread must not wait for threads again: the executor could be full.
        self._bridged = 2 if op == "threadsafe" else self._bridged + 1
        self._under_loop = True
        children = self.children(not sync, budget, depth, 1, 3)
        self._bridged, self._under_loop = outer
        how = _VARIANTS[op](rng) if op in _VARIANTS else ""
        return self._composite(
            op, sync, children, how=how, ms=rng.choice((2, 4, 8)), size=rng.randint(1, 4), collect=rng.random() < 0.6
        )


type _Draw = Callable[[_Maker, str, bool, int, int], Node]
type _Table = dict[str, tuple[int, _Draw]]


def _one_of(*names: str) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(names)


_VARIANTS: dict[str, Callable[[random.Random], str]] = {
    "limit": _one_of("wait_for", "timeout", "wait"),
    "first": _one_of("awaited", "dropped", "limited"),
    "completed": _one_of("coroutines", "tasks", "limited", "async"),
    "semaphore": _one_of("Semaphore", "BoundedSemaphore"),
    "queue": _one_of("join", "sentinel", "priority"),
    "timer": _one_of("later", "soon", "cancelled"),
    "pool": _one_of("map", "results", "completed", "wait", "first", "limited", "callback"),
    "threads": _one_of("Thread", "subclass", "timer"),
    "jobs": _one_of("Queue", "LifoQueue", "SimpleQueue", "PriorityQueue", "join"),
    "lock": _one_of("Lock", "RLock"),
    "condition": _one_of("wait", "wait_for"),
    "event": _one_of("event", "limited"),
    "poll": _one_of("done", "alive", "nowait", "try_lock", "is_set", "cancel"),
    "hand": _one_of("to_thread", "default", "pool"),
    "own_loop": _one_of("here", "thread", "pool"),
    "threadsafe": _one_of("plain", "limited"),
    "background": _one_of("results", "completed", "limited"),
}

_ASYNC: _Table = {
    "seq": (5, _Maker.plain),
    "gather": (14, _Maker.plain),
    "group": (9, _Maker.plain),
    "limit": (9, _Maker.single),
    "shield": (3, _Maker.single),
    "first": (10, _Maker.plain),
    "drain": (5, _Maker.plain),
    "completed": (9, _Maker.plain),
    "semaphore": (7, _Maker.plain),
    "lock": (5, _Maker.plain),
    "queue": (9, _Maker.plain),
    "callback": (5, _Maker.single),
    "event": (3, _Maker.plain),
    "condition": (3, _Maker.plain),
    "barrier": (3, _Maker.plain),
    "generator": (4, _Maker.plain),
    "peek": (4, _Maker.single),
    "timer": (3, _Maker.single),
}
_SYNC: _Table = {
    "seq": (5, _Maker.plain),
    "pool": (30, _Maker.plain),
    "threads": (12, _Maker.plain),
    "jobs": (14, _Maker.plain),
    "lock": (9, _Maker.plain),
    "condition": (6, _Maker.plain),
    "event": (6, _Maker.plain),
    "semaphore": (6, _Maker.plain),
    "barrier": (5, _Maker.plain),
}
_POLLS: _Table = {"poll": (40, _Maker.plain)}
_ASYNC_BRIDGES: _Table = {"hand": (60, _Maker.crossing), "fed": (15, _Maker.crossing)}
_SYNC_BRIDGES: _Table = {"own_loop": (40, _Maker.crossing), "background": (30, _Maker.crossing)}
