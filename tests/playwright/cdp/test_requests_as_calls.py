"""What must match in a replay of a browser's request, and what need not."""

import asyncio
from typing import Any

from msgspec.structs import replace

from lockstep.log.model import Kind
from lockstep.session.native.memory import Memory
from lockstep_playwright.network import errors, jar, requests
from lockstep_playwright.network.exchange import Asked, Go, Head
from lockstep_playwright.network.recorder import Recorder

FORM = "multipart/form-data; boundary="


def asked(body: bytes = b"", url: str = "http://shop.example/cart?n=1", **headers: str) -> Asked:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Asked(
        id="1", network="2", lane="main/page-1/frame", method="POST", url=url, headers=pairs, body=body,
        resource="Fetch", frame="3",
    )  # fmt: skip


def key(*args: Any, **kwargs: Any) -> Any:
    return requests.told(asked(*args, **kwargs)).key


def test_what_is_stored_is_the_whole_request() -> None:
    told = requests.told(asked(b"body", accept="*/*", cookie="a=1"))
    assert (told.name, told.kind) == ("POST shop.example/cart", "http")
    assert told.request == {
        "method": "POST", "url": "http://shop.example/cart?n=1", "headers": [["accept", "*/*"], ["cookie", "a=1"]],
        "body": b"body", "for": "Fetch",
    }  # fmt: skip


def test_method_address_and_body_must_match() -> None:
    assert key(b"one") != key(b"two")
    assert key(url="http://shop.example/cart?n=1") != key(url="http://shop.example/cart?n=2")
    assert key(url="http://shop.example/") != key(url="http://shop.example:81/")


def test_headers_of_the_browsers_own_need_not_match() -> None:
    assert key(user_agent="one", referer="http://a.example/", cookie="a=1") == key(user_agent="two", cookie="b=2")


def test_headers_that_say_what_is_wanted_must_match() -> None:
    assert key(range="bytes=0-9") != key(range="bytes=10-19")
    assert key(content_type="text/plain") != key(content_type="application/json")
    assert key(accept="text/event-stream") != key(accept="*/*")
    assert key(accept="image/avif") == key(accept="image/webp")


def test_the_boundary_of_a_form_need_not_match() -> None:
    one, two = b"--AAA\r\nx\r\n--AAA--\r\n", b"--BBB\r\nx\r\n--BBB--\r\n"
    assert key(one, content_type=f"{FORM}AAA") == key(two, content_type=f"{FORM}BBB")
    assert key(one, content_type=f"{FORM}AAA") != key(two.replace(b"x", b"y"), content_type=f"{FORM}BBB")


def test_addresses_of_objects_in_memory_are_told_apart_and_need_not_match() -> None:
    first, second = (b"blob:http://shop.example/%08d-1111-2222-3333-444444444444" % n for n in (1, 2))
    third = first.replace(b"1111", b"9999")
    assert key(first + b" " + second) == key(second + b" " + third)
    assert key(first + b" " + second) != key(first + b" " + first)


def test_a_head_is_served_with_the_encoding_that_was_taken_off_and_without_its_framing() -> None:
    head = Head(status=200, headers=(("transfer-encoding", "chunked"), ("x-kept", "1")), decoded="gzip")
    assert Head.of(head.part()) == head
    assert head.served() == (("x-kept", "1"), ("content-encoding", "gzip"))


def test_cookies_that_were_set_are_those_that_the_browser_has_now_and_had_not() -> None:
    def cookie(name: str, **more: Any) -> dict[tuple[str, str, str], dict[str, Any]]:
        made = {"name": name, "value": "1", "domain": "shop.example", "path": "/", "session": True, **more}
        return {(name, made["domain"], made["path"]): made}

    before = {**cookie("kept"), **cookie("changed")}
    after = {
        **cookie("kept"), **cookie("changed", value="2", httpOnly=True),
        **cookie("new", domain=".shop.example", session=False, expires=0, secure=True, sameSite="Lax"),
    }  # fmt: skip
    assert jar.lines(before, after) == (
        "changed=2; Path=/; HttpOnly",
        "new=1; Path=/; Domain=.shop.example; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure; SameSite=Lax",
    )


def test_errors_that_a_request_can_be_failed_with_are_known_both_ways() -> None:
    assert errors.reason(errors.called("ConnectionRefused")) == "ConnectionRefused"
    assert [errors.reason(name) for name in ("net::ERR_TIMED_OUT", "net::ERR_EMPTY_RESPONSE")] == ["TimedOut", "Failed"]


def test_a_browser_that_looks_for_an_icon_is_no_part_of_a_run_and_a_page_that_loads_it_is() -> None:
    image = asked(accept="image/avif,image/webp,*/*;q=0.8")
    look, load = replace(image, id="4", resource="Other"), replace(image, id="5", resource="Image")
    journal = Memory()
    recorder = Recorder(journal)
    for each in (look, load):
        assert asyncio.run(recorder.asked(each)) == Go()
        recorder.answered(each, Head(status=200))
        recorder.over(each)
    assert [event.body["request"]["for"] for event in journal.events if event.kind is Kind.BEGIN] == ["Image"]


def test_a_model_that_a_page_asks_by_itself_is_a_call_to_a_model() -> None:
    url = "http://models.example/v1/chat/completions"
    told = requests.told(asked(b'{"model": "m", "messages": []}', url=url))
    assert told.kind == "http"
    assert told.declared is not None
    assert told.declared.effect == "inference"
    assert requests.told(asked(b"{}", url="http://shop.example/pay")).declared is None
