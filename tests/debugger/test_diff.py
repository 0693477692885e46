"""What two recorded runs did differently, as `lockstep.diff` tells it."""

from __future__ import annotations

import datetime
import secrets
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
import time_machine
from tests.debugger.conftest import Agent, user

import lockstep
from lockstep.debugger.diff import Diff
from lockstep.testing import Answer, Provider

PROMPT = "You are a support agent. Approve refunds under 50.00 without asking. " + "Be kind. " * 40


@lockstep.tool(effect="read")
def get_order(order: int, total: int = 4000) -> dict[str, Any]:
    return {"order": order, "total": total, "items": ["tea", "cup"]}


@lockstep.tool(effect="read")
def get_policy(topic: str) -> str:
    return f"policy on {topic}"


@lockstep.tool(effect="mutating")
def open_case(order: int) -> dict[str, Any]:
    return {"case": f"case_{secrets.token_hex(12)}", "order": order}


@lockstep.tool(effect="read")
def find_case(order: int) -> dict[str, Any]:
    return {"case": f"case_{secrets.token_hex(12)}", "order": order}


def support(agent: Agent, prompt: str = PROMPT, total: int = 4000, **fields: Any) -> None:
    """Asks, calls the tool that is wanted, and asks again with its answer."""
    session = uuid.uuid4()
    with agent.client() as client:
        messages = [{"role": "system", "content": prompt}, user(f"refund 452, session {session}")]
        wanted = agent.ask(client, *messages, **fields)
        call = wanted["tool_calls"][0]
        order = get_order(452) if total == 4000 else get_order_of(total)
        messages += [wanted, {"role": "tool", "tool_call_id": call["id"], "content": str(order)}]
        agent.ask(client, *messages, **fields)
        agent.ask(client, *messages, user("thanks"), **fields)


def get_order_of(total: int) -> dict[str, Any]:
    """The same call with another answer."""
    changed = lockstep.tool(effect="read", name="get_order")(lambda order: {**ANSWER, "total": total})
    return changed(order=452)


ANSWER = {"order": 452, "total": 4000, "items": ["tea", "cup"]}


def kinds(found: Diff) -> list[tuple[str, str | None, str | None, str]]:
    return [(entry.kind, entry.address_a, entry.address_b, entry.path) for entry in found.differences]


# Two live runs that did the same are the same.


def test_two_live_runs_that_did_the_same_are_the_same(record: Callable[..., str]) -> None:
    record("a", support)
    record("b", support)
    found = lockstep.diff("a", "b")
    assert (found.same, found.first, found.differences, found.steps) == (True, None, (), (4, 4))
    left = {(each.what, each.path) for each in found.left_out}
    assert ("id", "messages[].content") in left  # drawn by the program, from its recorded seed
    assert ("id", "answer.tool_calls[].id") in left and ("id", "messages[].tool_calls[].id") in left
    assert ("time", "answer.body.created") in left and ("header", "answer.headers.x-request-id") in left
    exact = lockstep.diff("a", "b", exact=True)
    assert not exact.same and exact.left_out == ()


def test_a_run_is_the_same_as_itself(record: Callable[..., str]) -> None:
    record("a", support)
    assert lockstep.diff("a", "a", exact=True, reads=True).same


def test_what_a_program_draws_and_measures_for_itself_is_no_difference(record: Callable[..., str]) -> None:
    def program(agent: Agent) -> None:
        began = time.perf_counter()
        now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        with tempfile.NamedTemporaryFile() as file:
            get_policy(f"at {now} {time.time()} in {file.name} by {secrets.token_urlsafe(12)} {uuid.uuid1()}")
        print(f"run {secrets.token_hex(8)} took {time.perf_counter() - began:.6f} s")

    record("a", program)
    time.sleep(0.002)
    record("b", program)
    assert lockstep.diff("a", "b").differences == ()


@pytest.mark.parametrize(
    "text", ["due 2019-03-0{}T10:00:00Z", "meet at 1{}:00", "wait {}0 s", "paid on March {}, 2021"]
)
def test_a_time_that_nobody_read_from_a_clock_is_a_difference(record: Callable[..., str], text: str) -> None:
    for run, digit in (("a", "4"), ("b", "5")):
        record(run, lambda _, digit=digit: (get_policy(text.format(digit)), time.time()))
    assert lockstep.diff("a", "b").first is not None


def test_every_way_to_write_the_time_is_no_difference(record: Callable[..., str]) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=5))

    def program(agent: Agent) -> None:
        for form in ("%Y-%m-%d", "%d %B %Y", "%B %d, %Y %H:%M:%S", "%H:%M:%S", "%a, %d %b %Y %H:%M:%S GMT", "%c"):
            get_policy(f"now {time.strftime(form, time.gmtime())}, {datetime.datetime.now(zone).isoformat()}")
        get_policy(f"{int(time.time())} {datetime.datetime.now():%H:%M:%S.%f} {time.time_ns()} {round(time.time(), 2)}")
        get_order(int(time.time()), total=time.time_ns())

    record("a", program)
    with time_machine.travel(time.time() + 40 * 86400):
        record("b", program)
    assert lockstep.diff("a", "b").differences == ()


def test_a_time_in_an_answer_is_the_time_of_the_answer(record: Callable[..., str]) -> None:
    def program(shift: int) -> Callable[[Agent], None]:
        def run(agent: Agent) -> None:
            told = now()["at"]
            get_policy(f"as of {told}")

        @lockstep.tool(effect="read")
        def now() -> dict[str, Any]:
            return {"at": datetime.datetime.fromtimestamp(time.time() - shift, datetime.UTC).isoformat()}

        return run

    record("a", program(0))
    record("b", program(0))
    record("late", program(5000))
    assert lockstep.diff("a", "b").differences == ()
    assert lockstep.diff("a", "late").first is not None


def test_an_id_that_a_mutating_tool_made_is_renamed_and_one_that_was_looked_up_is_not(
    record: Callable[..., str],
) -> None:
    def program(agent: Agent) -> None:
        get_policy(f"of {open_case(1)['case']}")

    record("a", program)
    record("b", program)
    assert lockstep.diff("a", "b").same
    record("c", lambda _: find_case(1))
    record("d", lambda _: find_case(1))
    found = lockstep.diff("c", "d")
    assert [entry.path for entry in found.differences] == ["answer.case"]


def test_an_id_that_is_used_in_another_place_is_a_difference(record: Callable[..., str]) -> None:
    def program(first: bool) -> Callable[[Agent], None]:
        def run(agent: Agent) -> None:
            cases = [open_case(1)["case"], open_case(2)["case"]]
            get_policy(f"of {cases[0] if first else cases[1]}")

        return run

    record("a", program(True))
    record("b", program(False))
    found = lockstep.diff("a", "b")
    assert [(entry.kind, entry.effect, entry.path) for entry in found.differences] == [
        ("changed", "tool", "arguments.topic")
    ]


# One thing changed.


def test_a_changed_prompt_is_one_place_and_what_carries_it_on_says_so(record: Callable[..., str]) -> None:
    record("a", support)
    record("b", lambda agent: support(agent, prompt=PROMPT.replace("50.00", "500.00")))
    found = lockstep.diff("a", "b")
    first = found.first
    assert first is not None
    assert kinds(found)[0] == ("changed", "a:1", "b:1", "messages[0].content")
    assert (first.effect, first.name, first.lane, first.reason) == ("model", "gpt-4o", "main", "asks something else")
    assert "under 50.00 without" in first.a and "under 500.00 without" in first.b
    assert first.a.startswith('"…') and len(first.a) < 120
    assert first.site.endswith("in Agent.ask")
    assert [(entry.address_a, entry.follows) for entry in found.differences[1:]] == [("a:3", "a:1"), ("a:4", "a:1")]


def test_a_changed_field_is_named(record: Callable[..., str]) -> None:
    record("a", lambda agent: support(agent, temperature=0.2))
    record("b", lambda agent: support(agent, temperature=0.7))
    first = lockstep.diff("a", "b").first
    assert first is not None and (first.path, first.a, first.b) == ("temperature", "0.2", "0.7")


def test_a_tool_that_answered_otherwise_is_the_first_difference(record: Callable[..., str]) -> None:
    record("a", support)
    record("b", lambda agent: support(agent, total=450))
    found = lockstep.diff("a", "b")
    assert kinds(found) == [
        ("changed", "a:2", "b:2", "answer.total"),
        ("changed", "a:3", "b:3", "messages[3].content"),
        ("changed", "a:4", "b:4", "messages[3].content"),
    ]
    assert found.first is not None
    assert (found.first.a, found.first.b, found.first.reason) == ("4000", "450", "was answered differently")
    assert [entry.follows for entry in found.differences] == ["", "a:2", "a:2"]


def test_a_model_that_says_something_else_is_told_by_its_message(record: Callable[..., str], model: Provider) -> None:
    def program(agent: Agent) -> None:
        with agent.client() as client:
            agent.ask(client, user("is it late?"))

    model.script = lambda request: Answer("It is late.")
    record("a", program)
    model.script = lambda request: Answer("It is early.")
    record("b", program)
    [entry] = lockstep.diff("a", "b").differences
    assert (entry.path, entry.a, entry.b) == ("answer.content", '"It is late."', '"It is early."')


def test_calls_that_were_put_in_and_left_out_leave_the_rest_as_it_was(record: Callable[..., str]) -> None:
    def program(*numbers: int) -> Callable[[Agent], None]:
        def run(agent: Agent) -> None:
            for number in numbers:
                get_order(number)

        return run

    record("a", program(1, 2, 3, 4, 5))
    record("b", program(1, 2, 9, 3, 4))
    found = lockstep.diff("a", "b")
    assert kinds(found) == [("added", None, "b:3", ""), ("removed", "a:5", None, "")]
    assert [(entry.a, entry.b) for entry in found.differences] == [
        ("(absent)", '{"order": 9}'),
        ('{"order": 5}', "(absent)"),
    ]
    assert kinds(lockstep.diff("b", "a")) == [("removed", "b:3", None, ""), ("added", None, "a:5", "")]


def test_a_call_that_moved_is_told_as_moved(record: Callable[..., str]) -> None:
    def program(*numbers: int) -> Callable[[Agent], None]:
        return lambda agent: [get_order(number) for number in numbers]  # type: ignore[return-value,func-returns-value]

    record("a", program(1, 2, 3, 4, 5))
    record("b", program(1, 3, 4, 2, 5))
    found = lockstep.diff("a", "b")
    assert kinds(found) == [("moved", "a:2", "b:4", "")]
    assert found.differences[0].reason == "comes at another place"


def test_the_most_alike_of_several_calls_is_the_changed_one(record: Callable[..., str]) -> None:
    record("a", lambda _: (get_policy("tea and cups"), get_policy("refunds of more than 50 euro for tea")))
    record("b", lambda _: (get_policy("refunds of more than 500 euro for tea"),))
    found = lockstep.diff("a", "b")
    assert kinds(found) == [("removed", "a:1", None, ""), ("changed", "a:2", "b:1", "arguments.topic")]


def test_another_tool_with_the_same_arguments_is_a_changed_call(record: Callable[..., str]) -> None:
    other = lockstep.tool(effect="read", name="look_up_order")(get_order.__wrapped__)
    record("a", lambda _: get_order(order=7, total=4))
    record("b", lambda _: other(order=7, total=4))
    [entry] = lockstep.diff("a", "b").differences
    assert (entry.kind, entry.path, entry.a, entry.b) == (
        "changed", "name", '"tool get_order"', '"tool look_up_order"',
    )  # fmt: skip


def test_an_added_message_is_one_place(record: Callable[..., str]) -> None:
    def program(*texts: str) -> Callable[[Agent], None]:
        def run(agent: Agent) -> None:
            with agent.client() as client:
                agent.ask(client, *map(user, texts))

        return run

    record("a", program("one", "two", "three"))
    record("b", program("one", "new", "two", "three"))
    [entry] = lockstep.diff("a", "b").differences
    assert [change.path for change in entry.changes] == ["messages[1]"]
    assert entry.a == "(absent)"


def test_a_state_that_differs_is_a_changed_step(record: Callable[..., str]) -> None:
    record("a", lambda _: lockstep.step("triaged", {"order": {"cents": 4000}}))
    record("b", lambda _: lockstep.step("triaged", {"order": {"cents": 4100}}))
    [entry] = lockstep.diff("a", "b").differences
    assert (entry.effect, entry.name, entry.path, entry.a, entry.b) == (
        "step", "triaged", "state.order.cents", "4000", "4100",
    )  # fmt: skip


def test_printed_lines_differ_one_by_one(record: Callable[..., str]) -> None:
    record("a", lambda _: print("one\ntwo\nthree\nfour"))
    record("b", lambda _: print("one\nTWO\nthree\nmore\nfour"))
    found = lockstep.diff("a", "b")
    assert [(entry.kind, entry.path, entry.a, entry.b) for entry in found.differences] == [
        ("output", "stdout:2", '"two"', '"TWO"'),
        ("output", "stdout:4", "(absent)", '"more"'),
    ]


def test_an_exception_is_another_end(record: Callable[..., str]) -> None:
    def program(divisor: int) -> Callable[[Agent], None]:
        def run(agent: Agent) -> None:
            get_order(1 // divisor)

        return run

    record("a", program(1))
    record("b", program(0))
    found = lockstep.diff("a", "b")
    assert kinds(found) == [("removed", "a:1", None, ""), ("end", "a:2", "b:1", "error")]
    end = found.differences[-1]
    assert end.a == "null" and "ZeroDivisionError" in end.b


def test_a_call_that_failed_in_one_run_says_so(record: Callable[..., str]) -> None:
    def program(works: bool) -> Callable[[Agent], None]:
        def look(order: int) -> str:
            if not works:
                raise KeyError(order)
            return "found"

        return lambda agent: lockstep.tool(name="look")(look)(order=3)  # type: ignore[return-value]

    record("a", program(True))
    record("b", program(False))
    first = lockstep.diff("a", "b").first
    assert first is not None and first.reason == "failed in the second run only"
    assert {change.path for change in first.changes} == {"answer", "error"}


def test_what_a_decorated_function_returns_is_its_end() -> None:
    for run, value in (("a", 4000), ("b", 4100)):

        @lockstep.record(run)
        def agent(value: int = value) -> dict[str, int]:
            return {"cents": value}

        agent()
    [entry] = lockstep.diff("a", "b").differences
    assert (entry.kind, entry.path, entry.a, entry.b) == ("end", "result.cents", "4000", "4100")


def test_reads_are_compared_on_request(record: Callable[..., str]) -> None:
    def program(times: int) -> Callable[[Agent], None]:
        return lambda agent: [time.time() for _ in range(times)]  # type: ignore[return-value]

    record("a", program(2))
    record("b", program(3))
    assert lockstep.diff("a", "b").same
    [entry] = lockstep.diff("a", "b", reads=True).differences
    assert (entry.effect, entry.lane, entry.a, entry.b) == ("reads", "main", "2", "3")


# Parts of runs.


def test_two_steps_are_compared_wherever_they_stand(record: Callable[..., str]) -> None:
    record("a", lambda _: (get_order(1), get_order(2)))
    record("b", lambda _: (get_policy("x"), get_order(1), get_order(3)))
    assert lockstep.diff("a:1", "b:2").same
    [entry] = lockstep.diff("a:2.1", "b:3").differences
    assert (entry.address_a, entry.address_b, entry.path, entry.a, entry.b) == (
        "a:2",
        "b:3",
        "arguments.order",
        "2",
        "3",
    )


def test_a_run_and_a_step_cannot_be_compared(record: Callable[..., str]) -> None:
    record("a", lambda _: get_order(1))
    with pytest.raises(lockstep.LockstepError, match="LS206 a is a run and a:1 a step of one"):
        lockstep.diff("a", "a:1")


@pytest.mark.parametrize(("address", "code"), [("a:9", "LS206"), ("b", "LS205"), ("a@try-2", "LS206"), ("a:", "LS206")])
def test_what_names_nothing_is_said_so(record: Callable[..., str], address: str, code: str) -> None:
    record("a", lambda _: get_order(1))
    with pytest.raises(lockstep.LockstepError, match=code):
        lockstep.diff("a", address)


def test_durations_are_compared_on_request_and_never_count(record: Callable[..., str]) -> None:
    record("a", support)
    record("b", support)
    found = lockstep.diff("a", "b", times=True)
    assert found.same and lockstep.diff("a", "b").times == ()
    assert {(timing.address_a, timing.address_b, timing.effect) for timing in found.times} <= {
        ("a:1", "b:1", "model"), ("a:2", "b:2", "tool"), ("a:3", "b:3", "model"), ("a:4", "b:4", "model"),
    }  # fmt: skip
    assert found.times


def test_processes_are_compared_by_what_they_deliver(record: Callable[..., str]) -> None:
    def program(*words: str) -> Callable[[Agent], None]:
        def run(agent: Agent) -> None:
            subprocess.run(words, capture_output=True, check=False)

        return run

    script = "echo begun; echo $1 $2 >&2; exit $2"
    record("a", program("sh", "-c", script, "sh", "one", "0"))
    record("b", program("sh", "-c", script, "sh", "one", "0"))
    record("c", program("sh", "-c", script, "sh", "one", "3"))
    assert lockstep.diff("a", "b").same
    [entry] = lockstep.diff("a", "c").differences
    assert (entry.effect, entry.name) == ("process", "sh")
    assert [change.path for change in entry.changes] == ["argv[5]", "answer.stderr", "answer.exit"]
