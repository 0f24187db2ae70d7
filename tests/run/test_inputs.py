"""Sessions whose requests come from files, distributions and conversations, and one whose context is too short."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.run.sessions import Done, deploytui, only_session

TAIL = 'requests = 4\nrepeats = 1\nwarmup_requests = 2\n[[candidates]]\nname = "a"\n'
TRACE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.00,37,4
2023-11-16 18:15:46.10,39,10
2023-11-16 18:15:46.15,50,3
2023-11-16 18:15:46.15,20,7
"""


def run(folder: Path, workload: str, candidate: str = 'engine = "mock"\n') -> Done:
    """A session of that workload."""
    profile = folder / "case.toml"
    profile.write_text(f"[workload]\n{workload}\n{TAIL}{candidate}", encoding="utf-8")
    return deploytui(folder / "state", "run", profile, "--json", "-")


def records(folder: Path) -> list[dict[str, Any]]:
    """The requests of the measured repeats, by number."""
    files = sorted(only_session(folder / "state").rglob("l0.*.requests.*"))
    rows = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    return sorted(rows, key=lambda row: int(row["id"]))


def test_a_trace_is_replayed_with_its_lengths_at_its_times(tmp_path: Path) -> None:
    (tmp_path / "azure.csv").write_text(TRACE, encoding="utf-8")
    done = run(tmp_path, 'load = { kind = "trace", path = "azure.csv", speed = 0.5 }')
    assert done.row("a")["run"] == "ok"
    rows = records(tmp_path)
    assert [(row["prompt_tokens"], row["output_tokens"]) for row in rows] == [(37, 4), (39, 10), (50, 3), (20, 7)]
    due = [row["scheduled_ns"] for row in rows]
    assert [time - due[0] for time in due] == [0, 200_000_000, 300_000_000, 300_000_000]
    assert all(row["sent_ns"] >= row["scheduled_ns"] for row in rows)


def test_each_turn_is_sent_when_the_one_before_was_answered_with_all_that_was_said(tmp_path: Path) -> None:
    done = run(tmp_path, 'prompt_tokens = 30\noutput_tokens = 5\nturns = 2\nload = { kind = "burst" }')
    assert done.row("a")["run"] == "ok"
    first, second, *_ = rows = records(tmp_path)
    assert [row["conversation"] for row in rows] == [0, 0, 1, 1]
    assert [row["prompt_tokens"] for row in rows] == [30, 65, 30, 65]
    assert second["sent_ns"] >= first["end_ns"]


class _ShortContext(BaseHTTPRequestHandler):
    """A server whose model has a context of 16 tokens."""

    def do_GET(self) -> None:
        self._say({"data": [{"id": "m", "max_model_len": 16}]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._say({"choices": [], "usage": {"prompt_tokens": 1}})

    def _say(self, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def short_context() -> Iterator[str]:
    """The address of such a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _ShortContext) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_prompt_longer_than_the_context_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    with short_context() as url:
        asked = 'prompt_tokens = { kind = "uniform", min = 9, max = 30 }\noutput_tokens = 5'
        row = run(tmp_path, asked, f'engine = "openai"\nbase_url = "{url}"\n').row("a")
    assert row["run"] == "run_failed"
    assert "The engine's context is 16 tokens, and the longest request of the workload needs" in row["failure"]["what"]
    assert not list(only_session(tmp_path / "state").rglob("*.requests.*"))
