"""What the paced server tells about itself: every send, its schedule, and the clients it lost."""

import signal
import subprocess
from array import array
from pathlib import Path
from typing import Any

import pytest

from deploytui.host import paced_truth
from deploytui.host.paced_streams import Stream
from tests.host.living import LIMIT_S, until
from tests.host.mocks import Answer, Mock, chat_body, request
from tests.host.paced import QUICK, TRUSTING, WITH_TLS, paced, told, truth_in

CHAT = "/v1/chat/completions"
MS = 1_000_000


def ask(server: Mock, id_: int, tokens: int) -> Answer:
    return server.send("POST", CHAT, chat_body(max_tokens=tokens), X_Request_Id=str(id_))


def asked(server: Mock) -> dict[str, Any]:
    """What it tells on its leash."""
    assert server.process.stdin is not None
    server.process.stdin.write(b"truth\n")
    return told(server.process)


def test_the_truth_holds_each_send_of_each_request(tmp_path: Path) -> None:
    truth = tmp_path / "truth.bin"
    with paced(*QUICK, "--truth", str(truth)) as server:
        for id_, tokens in ((7, 3), (5, 1), (9, 20)):
            ask(server, id_, tokens)
        said = server.get("/ctl/dump").json
        sent = truth_in(truth)
    assert [(one.id, len(one.stamps), one.finished, one.blocked) for one in sent] == [
        (7, 3, True, False),
        (5, 1, True, False),
        (9, 20, True, False),
    ]
    assert (said["requests"], said["tokens"], said["cut"], said["simulated"]) == (3, 24, 0, True)


def test_no_token_is_sent_before_it_is_due(tmp_path: Path) -> None:
    truth = tmp_path / "truth.bin"
    with paced("--ttft-ms", "5", "--itl-ms", "2", "--truth", str(truth)) as server:
        for id_ in range(5):
            ask(server, id_, 6)
        said = server.get("/ctl/dump").json
    for one in truth_in(truth):
        due = [one.due_ns + k * 2 * MS for k in range(6)]
        assert all(stamp >= at for stamp, at in zip(one.stamps, due, strict=True))
        assert one.due_ns >= one.seen_ns + 5 * MS
    assert said["late_us"]["p50"] <= said["late_us"]["p99"]


@pytest.mark.parametrize("phases", ["arrival", "grid", "spread"])
def test_streams_keep_the_phases_that_were_asked_for(tmp_path: Path, phases: str) -> None:
    truth = tmp_path / "truth.bin"
    with paced("--ttft-ms", "5", "--itl-ms", "4", "--phases", phases, "--truth", str(truth)) as server:
        for id_ in range(4):
            ask(server, id_, 2)
        server.get("/ctl/dump")
    waits = [one.due_ns - one.seen_ns - 5 * MS for one in truth_in(truth)]
    assert all(0 <= wait < 4 * MS for wait in waits)
    if phases == "arrival":
        assert waits == [0] * 4
    if phases == "grid":
        assert all(one.due_ns % (4 * MS) == 0 for one in truth_in(truth))
    if phases == "spread":
        assert len(set(waits)) == 4


def test_a_request_without_a_number_is_kept_without_one(tmp_path: Path) -> None:
    truth = tmp_path / "truth.bin"
    with paced(*QUICK, "--truth", str(truth)) as server:
        server.chat(max_tokens=1)
        server.send("POST", CHAT, chat_body(max_tokens=1), X_Request_Id="req-abc")
        server.get("/ctl/dump")
    assert [one.id for one in truth_in(truth)] == [2**32 - 1] * 2


def test_sigterm_writes_what_is_under_way_too(tmp_path: Path) -> None:
    truth = tmp_path / "truth.bin"
    with paced("--ttft-ms", "1", "--itl-ms", "1", "--truth", str(truth)) as server, server.connect() as client:
        client.sendall(request("POST", CHAT, chat_body(max_tokens=1_000_000), X_Request_Id="3"))
        assert client.recv(65536)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(LIMIT_S) == 0
    [one] = truth_in(truth)
    assert (one.id, one.finished) == (3, False)
    assert len(one.stamps) > 0


def test_a_client_that_goes_away_ends_its_stream_and_no_other(tmp_path: Path) -> None:
    truth = tmp_path / "truth.bin"
    with paced(*QUICK, "--truth", str(truth)) as server, server.connect() as other:
        other.sendall(request("POST", CHAT, chat_body(max_tokens=300), connection="close", X_Request_Id="2"))
        with server.connect() as client:
            client.sendall(request("POST", CHAT, chat_body(max_tokens=1_000_000), X_Request_Id="1"))
            assert client.recv(65536)
        answer = Answer(b"".join(iter(lambda: other.recv(65536), b"")))
        assert len(answer.deltas) == 300
        until(lambda: server.get("/ctl/dump").json["requests"] == 2)
        assert server.get("/ctl/dump").json["cut"] == 1
    assert {one.id: one.finished for one in truth_in(truth)} == {1: False, 2: True}


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "TLS"])
def test_a_client_that_does_not_read_loses_nothing_and_is_marked(tmp_path: Path, sealed: bool) -> None:
    truth, tokens = tmp_path / "truth.bin", 100_000  # more bytes than two socket buffers hold
    options = ("--ttft-ms", "0", "--itl-ms", "0", "--truth", str(truth), "--leash", *(WITH_TLS if sealed else ()))
    with paced(*options, stdin=subprocess.PIPE) as server, server.connect() as plain:
        slow = TRUSTING.wrap_socket(plain, server_hostname="127.0.0.1") if sealed else plain
        with slow:
            slow.sendall(request("POST", CHAT, chat_body(max_tokens=tokens), connection="close", X_Request_Id="1"))
            until(lambda: asked(server)["blocked"] == 1)
            answer = Answer(b"".join(iter(lambda: slow.recv(1 << 20), b"")))
    assert answer.complete
    assert answer.raw.count(b'"content":" w') == tokens
    [one] = truth_in(truth)
    assert (one.blocked, one.finished, len(one.stamps)) == (True, True, tokens)


def test_the_leash_asks_for_the_truth_and_ends_it(tmp_path: Path) -> None:
    truth = tmp_path / "truth.bin"
    with paced(*QUICK, "--leash", "--truth", str(truth), stdin=subprocess.PIPE) as server:
        assert server.process.stdin is not None
        ask(server, 1, 2)
        assert asked(server)["tokens"] == 2
        assert len(truth_in(truth)) == 1
        server.process.stdin.close()
        assert server.process.wait(LIMIT_S) == 0


def test_memory_is_bounded_since_much_truth_is_written_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paced_truth, "HELD_STAMPS", 2)
    truth = paced_truth.Truth(str(tmp_path / "truth.bin"), MS)
    truth.put(finished(1, 3))
    assert [one.id for one in truth_in(tmp_path / "truth.bin")] == [1]
    truth.put(finished(2, 1))
    truth.close()
    assert [one.id for one in truth_in(tmp_path / "truth.bin")] == [1, 2]


def finished(id_: int, tokens: int) -> Stream:
    """A stream that was sent to its end."""
    stream = Stream.__new__(Stream)
    stream.id, stream.n, stream.k, stream.flags = id_, tokens, tokens, paced_truth.FINISHED
    stream.seen_ns = stream.first_due_ns = 0
    stream.stamps = array("q", range(tokens))
    return stream
