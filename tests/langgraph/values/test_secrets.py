"""A secret of pydantic's comes back as itself and is never in the log in clear."""

import pydantic
import pytest

from lockstep.session.secrets import Secrets
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
