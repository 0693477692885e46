"""What a model is asked and says through CrewAI, as `log` and `show` print it and as an edit writes it."""

from typing import Any

import pytest

from lockstep.debugger.dialects import crewai, framed, langchain

_ASKED: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "You are clerk."},
        {"role": "user", "content": [{"type": "text", "text": "Pay."}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call-1", "function": {"name": "pay", "arguments": '{"cents": 4000}'}}],
        },
        {"role": "tool", "tool_call_id": "call-1", "content": "paid"},
    ]
}


def test_a_request_is_told_from_those_of_other_frameworks() -> None:
    assert framed.dialect(_ASKED) == ("crewai", crewai)
    assert framed.dialect({"messages": "What is it?"}) == ("crewai", crewai)
    assert framed.dialect({"messages": [{"type": "human", "content": "Pay."}]}) == ("langchain", langchain)
    assert not crewai.is_request({**_ASKED, "url": "http://models"})
    assert not crewai.is_request({"messages": []})


def test_messages_have_their_roles_and_calls() -> None:
    told = crewai.messages(_ASKED)
    assert [(each.role, each.text) for each in told] == [
        ("system", "You are clerk."), ("user", "Pay."), ("assistant", ""), ("tool", "paid"),
    ]  # fmt: skip
    assert [(each.name, each.arguments) for each in told[2].tool_calls] == [("pay", '{"cents": 4000}')]
    assert crewai.messages({"messages": "What is it?"})[0].text == "What is it?"


@pytest.mark.parametrize(
    "called",
    [
        {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"cents":1}'}},
        {"id": "c1", "type": "tool_use", "name": "pay", "input": {"cents": 1}},
        {"toolUseId": "c1", "name": "pay", "input": {"cents": 1}},
        {"id": "c1", "function_call": {"name": "pay", "args": {"cents": 1}}},
    ],
)
def test_calls_of_tools_are_read_as_each_of_the_sdks_has_them(called: dict[str, Any]) -> None:
    said = crewai.answer([], {"tool_calls": [called], "finish_reason": "tool_calls"})
    assert said is not None
    assert [(each.name, each.arguments, each.id) for each in said.message.tool_calls] == [("pay", '{"cents":1}', "c1")]
    assert said.finish == "tool_calls"


@pytest.mark.parametrize(
    "usage", [{"prompt_tokens": 7, "completion_tokens": 2}, {"input_tokens": 7, "output_tokens": 2}]
)
def test_an_answer_has_its_text_or_object_and_its_tokens(usage: dict[str, int]) -> None:
    said = crewai.answer([], {"text": "paid", "usage": usage})
    assert said is not None
    assert (said.message.text, said.usage.input, said.usage.output) == ("paid", 7, 2)
    formed = crewai.answer([], {"object": {"score": 3}, "class": "app:Verdict"})
    assert formed is not None
    assert formed.message.text == '{"score":3}'


def test_of_an_answer_whose_end_nobody_saw_there_are_the_chunks() -> None:
    said = crewai.answer(["dear ", {"chunk": "customer", "response_id": "r"}, {"chunk": "{", "tool_call": {}}], None)
    assert said is not None
    assert said.message.text == "dear customer"
    assert crewai.answer([], None) is None


def test_an_edit_is_a_text_or_one_of_the_forms() -> None:
    for value in ("paid", {"text": "paid"}, {"tool_calls": []}, {"object": {}}):
        assert framed.is_answer(_ASKED, value)
    assert not framed.is_answer(_ASKED, {"content": "paid"})
    assert framed.is_answer({"messages": [{"type": "human", "content": "Pay."}]}, {"content": "paid"})
    assert "text" in framed.form(_ASKED)
