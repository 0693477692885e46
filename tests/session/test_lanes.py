"""Lanes: every strand has a name that does not depend on who was faster."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lockstep.session import lanes
from lockstep.session.session import Session, finish, start_recording


@pytest.fixture
def session(tmp_path: object) -> Iterator[Session]:
    begun = start_recording(f"{tmp_path}/lanes.db", "lanes", {})
    yield begun
    if begun.report is None:
        finish(begun, None, None)


def _here() -> str:
    return lanes.lane().name


async def _ahere() -> str:
    await asyncio.sleep(0)
    return _here()


def test_code_outside_of_tasks_and_threads_is_in_the_root_lane(session: Session) -> None:
    assert _here() == "main"


def test_what_a_loop_is_started_with_stays_in_the_lane_that_starts_it(session: Session) -> None:
    assert asyncio.run(_ahere()) == "main"
    assert asyncio.run(_ahere()) == "main"


def test_tasks_are_numbered_by_name_in_the_order_made(session: Session) -> None:
    async def main() -> list[str]:
        async def other() -> str:
            return _here()

        return await asyncio.gather(_ahere(), other(), _ahere())

    assert asyncio.run(main()) == ["main/_ahere.1", "main/other.1", "main/_ahere.2"]


def test_a_work_item_has_its_own_lane_whichever_worker_takes_it(session: Session) -> None:
    with ThreadPoolExecutor(2) as pool:
        items = [pool.submit(_here) for _ in range(5)]
    assert [item.result() for item in items] == [f"main/_here.{n}" for n in range(1, 6)]
    assert _here() == "main"


def test_a_task_of_to_thread_hands_on_to_the_work_item(session: Session) -> None:
    async def main() -> list[str]:
        return await asyncio.gather(asyncio.to_thread(_here), asyncio.to_thread(_here))

    assert asyncio.run(main()) == ["main/to_thread.1/_here.1", "main/to_thread.2/_here.1"]


def test_a_thread_has_the_lane_that_its_parent_gave_it(session: Session) -> None:
    found: list[str] = []

    class Worker(threading.Thread):
        def run(self) -> None:
            found.append(_here())

    for thread in (Worker(), Worker(), threading.Thread(target=lambda: found.append(_here()))):
        thread.start()
        thread.join()
    assert found == ["main/Worker.1", "main/Worker.2", "main/lambda.1"]


def test_a_loop_in_a_thread_belongs_to_that_thread(session: Session) -> None:
    found: list[str] = []

    def run() -> None:
        found.append(asyncio.run(_ahere()))
        found.append(lanes.lane().strand.name)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["main/run.1", "main/run.1"]


def test_a_context_carried_into_another_thread_is_a_lane_of_its_own_there(session: Session) -> None:
    found: list[tuple[str, str]] = []

    async def main() -> None:
        def inside() -> None:
            found.append((_here(), lanes.lane().strand.name))

        context = contextvars.copy_context()
        worker = threading.Thread(target=lambda: context.run(inside))
        worker.start()
        await asyncio.to_thread(worker.join)

    async def begin() -> None:
        await asyncio.create_task(main())

    asyncio.run(begin())
    assert found == [("main/main.1/carried.1", "main/main.1/carried.1")]


def test_a_callback_sent_from_a_thread_is_named_by_its_sender_and_runs_on_the_loops_strand(session: Session) -> None:
    found: list[tuple[str, str]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def called() -> None:
            found.append((_here(), lanes.lane().strand.name))
            done.set()

        await asyncio.to_thread(loop.call_soon_threadsafe, called)
        await done.wait()

    asyncio.run(main())
    assert found == [("main/call_soon_threadsafe.1/called.1", "main")]


def test_code_inside_an_effect_has_no_lane_of_its_own(session: Session) -> None:
    call = session.open("tool")
    call.ask("t", None, None)
    with call.inside():
        assert lanes.current() is None
        assert lanes.inside() is call
        with call.program():
            assert lanes.current() is session.root
        threads: list[object] = []
        thread = threading.Thread(target=lambda: threads.append(lanes.inside()))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lanes.inside).result() is call
    call.end("ok")
    assert threads == [call]
    assert lanes.current() is session.root


def test_what_a_thread_of_an_effect_sends_to_a_loop_is_the_effects(session: Session) -> None:
    found: list[object] = []

    async def main() -> None:
        loop, call = asyncio.get_running_loop(), session.open("tool")
        call.ask("t", None, None)
        with call.inside():
            await loop.run_in_executor(None, loop.call_soon_threadsafe, lambda: found.append(lanes.inside()))
            await asyncio.sleep(0)
        call.end("ok")
        found.append(call)

    asyncio.run(main())
    assert found[0] is found[1]


def test_without_a_session_nothing_has_a_lane(session: Session) -> None:
    finish(session, None, None)
    assert lanes.current() is None
    assert type(threading.Lock()).__name__ == "lock"
    assert ThreadPoolExecutor(1).submit(lanes.current).result() is None
