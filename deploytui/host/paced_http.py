"""HTTP/1.1 as the paced server speaks it: requests out of bytes, and answers whose bytes exist before they are due."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Optional

MODEL = "simulated-paced"
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 411: "Length Required", 413: "Content Too Large"}
CRLF = "\r\n"
HEAD_CAP, BODY_CAP = 64 << 10, 16 << 20
MAX_TOKENS = 1_000_000
NO_ID = 2**32 - 1
"""The id of a request that did not bring a number of its own."""
WORDS = 100
"""Token k is the text ` wNN` with NN = k modulo this."""
PATHS = {"/v1/chat/completions": True, "/v1/completions": False}
"""Where completions are asked for; whether it is a chat."""


class RefusalError(Exception):
    """The request is answered with an error of this status; `fatal` when nothing behind it can be understood."""

    def __init__(self, status: int, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.status, self.fatal = status, fatal


class Request(NamedTuple):
    """An HTTP request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Ask(NamedTuple):
    """What a completion was asked for."""

    id: int
    chat: bool
    tokens: int
    prompt_tokens: int
    usage: bool


def take_request(buffer: bytearray) -> Optional[Request]:
    """The first request, taken out of the buffer; None when more bytes are needed. RefusalError for what is none."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > HEAD_CAP:
            raise RefusalError(413, f"the head is longer than {HEAD_CAP} bytes", fatal=True)
        return None
    first, *rest = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise RefusalError(400, "that is no HTTP/1.1 request", fatal=True)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    length = body_length(headers)
    begin = end + 4
    if len(buffer) < begin + length:
        return None
    body = bytes(buffer[begin : begin + length])
    del buffer[: begin + length]
    return Request(words[0], words[1].partition("?")[0], headers, body)


def body_length(headers: dict[str, str]) -> int:
    """How many bytes follow the head; RefusalError when that is not told."""
    if "transfer-encoding" in headers:
        raise RefusalError(411, "a body needs a content-length", fatal=True)
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise RefusalError(400, "content-length is no number", fatal=True)
    if int(text) > BODY_CAP:
        raise RefusalError(413, f"the body is longer than {BODY_CAP} bytes", fatal=True)
    return int(text)


def understood(request: Request, usual_tokens: int) -> Ask:
    """What the request asks for; RefusalError when that can't be done."""
    if request.method != "POST" or request.path not in PATHS:
        raise RefusalError(404, f"nothing at {request.method} {request.path}")
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise RefusalError(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise RefusalError(400, "the body is not an object")
    if body.get("stream") is not True:
        raise RefusalError(400, "this server paces streams: ask with stream true")
    options = body.get("stream_options")
    return Ask(
        id=request_id(request.headers.get("x-request-id", "")),
        chat=PATHS[request.path],
        tokens=asked_tokens(body, usual_tokens),
        prompt_tokens=prompt_tokens(body),
        usage=isinstance(options, dict) and options.get("include_usage") is True,
    )


def request_id(text: str) -> int:
    """The number in X-Request-Id; NO_ID when there is none that fits 32 bits."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else NO_ID
    return min(number, NO_ID)


def asked_tokens(body: dict[str, Any], usual: int) -> int:
    """How many tokens to send; RefusalError when that is no sensible number."""
    asked = body.get("max_tokens")
    asked = body.get("max_completion_tokens") if asked is None else asked
    asked = usual if asked is None else asked
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= MAX_TOKENS:
        raise RefusalError(400, f"max_tokens is no number between 1 and {MAX_TOKENS}")
    return asked


def prompt_tokens(body: dict[str, Any]) -> int:
    """The words of the prompt, which count as its tokens here."""
    messages = body.get("messages")
    texts = [m.get("content") for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    return sum(len(text.split()) for text in [*texts, body.get("prompt")] if isinstance(text, str))


class Phrases:
    """The chunks of one kind of answer, made once and shared by all requests: sending one costs no rendering."""

    def __init__(self, chat: bool) -> None:
        self.chat = chat
        self._ends = [self._token(k, "length") for k in range(WORDS)]
        self._words = [self._token(k, None) for k in range(WORDS)]

    def chunks(self, ask: Ask) -> list[bytes]:
        """What to send for each token; the head goes with the first, the finish reason with the last."""
        while len(self._words) < ask.tokens:
            self._words += self._words[:WORDS] * 10
        chunks = self._words[: ask.tokens]
        chunks[-1] = self._ends[(ask.tokens - 1) % WORDS]
        chunks[0] = stream_head(ask.id) + chunks[0]
        return chunks

    def tail(self, ask: Ask) -> bytes:
        """What follows the last token: usage where it was asked for, `[DONE]`, the end of the response."""
        usage = {"prompt_tokens": ask.prompt_tokens, "completion_tokens": ask.tokens}
        usage["total_tokens"] = sum(usage.values())
        told = event(self._shared() | {"choices": [], "usage": usage}) if ask.usage else b""
        return told + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    def _token(self, k: int, finish: Optional[str]) -> bytes:
        text = " w%02d" % k
        said: dict[str, Any] = {"delta": {"content": text}} if self.chat else {"text": text}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": finish}
        return event(self._shared() | {"choices": [choice]})

    def _shared(self) -> dict[str, Any]:
        kind, prefix = ("chat.completion.chunk", "chatcmpl") if self.chat else ("text_completion", "cmpl")
        return {"id": f"{prefix}-simulated", "object": kind, "created": 0, "model": MODEL}


def event(data: dict[str, Any]) -> bytes:
    """One server-sent event in an HTTP chunk of its own."""
    return chunk(b"data: %b\n\n" % json.dumps(data, separators=(",", ":")).encode())


def chunk(data: bytes) -> bytes:
    """Bytes as an HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def stream_head(id_: int) -> bytes:
    """Status and headers of a stream."""
    own = "" if id_ == NO_ID else f"x-request-id: {id_}\r\n"
    kind = "content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n"
    return f"HTTP/1.1 200 OK\r\nx-simulated: 1\r\n{own}{kind}\r\n".encode()


def whole(status: int, body: Any, *, close: bool = False) -> bytes:
    """A complete answer."""
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\nx-simulated: 1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(data)}\r\n{'connection: close' + CRLF if close else ''}\r\n".encode() + data


def refused(error: RefusalError) -> bytes:
    """An error as engines send it."""
    told = {"message": str(error), "type": REASONS[error.status], "code": error.status}
    return whole(error.status, {"error": told}, close=error.fatal)


def page(path: str) -> Optional[bytes]:
    """The answer to a GET; None where there is nothing."""
    if path == "/health":
        return whole(200, {"status": "ok", "simulated": True})
    if path == "/v1/models":
        return whole(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "simulated"}]})
    return None
