"""A mock engine process under test, and raw HTTP with it."""

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.host.keepers import ENV, MOCK
from tests.host.living import LIMIT_S


@dataclass
class Answer:
    """What came back on a connection of its own, to its end."""

    raw: bytes

    @property
    def status(self) -> int:
        return int(self.raw.split(b" ", 2)[1])

    @property
    def head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[0]

    @property
    def chunks(self) -> list[bytes]:
        """HTTP chunks in order; the empty last one only where it came."""
        rest, found = self.raw.partition(b"\r\n\r\n")[2], []
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            found.append(rest[: int(size, 16)])
            rest = rest[int(size, 16) + 2 :]
        return found

    @property
    def body(self) -> bytes:
        chunked = b"transfer-encoding: chunked" in self.head
        return b"".join(self.chunks) if chunked else self.raw.partition(b"\r\n\r\n")[2]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """Data of the events, [DONE] as text."""
        data = [block[6:].strip() for block in re.split(rb"\r?\n\r?\n", self.body) if block.startswith(b"data: ")]
        return ["[DONE]" if one == b"[DONE]" else json.loads(one) for one in data]

    @property
    def deltas(self) -> list[Any]:
        """What the events' choices say: deltas of a chat, text else."""
        chosen = [event["choices"][0] for event in self.events if event != "[DONE]" and event.get("choices")]
        return [choice.get("delta", choice.get("text")) for choice in chosen]

    @property
    def finishes(self) -> list[str | None]:
        """The finish reason of each event that has a choice."""
        return [
            event["choices"][0]["finish_reason"] for event in self.events if event != "[DONE]" and event.get("choices")
        ]

    @property
    def complete(self) -> bool:
        return self.raw.endswith(b"0\r\n\r\n")


@dataclass
class Mock:
    """A mock engine that listens."""

    process: subprocess.Popen[bytes]
    port: int
    log: bytes

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), LIMIT_S)

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        with self.connect() as connection:
            connection.sendall(request(method, path, body, connection="close", **headers))
            return Answer(b"".join(iter(lambda: connection.recv(65536), b"")))

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def chat(self, prompt: str = "one two three", **body: Any) -> Answer:
        return self.send("POST", "/v1/chat/completions", chat_body(prompt, **body))

    def text(self, prompt: str = "one two three", **body: Any) -> Answer:
        return self.send("POST", "/v1/completions", json.dumps({"model": "m", "prompt": prompt, **body}).encode())


def said(answer: Answer) -> list[str]:
    """The text of each chunk that has some."""
    return [text for delta in answer.deltas if (text := delta.get("content") or delta.get("reasoning_content"))]


def chat_body(prompt: str = "one two three", **body: Any) -> bytes:
    return json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": prompt}], "stream": True, **body}
    ).encode()


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@contextmanager
def mock(*options: str) -> Iterator[Mock]:
    """A mock engine that is killed at the end."""
    with subprocess.Popen((*MOCK, *options), stdout=subprocess.PIPE, env=ENV) as process:
        try:
            assert process.stdout is not None
            log = b""
            while not (found := re.search(rb"listening on \S+:(\d+)\n", log)):
                line = process.stdout.readline()
                assert line, log
                log += line
            yield Mock(process, int(found[1]), log)
        finally:
            process.kill()
