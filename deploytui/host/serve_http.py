"""The HTTP side of a host: routes, keys, whole answers and event streams, over plain threads."""

from __future__ import annotations

import contextlib
import hmac
import json
import select
import socket
import sys
import traceback
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional

if TYPE_CHECKING:
    from deploytui.host import serve_answer as answer
    from deploytui.host import serve_backend as contract
    from deploytui.host import serve_queue as queue
    from deploytui.host import serve_request as request
    from deploytui.host.serve_served import Served
else:
    import serve_answer as answer
    import serve_backend as contract
    import serve_queue as queue
    import serve_request as request
    from serve_served import Served

HOST = "127.0.0.1"
BODY_LIMIT = 64 << 20
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
CHATS = {"/v1/chat/completions": True, "/v1/completions": False}
PAGES = ("/health", "/v1/models", "/metrics", "/props", "/memory")


class Door(ThreadingHTTPServer):
    """The listener; the port is taken as soon as it is made."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, port: int, served: Served) -> None:
        self.served = served
        super().__init__((HOST, port), Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server who we are, as the library does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def handle_error(self, asked: Any, client: Any) -> None:
        """Say what went wrong, but for clients that left."""
        if not isinstance(sys.exc_info()[1], OSError):
            traceback.print_exc()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Door
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "deploytui-host", ""
    disable_nagle_algorithm = True
    streaming = False

    def log_message(self, *said: Any) -> None:
        """Requests are not logged: the log is for what the engine says."""

    def do_GET(self) -> None:
        """A page."""
        self.answered(self.page)

    def do_POST(self) -> None:
        """A completion."""
        self.answered(self.complete)

    def answered(self, act: Callable[[str], None]) -> None:
        """Do it; what can't be done becomes an error."""
        self.streaming = False
        try:
            self.let_in()
            act(self.path.partition("?")[0])
        except contract.RefusalError as error:
            self.refuse(error.status, str(error), **error.fields)
        except queue.FullError:
            message = "{} requests wait already".format(self.server.served.most_waiting)
            self.refuse(429, message)
        except (queue.GoneError, OSError):
            self.close_connection = True
        except Exception as error:  # noqa: BLE001 - an engine may raise anything, and the next request is served
            traceback.print_exc()
            self.refuse(500, "{}: {}".format(type(error).__name__, error))

    def refuse(self, status: int, message: str, **fields: Any) -> None:
        """An error, as an answer or within the stream that has begun."""
        body = answer.error_of(status, message, **fields)
        if self.streaming:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.chunk(answer.event(body))
                self.wfile.write(b"0\r\n\r\n")
        else:
            with contextlib.suppress(OSError):
                self.whole(status, body)

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """What the library refuses before anything is asked of us: in our shape, and the connection ends."""
        self.close_connection, self.request_version = True, self.protocol_version
        self.refuse(code, message or self.responses[code][0])

    def let_in(self) -> None:
        """RefusalError without the key; only /health is for everybody."""
        key = self.server.served.api_key
        if not key or self.path.partition("?")[0] == "/health":
            return
        said = self.headers.get("Authorization", "")
        if not hmac.compare_digest(said.encode("latin-1", "replace"), ("Bearer " + key).encode()):
            self.drained()
            raise contract.RefusalError(401, "the API key is missing or wrong")

    def drained(self) -> bytes:
        """The body; one that can't be read ends the connection with the answer."""
        length = self.headers.get("Content-Length")
        if length is None and self.command == "GET" and not self.headers.get("Transfer-Encoding"):
            return b""
        if length is None or not length.isdecimal():
            self.close_connection = True
            raise contract.RefusalError(411, "a body needs a Content-Length")
        if int(length) > BODY_LIMIT:
            self.close_connection = True
            raise contract.RefusalError(413, "the body is longer than {} bytes".format(BODY_LIMIT))
        return self.rfile.read(int(length))

    def whole(self, status: int, body: Any) -> None:
        """A complete answer in one send."""
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", PROMETHEUS if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.common_headers()
        if status in (429, 503):
            self.send_header("Retry-After", "1")
        self.headers_and(data)

    def common_headers(self) -> None:
        """What every answer tells."""
        if self.named():
            self.send_header("X-Request-Id", self.request_id())
        if self.close_connection:
            self.send_header("Connection", "close")

    def headers_and(self, data: bytes) -> None:
        """Send the headers together with the first bytes."""
        self._headers_buffer: List[bytes]
        self._headers_buffer.append(b"\r\n" + data)
        self.flush_headers()

    def named(self) -> str:
        """How the client names the request; empty where it does not, or was not understood."""
        headers = getattr(self, "headers", None)
        return (headers.get("X-Request-Id") or "") if headers else ""

    def request_id(self) -> str:
        """As the client named it, else a new one."""
        named = self.named()
        return "".join(char for char in named if char.isalnum() or char in "-_.")[:100] or uuid.uuid4().hex

    def page(self, path: str) -> None:
        """Answer a GET."""
        self.drained()
        if path not in PAGES:
            status = 405 if path in CHATS else 404
            raise contract.RefusalError(status, "no such path for GET: {}".format(path))
        self.whole(200, self.server.served.page(path))

    def gone(self) -> bool:
        """Whether the client closed the connection."""
        try:
            readable, _, broken = select.select([self.connection], [], [self.connection], 0)
            return bool(broken) or (bool(readable) and not self.connection.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):
            return True

    def complete(self, path: str) -> None:
        """Answer a request for completion."""
        body, served = self.drained(), self.server.served
        if path not in CHATS:
            raise contract.RefusalError(405 if path in PAGES else 404, "no such path for POST: {}".format(path))
        backend = served.ready()
        ask = request.understood(request.body_of(body), CHATS[path], backend.sampling)
        if ask.model != served.alias:
            message = "the model {!r} does not exist; served is {!r}".format(ask.model, served.alias)
            raise contract.RefusalError(404, message, param="model")
        ids = encoded(backend, ask)
        params = ask.params._replace(max_tokens=room(ids, ask.max_tokens, served.context))
        course = answer.Course(len(ids), ask, params)
        frame = answer.Frame(ask, served.alias, self.request_id())
        with served.queue.slot(self.gone):
            served.queue.count("prompt", len(ids))
            with contextlib.closing(backend.generate(ids, params, self.gone)) as pieces:
                texts = course.texts(pieces, backend.eos, lambda: served.queue.count("generation", 1))
                if ask.stream:
                    self.stream(frame, course, self.still_there(texts))
                    return
                text = "".join(self.still_there(texts))
        self.whole(200, frame.whole(text, course))

    def still_there(self, texts: Iterator[str]) -> Iterator[str]:
        """The texts; GoneError once the client left."""
        for text in texts:
            if self.gone():
                raise queue.GoneError
            yield text

    def stream(self, frame: answer.Frame, course: answer.Course, texts: Iterator[str]) -> None:
        """Answer event by event; until the first token an error is still an HTTP error."""
        first = next(texts, None)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.common_headers()
        role = frame.role()
        self.streaming = True
        self.headers_and(chunked(role) if role else b"")
        if first is not None:
            self.chunk(frame.piece(first))
        for text in texts:
            self.chunk(frame.piece(text))
        last = [frame.end(course.finish)]
        if course.ask.include_usage:
            last.append(frame.event([], usage=course.usage()))
        self.wfile.write(b"".join(chunked(event) for event in (*last, answer.DONE)) + b"0\r\n\r\n")
        self.streaming = False

    def chunk(self, data: bytes) -> None:
        """One event in one send."""
        self.wfile.write(chunked(data))


def chunked(data: bytes) -> bytes:
    """An HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def encoded(backend: contract.Backend, ask: request.Ask) -> List[int]:
    """The ids of the prompt; RefusalError without any."""
    if ask.chat:
        ids = backend.encode_chat(ask.prompt)
    else:
        ids = backend.encode(ask.prompt) if isinstance(ask.prompt, str) else list(ask.prompt)
    if not ids:
        raise request.refusal("the prompt has no tokens", param="prompt")
    return ids


def room(ids: List[int], asked: Optional[int], context: Optional[int]) -> int:
    """Tokens the answer may have; RefusalError when prompt and answer don't fit the context."""
    fields = {"n_prompt_tokens": len(ids), "n_ctx": context, "type": "exceed_context_size_error"}
    if context is None:
        return asked or 16
    if len(ids) >= context:
        message = "the prompt has {} tokens, and the context is {} tokens".format(len(ids), context)
        raise request.refusal(message, **fields)
    if asked is not None and len(ids) + asked > context:
        message = "the prompt has {} tokens and the answer may have {}, and the context is {} tokens"
        raise request.refusal(message.format(len(ids), asked, context), **fields)
    return asked if asked is not None else context - len(ids)
