"""Sessions of the real command on mock engines, and what is left of them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from deploytui.record.events import AnyEvent
from deploytui.record.lines import LineReader

T = TypeVar("T")
LIMIT_S = 120.0
TASK = '{"id": "one", "prompt": "say amber", "checker": "contains", "expected": "amber"}\n'
HEAD = """
schema = 1
name = "case"
timeouts = {{ load = {load}, request = 20 }}
[workload]
prompt_tokens = 24
output_tokens = 8
requests = {requests}
load = {{ kind = "closed", concurrency = 2 }}
warmup_requests = 2
repeats = 3
endpoint = "completions"
[quality]
tasks = ["task.jsonl"]
[gates]
min_quality = 0.5
min_success_rate = 0.9
max_ttft_ms = {{ p50 = 60000 }}
"""
CANDIDATE = '[[candidates]]\nname = "{name}"\nengine = "{engine}"\nargs = {args}\n'


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def result(self) -> dict[str, Any]:
        """The result JSON it wrote to standard output."""
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed

    def row(self, name: str) -> dict[str, Any]:
        """A candidate's part of the result."""
        row: dict[str, Any] = next(row for row in self.result()["candidates"] if row["name"] == name)
        return row


def write_profile(
    folder: Path, candidates: Mapping[str, Sequence[str]], *, requests: int = 8, load: float = 30, engine: str = "mock"
) -> Path:
    """A profile of mock candidates, name to arguments, each of which answers the quality task rightly."""
    (folder / "task.jsonl").write_text(TASK, encoding="utf-8")
    answers = folder / "answers.json"
    answers.write_text(json.dumps({"say amber": "amber"}), encoding="utf-8")
    rows = [
        CANDIDATE.format(name=name, engine=engine, args=json.dumps(["--answer-file", str(answers), *args]))
        for name, args in candidates.items()
    ]
    path = folder / "case.toml"
    path.write_text(HEAD.format(requests=requests, load=load) + "".join(rows), encoding="utf-8")
    return path


def command(state: Path, *words: str | Path) -> list[str]:
    """The argv of a deploytui command with its state folder."""
    return [sys.executable, "-m", "deploytui", *(str(word) for word in words), "--state-dir", str(state)]


def deploytui(state: Path, *words: str | Path, timeout_s: float = LIMIT_S) -> Done:
    """Run a command to its end, without a terminal."""
    done = subprocess.run(
        command(state, *words), stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


def begin(state: Path, *words: str | Path) -> subprocess.Popen[bytes]:
    """Start a command and let it run."""
    return subprocess.Popen(
        command(state, *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def ended(process: subprocess.Popen[bytes]) -> Done:
    """The command once it has ended."""
    out, err = process.communicate(timeout=LIMIT_S)
    return Done(process.returncode, out.decode(), err.decode(errors="replace"))


def only_session(state: Path) -> Path:
    """The folder of the one session there is."""
    (folder,) = (path for path in state.iterdir() if path.is_dir())
    return folder


def events(state: Path) -> list[AnyEvent]:
    """What the journal of the one session holds so far."""
    folders = [path for path in state.iterdir() if path.is_dir()] if state.is_dir() else []
    journal = folders[0] / "journal.jsonl" if folders else None
    return LineReader().feed(journal.read_bytes()) if journal and journal.is_file() else []


def wait_for(look: Callable[[], T | None], what: str, limit_s: float = LIMIT_S) -> T:
    """What `look` gives once it is true; fails when that takes too long."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come within {limit_s:g} s")


def wait_for_event(state: Path, kind: type[T], limit_s: float = LIMIT_S) -> T:
    """The first event of a kind in the session's journal."""
    return wait_for(
        lambda: next((event for event in events(state) if isinstance(event, kind)), None), kind.__name__, limit_s
    )


def marked(session: str) -> list[int]:
    """Living processes that carry the session's mark, read from /proc; a zombie is dead."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and _is_marked(path, session)]


def _is_marked(path: Path, session: str) -> bool:
    try:
        alive = path.joinpath("stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        return alive and f"DEPLOYTUI_SESSION={session}".encode() in path.joinpath("environ").read_bytes().split(b"\0")
    except OSError:
        return False


def assert_nothing_left(session: str) -> None:
    """No process of the session lives; what is ending gets a moment to end."""
    wait_for(lambda: not marked(session), f"the end of all processes of {session}", 30)


def kill(pid: int, sign: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal."""
    os.kill(pid, sign)
