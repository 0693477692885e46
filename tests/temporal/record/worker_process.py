"""A worker's process, for tests that kill it: python worker_process.py ADDRESS TASK_QUEUE STORE"""

from __future__ import annotations

import asyncio
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import kitchen_sink as sink
from temporalio.client import Client
from temporalio.worker import Worker

from lockstep_temporal import LockstepPlugin


async def main(address: str, queue: str, store: str) -> None:
    logging.disable(logging.CRITICAL)  # activities fail on purpose
    client = await Client.connect(address, plugins=[LockstepPlugin(store)])
    worker = Worker(
        client, task_queue=queue, workflows=sink.WORKFLOWS, activities=sink.ACTIVITIES,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),  # the server waits so long for a dead one
        activity_executor=ThreadPoolExecutor(4),
    )  # fmt: skip
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
