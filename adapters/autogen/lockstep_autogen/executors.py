"""Code executors: running code is a call of the executor, whatever it runs it in."""

from __future__ import annotations

from typing import Any

from autogen_core.code_executor import CodeResult

from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep.session.native.answers import Question
from lockstep.tools import declared
from lockstep_autogen.layout import TOOL
from lockstep_autogen.proxies import Proxy
from lockstep_autogen.tools import outside


class Executor(Proxy):
    """Stands for a code executor in one agent."""

    __slots__ = ()

    async def execute_code_blocks(self, code_blocks: Any, *args: Any, **options: Any) -> Any:
        """See `CodeExecutor.execute_code_blocks`."""
        executor, place = self._lockstep_inner, self._lockstep_place
        blocks: list[Value] = [{"language": each.language, "code": each.code} for each in code_blocks]
        asked = Question(type(executor).__name__, {"code": blocks}, {"code": blocks}, declared(executor))

        async def really() -> Any:
            return await executor.execute_code_blocks(code_blocks, *args, **options)

        return await outside(place, TOOL, asked, really, _kept, _made)


def _kept(result: Any) -> Value:
    return snapshot.to_value(result) if type(result) is not CodeResult else _plainly(result)


def _plainly(result: Any) -> Value:
    return {"exit_code": result.exit_code, "output": result.output}


def _made(value: Value) -> Any:
    if isinstance(value, str):
        return CodeResult(exit_code=0, output=value)
    if isinstance(value, dict) and "$" not in value:
        code = value.get("exit_code", 0)
        return CodeResult(exit_code=code if isinstance(code, int) else 1, output=str(value.get("output", "")))
    return snapshot.from_value(value)
