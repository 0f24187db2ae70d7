"""Texts of others in every place that shows or exports them: shown as they are, and obeyed by nobody."""

import json
import threading
import tomllib
import unicodedata
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest

from deploytui.session.folder import SessionFolder
from tests.artifact.build import checkpoint
from tests.cli.calls import process
from tests.run.sessions import TASK, deploytui, events, only_session
from tests.tui.screens import WIDE, app_on, live, page

HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]<script>alert('&')</script>\u202egnp.\u2066x\x9b31m\u2028=1+1|`${x}`"
NAME = "=1+1,[red]<b onclick='x'>\"x\"&`"
OBEYED = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Kinds of signs that a terminal may act on in place of showing them."""
PROFILE = """
schema = 1
name = {hostile}
timeouts = {{ load = 30, request = 20 }}
[workload]
prompt_tokens = 24
output_tokens = 8
requests = 2
load = {{ kind = "closed", concurrency = 1 }}
warmup_requests = 0
repeats = 1
endpoint = "completions"
[quality]
tasks = ["task.jsonl"]
[[candidates]]
name = {name}
engine = "mock"
served_model = {hostile}
args = ["--log-env", "HOSTILE", "--answer-file", {answers}]
[[candidates]]
name = "fails"
engine = "mock"
args = ["--fail-load", {error}]
[[candidates]]
name = "attached"
engine = "openai"
base_url = "{url}"
[[candidates]]
name = "absent"
engine = "llamacpp"
model = {hostile}
"""


class Hostile(BaseHTTPRequestHandler):
    """A server whose every error is hostile."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": HOSTILE}], "version": HOSTILE})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        whole = {"choices": [{"index": 0, "text": HOSTILE}], "usage": {"prompt_tokens": 3}}
        self.answer(*((500, {"error": {"message": HOSTILE}}) if body.get("stream") else (200, whole)))

    def answer(self, code: int, content: object) -> None:
        data = json.dumps(content, ensure_ascii=False).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def hostile_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def profile(tmp_path: Path, hostile_server: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTILE", HOSTILE)
    (tmp_path / "task.jsonl").write_text(TASK, encoding="utf-8")
    (tmp_path / "answers.json").write_text(json.dumps({"say amber": HOSTILE}), encoding="utf-8")
    path, words = tmp_path / "case.toml", [HOSTILE, NAME, f"ValueError: {HOSTILE}", str(tmp_path / "answers.json")]
    hostile, name, error, answers = (json.dumps(word) for word in words)
    text = PROFILE.format(hostile=hostile, name=name, error=error, answers=answers, url=hostile_server)
    path.write_text(text, encoding="utf-8")
    return path


def assert_harmless(text: str, where: object) -> None:
    """Nothing but visible signs and line ends."""
    odd = {sign for sign in text if unicodedata.category(sign) in OBEYED and sign != "\n"}
    assert odd == set(), where


def test_nothing_that_is_shown_or_exported_is_obeyed(profile: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    ran = deploytui(state, "run", profile, "--json", "-")
    assert ran.out, ran.err
    assert ran.row(NAME)["run"] == "ok", ran.err
    assert_harmless(ran.out + ran.err, "run")
    assert ran.result()["session"]["name"] == HOSTILE
    assert "alert" in ran.row("fails")["failure"]["why"]
    session = only_session(state)
    for form in ("json", "toml", "text", "requests", "stamps"):
        shown = deploytui(state, "export", session.name, "--format", form)
        assert shown.code == 0, shown.err
        assert_harmless(shown.out.replace("\r\n", "\n") + shown.err, form)
        if form == "toml":
            assert tomllib.loads(shown.out)["name"] == HOSTILE
        if form == "requests":
            rows = [json.loads(line) for line in shown.out.splitlines()]
            assert HOSTILE in {row["error"] for row in rows if row["candidate"] == "attached"}
    log = session / "candidates" / "fails" / "engine.log"
    for words in (
        ("check", profile, "--state-dir", state),
        ("check", profile, "--json", "--state-dir", state),
        ("sessions", "--state-dir", state),
        ("explain", "vllm", log),
        ("explain", "vllm", log, "--json"),
        ("export", HOSTILE, "--state-dir", state),
        ("explain", HOSTILE, log),
        ("run", HOSTILE, "--state-dir", state),
        (HOSTILE,),
    ):
        done = process(*words)
        assert_harmless(done.out + done.err, words)
    anyio.run(_screens, session)


async def _screens(folder: Path) -> None:
    """Every tab of every candidate shows only what can be seen, and takes nothing in it for markup."""
    screen = live(events(folder.parent), "ended", folder=SessionFolder(folder))
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("home")
        for _ in range(4):
            for tab in "123456i":
                await pilot.press(tab)
                await pilot.pause()
                assert_harmless("".join(page(app)), tab)
            await pilot.press("escape", "down")
        assert NAME[:12] in "\n".join(page(app))


def test_a_model_can_not_repaint_the_terminal_that_looks_at_it(tmp_path: Path) -> None:
    model = tmp_path / "\x1b[2Jmodel\u202e"
    checkpoint(model)
    config = json.loads((model / "config.json").read_text("utf-8"))
    (model / "config.json").write_text(
        json.dumps({**config, "architectures": [HOSTILE], "model_type": HOSTILE, "torch_dtype": HOSTILE}), "utf-8"
    )
    (model / "\x1b[31mnotes\x9b.md").write_text("x", encoding="utf-8")
    for words in (("inspect", model), ("inspect", model, "--json"), ("inspect", model / HOSTILE.replace("/", "-"))):
        done = process(*words)
        assert_harmless(done.out + done.err, words)
