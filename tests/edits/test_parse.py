"""The texts of edits: `ADDR[:PATH]=JSON`, and what is said of one that is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.debugger import edits, paths
from lockstep.debugger.edits import Edit
from lockstep.debugger.structure import joined
from lockstep.errors import LockstepError


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ('7.1={"ok": true}', Edit("7.1", "", {"ok": True})),
        ('7.1:status="lost"', Edit("7.1", "status", "lost")),
        ("7=null", Edit("7", "", None)),
        (":7.1=1", Edit("7.1", "", 1)),
        ("refund:7.1:total=450", Edit("7.1", "total", 450, "refund")),
        ('refund@try-2:7.1:messages[0].content="a=b:c"', Edit("7.1", "messages[0].content", "a=b:c", "refund@try-2")),
        ("langgraph/t-91:7.1=[]", Edit("7.1", "", [], "langgraph/t-91")),
        ("a=b:7.1=1", Edit("7.1", "", 1, "a=b")),
        ('7.1:headers."x=y: z"=1', Edit("7.1", 'headers."x=y: z"', 1)),
        ("7.1:[0][1].a-b_c=1", Edit("7.1", "[0][1].a-b_c", 1)),
        ('7.1:["x.y"].z=1', Edit("7.1", '"x.y".z', 1)),
        ('7.1="refund:8.1=2"', Edit("7.1", "", "refund:8.1=2")),
        ("7.1:preis_größe=1.5", Edit("7.1", "preis_größe", 1.5)),
        ("7:3=1", Edit("7", "3", 1)),
    ],
)
def test_an_edit_is_read(text: str, edit: Edit) -> None:
    assert edits.parse(text) == edit


def test_a_run_that_looks_like_a_step_is_told_by_the_forks_own() -> None:
    assert edits.parse("7:3=1", run="7") == Edit("3", "", 1, "7")
    assert edits.parse("7:3=1", run="refund") == Edit("7", "3", 1)


def test_a_value_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"ok": true}')
    (tmp_path / "note.txt").write_text("not JSON\n")
    (tmp_path / "logo.bin").write_bytes(b"\x89\xff")
    found = [edits.parse(f"7.1=@{tmp_path}/{name}").value for name in ("answer.json", "note.txt", "logo.bin")]
    assert found == [{"ok": True}, "not JSON\n", b"\x89\xff"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("status=1", "LS206 an edit begins with the address of an effect"),
        ("=1", "LS206 an edit begins with the address of an effect"),
        ("refund=1", "LS206 an edit begins with the address of an effect"),
        ("7.1/2=1", "LS213 7.1/2 is inside another effect"),
        ("7.1", "LS211 not an edit: '7.1': a value has to follow"),
        ("7.1:a b=1", "LS211 not an edit: '7.1:a b=1': a value has to follow, from ' b=1' on"),
        ("7.1:a..b=1", "LS211 not an edit: '7.1:a..b=1': a value has to follow, from '..b=1' on"),
        ("7.1:a[x]=1", "LS211 not an edit"),
        ("7.1:status=lost", "--set '7.1:status=\"lost\"'"),
        ("7.1:status=", "LS211 not JSON: ''"),
        ("7.1=@/no/such/file", "LS211 '/no/such/file' cannot be read: No such file or directory"),
        (f"7.1={'[' * 2000}", "LS211 not JSON"),
    ],
)
def test_what_is_no_edit_is_said_with_what_to_do(text: str, says: str) -> None:
    with pytest.raises(LockstepError) as refused:
        edits.parse(text)
    assert says in str(refused.value)


def test_edits_in_code_are_addresses_and_paths_with_objects() -> None:
    assert edits.given("7.1", {"ok": True}) == Edit("7.1", "", {"ok": True})
    assert edits.given("refund:7.1:items[0].price", 1.5, run="refund") == Edit("7.1", "items[0].price", 1.5, "refund")
    assert edits.given("7", Path("/a")).value == {"$": "PosixPath", "$value": "/a"}
    with pytest.raises(LockstepError, match="LS211 not an address and path"):
        edits.given("7.1=1", None)


@pytest.mark.parametrize("name", ["a", "x y", "a.b", "[0]", 'q"t', "größe", "", "a-b_c", "\n", "x=y", "_", "1"])
def test_a_path_is_read_as_diff_writes_it(name: str) -> None:
    path = joined(joined("first", name), "last") + "[2]"
    assert paths.parse(path) == ("first", name, "last", 2)
    assert paths.shown(paths.parse(path)) == path
    assert paths.at({"first": {name: {"last": [0, 1, "here"]}}}, paths.parse(path)) == "here"


def test_a_place_inside_of_json_text_is_edited_in_the_text() -> None:
    call: Any = {"arguments": '{"city": "Oslo", "days": [1, 2]}'}
    assert paths.put(call, paths.parse("arguments.days[1]"), 3) == {"arguments": '{"city":"Oslo","days":[1,3]}'}
    assert call == {"arguments": '{"city": "Oslo", "days": [1, 2]}'}
