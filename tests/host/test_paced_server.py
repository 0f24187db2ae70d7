"""The paced server as clients see it: OpenAI's protocol, marked as simulated."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.host.keepers import ENV
from tests.host.living import LIMIT_S
from tests.host.mocks import Answer, Mock, chat_body, request
from tests.host.paced import PACED, QUICK, TRUSTING, WITH_TLS, paced

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def server() -> Iterator[Mock]:
    with paced(*QUICK, "--tokens", "7") as running:
        yield running


def test_a_chat_streams_its_tokens_then_usage_and_done(server: Mock) -> None:
    answer = server.chat("one two three", max_tokens=3, stream_options={"include_usage": True})
    assert (answer.status, answer.complete) == (200, True)
    assert answer.deltas == [{"content": f" w{k:02}"} for k in range(3)]
    assert answer.finishes == [None, None, "length"]
    *_, usage, done = answer.events
    assert usage["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    assert (usage["choices"], done) == ([], "[DONE]")
    assert {event["object"] for event in answer.events[:-1]} == {"chat.completion.chunk"}


def test_usage_comes_only_where_it_was_asked_for(server: Mock) -> None:
    assert not any("usage" in event for event in server.chat(max_tokens=2).events[:-1])


def test_completions_stream_text(server: Mock) -> None:
    assert server.text(stream=True, max_tokens=2).deltas == [" w00", " w01"]


def test_one_token_is_first_and_last_at_once(server: Mock) -> None:
    answer = server.chat(max_tokens=1)
    assert (answer.deltas, answer.finishes, answer.complete) == ([{"content": " w00"}], ["length"], True)


def test_more_tokens_than_there_are_words(server: Mock) -> None:
    texts = [delta["content"] for delta in server.chat(max_tokens=250).deltas]
    assert texts == [f" w{k % 100:02}" for k in range(250)]


def test_without_max_tokens_it_sends_what_its_option_says(server: Mock) -> None:
    assert len(server.chat().deltas) == 7


def test_every_answer_is_marked_as_simulated(server: Mock) -> None:
    answers = [server.get(path) for path in ("/v1/models", "/health", "/ctl/dump", "/nothing")]
    answers += [server.chat(max_tokens=1), server.chat(max_tokens=0)]
    assert all(b"\r\nx-simulated: 1" in answer.head for answer in answers)
    assert [model["id"] for model in server.get("/v1/models").json["data"]] == ["simulated-paced"]
    assert server.chat(max_tokens=1).events[0]["model"] == "simulated-paced"


def test_the_requests_own_number_comes_back(server: Mock) -> None:
    answer = server.send("POST", CHAT, chat_body(max_tokens=1), X_Request_Id="4711")
    assert b"\r\nx-request-id: 4711\r\n" in answer.head


def test_a_connection_carries_requests_one_after_the_other(server: Mock) -> None:
    first, second = (request("POST", CHAT, chat_body(max_tokens=2), X_Request_Id=str(k)) for k in (1, 2))
    last = request("GET", "/health", connection="close")
    with server.connect() as connection:
        connection.sendall(first + second + last)  # all at once: the later ones wait for their turn
        raw = b"".join(iter(lambda: connection.recv(65536), b""))
    answers = raw.split(b"HTTP/1.1 ")[1:]
    assert [b"x-request-id: 1" in answers[0], b"x-request-id: 2" in answers[1]] == [True, True]
    assert all(answer.endswith(b"0\r\n\r\n") for answer in answers[:2])
    assert json.loads(answers[2].partition(b"\r\n\r\n")[2])["status"] == "ok"


def test_a_request_may_come_byte_by_byte(server: Mock) -> None:
    with server.connect() as connection:
        for byte in request("POST", CHAT, chat_body(max_tokens=1), connection="close"):
            connection.sendall(bytes([byte]))
        assert Answer(b"".join(iter(lambda: connection.recv(65536), b""))).complete


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        chat_body(max_tokens=0),
        chat_body(max_tokens=True),
        chat_body(max_tokens="3"),
        chat_body(max_tokens=2_000_000),
        chat_body(stream=False),
    ],
)
def test_what_it_does_not_do_is_refused_and_the_connection_stays(server: Mock, body: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(request("POST", CHAT, body) + request("GET", "/health", connection="close"))
        raw = b"".join(iter(lambda: connection.recv(65536), b""))
    assert raw.startswith(b"HTTP/1.1 400 ")
    assert raw.count(b"HTTP/1.1 200 ") == 1


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", 413),
        (b"GET /" + b"a" * 70_000, 413),
    ],
)
def test_what_it_can_not_understand_ends_the_connection(server: Mock, said: bytes, status: int) -> None:
    with server.connect() as connection:
        connection.sendall(said)
        answer = Answer(connection.recv(65536))
        assert (answer.status, connection.recv(65536)) == (status, b"")


def test_tls_carries_the_same() -> None:
    with (
        paced(*QUICK, *WITH_TLS) as server,
        server.connect() as plain,
        TRUSTING.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(request("POST", CHAT, chat_body(max_tokens=40), connection="close"))
        answer = Answer(b"".join(iter(lambda: connection.recv(65536), b"")))
    assert (len(answer.deltas), answer.complete) == (40, True)


def test_a_taken_port_is_told(server: Mock) -> None:
    argv = (*PACED, "--port", str(server.port))
    ended = subprocess.run(argv, capture_output=True, env=ENV, timeout=LIMIT_S, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"ERROR: " in ended.stderr
