"""Endpoints that run already: measured where they are, started and stopped by somebody else."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cli.calls import WORKLOAD, process
from tests.host.mocks import mock
from tests.run.sessions import Done, assert_nothing_left, only_session

KEY = "very-secret-key-of-the-server"
DEAD_PROXY = dict.fromkeys(
    ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9"
)
SPELLINGS = {
    "host": "http://127.0.0.1:{port}",
    "slash": "http://127.0.0.1:{port}/",
    "v1": "http://127.0.0.1:{port}/v1",
    "v1-slash": "http://127.0.0.1:{port}/v1/",
    "no-scheme": "127.0.0.1:{port}",
    "name": "http://localhost:{port}/v1/chat/completions",
}
WRONG = {
    "no-key": ('base_url = "http://127.0.0.1:{port}"', "request_rejected", "lets nobody in", "api_key_env"),
    "other-key": (
        'base_url = "127.0.0.1:{port}"\napi_key_env = "OTHER"',
        "request_rejected",
        "(HTTP 401)",
        "api_key_env",
    ),
    "not-set": ('base_url = "127.0.0.1:{port}"\napi_key_env = "ABSENT"', "invalid_config", "ABSENT", "environment"),
    "model": (
        'base_url = "127.0.0.1:{port}"\napi_key_env = "KEY"\nserved_model = "gpt"',
        "wrong_model",
        "lists m; asked for was “gpt”",
        "served_model",
    ),
    "nobody": ('base_url = "127.0.0.1:9"', "timeout", "Nobody answers at http://127.0.0.1:9", "Start the server"),
    "no-host": ('base_url = "http://no-such-host.invalid"', "timeout", "Nobody answers", "base_url"),
    "settings": ('base_url = "127.0.0.1:9"\nsettings = {{ threads = 1 }}', "invalid_config", "settings", "Remove"),
}


def _row(name: str, lines: str) -> str:
    return f'[[candidates]]\nname = "{name}"\nengine = "openai"\n{lines}\n'


def _run(folder: Path, rows: str) -> Done:
    profile = folder / "case.toml"
    profile.write_text(WORKLOAD + rows, encoding="utf-8")
    env = {**DEAD_PROXY, "KEY": KEY, "OTHER": "another"}
    return process("run", profile, "--state-dir", folder / "state", "--json", "-", env=env)


def test_an_endpoint_is_measured_and_left_alone_however_it_is_spelled(tmp_path: Path) -> None:
    with mock("--port", "0", "--model", "m", "--api-key", KEY) as engine:
        keyed = 'base_url = "{0}"\napi_key_env = "KEY"'
        done = _run(tmp_path, "".join(_row(n, keyed.format(u.format(port=engine.port))) for n, u in SPELLINGS.items()))
        assert engine.process.poll() is None
        assert engine.send("GET", "/v1/models", authorization=f"Bearer {KEY}").status == 200
    for name in SPELLINGS:
        row = done.row(name)
        assert (row["run"], row["metrics"]["ttft_ms"]["n"]) == ("ok", 2), done.err
        assert row["metrics"]["peak_host_gib"] is None
    assert "CPU host" not in done.result()["decision"]["title"]
    assert_nothing_left(only_session(tmp_path / "state").name)
    assert KEY not in done.out + done.err
    assert not [
        path for path in (tmp_path / "state").rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One session of endpoints that can't be measured."""
    folder = tmp_path_factory.mktemp("wrong")
    with mock("--port", "0", "--model", "m", "--api-key", KEY) as engine:
        rows = "".join(_row(name, lines.format(port=engine.port)) for name, (lines, *_) in WRONG.items())
        done = _run(folder, rows)
    assert_nothing_left(only_session(folder / "state").name)
    return done


@pytest.mark.parametrize("name", WRONG)
def test_an_endpoint_that_can_not_be_measured_says_why_at_once(wrong: Done, name: str) -> None:
    _, kind, what, fix = WRONG[name]
    row = wrong.row(name)
    assert row["status"] == ("invalid_config" if kind == "invalid_config" else "load_failed")
    assert row["failure"]["kind"] == kind
    assert what in row["failure"]["what"]
    assert fix in row["failure"]["fix"]
    assert (row["phases_s"].get("loading") or 0.0) < 15
    assert wrong.code == 4


class _Server(BaseHTTPRequestHandler):
    """A server that answers `/v1/models` with what it is told, and nothing else."""

    status, content = 200, b""

    def do_GET(self) -> None:
        known = self.path == "/v1/models"
        self.send_response(self.status if known else 404)
        self.end_headers()
        self.wfile.write(self.content if known else b"")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def _serving(status: int, content: bytes) -> Iterator[int]:
    handler = type("Handler", (_Server,), {"status": status, "content": content})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "content", "asked", "what"),
    [
        (200, json.dumps({"data": [{"id": "m1"}, {"id": "m2"}]}).encode(), "", "lists m1, m2"),
        (200, b"<html>hello</html>", "", "does not say which models it serves"),
        (404, b"", "", "does not say which models it serves"),
        (404, b"", 'served_model = "m1"', "HTTP 501"),
        (403, b"", "", "HTTP 403"),
    ],
)
def test_a_server_of_another_kind_is_told_from_one_that_loads(
    tmp_path: Path, status: int, content: bytes, asked: str, what: str
) -> None:
    with _serving(status, content) as port:
        done = _run(tmp_path, _row("a", f'base_url = "127.0.0.1:{port}"\n{asked}'))
    failure = done.row("a")["failure"]
    assert done.row("a")["status"] == "load_failed"
    assert what in failure["what"]
    assert failure["fix"]
    assert done.code == 4
