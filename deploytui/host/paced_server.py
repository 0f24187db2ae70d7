"""A simulated engine that sends each token of thousands of streams when it is due, and knows when it really did.

Run by path: `python -I paced_server.py --port 0 --ttft-ms 200 --itl-ms 20`; `--help` lists the options. It serves
`/v1/chat/completions` and `/v1/completions` (streams only), `/v1/models` and `/health` on loopback, marks every answer
as simulated, and prints one JSON line with its port when it listens. `/ctl/dump` writes the truth file and tells how
late tokens were; so does its end, by SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import select
import selectors
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from deploytui.host import paced_http as http
    from deploytui.host.paced_clients import Connection
    from deploytui.host.paced_streams import Pacer, Stream
    from deploytui.host.paced_truth import Truth
    from deploytui.host.paced_wire import SealedWire, Wire, ask_for_stamps
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import paced_http as http
    from paced_clients import Connection
    from paced_streams import Pacer, Stream
    from paced_truth import Truth
    from paced_wire import SealedWire, Wire, ask_for_stamps

LOOPBACK = "127.0.0.1"
BACKLOG = 4096
BATCH = 64
"""So many tokens are sent between two looks at what comes in."""
IDLE_S = 60.0


class Server:
    """The door, the streams under way, and the truth about them."""

    def __init__(self, said: argparse.Namespace) -> None:
        self.said = said
        self.selector = selectors.DefaultSelector()
        self.truth = Truth(said.truth, int(said.itl_ms * 1e6))
        self.phrases = {chat: http.Phrases(chat) for chat in (True, False)}
        self.pacer = Pacer(
            ttft_ns=int(said.ttft_ms * 1e6), itl_ns=int(said.itl_ms * 1e6), phases=said.phases, over=self._over
        )
        self._tls = tls_context(said.cert, said.key) if said.cert else None
        self._ending = False
        self._rest = b""
        self._door = socket.create_server((LOOPBACK, said.port), backlog=BACKLOG)
        self._door.setblocking(False)
        ask_for_stamps(self._door)  # held from now on: the kernel begins some time after the first socket asks
        self.selector.register(self._door, selectors.EVENT_READ, self._knocked)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._door.getsockname()[1]
        return port

    def wire(self, sock: socket.socket, wants_room: Callable[[bool], None]) -> Wire:
        """A client's socket, with TLS where that was asked for."""
        return SealedWire(sock, wants_room, self._tls) if self._tls else Wire(sock, wants_room)

    def page(self, path: str) -> Optional[bytes]:
        """The answer to a GET; None where there is nothing."""
        return http.whole(200, self.dump()) if path == "/ctl/dump" else http.page(path)

    def dump(self) -> dict[str, Any]:
        """Write the truth about all that is over; how late it was, and what it cost."""
        self.truth.write()
        return {"event": "truth", "simulated": True, **self.truth.told(), "cpu_s": time.process_time()}

    def serve(self) -> None:
        """Until it is told to end."""
        while not self._ending:
            self.pacer.send_due(BATCH)
            wait_s = self._wait_s()
            if wait_s and not select.select([self.selector.fileno()], [], [], wait_s)[0]:
                continue
            for key, events in self.selector.select(0):
                key.data(events)

    def close(self) -> None:
        """Write the truth about everything, what is under way included."""
        for stream in self.pacer.under_way():
            self.truth.put(stream)
        self.truth.close()

    def end(self, *_: Any) -> None:
        """Serve no longer."""
        self._ending = True

    def listen_to(self, fd: int, heard: Callable[[int], None]) -> None:
        """Call when there is something to read."""
        os.set_blocking(fd, False)
        self.selector.register(fd, selectors.EVENT_READ, heard)

    def obey(self, _: int) -> None:
        """A line on standard input asks for the truth; its end is the end."""
        data = os.read(0, 4096)
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for _line in lines:
            say(self.dump())
        self._ending = self._ending or not data

    def _wait_s(self) -> float:
        """How long nothing is due. Finer than a selector's own timeout, which is in whole milliseconds."""
        due_ns = self.pacer.next_due_ns()
        return IDLE_S if due_ns is None else max(0.0, (due_ns - time.monotonic_ns()) / 1e9)

    def _knocked(self, _: int) -> None:
        while True:
            try:
                sock, _address = self._door.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            try:
                Connection(self, sock)
            except OSError:  # it is gone already
                sock.close()

    def _over(self, stream: Stream) -> None:
        self.truth.put(stream)
        stream.chunks = []
        stream.done()


def tls_context(cert: str, key: Optional[str]) -> ssl.SSLContext:
    """What seals; OSError when certificate or key can't be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


def say(words: dict[str, Any]) -> None:
    """One JSON line on standard output."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def make_ready(said: argparse.Namespace) -> None:
    """Take the core and the open files that are there for it."""
    if said.cpu is not None:
        if not hasattr(os, "sched_setaffinity"):
            raise OSError("this system pins no process to a core: leave out --cpu")
        os.sched_setaffinity(0, {said.cpu})
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(OSError, ValueError):  # where no limit is more than the system gives
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


def serve(said: argparse.Namespace) -> None:
    """Serve until a signal, or the end of standard input with --leash."""
    server = Server(said)
    awake, alarm = socket.socketpair()
    alarm.setblocking(False)
    signal.set_wakeup_fd(alarm.fileno())
    server.listen_to(awake.fileno(), server.end)
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, server.end)
    if said.leash:
        try:
            server.listen_to(0, server.obey)
        except PermissionError as error:
            raise OSError("a leash needs a pipe on standard input") from error
    make_ready(said)
    say({"event": "ready", "simulated": True, "port": server.port, "pid": os.getpid(), "model": http.MODEL})
    try:
        server.serve()
    finally:
        server.close()


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description="A simulated engine that paces its tokens and logs the truth.")
    parser.add_argument("--port", type=int, default=0, help="on loopback; 0 finds a free one")
    parser.add_argument("--ttft-ms", type=float, default=200.0, help="from the request to its first token")
    parser.add_argument("--itl-ms", type=float, default=20.0, help="from one token of a stream to the next")
    parser.add_argument("--tokens", type=int, default=128, help="where a request names no max_tokens")
    parser.add_argument(
        "--phases",
        choices=("spread", "arrival", "grid"),
        default="spread",
        help="when streams send against each other: evenly spread, as their requests came, or all at once",
    )
    parser.add_argument("--truth", metavar="FILE", help="where the true send times go")
    parser.add_argument("--cpu", type=int, help="the core to stay on")
    parser.add_argument("--leash", action="store_true", help="end with standard input; a line there asks for the truth")
    parser.add_argument("--cert", metavar="FILE", help="serve TLS with this certificate")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key, where it is not in the same file")
    return parser


def main() -> int:
    """Be the server that the command line describes; the exit status."""
    try:
        serve(options().parse_args())
    except (OSError, ValueError) as error:
        sys.stderr.write(f"ERROR: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
