"""`lockstep.mark` and the decorator: what a program says of its tools, and how long that holds."""

import functools
import gc
import re
from pathlib import Path
from typing import Any

import pytest

import lockstep
from lockstep.errors import Code, TargetError
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep.session import declarations
from lockstep.session.policy import Declared
from lockstep.tools import annotated, declared


def _class_of(obj: Any) -> str | None:
    found = declared(obj)
    return found.effect if found is not None else None


def refund(order: int) -> int:
    """Refunds an order."""
    return order


class Tool:
    """A tool as frameworks have them: compared by content, so it cannot be hashed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and other.name == self.name

    __hash__ = None  # type: ignore[assignment]

    def run(self, order: int) -> int:
        return order


class Slotted:
    """One that cannot be watched."""

    __slots__ = ()


def test_a_marked_function_is_the_same_function() -> None:
    before = dict(vars(refund)), refund.__doc__, refund.__code__
    assert lockstep.mark(refund, effect="mutating") is refund
    assert (dict(vars(refund)), refund.__doc__, refund.__code__) == before
    found = declared(refund)
    assert found is not None
    assert found.effect == "mutating"
    assert re.fullmatch(r"declared in .*test_declarations\.py:\d+", found.where)


def test_an_object_is_known_by_its_identity_and_the_last_mark_counts() -> None:
    one, equal = Tool("refund"), Tool("refund")
    lockstep.mark(one, effect="read")
    lockstep.mark(one, effect="mutating")
    assert _class_of(one) == "mutating"
    assert _class_of(equal) is None


def test_a_mark_on_a_class_is_for_its_instances_and_subclasses() -> None:
    class Refund(Tool):
        pass

    class FullRefund(Refund):
        pass

    lockstep.mark(Refund, effect="mutating")
    assert _class_of(Refund("x")) == _class_of(FullRefund("x")) == _class_of(Refund) == "mutating"
    assert _class_of(Tool("x")) is None
    assert _class_of(lockstep.mark(FullRefund("x"), effect="read")) == "read"


def test_a_mark_on_a_method_is_for_this_object_and_one_on_the_function_for_all() -> None:
    one, other = Tool("a"), Tool("a")
    lockstep.mark(one.run, effect="mutating")
    assert (_class_of(one.run), _class_of(other.run)) == ("mutating", None)
    lockstep.mark(Tool.run, effect="read")
    assert (_class_of(one.run), _class_of(other.run)) == ("mutating", "read")


def test_a_wrapper_or_partial_is_what_is_inside_unless_it_was_marked_itself() -> None:
    def look() -> None:
        pass

    @functools.wraps(look)
    def wrapped() -> None:
        look()

    cached = functools.lru_cache(look)
    lockstep.mark(look, effect="read")
    assert _class_of(wrapped) == _class_of(functools.partial(wrapped)) == _class_of(cached) == "read"
    lockstep.mark(wrapped, effect="mutating")
    assert (_class_of(wrapped), _class_of(look)) == ("mutating", "read")


def test_an_object_that_answers_to_every_name_is_not_asked() -> None:
    class Everything:
        def __getattr__(self, name: str) -> Any:
            return self

    assert declared(Everything()) is None


def test_a_mark_goes_with_its_object() -> None:
    gc.collect()
    kept = len(declarations._declared)
    for _ in range(50):
        tool = Tool("x")
        lockstep.mark(tool, effect="read")
        lockstep.mark(tool.run, effect="read")
        assert _class_of(Tool("y")) is None  # which may stand where an earlier one stood
        del tool
    gc.collect()
    assert len(declarations._declared) == kept


def test_what_cannot_be_watched_is_kept() -> None:
    tool, items = Slotted(), [1]
    lockstep.mark(tool, effect="read")
    lockstep.mark(items.append, effect="mutating")
    gc.collect()
    assert (_class_of(tool), _class_of(items.append), _class_of(items.pop)) == ("read", "mutating", None)


def test_an_adapter_asks_the_program_first_and_then_the_annotations() -> None:
    tool, hints = Tool("x"), {"readOnlyHint": True}
    assert (declared(tool) or annotated(hints)) == Declared("read", "by the tool's MCP annotations")
    lockstep.mark(tool, effect="mutating")
    assert (declared(tool) or annotated(hints)) is declared(tool)
    assert annotated({"title": "x"}) is None


def test_what_is_no_tool_and_no_class_is_said() -> None:
    for effect in ("writes", "", None, 3):
        with pytest.raises(TargetError, match="inference, read, mutating, unknown") as caught:
            lockstep.mark(refund, effect=effect)  # type: ignore[arg-type]
        assert caught.value.code is Code.BAD_TARGET
        with pytest.raises(TargetError, match="inference, read, mutating, unknown"):
            lockstep.tool(effect=effect)  # type: ignore[call-overload]
    for wrong in ("issue_refund", None, 3):
        with pytest.raises(TargetError, match=re.escape("[tool.lockstep.effects]")):
            lockstep.mark(wrong, effect="read")


# What stands in a run.


def _classes(store: Path, run: str = "r") -> list[tuple[str, str]]:
    with open_store(str(store)) as opened:
        timeline = Timeline(opened.run(run))
        return [(one.name, timeline.effect_class(one)) for step in timeline.steps for one in step.effects]


@lockstep.tool(effect="mutating")
def pay(cents: int) -> int:
    return cents


@lockstep.tool
def look(cents: int) -> int:
    return cents


class Desk:
    @lockstep.tool(effect="mutating")
    def ask(self, what: str) -> str:
        return what


def test_the_decorator_says_where_it_stands() -> None:
    found = declared(pay)
    assert found is not None
    line = pay.__wrapped__.__code__.co_firstlineno  # type: ignore[attr-defined]
    assert found.where.endswith(f"test_declarations.py:{line}")
    assert declared(look) is None


def test_each_outermost_call_is_stored_with_its_class(tmp_path: Path) -> None:
    desk, other = Desk(), Desk()

    @lockstep.tool
    def inner_and_outer() -> int:
        return pay(1) + look(2)

    with lockstep.record("r", store=str(tmp_path / "s.db")):
        pay(4000)
        look(1)
        desk.ask("hi")
        inner_and_outer()
        lockstep.mark(look, effect="read")
        lockstep.mark(desk.ask, effect="read")
        look(1)
        desk.ask("hi")
        other.ask("hi")
    try:
        assert _classes(tmp_path / "s.db") == [
            ("pay", "mutating"), ("look", "unknown"), ("ask", "mutating"), ("inner_and_outer", "unknown"),
            ("look", "read"), ("ask", "read"), ("ask", "mutating"),
        ]  # fmt: skip
    finally:
        lockstep.mark(look, effect="unknown")


def test_a_nested_call_has_the_class_that_was_declared(tmp_path: Path) -> None:
    @lockstep.tool
    def outer() -> int:
        return pay(1)

    with lockstep.record("r", store=str(tmp_path / "s.db")):
        outer()
    with open_store(str(tmp_path / "s.db")) as opened:
        timeline = Timeline(opened.run("r"))
        child = timeline.effect(1, 1, (1,))
        assert (child.name, timeline.effect_class(child)) == ("pay", "mutating")


def test_a_class_is_no_part_of_a_call_s_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = str(tmp_path / "s.db")

    @lockstep.tool
    def ask(what: str) -> str:
        return what

    def run() -> str:
        return ask("hi")

    with lockstep.record("r", store=store):
        run()
    lockstep.mark(ask, effect="mutating")
    (tmp_path / "pyproject.toml").write_text('[tool.lockstep.effects]\nask = "read"\n')
    monkeypatch.chdir(tmp_path)
    assert lockstep.replay("r", run, store=store).identical


def test_a_rule_of_the_project_is_stronger_than_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.lockstep.effects]\n"p?y" = "read"\n')
    monkeypatch.chdir(tmp_path)
    with lockstep.record("r", store=str(tmp_path / "s.db")):
        pay(1)
        Desk().ask("hi")
    assert _classes(tmp_path / "s.db") == [("pay", "read"), ("ask", "mutating")]
    with open_store(str(tmp_path / "s.db")) as opened:
        meta: Any = opened.run("r").meta
        assert meta["rules"]["effects"] == [["p?y", "read"]]
