"""A server that speaks as one engine does, with its stream, its error and its metrics; run by path, no weights.

    python scripted_server.py DIALECT [the engine's own options: --port N, --served-model-name S, --api-key K …]

Dialects: vllm, sglang, tensorrt-llm, tgi. `--warming N` answers the first N health checks with 503.
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
WORDS = (" amber", " sky", " river", " stone", " green", " over", " nine", " hills")
STATS = {"iter": 7, "numActiveRequests": 0, "kvCacheStats": {"maxNumBlocks": 100, "tokensPerBlock": 32}}
TGI_METRICS = "tgi_queue_size 0\ntgi_batch_inference_duration_sum{method=\"{'method': 'prefill'}\"} 1.2\n"


def parsed() -> argparse.Namespace:
    """The options that matter; what else an engine is told is passed over."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("dialect")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", "--model-id", dest="served", default="m")
    parser.add_argument("--api-key", default=os.environ.get("VLLM_API_KEY") or os.environ.get("API_KEY"))
    parser.add_argument("--warming", type=int, default=0)
    return parser.parse_known_args()[0]


OPTIONS = parsed()
STATE = {"asked": 0, "drained": False}
LOCK = threading.Lock()


def recorded(engine: str, name: str) -> str:
    """The body of a recorded answer."""
    return (CAPTURES / engine / f"{name}.raw").read_bytes().partition(b"\r\n\r\n")[2].decode()


def pages() -> dict[str, Any]:
    """What a GET answers, by path: text, or JSON."""
    listed = {"object": "list", "data": [{"id": OPTIONS.served, "object": "model"}]}
    match OPTIONS.dialect:
        case "vllm":
            listed["data"][0]["max_model_len"] = 1024  # type: ignore[index]
            return {
                "/v1/models": listed,
                "/version": {"version": "0.32.0"},
                "/metrics": recorded("vllm-0.32.0-cpu", "metrics"),
            }
        case "sglang":
            info = {"version": "0.5.23", "admin_api_key": "s3cret", "tp_size": 1, "max_total_num_tokens": 8192}
            metrics = recorded("sglang-0.5.23-cpu", "metrics")
            return {"/v1/models": listed, "/get_server_info": info, "/get_model_info": {}, "/metrics": metrics}
        case "tensorrt-llm":
            return {"/v1/models": listed, "/version": {"version": "1.2.1"}, "/metrics": drained()}
        case _:
            info = {"model_id": OPTIONS.served, "version": "3.3.5", "max_total_tokens": 4096, "max_input_tokens": 4095}
            return {"/v1/models": listed, "/info": info, "/metrics": TGI_METRICS}


def drained() -> list[Any]:
    """Iteration records are handed out once."""
    first, STATE["drained"] = not STATE["drained"], True
    return [STATS] if first else []


def refusal(message: str) -> dict[str, Any]:
    """An error in the engine's own shape."""
    match OPTIONS.dialect:
        case "vllm":
            return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}
        case "sglang":
            return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
        case "tensorrt-llm":
            return {"error": message}
        case _:
            return {"error": message, "error_type": "validation"}


def choice(text: str, *, chat: bool, first: bool, last: bool) -> dict[str, Any]:
    """One choice of a chunk: role and content as each engine puts them."""
    more: dict[str, Any] = {"logprobs": None, "finish_reason": "length" if last else None}
    if not chat:
        return {"index": 0, "text": text, **more}
    role = {"role": "assistant"} if first or OPTIONS.dialect in ("tgi", "sglang") else {}
    if OPTIONS.dialect == "sglang":
        return {"index": 0, "delta": {**role, "content": text, "reasoning_content": None, "tool_calls": None}, **more}
    if OPTIONS.dialect == "tensorrt-llm":
        more |= {"stop_reason": None, "disaggregated_params": None, "avg_decoded_tokens_per_iter": None}
    return {"index": 0, "delta": {**role, "content": text}, **more}


def chunks(body: dict[str, Any], *, chat: bool) -> Iterator[dict[str, Any] | None]:
    """The events of a stream; None is the closing mark."""
    wanted = int(body.get("max_completion_tokens") or body.get("max_tokens") or 16)
    kind = "chat.completion.chunk" if chat else "text_completion"
    head = {"id": "cmpl-1", "object": kind, "created": 1796035780, "model": OPTIONS.served}
    blank = {"usage": None} if OPTIONS.dialect in ("tgi", "sglang", "tensorrt-llm") else {}
    if chat and OPTIONS.dialect in ("vllm", "sglang", "tensorrt-llm"):
        yield {**head, "choices": [choice("", chat=chat, first=True, last=False)], **blank}
    closes_apart = OPTIONS.dialect in ("sglang", "tensorrt-llm")
    for place in range(wanted):
        last = place == wanted - 1 and not closes_apart
        text = WORDS[place % len(WORDS)]
        yield {**head, "choices": [choice(text, chat=chat, first=place == 0, last=last)], **blank}
    if closes_apart:
        yield {**head, "choices": [choice("", chat=chat, first=False, last=True)], **blank}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": usage(body, wanted)}
    yield None


def usage(body: dict[str, Any], tokens: int) -> dict[str, int]:
    """Counts; a word of the prompt is a token."""
    prompt = body.get("prompt") or " ".join(str(line["content"]) for line in body.get("messages", ()))
    words = len(str(prompt).split())
    return {"prompt_tokens": words, "completion_tokens": tokens, "total_tokens": words + tokens}


class Handler(BaseHTTPRequestHandler):
    """The door."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Health, and the pages."""
        if self.path == "/health":
            with LOCK:
                STATE["asked"] += 1
                warm = STATE["asked"] > OPTIONS.warming
            return self.answer(200 if warm else 503, "")
        if not self.allowed() and self.path.startswith("/v1"):
            return self.answer(401, {"error": "Unauthorized"})
        found = pages()
        return self.answer(200, found[self.path]) if self.path in found else self.answer(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        """A generation, streamed or not."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.allowed():
            return self.answer(401, {"error": "Unauthorized"})
        chat = self.path == "/v1/chat/completions"
        if not chat and self.path != "/v1/completions":
            return self.answer(404, refusal("no such path"))
        if int(body.get("max_tokens") or 1) > 2000:
            return self.answer(400, refusal("max_tokens is too large"))
        return self.stream(body, chat=chat) if body.get("stream") else self.whole(body, chat=chat)

    def allowed(self) -> bool:
        """Whether the key is right, where there is one."""
        return not OPTIONS.api_key or self.headers.get("authorization") == f"Bearer {OPTIONS.api_key}"

    def whole(self, body: dict[str, Any], *, chat: bool) -> None:
        """An answer in one piece."""
        events = [event for event in chunks({**body, "stream_options": None}, chat=chat) if event]
        picked = [event["choices"][0] for event in events]
        text = "".join(part["delta"]["content"] if chat else part["text"] for part in picked)
        said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        tokens = sum(1 for part in picked if (part["delta"]["content"] if chat else part["text"]))
        self.answer(
            200,
            {
                "id": "cmpl-1",
                "model": OPTIONS.served,
                "choices": [{"index": 0, **said, "finish_reason": "length"}],
                "usage": usage(body, tokens),
            },
        )

    def stream(self, body: dict[str, Any], *, chat: bool) -> None:
        """Server-sent events, chunked; TGI leaves no space after the colon."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        space = "" if OPTIONS.dialect == "tgi" else " "
        for event in chunks(body, chat=chat):
            data = f"data:{space}{json.dumps(event) if event else '[DONE]'}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def answer(self, code: int, content: Any) -> None:
        """Text, or JSON."""
        data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(code)
        self.send_header("content-type", "text/plain" if isinstance(content, str) else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    for line in os.environ.get("SCRIPTED_LOG", "").splitlines():
        sys.stderr.write(line + "\n")
    ThreadingHTTPServer(("127.0.0.1", OPTIONS.port), Handler).serve_forever()
