"""A program that knows nothing of Lockstep: runs one workflow to its end, prints the result, and exits with a status.

    plain_worker.py ADDRESS WORKFLOW_ID STATUS [ACTIVITIES]

ACTIVITIES: "apart" runs the activities in a process of their own.
"""

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import observed_workflows as own
from temporalio.client import Client
from temporalio.worker import Worker


async def main(address: str, workflow_id: str, activities: str) -> None:
    client = await Client.connect(address)
    queue = f"queue-{workflow_id}"
    with ThreadPoolExecutor(4) as pool:
        options = {"activities": own.ACTIVITIES, "activity_executor": pool}
        if activities == "only":
            async with Worker(client, task_queue=queue, **options):
                await asyncio.to_thread(sys.stdin.read)
            return
        if activities == "apart":
            options = {}
            child = subprocess.Popen(
                [sys.executable, __file__, address, workflow_id, "0", "only"], stdin=subprocess.PIPE
            )
        async with Worker(client, task_queue=queue, workflows=own.WORKFLOWS, **options):
            print(await client.execute_workflow(own.Beats.run, 2, id=workflow_id, task_queue=queue))
        if activities == "apart":
            child.communicate()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], "".join(sys.argv[4:])))
    time.sleep(0.3)  # the SDK's own threads abort an interpreter that ends at once
    sys.exit(int(sys.argv[3]))
