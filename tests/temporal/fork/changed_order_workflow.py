"""`Order` of `order_workflows`, as somebody has changed it since: it looks up another one."""

from __future__ import annotations

from typing import Any

from order_workflows import SOON, look_up
from temporalio import workflow


@workflow.defn
class Order:
    @workflow.run
    async def run(self, order: int) -> dict[str, Any]:
        await workflow.execute_activity(look_up, order + 1, start_to_close_timeout=SOON)
        return {}
