"""What the mock engine can do to its clients, as the bytes that they get."""

import time

import pytest

from tests.host.mocks import Answer, chat_body, mock, request, said


def test_an_error_inside_the_stream_is_an_event() -> None:
    with mock("--error-after", "2") as engine:
        answer = engine.chat(max_tokens=5)
        assert answer.status == 200
        assert len(said(answer)) == 2
        assert answer.events[-2]["error"]["code"] == 500
        assert answer.events[-1] == "[DONE]"
        assert "length" not in answer.finishes
        assert len(said(engine.chat(max_tokens=1))) == 1
        assert engine.chat(max_tokens=5, stream=False).status == 500


def test_a_cut_stream_has_no_end() -> None:
    with mock("--cut-after", "3", "--tokens-per-chunk", "2") as engine:
        answer = engine.chat(max_tokens=5)
        assert [text.count(" ") for text in said(answer)] == [2, 1]
        assert not answer.complete
        assert engine.chat(max_tokens=5, stream=False).raw == b""
        assert engine.get("/health").status == 200


def test_a_crash_takes_the_process_in_mid_stream() -> None:
    with mock("--crash-after", "3") as engine:
        answer = engine.chat(max_tokens=5)
        assert len(said(answer)) == 3
        assert not answer.complete
        assert engine.process.wait(10) == 1


def test_a_crash_can_come_after_so_many_answers() -> None:
    with mock("--crash-after-requests", "2") as engine:
        assert engine.chat(max_tokens=1).complete
        assert engine.chat(max_tokens=1).complete
        assert engine.process.wait(10) == 1


@pytest.mark.parametrize("status", [429, 500])
def test_every_nth_request_can_fail(status: int) -> None:
    with mock("--fail-every", "3", "--fail-status", str(status)) as engine:
        answers = [engine.chat(max_tokens=1) for _ in range(6)]
        assert [answer.status for answer in answers] == [200, 200, status, 200, 200, status]
        assert (b"retry-after" in answers[2].head) == (status == 429)


def test_lines_can_end_with_cr_lf() -> None:
    with mock("--crlf") as engine:
        assert all(chunk.endswith(b"\r\n\r\n") for chunk in engine.chat(max_tokens=2).chunks[:-1])


def test_events_can_come_in_pieces() -> None:
    with mock("--split", "7") as engine:
        answer = engine.chat(max_tokens=2)
        assert max(map(len, answer.chunks)) == 7
        assert len(said(answer)) == 2


def test_comments_keep_the_connection_alive_before_the_first_token() -> None:
    with mock("--keepalive-s", "0.02", "--ttft-ms", "150") as engine:
        answer = engine.chat(max_tokens=1)
        assert answer.body.startswith(b": keepalive\n\n")
        assert len(said(answer)) == 1


def test_requests_beyond_the_slots_wait_and_are_counted() -> None:
    with mock("--slots", "2", "--ttft-ms", "60000") as engine:
        connections = [engine.connect() for _ in range(3)]
        for connection in connections:
            connection.sendall(request("POST", "/v1/chat/completions", chat_body()))
            assert connection.recv(1)
        body = engine.get("/metrics").body
        assert b"mock:requests_running 2\nmock" in body.replace(b"# TYPE mock:requests_waiting gauge\n", b"")
        assert b"mock:requests_waiting 1\n" in body
        assert b"mock:kv_cache_usage 1.0\n" in body
        for connection in connections:
            connection.close()


def test_a_slot_is_free_again_when_its_client_left() -> None:
    with mock("--slots", "1", "--itl-ms", "5") as engine:
        with engine.connect() as connection:
            connection.sendall(request("POST", "/v1/chat/completions", chat_body(max_tokens=100_000)))
            assert connection.recv(1)
        assert len(said(engine.chat(max_tokens=2))) == 2


def test_a_key_is_asked_for() -> None:
    with mock("--api-key", "sesame") as engine:
        assert engine.chat().status == 401
        assert engine.get("/health").status == 200
        answer = engine.send("POST", "/v1/chat/completions", chat_body(), authorization="Bearer sesame")
        assert answer.status == 200


def test_many_paced_streams_run_side_by_side() -> None:
    with mock("--itl-ms", "20") as engine:
        connections = [engine.connect() for _ in range(64)]
        begun = time.monotonic()
        for connection in connections:
            connection.sendall(request("POST", "/v1/chat/completions", chat_body(max_tokens=20), connection="close"))
        answers = [Answer(b"".join(iter(lambda c=one: c.recv(65536), b""))) for one in connections]  # type: ignore[misc]
        took = time.monotonic() - begun
        for connection in connections:
            connection.close()
        assert all(answer.complete and len(said(answer)) == 20 for answer in answers)
        assert took < 64 * 19 * 0.02


def test_streams_side_by_side_slow_each_other_down() -> None:
    with mock("--itl-slope-ms", "10") as engine, engine.connect() as other:
        other.sendall(request("POST", "/v1/chat/completions", chat_body(max_tokens=100_000)))
        assert other.recv(1)
        begun = time.monotonic()
        assert len(said(engine.chat(max_tokens=6))) == 6
        assert time.monotonic() - begun >= 0.05
