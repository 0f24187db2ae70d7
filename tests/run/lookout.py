"""What a session's processes show to the rest of the node while they run: sockets, command lines, and an open door."""

import http.client
import json
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from deploytui.record.engine_events import EngineRead
from deploytui.record.events import StatusSet
from tests.run.sessions import events, marked, wait_for

KEYS = ("DEPLOYTUI_API_KEY", "LLAMA_API_KEY", "VLLM_API_KEY", "API_KEY")
"""Variables in which engines look for their key."""


@dataclass
class Seen:
    """Everything that was seen of one session."""

    sockets: set[tuple[str, int]] = field(default_factory=set)
    """Address and port of each listening socket of the session's processes."""
    argv: set[str] = field(default_factory=set)
    """Command lines of all processes of this node but the test's own."""
    keys: dict[str, set[str]] = field(default_factory=dict)
    """By engine's process: the values of variables that hold a key."""
    answers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By candidate: the status of a request without a key, and of one with a wrong key."""
    ports: dict[str, int] = field(default_factory=dict)
    """By candidate: where it serves."""


def watched(run: "subprocess.Popen[bytes]", state: Path) -> Seen:
    """Look at a running command until it ends."""
    seen = Seen()
    wait_for(lambda: _look(run, state, seen), "the end of the session", 300)
    return seen


def _look(run: "subprocess.Popen[bytes]", state: Path, seen: Seen) -> bool:
    so_far = events(state)
    rows = {event.candidate: event.engine for event in so_far if isinstance(event, EngineRead)}
    up = [event.candidate for event in so_far if isinstance(event, StatusSet) and event.status == "load_success"]
    for name, engine in rows.items():
        port = urlsplit(engine.base_url or "").port
        assert port is not None
        seen.ports[name] = port
        if up and up[-1] == name and name not in seen.answers:
            with suppress(OSError, http.client.HTTPException):
                seen.answers[name] = (asked(port, engine.served_model), asked(port, engine.served_model, "wrong"))
    folders = [path for path in state.iterdir() if path.is_dir()] if state.is_dir() else []
    for session in (folder.name for folder in folders):
        for pid in {*marked(session), run.pid}:
            _take(pid, seen)
    seen.argv.update(command_lines())
    return run.poll() is not None


def _take(pid: int, seen: Seen) -> None:
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        listens = [one.laddr for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]
        seen.sockets.update((at.ip, at.port) for at in listens)
        found = {value for name, value in process.environ().items() if name in KEYS and value}
        if found:
            seen.keys.setdefault(f"{pid}-{process.create_time()}", set()).update(found)


def command_lines() -> set[str]:
    """The command lines of all processes but this one."""
    found = set()
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with suppress(OSError):
                found.add(place.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def asked(port: int, model: str | None, key: str | None = None) -> int:
    """The status of a tiny completion."""
    door = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        body = json.dumps({"model": model, "prompt": "a", "max_tokens": 1})
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        door.request("POST", "/v1/completions", body, headers)
        return door.getresponse().status
    finally:
        door.close()
