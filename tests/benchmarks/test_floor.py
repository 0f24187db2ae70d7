"""The server and the client in C, against each other."""

import json
import os
import shutil
from http.client import HTTPConnection
from pathlib import Path

import pytest

from benchmarks.floor import carry
from benchmarks.server import serving
from benchmarks.truth import errors, heard_by_floor, joined

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
CORE = min(os.sched_getaffinity(0))


@pytest.mark.parametrize("clock", ["user", "kernel"])
def test_both_sides_account_for_every_token(tmp_path: Path, clock: str) -> None:
    with serving(CORE) as server:
        server.expect(ttft_us=20_000, itl_us=2_000)
        done = carry(server, CORE, requests=30, streams=10, tokens=16, stamps=tmp_path / "stamps", clock=clock)
        pairs = joined(heard_by_floor(tmp_path / "stamps"), server.log())
    assert done.done == 30
    assert len(pairs) == 30
    assert all(len(said.came_ns) == len(true.sent_ns) == 16 for said, true in pairs)
    assert all(came >= sent for said, true in pairs for came, sent in zip(said.came_ns, true.sent_ns, strict=True))
    assert len(errors(pairs, 2_000).itl_us) == 30 * 15


def test_no_token_leaves_before_it_is_due() -> None:
    with serving(CORE) as server:
        server.expect(ttft_us=20_000, itl_us=2_000)
        carry(server, CORE, requests=5, streams=5, tokens=16)
        log = server.log()
    for request in log:
        due = range(request.first_due_ns, request.last_ns + 1, 2_000_000)
        assert all(sent >= at for sent, at in zip(request.sent_ns, due, strict=False))


@pytest.mark.parametrize("burst", [1, 8])
def test_unpaced_tokens_all_come(burst: int) -> None:
    with serving(CORE) as server:
        server.expect(burst=burst, stamps=0)
        done = carry(server, CORE, requests=50, streams=8, tokens=100)
        log = server.log_without_stamps()
    assert done.done == 50
    assert [request.events for request in log] == [100] * 50


def test_prompt_tokens_follow_the_words() -> None:
    with serving(CORE) as server:
        counts = []
        for text in ("one", "one two three", 'a "max_tokens": 99 b'):
            body = {"model": "bench", "messages": [{"role": "user", "content": text}], "max_tokens": 3}
            connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            usage = json.loads(connection.getresponse().read())["usage"]
            connection.close()
            counts.append(usage["prompt_tokens"])
            assert usage["completion_tokens"] == 3
    assert counts == [8, 10, 11]
