"""Runs asyncio programs: each construct as people write it, with a real `httpx.AsyncClient`."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx

from programs.tree import Node, Program

BOUND = 20.0  # seconds: no wait of a program is longer, whatever happens


class World:
    """What the tasks of one loop share: the client, the trace and a counter that enters requests."""

    def __init__(self, program: Program, url: str, client: httpx.AsyncClient, trace: list[str]) -> None:
        self.program = program
        self.url = url
        self.client = client
        self.trace = trace
        self.total = 0
        self.loop = asyncio.get_running_loop()
        self.shared: Any = None  # mixed programs: what the threads share

    def say(self, line: str) -> None:
        self.trace.append(line)


async def main(program: Program, url: str) -> tuple[list[str], Any]:
    """The whole program: its trace and its value, as they stood when it returned."""
    trace: list[str] = []
    async with httpx.AsyncClient(timeout=10.0, trust_env=False) as client:
        world = World(program, url, client, trace)
        try:
            async with asyncio.timeout(BOUND):
                value = await run(world, program.root)
        except Exception as error:
            value = f"main {type(error).__name__}"
        if program.tidy:
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        return list(trace), value


async def run(world: World, node: Node) -> Any:
    """Runs one node: its value, or the exception that its own calls let through."""
    return await OPS[node.op](world, node)


async def attempt(world: World, node: Node) -> Any:
    """The same for callers that live with failures."""
    try:
        return await run(world, node)
    except Exception as error:
        world.say(f"{node.label} gave {type(error).__name__}")
        return type(error).__name__


def _named(value: Any) -> Any:
    return type(value).__name__ if isinstance(value, BaseException) else value


# Leaves: what comes from outside.


async def _ask(world: World, node: Node, fail: int = 12) -> str:
    args = node.args
    params: dict[str, Any] = {"q": args["key"], "latency": world.program.latency, "fail": fail}
    if args.get("counted"):
        world.total += 1
        params["n"] = world.total
    limit = args.get("limit")
    timeout = 10.0 if limit is None else limit / 1000
    if args.get("method") == "POST":
        response = await world.client.post(
            f"{world.url}/answer", params=params, json={"messages": [args["key"]]}, timeout=timeout
        )
    else:
        response = await world.client.get(f"{world.url}/answer", params=params, timeout=timeout)
    response.raise_for_status()
    if args.get("counted"):
        world.total += int(response.text.rpartition("-")[2]) % 5
    text: str = response.text
    return text


async def _call(world: World, node: Node) -> Any:
    world.say(f"{node.label} asks")
    try:
        text = await _ask(world, node)
    except httpx.HTTPError as error:
        world.say(f"{node.label} {type(error).__name__}")
        if node.args["raises"]:
            raise
        return "failed"
    except asyncio.CancelledError:
        world.say(f"{node.label} cancelled")
        for hop in range(node.args["hops"]):
            await asyncio.sleep(0)
            world.say(f"{node.label} cleans {hop}")
        raise
    world.say(f"{node.label} {text}")
    return text


async def _stream(world: World, node: Node) -> Any:
    seen: list[str] = []
    params = {"q": node.args["key"], "latency": world.program.latency}
    try:
        async with world.client.stream("GET", f"{world.url}/stream", params=params) as response:
            response.raise_for_status()
            world.say(f"{node.label} streams")
            how = node.args["how"]
            if how == "bytes":
                parts: AsyncIterator[Any] = response.aiter_bytes()
            else:
                parts = response.aiter_lines() if how == "lines" else response.aiter_text()
            async for part in parts:
                seen.append(part.decode() if isinstance(part, bytes) else part)
                world.say(f"{node.label} {seen[-1]}")
                if len(seen) == node.args["stop"]:
                    break
    except httpx.HTTPError as error:
        world.say(f"{node.label} {type(error).__name__} after {len(seen)}")
        if node.args["raises"]:
            raise
    return seen


async def _retry(world: World, node: Node) -> Any:
    for number in range(3):
        try:
            text = await _ask(world, node, fail=40)
        except httpx.HTTPError as error:
            world.say(f"{node.label} try {number} {type(error).__name__}")
            await asyncio.sleep(0.001 * 2**number * random.uniform(0.5, 1.5))
        else:
            world.say(f"{node.label} {text}")
            return text
    return "gave up"


async def _sleep(world: World, node: Node) -> Any:
    await asyncio.sleep(node.args["ms"] / 1000)
    world.say(f"{node.label} slept")
    return node.args["ms"]


async def _spin(world: World, node: Node) -> Any:
    for number in range(node.args["times"]):
        world.say(f"{node.label} spin {number}")
        await asyncio.sleep(0)
    return node.args["times"]


async def _hurry(world: World, node: Node) -> Any:
    """Asks until the time is up: the clock decides how many requests there are."""
    end = time.monotonic() + node.args["ms"] / 1000
    got = 0
    while time.monotonic() < end and got < 4:
        with contextlib.suppress(httpx.HTTPError):
            world.say(f"{node.label} {await _ask(world, node)}")
        got += 1
    return got


# Constructs around children.


async def _seq(world: World, node: Node) -> Any:
    careful = node.args.get("careful") or node.args.get("collect")
    return [await (attempt if careful else run)(world, child) for child in node.children]


async def _gather(world: World, node: Node) -> Any:
    coroutines = [run(world, child) for child in node.children]
    values = await asyncio.gather(*coroutines, return_exceptions=node.args["collect"])
    world.say(f"{node.label} gathered")
    return [_named(value) for value in values]


async def _group(world: World, node: Node) -> Any:
    tasks: list[asyncio.Task[Any]] = []
    try:
        async with asyncio.TaskGroup() as group:
            for child in node.children:
                tasks.append(group.create_task(run(world, child)))
                if node.args["settle"]:
                    await asyncio.sleep(0)
    except* Exception as failures:
        world.say(f"{node.label} lost {[type(e).__name__ for e in failures.exceptions]}")
    return [None if task.cancelled() or task.exception() else task.result() for task in tasks]


async def _limit(world: World, node: Node) -> Any:
    seconds = node.args["ms"] / 1000
    try:
        if node.args["how"] == "timeout":
            async with asyncio.timeout(seconds):
                return await run(world, node.children[0])
        if node.args["how"] == "wait_for":
            return await asyncio.wait_for(run(world, node.children[0]), seconds)
        task = asyncio.create_task(run(world, node.children[0]))
        done, _ = await asyncio.wait([task], timeout=seconds)
        if done:
            return await task
        task.cancel()
        world.say(f"{node.label} waited long enough")
        return "cancelled"
    except TimeoutError:
        world.say(f"{node.label} timed out")
        return "late"


async def _shield(world: World, node: Node) -> Any:
    task = asyncio.ensure_future(run(world, node.children[0]))
    try:
        return await asyncio.wait_for(asyncio.shield(task), node.args["ms"] / 1000)
    except TimeoutError:
        world.say(f"{node.label} goes on behind the shield")
        return await task


async def _first(world: World, node: Node) -> Any:
    how = node.args["how"]
    tasks = [asyncio.create_task(run(world, child), name=child.label) for child in node.children]
    limit = node.args["ms"] / 1000 if how == "limited" else BOUND
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=limit)
    values = []
    for task in done:
        values.append(_named(task.exception() or task.result()))
        world.say(f"{node.label} first {task.get_name()} {values[-1]}")
    for task in pending:
        task.cancel()
        world.say(f"{node.label} cancels {task.get_name()}")
    if how == "awaited":
        for value in await asyncio.gather(*pending, return_exceptions=True):
            world.say(f"{node.label} ended {_named(value)}")
    return values


async def _drain(world: World, node: Node) -> Any:
    pending = {asyncio.create_task(run(world, child), name=child.label) for child in node.children}
    values = []
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            values.append(_named(task.exception() or task.result()))
            world.say(f"{node.label} drained {task.get_name()}")
    return values


async def _completed(world: World, node: Node) -> Any:
    how = node.args["how"]
    values = []
    if how == "async" and sys.version_info >= (3, 13):
        tasks = [asyncio.create_task(run(world, child), name=child.label) for child in node.children]
        async for task in asyncio.as_completed(tasks):
            values.append(_named(task.exception() or task.result()))
            world.say(f"{node.label} next {task.get_name()}")
        return values
    work: list[Any] = [run(world, child) for child in node.children]
    if how == "tasks":
        work = [asyncio.create_task(coroutine) for coroutine in work]
    limit = node.args["ms"] / 1000 if how == "limited" else None
    for following in asyncio.as_completed(work, timeout=limit):
        try:
            values.append(await following)
        except Exception as error:
            values.append(type(error).__name__)
        world.say(f"{node.label} next {values[-1]}")
    return values


async def _semaphore(world: World, node: Node) -> Any:
    semaphore = getattr(asyncio, node.args["how"])(node.args["size"])

    async def one(child: Node) -> Any:
        async with semaphore:
            world.say(f"{child.label} in")
            return await run(world, child)

    values = await asyncio.gather(*(one(child) for child in node.children), return_exceptions=True)
    return [_named(value) for value in values]


async def _lock(world: World, node: Node) -> Any:
    lock = asyncio.Lock()

    async def one(child: Node) -> Any:
        if node.args["settle"]:
            await attempt(world, child)
        async with lock:
            before = world.total
            await asyncio.sleep(0)
            value = await attempt(world, child) if not node.args["settle"] else before
            world.total = before + 1
            world.say(f"{child.label} had the lock at {before}")
            return value

    return await asyncio.gather(*(one(child) for child in node.children))


async def _queue(world: World, node: Node) -> Any:
    how, room = node.args["how"], node.args["room"]
    queue: asyncio.Queue[Any] = asyncio.PriorityQueue(room) if how == "priority" else asyncio.Queue(room)
    results: list[Any] = []

    async def worker(name: str) -> None:
        while True:
            rank, index = await queue.get()
            try:
                if index < 0:
                    return
                child = node.children[index]
                world.say(f"{name} takes {child.label} of rank {rank}")
                results.append(await attempt(world, child))
            finally:
                queue.task_done()

    workers = [asyncio.create_task(worker(f"{node.label}w{number}")) for number in range(node.args["size"])]
    try:
        for index in range(len(node.children)):
            await queue.put((-index, index))
            world.say(f"{node.label} put {index}")
        if how == "sentinel":
            for _ in workers:
                await queue.put((1, -1))
            await asyncio.gather(*workers)
        else:
            await queue.join()
            world.say(f"{node.label} joined")
    finally:
        for task in workers:
            task.cancel()
    return results


async def _callback(world: World, node: Node) -> Any:
    begun: list[asyncio.Task[Any]] = []
    child = node.children[0]

    def then(task: asyncio.Task[Any]) -> None:
        world.say(f"{node.label} called back, cancelled {task.cancelled()}")
        begun.extend(world.loop.create_task(attempt(world, child)) for _ in range(node.args["size"]))

    task = asyncio.create_task(attempt(world, child))
    task.add_done_callback(then)
    first = await task
    world.say(f"{node.label} {len(begun)} begun")
    return [first, *await asyncio.gather(*begun)]


async def _event(world: World, node: Node) -> Any:
    event = asyncio.Event()

    async def opener(child: Node) -> Any:
        try:
            return await attempt(world, child)
        finally:
            event.set()

    async def waiter(child: Node) -> Any:
        await event.wait()
        world.say(f"{child.label} may go")
        return await attempt(world, child)

    first, *rest = node.children
    return await asyncio.gather(opener(first), *(waiter(child) for child in rest))


async def _condition(world: World, node: Node) -> Any:
    condition = asyncio.Condition()
    ready: list[Any] = []

    async def producer(child: Node) -> None:
        value = await attempt(world, child)
        async with condition:
            ready.append(value)
            condition.notify_all()

    async def consumer(number: int) -> Any:
        async with condition:
            await condition.wait_for(lambda: len(ready) > number)
            world.say(f"{node.label} consumer {number} sees {len(ready)}")
            return list(ready)

    consumers = [asyncio.create_task(consumer(number)) for number in range(len(node.children))]
    try:
        await asyncio.gather(*(producer(child) for child in node.children))
        return await asyncio.gather(*consumers)
    finally:
        for task in consumers:
            task.cancel()


async def _barrier(world: World, node: Node) -> Any:
    barrier = asyncio.Barrier(len(node.children))

    async def party(child: Node) -> Any:
        value = await attempt(world, child)
        place = await barrier.wait()
        world.say(f"{child.label} passed as {place}")
        return [place, value]

    return await asyncio.gather(*(party(child) for child in node.children))


async def _generator(world: World, node: Node) -> Any:
    async def produce() -> AsyncIterator[Any]:
        try:
            for child in node.children:
                yield await attempt(world, child)
        finally:
            world.say(f"{node.label} generator closed")

    values: list[Any] = []
    async with contextlib.aclosing(produce()) as items:  # type: ignore[type-var]
        async for value in items:
            values.append(value)
            if node.args["settle"] and len(values) == node.args["size"]:
                break
    return values


async def _peek(world: World, node: Node) -> Any:
    """Polls a task, which on a loop is exact: nothing moves between two suspensions."""
    task = asyncio.create_task(attempt(world, node.children[0]))
    looks = 0
    while not task.done() and looks < 12:
        await asyncio.sleep(0)
        looks += 1
    world.say(f"{node.label} looked {looks} times")
    return await task


async def _timer(world: World, node: Node) -> Any:
    future: asyncio.Future[str] = world.loop.create_future()

    def fire(text: str) -> None:
        world.say(f"{node.label} fires {text}")
        if not future.done():
            future.set_result(text)

    handles: list[asyncio.Handle] = [world.loop.call_later(node.args["ms"] / 1000, fire, "later")]
    if node.args["how"] == "soon":
        handles.append(world.loop.call_soon(fire, "soon"))
    value = await attempt(world, node.children[0])
    if node.args["how"] == "cancelled":
        handles[0].cancel()
        world.loop.call_soon(fire, "instead")
    return [value, await future]


OPS: dict[str, Callable[[World, Node], Awaitable[Any]]] = {
    "call": _call,
    "stream": _stream,
    "retry": _retry,
    "sleep": _sleep,
    "spin": _spin,
    "hurry": _hurry,
    "seq": _seq,
    "gather": _gather,
    "group": _group,
    "limit": _limit,
    "shield": _shield,
    "first": _first,
    "drain": _drain,
    "completed": _completed,
    "semaphore": _semaphore,
    "lock": _lock,
    "queue": _queue,
    "callback": _callback,
    "event": _event,
    "condition": _condition,
    "barrier": _barrier,
    "generator": _generator,
    "peek": _peek,
    "timer": _timer,
}
