"""The provider itself: scripts, counts, times, odd answers, and its end."""

import http.client
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import httpx
import pytest

from lockstep.session import lanes
from lockstep.testing import Answer, Provider, Request

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def said(client, **more):
    return client.post("/v1/chat/completions", json=CHAT, **more).json()["choices"][0]["message"]["content"]


@pytest.fixture
def web():
    with Provider() as provider, httpx.Client(base_url=provider.url) as client:
        yield client


def test_equal_requests_get_different_answers_and_the_same_seed_the_same_ones():
    def three(seed):
        with Provider(seed=seed) as provider, httpx.Client(base_url=provider.url) as client:
            return [said(client) for _ in range(3)]

    first = three(1)
    assert len(set(first)) == 3
    assert three(1) == first
    assert three(2) != first


def test_a_list_is_used_up_by_model_calls_and_then_the_defaults_follow():
    with Provider(["a", None, "c"]) as provider, httpx.Client(base_url=provider.url) as client:
        client.get("/somewhere")
        answers = [said(client) for _ in range(4)]
    assert answers[0] == "a"
    assert answers[1].startswith("answer 3:")
    assert answers[2] == "c"
    assert answers[3].startswith("answer 5:")


def test_a_function_sees_the_request_and_may_leave_it_open():
    def script(request: Request):
        if request.path == "/tool":
            return Answer(body=b'{"ok":true}', headers=(("content-type", "application/json"),))
        return f"you said {request.prompt}" if request.header("X-Mood") == "echo" else None

    with Provider(script) as provider, httpx.Client(base_url=provider.url) as client:
        assert said(client, headers={"x-mood": "echo"}) == "you said hello"
        assert said(client).startswith("answer 2:")
        assert client.get("/tool").json() == {"ok": True}
        assert client.get("/other?a=1").json() == {"n": 4, "method": "GET", "path": "/other"}
    assert [request.target for request in provider.seen[2:]] == ["/tool", "/other?a=1"]


@pytest.mark.parametrize(
    ("body", "prompt"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "chat parts"}]}]}, "chat parts"),
        ({"input": "plain input"}, "plain input"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "tool said"}]}, "tool said"),
        ({"messages": [{"role": "assistant", "content": None}]}, ""),
        ({"messages": []}, ""),
        ([1, 2], ""),
    ],
)
def test_the_prompt_is_the_last_text_of_any_api(body, prompt):
    assert Request(1, "POST", "/", json=body).prompt == prompt


def test_a_mistake_in_the_script_is_raised_where_the_test_sees_it():
    def script(request):
        raise KeyError("no such ticket")

    with pytest.raises(KeyError, match="no such ticket"):
        with Provider(script) as provider, httpx.Client(base_url=provider.url) as client:
            assert client.get("/anything").status_code == 500


def test_requests_and_connections_are_counted():
    with Provider() as provider:
        with httpx.Client(base_url=provider.url) as client:
            for _ in range(3):
                client.get("/kept-alive")
        httpx.get(provider.url)
    assert (provider.requests, provider.connections) == (4, 2)


def test_the_request_may_set_its_own_times_and_status(web):
    assert web.get("/x?delay=0.03").elapsed.total_seconds() >= 0.03
    assert web.get("/x", headers={"x-delay": "0.03"}).elapsed.total_seconds() >= 0.03
    assert web.get("/events?gap=0.01&count=4").elapsed.total_seconds() >= 0.03
    assert web.get("/x?status=503").status_code == 503
    with pytest.raises(httpx.ReadTimeout):
        web.get("/x?lag=5", timeout=0.05)


def test_the_head_comes_before_a_late_first_byte(web):
    with web.stream("GET", "/events?lag=5", timeout=0.1) as response:
        assert response.status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            response.read()


def test_jitter_is_drawn_by_number_from_the_seed():
    with Provider(jitter=(0.02, 0.03)) as provider, httpx.Client(base_url=provider.url) as client:
        times = [client.get("/x").elapsed.total_seconds() for _ in range(3)]
    assert all(time >= 0.02 for time in times)


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("/x?cut=-1", "Server disconnected without sending a response"),
        ("/x?cut=0", "received 0 bytes"),
        ("/events?cut=0", "incomplete chunked read"),
        ("/events?cut=3", "incomplete chunked read"),
    ],
)
def test_connections_break_where_they_are_told_to(web, target, error):
    with pytest.raises(httpx.RemoteProtocolError, match=error):
        web.get(target)


def test_odd_answers(web):
    assert web.get("/gzip").json() == {"n": 1}
    assert web.get("/gzip-events?count=2").text == "data: tick 0 of 2\n\ndata: tick 1 of 2\n\n"
    assert web.get("/cookies").headers.get_list("set-cookie") == ["a=3; Path=/", "b=2; Path=/"]
    assert web.get("/echo").json()["headers"][-1] == ["cookie", "a=3; b=2"]
    assert web.get("/latin1").text == "café 5"
    assert web.get("/binary").content[:256] == bytes(range(256))
    assert len(web.get("/big?mb=2").content) == 2 * 1024 * 1024
    assert web.get("/empty").status_code == 204
    redirected = web.get("/redirect?to=/echo", follow_redirects=True)
    assert [hop.status_code for hop in redirected.history] == [302]
    assert sorted(web.get("/flaky").status_code for _ in range(2)) == [200, 500]
    assert web.head("/x").headers["content-length"] != "0"
    assert web.get("/secret").json()["api_key"].startswith("sk-")
    with web.stream("GET", "/forever") as endless:
        assert list(itertools.islice(endless.iter_lines(), 3)) == ["data: tick 0", "", "data: tick 1"]


def test_bodies_in_chunks_of_any_bytes_arrive_whole(web):
    assert web.post("/echo", content=iter([b"\xff\x00", b"tail"])).json()["hex"] == "ff007461696c"


def test_a_client_that_waits_for_100_continue_gets_it(web):
    connection = socket.create_connection((web.base_url.host, web.base_url.port))
    with connection, connection.makefile("rb") as answers:
        connection.sendall(b"PUT /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert answers.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert answers.readline() == b"\r\n"
        connection.sendall(b"body")
        response = http.client.HTTPResponse(connection, method="PUT")
        response.begin()
        assert json.loads(response.read())["body"] == "body"


def test_stopping_ends_open_connections_and_frees_the_port():
    provider = Provider().start()
    failed = []

    def wait_for_ever():
        try:
            urllib.request.urlopen(f"{provider.url}/x?delay=600").read()
        except (OSError, http.client.HTTPException) as error:
            failed.append(error)

    waiting = threading.Thread(target=wait_for_ever)
    waiting.start()
    while not provider.requests:
        pass
    provider.stop()
    waiting.join()
    assert len(failed) == 1
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(provider.url)


def test_it_listens_on_loopback_only():
    with Provider() as provider:
        assert provider.url.startswith("http://127.0.0.1:")


def test_its_threads_are_not_the_programs_own():
    inside = []
    with Provider(lambda request: inside.append(lanes.inside())) as provider:
        httpx.get(provider.url)
    assert inside == [True]
    assert lanes.inside() is None


def test_as_a_command_it_prints_its_url_serves_the_script_and_ends_on_a_signal(tmp_path):
    script = tmp_path / "answers.py"
    script.write_text("def answer(request):\n    return 'from the file: ' + request.prompt\n")
    command = [sys.executable, "-W", "error", "-m", "lockstep.testing.provider", "--script", f"{script}:answer"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        url = process.stdout.readline().strip()
        with httpx.Client(base_url=url) as client:
            assert said(client) == "from the file: hello"
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


def test_its_environment_points_both_sdks_at_it():
    with Provider() as provider:
        assert provider.environ["OPENAI_BASE_URL"] == f"{provider.url}/v1"
        assert provider.environ["ANTHROPIC_BASE_URL"] == provider.url
