"""A secret of pydantic's comes back as itself and is never in the log in clear."""

from pathlib import Path
from typing import Any, TypedDict

import pydantic
import pytest
from langgraph.graph import START, StateGraph

from lockstep.log.store import open_store
from lockstep.session.secrets import Secrets
from lockstep_langgraph import LockstepCheckpointer
from lockstep_langgraph.values import Codec


class Account(pydantic.BaseModel):
    user: str
    key: pydantic.SecretStr


VALUES = [
    pydantic.SecretStr("hunter2"),
    pydantic.SecretStr("correct horse"),
    pydantic.SecretBytes(b"hunter2!"),
    pydantic.Secret[str]("hunter2"),
    Account(user="ann", key=pydantic.SecretStr("s3cr3t")),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_secret_comes_back_and_stands_nowhere_in_clear(value: object) -> None:
    codec = Codec([Account])
    secrets = Secrets()
    stored = secrets.hide(codec.dump({"a": [value], "b": {"$": "no"}}))

    found = codec.load(secrets.reveal(stored))["a"][0]
    assert type(found) is type(value) and found == value
    for word in ("hunter2", "horse", "s3cr3t"):
        assert word not in str(stored)
    assert codec.reports.losses == []


def test_where_its_value_is_not_known_any_more_it_is_a_placeholder() -> None:
    codec = Codec()
    stored = Secrets().hide(codec.dump(pydantic.SecretStr("hunter2")))

    found = codec.load(stored)
    assert type(found) is pydantic.SecretStr
    assert found.get_secret_value().startswith("lockstep-secret.password")


class State(TypedDict):
    api_key: str
    password: list[str]
    account: Account
    note: str


CONFIG: Any = {"configurable": {"thread_id": "t", "auth_token": "tok-hunter2"}}


def test_a_thread_s_secrets_come_back_in_another_process_and_stand_nowhere_in_clear(tmp_path: Path) -> None:
    def work(state: State) -> dict[str, Any]:
        return {"api_key": "hunter2-b", "password": ["hunter2-c"], "note": "as before"}

    def graph() -> Any:
        builder = StateGraph(State)
        builder.add_node("work", work)
        builder.add_edge(START, "work")
        return builder.compile(checkpointer=LockstepCheckpointer(tmp_path / "store.db"))

    given = {
        "api_key": "hunter2-a",
        "password": ["x"],
        "account": Account(user="a", key=pydantic.SecretStr("hunter2-d")),
    }
    graph().invoke(given, CONFIG)
    found = graph().get_state(CONFIG)

    assert found.values == {**given, "api_key": "hunter2-b", "password": ["hunter2-c"], "note": "as before"}
    with open_store(tmp_path / "store.db") as store:
        reader = store.run("langgraph/t")
        events = [event for stream in reader.info.streams for event in reader.events(stream.id)]
    assert len(events) > 5
    assert "hunter2" not in str(events)
    assert "as before" in str(events)
