"""A small server that does what a test's script says: real sockets, one thread a connection."""

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.load.replay import DONE, delta, event

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
TLS = Path(__file__).parents[1] / "data" / "tls"

CLOSE = "close"
"""A step: close the connection."""
RESET = "reset"
"""A step: break the connection off."""
HANG = "hang"
"""A step: say nothing more until the server ends."""

Step = bytes | str | float
"""What to do next: send bytes, pause for so many seconds, or one of the words above."""


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    number: int
    """Over all connections, from 0."""
    connection: int
    target: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def id(self) -> int:
        """As the client named it."""
        return int(self.headers["x-request-id"])


Script = Callable[[Asked], Iterable[Step]]


@dataclass
class Server:
    """Answers on loopback until it is closed; remembers what was asked."""

    script: Script
    tls: bool = False
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    answering: int = 0
    most_answering: int = 0

    def __post_init__(self) -> None:
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """End it, and wait for its threads."""
        self._ending.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if self.tls else None
        if context is not None:
            context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
        while not self._ending.is_set():
            try:
                wire, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            args = (wire, self.connections - 1, context)
            thread = threading.Thread(target=self._serve, args=args, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, wire: socket.socket, connection: int, context: ssl.SSLContext | None) -> None:
        with contextlib.suppress(OSError), wire:
            if context is not None:
                wire = context.wrap_socket(wire, server_side=True)
            with wire, contextlib.closing(_requests(wire, self._ending)) as requests:
                for target, headers, body in requests:
                    with self._lock:
                        asked = Asked(len(self.asked), connection, target, headers, json.loads(body or b"{}"))
                        self.asked.append(asked)
                        self.answering += 1
                        self.most_answering = max(self.most_answering, self.answering)
                    try:
                        if not self._answer(wire, asked):
                            return
                    finally:
                        with self._lock:
                            self.answering -= 1

    def _answer(self, wire: socket.socket, asked: Asked) -> bool:
        for step in self.script(asked):
            if isinstance(step, bytes):
                wire.sendall(step)
            elif isinstance(step, float):
                self._ending.wait(step)
            elif step == HANG:
                self._ending.wait(30)
                return False
            else:
                if step == RESET:
                    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
        return True


def _requests(wire: socket.socket, ending: threading.Event) -> Generator[tuple[str, dict[str, str], bytes], None, None]:
    wire.settimeout(0.05)
    buffer = b""

    def more() -> bytes:
        while not ending.is_set():
            with contextlib.suppress(TimeoutError):
                return wire.recv(1 << 16)
        return b""

    while True:
        while b"\r\n\r\n" not in buffer:
            if not (data := more()):
                return
            buffer += data
        head, _, buffer = buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(buffer) < length:
            if not (data := more()):
                return
            buffer += data
        body, buffer = buffer[:length], buffer[length:]
        yield first.split()[1], headers, body


@contextlib.contextmanager
def serving(script: Script, *, tls: bool = False) -> Iterator[Server]:
    """A server for the time of a block."""
    server = Server(script, tls=tls)
    try:
        yield server
    finally:
        server.close()


def chunk(data: bytes) -> bytes:
    """Framed as one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def tokens(count: int, *, gap_s: float = 0.0) -> Iterator[Step]:
    """A whole answer of so many one-token chunks, with usage and `[DONE]`, that keeps the connection."""
    yield HEAD + chunk(event(data=delta(role="assistant", content="")))
    for number in range(count):
        if gap_s:
            yield gap_s
        yield chunk(event(data=delta(content=f"w{number} ")))
    usage = {"prompt_tokens": 11, "completion_tokens": count, "total_tokens": 11 + count}
    yield chunk(event(data=delta("length")) + event(data={"choices": [], "usage": usage}))
    yield chunk(DONE) + END
