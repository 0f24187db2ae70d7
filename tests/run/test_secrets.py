"""Secrets of the environment, searched for in all that a session writes, shows and starts."""

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest

from deploytui.session.folder import SessionFolder
from tests.artifact.build import checkpoint
from tests.cli.calls import process
from tests.host.mocks import mock
from tests.run.sessions import TASK, Done, begin, deploytui, ended, events, only_session
from tests.tui.screens import WIDE, app_on, live, page, shown, until

HUB = "hf_marker0token1of2the3hub4"
KEY = "sk-marker5key6of7an8endpoint"
CLOUD = "marker9access0key+/=\"of'cloud"
SECRETS = (HUB, KEY, CLOUD)
PROFILE = """
schema = 1
name = "case"
timeouts = {{ load = 30, request = 20 }}
checks = {{ recovery = true }}
[workload]
prompt_tokens = 24
output_tokens = 8
requests = 4
load = {{ kind = "closed", concurrency = 2 }}
warmup_requests = 1
repeats = 1
endpoint = "completions"
[quality]
tasks = ["task.jsonl"]
[gates]
min_success_rate = 0.5
[[candidates]]
name = "careless"
engine = "mock"
args = ["--log-env", "HF_TOKEN", "--context", "300"]
[[candidates]]
name = "fails"
engine = "mock"
args = ["--log-env", "HF_TOKEN", "--fail-load", "giving up"]
[[candidates]]
name = "attached"
engine = "openai"
base_url = "http://127.0.0.1:{port}"
api_key_env = "KEY_OF_IT"
[[candidates]]
name = "echoes"
engine = "openai"
base_url = "{echoes}"
api_key_env = "KEY_OF_IT"
[[candidates]]
name = "noisy"
engine = "vllm"
model = "{folder}/model"
python = "{folder}/noisy-python"
"""
NOISY = '#!/bin/sh\necho "ImportError: bad token $HF_TOKEN" >&2\nexit 1\n'


class Echoing(BaseHTTPRequestHandler):
    """A server that repeats the key it was sent in every error; only the tiny request of a start succeeds."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": "m"}]} if self.path == "/v1/models" else {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body.get("stream"):
            self.answer(500, {"error": {"message": f"no such key: {self.headers['authorization']}"}})
        else:
            self.answer(200, {"choices": [{"index": 0, "text": "a"}], "usage": {"prompt_tokens": 3}})

    def answer(self, code: int, content: object) -> None:
        data = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextlib.contextmanager
def echoing() -> Iterator[str]:
    """The address of such a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echoing)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HF_TOKEN", HUB)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("KEY_OF_IT", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CLOUD)
    (tmp_path / "task.jsonl").write_text(TASK, encoding="utf-8")
    checkpoint(tmp_path / "model")
    noisy = tmp_path / "noisy-python"
    noisy.write_text(NOISY, encoding="utf-8")
    noisy.chmod(0o755)
    path = tmp_path / "case.toml"
    with mock("--port", "0", "--model", "m", "--api-key", KEY) as engine, echoing() as echoes:
        path.write_text(PROFILE.format(port=engine.port, echoes=echoes, folder=tmp_path), encoding="utf-8")
        yield path


def assert_no_secret(text: str | bytes, where: object) -> None:
    data = text.encode() if isinstance(text, str) else text
    assert [secret for secret in SECRETS if secret.encode() in data] == [], where


def argvs(but: int) -> list[bytes]:
    """The command lines of all processes but one, and those of this test's own."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) not in (but, os.getpid()):
            try:
                found.append(place.joinpath("cmdline").read_bytes())
            except OSError:
                continue
    return found


def test_no_secret_is_in_anything_a_session_writes_shows_or_starts(profile: Path) -> None:
    state = profile.parent / "state"
    result = profile.parent / "result.json"
    run = begin(state, "run", profile, "--trust", "--json", result)
    seen: set[bytes] = set()
    while run.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(0.1)
        seen.update(argvs(run.pid))
    done = ended(run)
    assert_no_secret(done.out + done.err, "the run's output")
    done = Done(done.code, result.read_text("utf-8"), done.err)
    started = [argv for argv in seen if b"mock_engine.py" in argv and KEY.encode() not in argv]
    assert started
    for argv in seen:
        assert HUB.encode() not in argv
        assert CLOUD.encode() not in argv
    folder = only_session(state)
    log = (folder / "candidates" / "careless" / "engine.log").read_text("utf-8")
    assert "HF_TOKEN=…" in log
    assert done.row("careless")["run"] == "ok"
    assert done.row("attached")["run"] == "ok"
    failure = done.row("fails")["failure"]
    assert (failure["kind"], failure["why"]) == ("gated", "Invalid user token. HF_TOKEN=…")
    assert done.row("attached")["metrics"]["success_rate"]["value"] == 1
    assert done.row("echoes")["metrics"]["success_rate"]["value"] == 0
    requests = "".join(path.read_text() for path in (folder / "candidates" / "echoes").glob("*.requests.*"))
    assert "no such key: Bearer …" in requests
    assert "bad token …" in done.row("noisy")["failure"]["why"]
    assert_written_without_secrets(state)
    for form in ("json", "toml", "text", "requests", "stamps", "stamps-bin"):
        written = profile.parent / f"out.{form}"
        told = deploytui(state, "export", folder.name, "--format", form, "-o", written)
        assert told.code == 0, told.err
        assert_no_secret(written.read_bytes() + told.out.encode() + told.err.encode(), form)
    screens(folder)


def assert_written_without_secrets(state: Path) -> None:
    for path in (path for path in state.rglob("*") if path.is_file()):
        assert_no_secret(path.read_bytes(), path)


def screens(folder: Path) -> None:
    """Every tab of every candidate of the session, as the live screen shows it."""
    anyio.run(_screens, folder)


async def _screens(folder: Path) -> None:
    screen = live(events(folder.parent), "ended", folder=SessionFolder(folder))
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("3")
        await until(lambda: "Invalid user token. HF_TOKEN=…" in shown(screen, "log"))
        for key in ("home", "down", "down", "down", "down"):
            await pilot.press(key)
            for tab in "123456":
                await pilot.press(tab)
                await pilot.pause()
                assert_no_secret("".join(page(app)), tab)


def test_no_secret_is_in_what_other_commands_show(profile: Path, tmp_path: Path) -> None:
    state, log, model = tmp_path / "state", tmp_path / "engine.log", tmp_path / "odd"
    log.write_text(f"Invalid user token. HF_TOKEN={HUB}\n", encoding="utf-8")
    checkpoint(model)
    config = json.loads((model / "config.json").read_text("utf-8"))
    (model / "config.json").write_text(json.dumps({**config, "architectures": [HUB], "model_type": KEY}), "utf-8")
    for words, told in (
        (("check", profile, "--trust"), "bad token …"),
        (("check", profile, "--trust", "--json"), "bad token …"),
        (("explain", "vllm", log), "HF_TOKEN=…"),
        (("explain", "vllm", log, "--json"), "HF_TOKEN=…"),
        (("inspect", model), "…"),
        (("inspect", model, "--json"), "…"),
        (("doctor",), ""),
        (("sessions",), ""),
        (("export", HUB), "…"),
    ):
        done = process(*words) if words[0] not in ("check", "sessions", "export") else deploytui(state, *words)
        assert told in done.out + done.err, words
        assert_no_secret(done.out + done.err, words)


def test_no_secret_is_in_a_search_for_capacity(profile: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    words = ("--only", "careless", "--to", "2", "--repeats", "1", "--trust", "--json", "-")
    done = deploytui(state, "capacity", profile, *words)
    assert done.row("careless")["run"] == "ok", done.err
    assert_no_secret(done.out + done.err, "capacity")
    assert_written_without_secrets(state)
