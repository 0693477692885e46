"""Runs thread programs: pools, threads, queues and locks as people write them, with a real `httpx.Client`."""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx

from programs.asynchronous import BOUND, World
from programs.tree import Node, Program


class Shared:
    """What all threads of a program share: the client, a counter that enters requests, a trace."""

    def __init__(self, program: Program, url: str, client: httpx.Client) -> None:
        self.program = program
        self.url = url
        self.client = client
        self.trace: list[str] = []
        self.lock = threading.Lock()
        self.total = 0

    def count(self, amount: int) -> int:
        if self.program.lines == "raw":
            self.total += amount
            return self.total
        with self.lock:
            self.total += amount
            return self.total


class Strand:
    """One strand's view: where its lines go, and the loop that it may hand work back to."""

    def __init__(self, shared: Shared, world: World | None = None) -> None:
        self.shared = shared
        self.world = world
        self.lines: list[str] = [] if shared.program.lines == "own" else shared.trace

    def say(self, line: str) -> None:
        if self.shared.program.lines == "locked":
            with self.shared.lock:
                self.lines.append(line)
        else:
            self.lines.append(line)

    def child(self, world: World | None = None) -> Strand:
        """For work that runs elsewhere; hand it to `join` when it has ended."""
        return Strand(self.shared, world or self.world)

    def join(self, *children: Strand) -> None:
        for child in children:
            if child.lines is not self.lines:
                self.lines.extend(child.lines)


def main(program: Program, url: str) -> tuple[list[str], Any]:
    """The whole program: its trace and its value."""
    with httpx.Client(timeout=10.0, trust_env=False) as client:
        strand = Strand(Shared(program, url, client))
        value = run(strand, program.root)
        return strand.lines, value


def run(strand: Strand, node: Node) -> Any:
    """Runs one node: its value, or the exception that its own calls let through."""
    return OPS[node.op](strand, node)


def attempt(strand: Strand, node: Node) -> Any:
    """The same for callers that live with failures."""
    try:
        return run(strand, node)
    except Exception as error:
        strand.say(f"{node.label} gave {type(error).__name__}")
        return type(error).__name__


def outcome(future: cf.Future[Any], timeout: float = BOUND) -> Any:
    """A future's value, or the name of its exception."""
    try:
        return future.result(timeout)
    except Exception as error:
        return type(error).__name__


# Leaves: what comes from outside.


def _ask(strand: Strand, node: Node, fail: int = 12) -> str:
    args, shared = node.args, strand.shared
    params: dict[str, Any] = {"q": args["key"], "latency": shared.program.latency, "fail": fail}
    if args.get("counted"):
        params["n"] = shared.count(1)
    limit = args.get("limit")
    timeout = 10.0 if limit is None else limit / 1000
    if args.get("method") == "POST":
        body = {"messages": [args["key"]]}
        response = shared.client.post(f"{shared.url}/answer", params=params, json=body, timeout=timeout)
    else:
        response = shared.client.get(f"{shared.url}/answer", params=params, timeout=timeout)
    response.raise_for_status()
    if args.get("counted"):
        shared.count(int(response.text.rpartition("-")[2]) % 5)
    text: str = response.text
    return text


def _call(strand: Strand, node: Node) -> Any:
    strand.say(f"{node.label} asks")
    try:
        text = _ask(strand, node)
    except httpx.HTTPError as error:
        strand.say(f"{node.label} {type(error).__name__}")
        if node.args["raises"]:
            raise
        return "failed"
    strand.say(f"{node.label} {text}")
    return text


def _stream(strand: Strand, node: Node) -> Any:
    shared = strand.shared
    seen: list[str] = []
    params = {"q": node.args["key"], "latency": shared.program.latency}
    try:
        with shared.client.stream("GET", f"{shared.url}/stream", params=params) as response:
            response.raise_for_status()
            strand.say(f"{node.label} streams")
            how = node.args["how"]
            if how == "bytes":
                parts: Iterator[Any] = response.iter_bytes()
            else:
                parts = response.iter_lines() if how == "lines" else response.iter_text()
            for part in parts:
                seen.append(part.decode() if isinstance(part, bytes) else part)
                strand.say(f"{node.label} {seen[-1]}")
                if len(seen) == node.args["stop"]:
                    break
    except httpx.HTTPError as error:
        strand.say(f"{node.label} {type(error).__name__} after {len(seen)}")
        if node.args["raises"]:
            raise
    return seen


def _retry(strand: Strand, node: Node) -> Any:
    for number in range(3):
        try:
            text = _ask(strand, node, fail=40)
        except httpx.HTTPError as error:
            strand.say(f"{node.label} try {number} {type(error).__name__}")
            time.sleep(0.001 * 2**number * random.uniform(0.5, 1.5))
        else:
            strand.say(f"{node.label} {text}")
            return text
    return "gave up"


def _sleep(strand: Strand, node: Node) -> Any:
    time.sleep(node.args["ms"] / 1000)
    strand.say(f"{node.label} slept")
    return node.args["ms"]


def _hurry(strand: Strand, node: Node) -> Any:
    end = time.monotonic() + node.args["ms"] / 1000
    got = 0
    while time.monotonic() < end and got < 4:
        with contextlib.suppress(httpx.HTTPError):
            strand.say(f"{node.label} {_ask(strand, node)}")
        got += 1
    return got


# Constructs around children.


def _seq(strand: Strand, node: Node) -> Any:
    careful = node.args.get("careful") or node.args.get("collect")
    return [(attempt if careful else run)(strand, child) for child in node.children]


def _pool(strand: Strand, node: Node) -> Any:
    children = [strand.child() for _ in node.children]
    try:
        with cf.ThreadPoolExecutor(node.args["size"]) as pool:
            return _POOLS[node.args["how"]](strand, node, pool, children)
    finally:
        strand.join(*children)


def _submit(node: Node, pool: cf.ThreadPoolExecutor, children: list[Strand]) -> dict[cf.Future[Any], str]:
    work = zip(children, node.children, strict=True)
    return {pool.submit(run, strand, child): child.label for strand, child in work}


def _pool_map(strand: Strand, node: Node, pool: cf.ThreadPoolExecutor, children: list[Strand]) -> Any:
    work = attempt if node.args["collect"] else run
    values = list(pool.map(work, children, node.children, timeout=BOUND))
    strand.say(f"{node.label} mapped")
    return values


def _pool_results(strand: Strand, node: Node, pool: cf.ThreadPoolExecutor, children: list[Strand]) -> Any:
    futures = _submit(node, pool, children)
    if node.args["collect"]:
        return [outcome(future) for future in futures]
    return [future.result(BOUND) for future in futures]


def _pool_completed(strand: Strand, node: Node, pool: cf.ThreadPoolExecutor, children: list[Strand]) -> Any:
    futures = _submit(node, pool, children)
    values = []
    for future in cf.as_completed(futures, timeout=BOUND):
        values.append(outcome(future))
        strand.say(f"{node.label} next {futures[future]} {values[-1]}")
    return values


def _pool_wait(strand: Strand, node: Node, pool: cf.ThreadPoolExecutor, children: list[Strand]) -> Any:
    futures = _submit(node, pool, children)
    done, _ = cf.wait(futures, timeout=BOUND)
    for future in done:
        strand.say(f"{node.label} done {futures[future]}")
    return [outcome(future) for future in futures]


def _pool_first(strand: Strand, node: Node, pool: cf.ThreadPoolExecutor, children: list[Strand]) -> Any:
    futures = _submit(node, pool, children)
    values = []
    pending = set(futures)
    while pending:
        done, pending = cf.wait(pending, timeout=BOUND, return_when=cf.FIRST_COMPLETED)
        strand.say(f"{node.label} {len(done)} done, {len(pending)} pending")
        for future in done:
            values.append(outcome(future))
            strand.say(f"{node.label} done {futures[future]}")
    return values


def _pool_limited(strand: Strand, node: Node, pool: cf.ThreadPoolExecutor, children: list[Strand]) -> Any:
    values = []
    for future, label in _submit(node, pool, children).items():
        values.append(outcome(future, node.args["ms"] / 1000))
        strand.say(f"{node.label} {label} within its time: {values[-1]}")
    return values


def _pool_callback(strand: Strand, node: Node, pool: cf.ThreadPoolExecutor, children: list[Strand]) -> Any:
    """Callbacks run in the worker that finished, or here if it had finished already: hence the lock."""
    lock = threading.Lock()
    order: list[str] = []
    ended = threading.Event()
    futures = _submit(node, pool, children)

    def then(future: cf.Future[Any]) -> None:
        with lock:
            order.append(futures[future])
            if len(order) == len(futures):
                ended.set()

    for future in futures:
        future.add_done_callback(then)
    ended.wait(BOUND)
    strand.say(f"{node.label} called back in order {order}")
    return [outcome(future) for future in futures]


_POOLS: dict[str, Callable[[Strand, Node, cf.ThreadPoolExecutor, list[Strand]], Any]] = {
    "map": _pool_map,
    "results": _pool_results,
    "completed": _pool_completed,
    "wait": _pool_wait,
    "first": _pool_first,
    "limited": _pool_limited,
    "callback": _pool_callback,
}


class _Runner(threading.Thread):
    """A thread as a subclass: overrides `run`, keeps its value."""

    def __init__(self, strand: Strand, node: Node) -> None:
        super().__init__(name=node.label)
        self._job = strand, node
        self.value: Any = None

    def run(self) -> None:
        self.value = attempt(*self._job)


def _fork(strand: Strand, jobs: Sequence[Callable[[Strand], Any]]) -> list[Any]:
    """Runs each job in a thread of its own and joins them in order."""
    values: list[Any] = [None] * len(jobs)
    children = [strand.child() for _ in jobs]

    def body(index: int) -> None:
        values[index] = jobs[index](children[index])

    threads = [threading.Thread(target=body, args=(index,)) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    strand.join(*children)
    return values


def _threads(strand: Strand, node: Node) -> Any:
    how = node.args["how"]
    if how == "Thread":
        return _fork(strand, [lambda s, child=child: attempt(s, child) for child in node.children])  # type: ignore[misc]
    children = [strand.child() for _ in node.children]
    if how == "subclass":
        runners = [_Runner(s, child) for s, child in zip(children, node.children, strict=True)]
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join(BOUND)
            strand.say(f"{node.label} joined {runner.name}")
        strand.join(*children)
        return [runner.value for runner in runners]
    delay = node.args["ms"] / 1000
    timers = [threading.Timer(delay, attempt, (s, child)) for s, child in zip(children, node.children, strict=True)]
    for timer in timers:
        timer.start()
    for timer in timers:
        timer.join(BOUND)
    strand.join(*children)
    return len(timers)


def _jobs(strand: Strand, node: Node) -> Any:
    """Producers put children into a queue, consumers run them."""
    how, room = node.args["how"], node.args["room"]
    jobs: Any = queue.SimpleQueue() if how == "SimpleQueue" else getattr(queue, how if how != "join" else "Queue")(room)
    consumers, indices = node.args["size"], list(range(len(node.children)))

    def produce(strand: Strand, mine: list[int]) -> None:
        for index in mine:
            if node.args["settle"]:
                time.sleep(0.0005 * index)
            jobs.put((index, index), timeout=BOUND)
            strand.say(f"{node.label} put {index}")

    def consume(strand: Strand) -> Any:
        taken: list[Any] = []
        while True:
            _, index = jobs.get(timeout=BOUND)
            try:
                if index < 0:
                    return taken
                strand.say(f"{node.label} took {index}")
                taken.append([index, attempt(strand, node.children[index])])
            finally:
                if how == "join":
                    jobs.task_done()

    def produce_all(strand: Strand) -> None:
        """Two producers, then one end mark per consumer (ranked after everything else)."""
        _fork(strand, [lambda s: produce(s, indices[::2]), lambda s: produce(s, indices[1::2])])
        if how == "join":
            jobs.join()
            strand.say(f"{node.label} all done")
        for _ in range(consumers):
            jobs.put((len(indices), -1), timeout=BOUND)

    if how == "LifoQueue":  # its end marks would overtake: fill first, then consume
        jobs.maxsize = 0
        for index in (-1,) * consumers:
            jobs.put((0, index))
        produce(strand, indices)
        return _fork(strand, [consume] * consumers)
    return _fork(strand, [*[consume] * consumers, produce_all])[:-1]


def _lock(strand: Strand, node: Node) -> Any:
    lock = getattr(threading, node.args["how"])()
    holder = [0]

    def one(strand: Strand, child: Node) -> Any:
        value = None
        if node.args["settle"]:
            value = attempt(strand, child)
        with lock:
            before = holder[0]
            if not node.args["settle"]:
                value = attempt(strand, child)
            holder[0] = before + 1
            strand.say(f"{child.label} had the lock at {before}")
        return [before, value]

    return _fork(strand, [lambda s, child=child: one(s, child) for child in node.children])  # type: ignore[misc]


def _condition(strand: Strand, node: Node) -> Any:
    condition = threading.Condition()
    ready: list[str] = []

    def produce(strand: Strand, child: Node) -> Any:
        value = attempt(strand, child)
        with condition:
            ready.append(child.label)
            condition.notify_all()
        return value

    def consume(strand: Strand, number: int) -> Any:
        with condition:
            if node.args["how"] == "wait_for":
                condition.wait_for(lambda: len(ready) > number, BOUND)
            else:
                while len(ready) <= number:
                    if not condition.wait(BOUND):
                        break
            strand.say(f"{node.label} consumer {number} sees {ready}")
            return list(ready)

    jobs: list[Callable[[Strand], Any]] = []
    for number, child in enumerate(node.children):
        jobs.append(lambda s, number=number: consume(s, number))  # type: ignore[misc]
        jobs.append(lambda s, child=child: produce(s, child))  # type: ignore[misc]
    return _fork(strand, jobs)


def _event(strand: Strand, node: Node) -> Any:
    event = threading.Event()
    limit = node.args["ms"] / 1000 if node.args["how"] == "limited" else BOUND

    def open_it(strand: Strand) -> Any:
        try:
            return attempt(strand, node.children[0])
        finally:
            event.set()

    def wait(strand: Strand, child: Node) -> Any:
        came = event.wait(limit)
        strand.say(f"{child.label} may go: {came}")
        return [came, attempt(strand, child)]

    waiting: list[Callable[[Strand], Any]] = [
        lambda s, child=child: wait(s, child)  # type: ignore[misc]
        for child in node.children[1:]
    ]
    return _fork(strand, [open_it, *waiting])


def _semaphore(strand: Strand, node: Node) -> Any:
    semaphore = threading.BoundedSemaphore(min(2, node.args["size"]))

    def one(strand: Strand, child: Node) -> Any:
        with semaphore:
            strand.say(f"{child.label} in")
            return attempt(strand, child)

    return _fork(strand, [lambda s, child=child: one(s, child) for child in node.children])  # type: ignore[misc]


def _barrier(strand: Strand, node: Node) -> Any:
    barrier = threading.Barrier(len(node.children), timeout=BOUND)

    def party(strand: Strand, child: Node) -> Any:
        value = attempt(strand, child)
        place = barrier.wait()
        strand.say(f"{child.label} passed as {place}")
        return [place, value]

    return _fork(strand, [lambda s, child=child: party(s, child) for child in node.children])  # type: ignore[misc]


def _poll(strand: Strand, node: Node) -> Any:
    """Looks at what other threads did without waiting: exact only if each look's answer is recorded."""
    return _POLLS[node.args["how"]](strand, node)


def _poll_futures(strand: Strand, node: Node) -> Any:
    children = [strand.child() for _ in node.children]
    with cf.ThreadPoolExecutor(node.args["size"]) as pool:
        futures = _submit(node, pool, children)
        for look in range(6):
            if node.args["how"] == "cancel":
                found = [future.cancel() for future in list(futures)[look % len(futures) :]]
            else:
                found = [future.done() for future in futures]
            strand.say(f"{node.label} look {look} {found}")
            time.sleep(0.001)
    strand.join(*children)
    return [future.cancelled() or outcome(future) for future in futures]


def _poll_threads(strand: Strand, node: Node) -> Any:
    event, lock = threading.Event(), threading.Lock()
    jobs: queue.Queue[str] = queue.Queue()

    def work(strand: Strand, child: Node) -> None:
        with lock:
            jobs.put(child.label)
        attempt(strand, child)
        event.set()

    children = [strand.child() for _ in node.children]
    threads = [threading.Thread(target=work, args=pair) for pair in zip(children, node.children, strict=True)]
    for thread in threads:
        thread.start()
    how = node.args["how"]
    for look in range(6):
        found: Any
        if how == "alive":
            found = [thread.is_alive() for thread in threads]
        elif how == "is_set":
            found = event.is_set()
        elif how == "try_lock":
            found = lock.acquire(blocking=False)
            if found:
                lock.release()
        else:
            found = [jobs.qsize(), jobs.empty()]
            with contextlib.suppress(queue.Empty):
                found.append(jobs.get_nowait())
        strand.say(f"{node.label} look {look} {found}")
        time.sleep(0.001)
    for thread in threads:
        thread.join(BOUND)
    strand.join(*children)
    return len(threads)


_POLLS: dict[str, Callable[[Strand, Node], Any]] = {
    "done": _poll_futures,
    "cancel": _poll_futures,
    "alive": _poll_threads,
    "nowait": _poll_threads,
    "try_lock": _poll_threads,
    "is_set": _poll_threads,
}

OPS: dict[str, Callable[[Strand, Node], Any]] = {
    "call": _call,
    "stream": _stream,
    "retry": _retry,
    "sleep": _sleep,
    "hurry": _hurry,
    "seq": _seq,
    "pool": _pool,
    "threads": _threads,
    "jobs": _jobs,
    "lock": _lock,
    "condition": _condition,
    "event": _event,
    "semaphore": _semaphore,
    "barrier": _barrier,
    "poll": _poll,
}
