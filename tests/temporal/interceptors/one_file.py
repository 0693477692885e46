"""A program in one file: its workflow stands beside what makes its worker."""

from temporalio import workflow

from lockstep_temporal import LockstepInterceptor, Setup

WITH = {"interceptors": [LockstepInterceptor]}, Setup


@workflow.defn
class OneFile:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"{name} {LockstepInterceptor.__module__}"
