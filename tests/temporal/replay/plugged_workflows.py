"""A workflow that needs what a plugin sets up around its worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import workflow
from temporalio.plugin import SimplePlugin
from temporalio.worker import (
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

providers: list[str] = []


@workflow.defn(sandboxed=False)
class Asks:
    @workflow.run
    async def run(self, question: str) -> str:
        found: str = await workflow.execute_activity(
            "ask", args=[providers[-1], question], start_to_close_timeout=timedelta(seconds=5)
        )
        return found


@asynccontextmanager
async def provided() -> AsyncIterator[None]:
    providers.append("plugged")
    try:
        yield
    finally:
        providers.pop()


def plugin() -> SimplePlugin:
    return SimplePlugin("tests.provider", workflows=[Asks], run_context=provided)


class Shouting(Interceptor):
    """Changes what activities are called with."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        return _Inbound


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle:  # type: ignore[type-arg]
        input.args = [each.upper() for each in input.args]
        return super().start_activity(input)
