"""A model hub on loopback: as much of one as the hub's client asks for, with the troubles of real ones."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

SECRET = "hf_markerTokenThatMustNeverBeWritten"
LARGE = 1000
"""Files from this size on are named by their sha256, as large ones are on a hub."""


@dataclass
class Repository:
    """One repository: branches to commits, commits to files."""

    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    gated: bool = False
    granted: bool = False

    def push(self, commit: str, files: dict[str, bytes], branch: str = "main") -> None:
        """A new commit on a branch."""
        self.commits[commit] = files
        self.branches[branch] = commit


@dataclass
class Hub:
    """What the server has and how it behaves; `asked` are method, path and whether a token came."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    asked: list[tuple[str, str, bool]] = field(default_factory=list)
    url: str = ""
    cut_after: int | None = None
    """Bytes after which the next file's body ends, once."""
    hold: threading.Event | None = None
    """Bodies stop in the middle until it is set."""
    held: threading.Event = field(default_factory=threading.Event)
    """Set when a body has stopped."""
    token: str | None = None
    """The one that is valid."""

    def env(self, home: str) -> dict[str, str]:
        """An environment that leads to this hub."""
        return {"HF_ENDPOINT": self.url, "HF_HOME": home, "HF_HUB_DISABLE_TELEMETRY": "1"}


@contextmanager
def hub() -> Iterator[Hub]:
    """A hub that serves as long as the block."""
    state = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        if state.hold is not None:
            state.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(state: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            token = self.headers.get("Authorization", "").removeprefix("Bearer ") or None
            state.asked.append((self.command, path, token is not None))
            if path.startswith("/api/models/"):
                self._info(path.removeprefix("/api/models/"), token)
            else:
                self._file(path.removeprefix("/"), token, body=body)

        def _info(self, path: str, token: str | None) -> None:
            name, _, revision = path.partition("/revision/")
            repository = self._found(name, token, anyone=True)
            if repository is None:
                return
            commit = repository.branches.get(revision or "main", revision)
            if commit not in repository.commits:
                self._refuse(404, "RevisionNotFound", "no such revision")
                return
            siblings = [_sibling(file, content) for file, content in repository.commits[commit].items()]
            self._send(200, json.dumps({"id": name, "sha": commit, "siblings": siblings}).encode())

        def _file(self, path: str, token: str | None, *, body: bool) -> None:
            name, _, rest = path.partition("/resolve/")
            commit, _, file = rest.partition("/")
            repository = self._found(name, token, anyone=False)
            if repository is None:
                return
            content = repository.commits.get(commit, {}).get(file)
            if content is None:
                self._refuse(404, "EntryNotFound", "no such file")
                return
            start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
            headers = {"X-Repo-Commit": commit, "ETag": f'"{_etag(content)}"', "Accept-Ranges": "bytes"}
            if start:
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self._head(206 if start else 200, headers, len(content) - start)
            if body:
                self._body(content[start:])

        def _body(self, content: bytes) -> None:
            cut, state.cut_after = (state.cut_after, None) if len(content) >= LARGE else (None, state.cut_after)
            if state.hold is not None and len(content) >= LARGE:
                self.wfile.write(content[: len(content) // 2])
                self.wfile.flush()
                state.held.set()
                state.hold.wait(60)
                content = content[len(content) // 2 :]
            self.wfile.write(content if cut is None else content[:cut])
            self.close_connection = cut is not None or self.close_connection

        def _found(self, name: str, token: str | None, *, anyone: bool) -> Repository | None:
            if token is not None and token != state.token:
                self._refuse(401, None, "Invalid credentials in Authorization header")
                return None
            repository = state.repositories.get(name)
            if repository is None:
                # Whether a private one is there is told to nobody who is not known.
                self._refuse(404 if token else 401, "RepoNotFound", "Repository not found")
                return None
            if repository.gated and not (token and repository.granted):
                self._refuse(403 if token else 401, "GatedRepo", "Access to this model is restricted")
                return None
            return repository

        def _refuse(self, status: int, code: str | None, message: str) -> None:
            said = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {})}
            self._send(status, json.dumps({"error": message}).encode(), said)

        def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
            self._head(status, {"Content-Type": "application/json", **(headers or {})}, len(content))
            if self.command != "HEAD":
                self.wfile.write(content)

        def _head(self, status: int, headers: dict[str, str], length: int) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()

    return Handler


def _etag(content: bytes) -> str:
    return (hashlib.sha256 if len(content) >= LARGE else hashlib.sha1)(content).hexdigest()


def _sibling(file: str, content: bytes) -> dict[str, Any]:
    told: dict[str, Any] = {"rfilename": file, "size": len(content), "blobId": hashlib.sha1(content).hexdigest()}
    if len(content) >= LARGE:
        told["lfs"] = {"sha256": _etag(content), "size": len(content), "pointerSize": 130}
    return told
