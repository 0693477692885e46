"""Runs mixed programs: threads under a loop, loops under threads, and work handed across.

Strands of a mixed program always keep lines of their own: a loop must not wait for a lock.
"""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import contextlib
import threading
from typing import Any

import httpx

from programs import asynchronous, threaded
from programs.asynchronous import BOUND, World
from programs.threaded import Shared, Strand
from programs.tree import Node, Program


def main(program: Program, url: str) -> tuple[list[str], Any]:
    """The whole program, whichever world its root lives in."""
    if program.root.sync:
        return threaded.main(program, url)
    return asyncio.run(asynchronous.main(program, url))


# Under a loop: nodes whose children are threads' work.


@contextlib.contextmanager
def _strands(world: World, node: Node) -> Any:
    """A strand for each child; what they said enters the trace when the block ended well.

    After a cancellation their threads may still be at work, so their lines are left alone.
    """
    if world.shared is None:
        world.shared = Shared(world.program, world.url, httpx.Client(timeout=10.0, trust_env=False))
    strands = [Strand(world.shared, world) for _ in node.children]
    yield strands
    for strand in strands:
        world.trace.extend(strand.lines)


async def _hand(world: World, node: Node) -> Any:
    how = node.args["how"]
    pool = cf.ThreadPoolExecutor(node.args["size"]) if how == "pool" else None
    try:
        with _strands(world, node) as strands:
            pairs = list(zip(strands, node.children, strict=True))
            if how == "to_thread":
                work = [asyncio.to_thread(threaded.run, *pair) for pair in pairs]
                values = await asyncio.gather(*work, return_exceptions=True)
            else:
                futures = [world.loop.run_in_executor(pool, threaded.run, *pair) for pair in pairs]
                if node.args["collect"]:
                    values = []
                    for following in asyncio.as_completed(futures):
                        try:
                            values.append(await following)
                        except Exception as error:
                            values.append(error)
                        world.say(f"{node.label} next {type(values[-1]).__name__}")
                else:
                    await asyncio.wait(futures, timeout=BOUND)
                    values = [future.exception() or future.result() for future in futures]
            world.say(f"{node.label} back on the loop")
    finally:
        if pool is not None:
            pool.shutdown(wait=False)
    return [type(value).__name__ if isinstance(value, Exception) else value for value in values]


async def _fed(world: World, node: Node) -> Any:
    """A thread feeds an asyncio queue through the loop."""
    items: asyncio.Queue[Any] = asyncio.Queue()

    def feed(strand: Strand, child: Node) -> None:
        value = threaded.attempt(strand, child)
        world.loop.call_soon_threadsafe(items.put_nowait, [child.label, value])

    values = []
    with _strands(world, node) as strands:
        threads = [threading.Thread(target=feed, args=pair) for pair in zip(strands, node.children, strict=True)]
        for thread in threads:
            thread.start()
        for _ in threads:
            values.append(await items.get())
            world.say(f"{node.label} fed {values[-1][0]}")
        for thread in threads:
            await asyncio.to_thread(thread.join, BOUND)
    return values


# Under threads: nodes whose children are a loop's work.


async def _on_new_loop(strand: Strand, node: Node) -> Any:
    """All children as tasks of a loop with a client of its own."""
    async with httpx.AsyncClient(timeout=10.0, trust_env=False) as client:
        world = World(strand.shared.program, strand.shared.url, client, strand.lines)
        world.shared = strand.shared
        return await asyncio.gather(*(asynchronous.attempt(world, child) for child in node.children))


def _own_loop(strand: Strand, node: Node) -> Any:
    def work(strand: Strand) -> Any:
        return asyncio.run(_on_new_loop(strand, node))

    how = node.args["how"]
    if how == "here" and strand.world is None:
        return work(strand)
    child = strand.child()
    try:
        if how == "pool":
            with cf.ThreadPoolExecutor(1) as pool:
                return pool.submit(work, child).result(BOUND)
        values: list[Any] = []
        thread = threading.Thread(target=lambda: values.append(work(child)))
        thread.start()
        thread.join(BOUND)
        return values
    finally:
        strand.join(child)


def _background(strand: Strand, node: Node) -> Any:
    """A thread that runs a loop for ever; this one submits coroutines to it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    lines: list[str] = []
    how = node.args["how"]

    async def begin() -> World:
        client = httpx.AsyncClient(timeout=10.0, trust_env=False)
        world = World(strand.shared.program, strand.shared.url, client, lines)
        world.shared = strand.shared
        return world

    async def end(world: World) -> None:
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await world.client.aclose()

    try:
        world = asyncio.run_coroutine_threadsafe(begin(), loop).result(BOUND)
        futures = {
            asyncio.run_coroutine_threadsafe(asynchronous.run(world, child), loop): child.label
            for child in node.children
        }
        values = []
        if how == "completed":
            for future in cf.as_completed(futures, timeout=BOUND):
                values.append(threaded.outcome(future))
                strand.say(f"{node.label} next {futures[future]}")
        else:
            limit = node.args["ms"] / 1000 if how == "limited" else BOUND
            for future, label in futures.items():
                values.append(threaded.outcome(future, limit))
                strand.say(f"{node.label} {label} gave {type(values[-1]).__name__}")
        asyncio.run_coroutine_threadsafe(end(world), loop).result(BOUND)
        return values
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(BOUND)
        loop.close()
        for line in lines:
            strand.say(line)


def _threadsafe(strand: Strand, node: Node) -> Any:
    """Hands coroutines back to the loop that this thread works for, and waits for them."""
    world = strand.world
    assert world is not None
    limit = node.args["ms"] / 1000 if node.args["how"] == "limited" else BOUND
    values = []
    for child in node.children:
        future = asyncio.run_coroutine_threadsafe(asynchronous.run(world, child), world.loop)
        try:
            values.append(future.result(limit))
        except TimeoutError:
            values.append("late")
            future.cancel()
        except Exception as error:
            values.append(type(error).__name__)
        strand.say(f"{node.label} handed {child.label}")
    return values


asynchronous.OPS |= {"hand": _hand, "fed": _fed}
threaded.OPS |= {"own_loop": _own_loop, "background": _background, "threadsafe": _threadsafe}
