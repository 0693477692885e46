"""Exceptions survive as data: same class, same text, same attributes, same chain, and no code of theirs is run."""

from __future__ import annotations

import http
import http.client
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable

import msgspec
import pydantic
import pytest
from pydantic_core import PydanticCustomError

from lockstep.errors import Code, Divergence, LockstepError
from lockstep.session.exceptions import Absent, decode, encode
from lockstep.session.session import finish, start_recording, start_replay


def stored(error: BaseException) -> BaseException:
    """Through bytes and back, as the log does it."""
    return decode(msgspec.msgpack.decode(msgspec.msgpack.encode(encode(error))))


def raised(act: Callable[[], object]) -> BaseException:
    try:
        act()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def chain(error: BaseException | None) -> list[tuple[object, ...]]:
    seen: list[tuple[object, ...]] = []
    while error is not None:
        seen.append((type(error), str(error), repr(error.args), error.__suppress_context__, vars(error).keys()))
        error = error.__cause__ or error.__context__
    return seen


class Connection:
    """What a client keeps in its errors: nothing that can be stored."""


class ClientError(OSError):
    """As aiohttp's: other arguments than `args`, the rest in attributes."""

    def __init__(self, key: Connection, error: OSError) -> None:
        self.key = key
        self.error = error
        super().__init__(error.errno, error.strerror)


def of_a_chain() -> None:
    try:
        try:
            os.stat("/nowhere/at-all")
        except OSError as error:
            raise ValueError(error, 3) from error
    except ValueError:
        raise http.client.RemoteDisconnected("gone")  # noqa: B904


def of_a_suppressed_context() -> None:
    try:
        {}["missing"]  # type: ignore[index]
    except KeyError:
        raise LookupError("no such thing") from None


@pytest.mark.parametrize(
    "error",
    [
        raised(of_a_chain),
        raised(of_a_suppressed_context),
        raised(lambda: b"\xff".decode()),
        raised(lambda: compile("a b", "file", "exec")),
        http.client.IncompleteRead(b"ab", 5),
        socket.gaierror(-2, "Name or service not known"),
        ssl.SSLCertVerificationError(1, "certificate verify failed"),
        OSError(2, "No such file", "a.txt", None, "b.txt"),
        BlockingIOError(11, "again"),
        StopIteration(4),
        SystemExit(3),
        KeyError("k"),
        ImportError("no", name="x", path="y"),
        ExceptionGroup("two", [ValueError(1), ExceptionGroup("inner", [OSError(2, "x")])]),
        subprocess.CalledProcessError(2, ["ls", "-l"], b"out"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_caller_sees_of_an_exception_is_kept(error: BaseException) -> None:
    again = stored(error)
    assert chain(again) == chain(error)
    assert again.__traceback__ is None
    for name in ("errno", "strerror", "filename", "filename2", "code", "value", "start", "reason", "lineno", "name"):
        assert getattr(again, name, None) == getattr(error, name, None)


def test_notes_and_groups_are_kept() -> None:
    error = ExceptionGroup("g", [ValueError("a"), TypeError("b")])
    error.add_note("while it rained")
    again = stored(error)
    assert isinstance(again, ExceptionGroup)
    assert [(type(e), str(e)) for e in again.exceptions] == [(ValueError, "a"), (TypeError, "b")]
    assert again.__notes__ == ["while it rained"]


def test_one_exception_in_two_places_stays_one() -> None:
    inner = OSError(111, "refused")
    outer = ValueError(inner)
    outer.__cause__ = outer.__context__ = inner
    again = stored(outer)
    assert again.args[0] is again.__cause__ is again.__context__


def test_a_class_with_another_constructor_is_rebuilt_without_it_and_takes_the_live_object() -> None:
    here = Connection()
    form = encode(ClientError(Connection(), ConnectionRefusedError(111, "refused")))
    again = decode(form, live={f"{__name__}.Connection": here})
    assert isinstance(again, ClientError) and again.key is here
    assert (again.errno, again.strerror, type(again.error)) == (111, "refused", ConnectionRefusedError)
    without = decode(form)
    assert isinstance(without, ClientError) and isinstance(without.key, Absent)


class Stream:
    """As what h2 puts into its errors: seen in their text only."""

    def __str__(self) -> str:
        return "stream 5 was reset"

    def __repr__(self) -> str:
        return f"<Stream at {id(self):#x}>"


class Amount(float):
    def __repr__(self) -> str:
        return f"{float(self):.2f} EUR"


def test_a_live_object_keeps_its_part_of_the_text() -> None:
    for error in (ValueError(Stream()), ValueError("two", Stream()), KeyError([Amount(2), b"x"], {"k": Stream()})):
        again = stored(error)
        assert (str(again), repr(again)) == (str(error), repr(error))
        assert [type(item) for item in again.args if isinstance(item, Stream)] == []


def test_an_object_whose_text_raises_does_not_break_the_recording() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError("no text")

    again = stored(ValueError("x", Bad()))
    assert again.args[0] == "x" and isinstance(again.args[1], Absent)


def test_members_of_enumerations_come_back_as_themselves() -> None:
    error = ValueError(http.HTTPStatus.NOT_FOUND, "gone", ssl.TLSVersion.TLSv1_3, socket.AF_INET)
    again = stored(error)
    assert again.args == error.args and again.args[0] is http.HTTPStatus.NOT_FOUND
    assert str(again) == str(error)


def test_a_live_object_that_is_no_part_of_the_text_is_not_even_printed() -> None:
    error = ClientError(Connection(), OSError(1, "x"))
    again = stored(error)
    assert isinstance(again, ClientError)
    session = start_replay(None, recorded_run())
    try:
        with pytest.raises(Divergence, match=r"LS110 .*Connection; \.port is not known"):
            again.key.port  # type: ignore[attr-defined]  # noqa: B018
    finally:
        assert not finish(session, 0, None).identical
    session = start_replay(None, recorded_run())
    try:
        with pytest.raises(Divergence, match="its text is not known"):
            str(again.key)
    finally:
        finish(session, 0, None)


def recorded_run() -> str:
    session = start_recording(None, "empty", {})
    finish(session, 0, None)
    return session.run


def test_a_class_that_is_not_loaded_is_not_replaced_by_another() -> None:
    form = encode(ClientError(Connection(), OSError(1, "x")))
    assert isinstance(form, dict)
    for module, name in (("not_loaded_here", "ClientError"), (__name__, "Gone"), ("builtins", "open"), ("os", "path")):
        with pytest.raises(LockstepError) as caught:
            decode({**form, "module": module, "name": name})
        assert caught.value.code is Code.UNSERVABLE and name in str(caught.value)


def test_a_class_made_in_a_function_is_found_while_it_is_the_only_one() -> None:
    class Local(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(a + b)

    again = stored(Local(1, 2))
    assert type(again) is Local and again.args == (3,)


class Order(pydantic.BaseModel):
    number: int
    note: str = pydantic.Field("", max_length=3)

    @pydantic.field_validator("number")
    @classmethod
    def small(cls, number: int) -> int:
        if number > 5:
            raise ValueError("too {large}")
        return number

    @pydantic.field_validator("note")
    @classmethod
    def polite(cls, note: str) -> str:
        if note == "no":
            raise PydanticCustomError("polite", "say {word}", {"word": "please"})
        return note


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Order(number="q", note="too long"),  # type: ignore[arg-type]
        lambda: Order(number=9),
        lambda: Order(number=1, note="no"),
        lambda: Order.model_validate_json('{"number": "z", "note": 3}'),
        lambda: Order.model_validate_json('{"number": '),
        lambda: pydantic.TypeAdapter(list[int]).validate_python([1, "x", {"k": (1, b"2")}]),
    ],
)
def test_a_failed_validation_is_made_again_by_its_library(wrong: Callable[[], object]) -> None:
    error = raised(wrong)
    again = stored(error)
    assert isinstance(error, pydantic.ValidationError) and isinstance(again, pydantic.ValidationError)
    assert (str(again), again.title, again.error_count()) == (str(error), error.title, error.error_count())
    for now, was in zip(again.errors(include_context=False), error.errors(include_context=False), strict=True):
        assert now == was


def test_a_failed_validation_of_a_live_object_is_refused() -> None:
    error = raised(lambda: pydantic.TypeAdapter(int).validate_python(object()))
    with pytest.raises(LockstepError, match=r"LS110 .*ValidationError would print as something else"):
        stored(error)


def test_long_chains_and_large_contents_stay_bounded() -> None:
    error = ValueError("0")
    for number in range(1, 200):
        outer = ValueError(str(number))
        outer.__cause__ = error
        error = outer
    error.__dict__["data"] = list(range(1_000_000))
    assert len(msgspec.msgpack.encode(encode(error))) < 10_000
    assert len(chain(stored(error))) > 20


def test_a_cycle_of_contexts_ends() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first
    again = stored(first)
    assert again.__context__ is not None and again.__context__.__context__ is again


def test_a_class_that_its_package_shows_under_its_own_name_is_found_before_it_does() -> None:
    """anyio renames its exceptions when they are first asked for: the live client does, a served one does not."""
    hidden = type("Renamed", (Exception,), {"__module__": "shown_later._core", "__qualname__": "Renamed"})
    hidden.__module__ = "shown_later"
    recorded = encode(hidden("gone"))
    hidden.__module__ = "shown_later._core"
    assert type(decode(recorded)) is hidden


def test_what_a_client_imports_when_it_connects_is_imported_to_raise_it() -> None:
    """httpx brings anyio in with its first connection, which a replay does not make."""
    program = (
        "import sys\n"
        "from lockstep.session.exceptions import decode\n"
        "assert 'anyio' not in sys.modules\n"
        "print(repr(decode({'module': 'anyio', 'name': 'ClosedResourceError', 'args': []})))\n"
        "try:\n"
        "    decode({'module': 'antigravity', 'name': 'Error', 'args': []})\n"
        "except Exception as error:\n"
        "    print(error.code, 'antigravity' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "ClosedResourceError()\nLS110 False\n"
