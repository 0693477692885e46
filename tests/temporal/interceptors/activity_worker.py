"""A process that runs activities, until its stdin ends: activity_worker.py ADDRESS QUEUE STORE"""

import asyncio
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import observed_workflows
from temporalio.client import Client
from temporalio.worker import Worker

from lockstep_temporal import LockstepInterceptor


async def main(address: str, queue: str, store: str) -> None:
    client = await Client.connect(address)
    with ThreadPoolExecutor(4) as pool:
        async with Worker(
            client, task_queue=queue, activities=observed_workflows.ACTIVITIES, activity_executor=pool,
            interceptors=[LockstepInterceptor(store)],
        ):  # fmt: skip
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    time.sleep(0.3)  # the SDK's own threads abort an interpreter that ends at once
