"""A host as a process: key, loading, ends, queue, clients that leave; and our own client in front of it."""

import ast
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploytui.load.orders import Prompt
from tests.host.living import until
from tests.host.mocks import Answer, chat_body, request
from tests.host.toys import ENV, HOST, Toy, argv, contents, run, toy
from tests.load.workers import loading, report_of


@pytest.fixture(scope="module")
def host() -> Iterator[Toy]:
    with toy() as started:
        yield started


def test_a_key_of_the_environment_is_asked_for_everywhere_but_at_health() -> None:
    with toy(env={"DEPLOYTUI_API_KEY": "s3cret"}) as host:
        assert host.get("/health").status == 200
        assert host.get("/v1/models").status == 401
        assert host.chat("say a").status == 401
        body = chat_body("say a")
        path = "/v1/chat/completions"
        assert host.send("POST", path, body, authorization="Bearer wrong").status == 401
        assert host.send("POST", path, body, authorization="Bearer s3cret").status == 200


def test_until_it_is_loaded_it_answers_503_and_then_it_serves(tmp_path: Path) -> None:
    ready, port = tmp_path / "ready", free_port()
    with subprocess.Popen(argv("--load-when", str(ready), port=port), env=ENV, stdout=subprocess.DEVNULL) as process:
        try:
            host = Toy(process, port, b"")
            until(lambda: listens(port))
            assert [host.get(path).status for path in ("/health", "/v1/models", "/props", "/memory")] == [503] * 4
            assert host.chat("say a").status == 503
            ready.touch()
            until(lambda: host.get("/health").status == 200)
            assert contents(host.chat("say a")) == ["a"]
        finally:
            process.kill()


def test_a_taken_port_ends_it_at_once_before_it_loads(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("--load-when", str(tmp_path / "never"), port=taken.getsockname()[1])
    assert ran.returncode == 1
    assert b"Address already in use" in ran.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fail", "Error no file named model.safetensors"), b"OSError: Error no file named model.safetensors"),
        (("--refuse", "does not fit"), b"deploytui-host: error: does not fit"),
        (("--max-model-len", "201"), b"User-specified max_model_len (201) is greater than the derived max_model_len"),
    ],
)
def test_what_does_not_load_ends_it_with_1_and_the_librarys_words(options: tuple[str, str], words: bytes) -> None:
    ran = run(*options)
    assert ran.returncode == 1
    assert words in ran.stderr


def test_an_option_that_does_not_exist_ends_it_with_2() -> None:
    assert run("--thread", "1").returncode == 2


def test_a_shorter_context_than_the_models_is_held() -> None:
    with toy("--max-model-len", "20") as host:
        assert host.chat("say a", max_tokens=16).status == 400
        assert host.chat("say a", max_tokens=15).status == 200
        assert host.get("/props").json["model_context_length"] == 200


def test_a_client_that_leaves_frees_the_slot_soon(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    with toy("--pace-s", "0.005", "--closed", str(closed)) as host:
        for linger in (False, True):
            connection = host.connect()
            body = chat_body("loop ab", max_tokens=190)
            connection.sendall(request("POST", "/v1/chat/completions", body))
            while b'"content": "b"' not in connection.recv(65536):
                pass
            if linger:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
            assert contents(host.chat("say a")) == ["a"]
        assert closed.read_text(encoding="utf-8").splitlines() == ["ab", "a"] * 2


def ask_in_background(host: Toy, prompt: str) -> socket.socket:
    connection = host.connect()
    connection.sendall(request("POST", "/v1/completions", chat_like(prompt), connection="close"))
    return connection


def read(connection: socket.socket) -> Answer:
    return Answer(b"".join(iter(lambda: connection.recv(65536), b"")))


def chat_like(prompt: str) -> bytes:
    return b'{"model": "m", "prompt": "%b", "max_tokens": 20}' % prompt.encode()


def waits(host: Toy, running: int, waiting: int) -> bool:
    text = host.get("/metrics").body.decode()
    return f"requests_running {running}\n" in text and f"requests_waiting {waiting}\n" in text


def test_more_than_the_slots_wait_in_the_order_they_came_and_more_than_may_wait_get_429(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    with toy("--slots", "2", "--max-waiting", "3", "--pace-s", "0.05", "--closed", str(closed)) as host:
        asked = []
        for number in range(5):
            asked.append(ask_in_background(host, f"loop {number}"))
            until(lambda: waits(host, min(len(asked), 2), max(0, len(asked) - 2)))
        refused = host.text("say a")
        assert refused.status == 429
        assert b"retry-after: 1" in refused.head
        asked[3].close()
        until(lambda: waits(host, 2, 2))
        assert [read(one).status for number, one in enumerate(asked) if number != 3] == [200] * 4
        for one in asked:
            one.close()
        order = [int(line) for line in closed.read_text(encoding="utf-8").splitlines()]
        assert set(order[:2]) == {0, 1}
        assert order[2:] == [2, 4] or set(order[2:]) == {2, 4}
        until(lambda: waits(host, 0, 0))


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_our_own_client_reads_counts_finish_and_a_chunk_a_token(host: Toy, tmp_path: Path, endpoint: str) -> None:
    prompts = [Prompt(id=0, prompt="say hello"), Prompt(id=1, prompt="loop x"), Prompt(id=2, prompt="boom 3")]
    url = f"http://127.0.0.1:{host.port}"
    with loading(tmp_path, url, lines=prompts, endpoint=endpoint, output_tokens=8, concurrency=1) as load:
        report_of(load.said())
        by_id = {record.id: record for record in load.records()}
    assert [by_id[number].ok for number in range(3)] == [True, True, False]
    assert [by_id[number].output_tokens for number in (0, 1)] == [6, 8]
    assert [by_id[number].prompt_tokens for number in (0, 1)] == [9, 6]
    assert [by_id[number].finish_reason for number in (0, 1)] == ["stop", "length"]
    assert [by_id[number].chunks for number in (0, 1)] == [5, 8]
    assert "the abacus broke" in str(by_id[2].error)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


SCRIPTS = [*HOST.glob("serve_*.py"), HOST / "convert_gguf.py", HOST / "probe_transformers.py"]


@pytest.mark.parametrize("path", sorted(SCRIPTS), ids=lambda path: path.name)
def test_hosts_use_no_syntax_newer_than_3_9_and_no_name_of_a_standard_module(path: Path) -> None:
    assert ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9)).body
    assert path.stem not in sys.stdlib_module_names
    assert os.access(path, os.R_OK)
