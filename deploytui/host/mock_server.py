"""The HTTP side of the mock engine: OpenAI-compatible endpoints that play what the script says."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deploytui.host import mock_http as http
    from deploytui.host import mock_script as script
    from deploytui.host import mock_tgi as tgi
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import mock_http as http
    import mock_script as script
    import mock_tgi as tgi


class CutError(Exception):
    """The connection shall be closed without the rest of the answer."""


class Engine:
    """What the process knows while it serves."""

    def __init__(self, said: argparse.Namespace) -> None:
        self.said = said
        self.answers: dict[str, str] = read_answers(said.answer_file)
        self.slots = asyncio.Semaphore(said.slots or 1_000_000)
        self.seen: set[str] = set()
        self.started, self.asked, self.answered, self.running, self.waiting = time.monotonic(), 0, 0, 0, 0
        self.held = b"\1" * (said.host_mb << 20)
        self.leaked = 0
        """Requests whose client left and which it goes on counting."""

    @property
    def ready(self) -> bool:
        """Whether it answers."""
        return not self.said.never_ready and time.monotonic() - self.started >= self.said.ready_after_s

    def cached(self, ask: script.Ask) -> int | None:
        """Prompt tokens that need no prefill; None without a prefix cache. The prompt is known from now on."""
        if not self.said.prefix_cache:
            return None
        hit = ask.prompt in self.seen
        self.seen.add(ask.prompt)
        return ask.prompt_tokens if hit else 0


def read_answers(path: str | None) -> dict[str, str]:
    """Part of a prompt to the answer."""
    if path is None:
        return {}
    with open(path, encoding="utf-8") as file:
        return {str(part): str(text) for part, text in json.load(file).items()}


def page(engine: Engine, path: str) -> bytes:
    """The answer to a GET."""
    said = engine.said
    if path == "/health":
        return http.whole(200, {"status": "ok"}) if engine.ready else http.refused(503, "Loading model")
    if path == "/v1/models":
        return http.whole(200, {"object": "list", "data": [{"id": said.model, "object": "model", "owned_by": "mock"}]})
    if path == "/props":
        return http.whole(200, {"simulated": True, "version": script.VERSION, "model": said.model, "slots": said.slots})
    if path == "/metrics":
        return http.whole(200, metrics(engine), "text/plain; version=0.0.4; charset=utf-8")
    return http.refused(404, f"no such path: {path}")


def metrics(engine: Engine) -> str:
    """Gauges in Prometheus text."""
    figures = {
        "requests_running": engine.running + engine.leaked,
        "requests_waiting": engine.waiting,
        "kv_cache_usage": min(1.0, (engine.running + engine.leaked) / (engine.said.slots or 64)),
    }
    return "".join(f"# TYPE mock:{name} gauge\nmock:{name} {value}\n" for name, value in figures.items())


async def converse(engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve a connection until either side closes it."""
    try:
        while True:
            request = await http.read_request(reader)
            if request is None:
                break
            await serve(engine, request, http.Reply(engine.said, reader, writer))
            await writer.drain()
            if request.headers.get("connection", "").lower() == "close":
                break
    except (ConnectionError, CutError):
        return
    finally:
        writer.close()


async def serve(engine: Engine, request: http.Request, reply: http.Reply) -> None:
    """Answer one request."""
    try:
        await dispatch(engine, request, reply)
    except script.RefusalError as refusal:
        reply.writer.write(http.refused(refusal.status, str(refusal)))


async def dispatch(engine: Engine, request: http.Request, reply: http.Reply) -> None:
    """Find who answers; RefusalError when nobody does."""
    said = engine.said
    secret = said.api_key is not None and request.path != "/health"
    if secret and request.headers.get("authorization") != f"Bearer {said.api_key}":
        raise script.RefusalError(401, "invalid API key")
    if request.method == "GET":
        reply.writer.write(page(engine, request.path))
        return
    if request.path not in ("/v1/chat/completions", "/v1/completions", *tgi.PATHS):
        raise script.RefusalError(404, f"no such path: {request.path}")
    ask = understood(engine, request)
    request_id = request.headers.get("x-request-id") or f"mock-{engine.asked}"
    answer = complete if not ask.stream else generate if request.path in tgi.PATHS else stream
    if request.path == "/generate":
        await reply.send(http.whole(200, tgi.answer(ask, engine.said, engine.answers)))
    else:
        await answer(engine, ask, reply, request_id)
    engine.answered += 1
    if engine.answered == said.crash_after_requests:
        await reply.writer.drain()
        crash()


def understood(engine: Engine, request: http.Request) -> script.Ask:
    """The request for completion; RefusalError when it does not fit or is to be refused."""
    if not engine.ready:
        raise script.RefusalError(503, "Loading model")
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise script.RefusalError(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise script.RefusalError(400, "the body is not an object")
    if request.path in tgi.PATHS:
        ask = tgi.read_ask(body, stream=request.path == "/generate_stream")
    else:
        ask = script.read_ask(body, chat=request.path == "/v1/chat/completions", model=engine.said.model)
    engine.asked += 1
    check_room(engine, ask)
    if engine.said.fail_every and engine.asked % engine.said.fail_every == 0:
        raise script.RefusalError(engine.said.fail_status, "simulated failure")
    return ask


def check_room(engine: Engine, ask: script.Ask) -> None:
    """RefusalError for a prompt that is too long or a queue that is full; the end of all, where that was told."""
    said = engine.said
    if said.context is not None and ask.prompt_tokens > said.context:
        if said.crash_over_context:
            crash()
        raise script.RefusalError(400, f"the prompt has {ask.prompt_tokens} tokens, the context {said.context}")
    if said.queue is not None and engine.waiting >= said.queue and engine.slots.locked():
        raise script.RefusalError(429, "Model is overloaded")


@asynccontextmanager
async def slot(engine: Engine, ask: script.Ask, reply: http.Reply) -> AsyncIterator[None]:
    """One of the engine's slots, after a wait in the queue."""
    engine.waiting += 1
    try:
        await wait(engine.slots.acquire(), ask, reply)
    finally:
        engine.waiting -= 1
    engine.running += 1
    try:
        yield
    except ConnectionError:
        engine.leaked += engine.said.abort_leak
        raise
    finally:
        engine.running -= 1
        engine.slots.release()


async def wait(awaited: Awaitable[Any], ask: script.Ask, reply: http.Reply) -> None:
    """Wait, with comments to the client where it streams and they were asked for."""
    await (reply.patiently(awaited) if ask.stream and reply.said.keepalive_s else awaited)


async def pace(engine: Engine, ask: script.Ask, reply: http.Reply, since: float, tokens: int) -> float:
    """Wait until so many tokens after `since` are due, however late earlier ones were; when that was to be."""
    said = engine.said
    due: float = since + tokens * (said.itl_ms + said.itl_slope_ms * max(0, engine.running - 1)) / 1000
    await wait(asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time())), ask, reply)
    return due


def first_at(engine: Engine, cached: int | None) -> float:
    """When the first token of a request that starts now is due, on the loop's clock [s]."""
    return asyncio.get_running_loop().time() + (0.0 if cached else engine.said.ttft_ms / 1000)


def frame(engine: Engine, ask: script.Ask, request_id: str) -> dict[str, Any]:
    """What all events of an answer share."""
    prefix, kind = ("chatcmpl", "chat.completion") if ask.chat else ("cmpl", "text_completion")
    kind += ".chunk" if ask.chat and ask.stream else ""
    shared = {"id": f"{prefix}-{request_id}", "object": kind, "created": int(time.time()), "model": engine.said.model}
    return {**shared, "system_fingerprint": "simulated"}


async def stream(engine: Engine, ask: script.Ask, reply: http.Reply, request_id: str) -> None:
    """Answer event by event."""
    shared, cached = frame(engine, ask, request_id), engine.cached(ask)
    plan = list(script.beats(ask, engine.said, engine.answers, cached))
    early = [beat for beat in plan if beat.due < 0]
    await reply.head(request_id)
    for beat in early:
        await perform(beat, shared, reply)
    async with slot(engine, ask, reply):
        due, before = first_at(engine, cached), 0
        for beat in plan[len(early) :]:
            due, before = await pace(engine, ask, reply, due, beat.due - before), beat.due
            await perform(beat, shared, reply)
    if engine.said.done:
        await reply.line("data: [DONE]")
    await reply.send(b"0\r\n\r\n")


async def generate(engine: Engine, ask: script.Ask, reply: http.Reply, request_id: str) -> None:
    """Answer event by event as Text Generation Inference does on its own endpoint."""
    plan = list(tgi.beats(ask, engine.said, engine.answers))
    await reply.head(request_id)
    async with slot(engine, ask, reply):
        due, before = first_at(engine, engine.cached(ask)), 0
        for beat in plan:
            due, before = await pace(engine, ask, reply, due, beat.due - before), beat.due
            if beat.act in ("event", "error"):
                await reply.line("data:" + json.dumps(beat.event))
            else:
                await perform(beat, {}, reply)
    await reply.send(b"0\r\n\r\n")


async def perform(beat: script.Beat, shared: dict[str, Any], reply: http.Reply) -> None:
    """Do what the script says now."""
    if beat.act == "cut":
        raise CutError
    if beat.act == "crash":
        crash()
    await reply.event(beat.event if beat.act == "error" else {**shared, **beat.event})


async def complete(engine: Engine, ask: script.Ask, reply: http.Reply, request_id: str) -> None:
    """Answer at once, after the time that all tokens take."""
    cached = engine.cached(ask)
    body = script.answer(ask, engine.said, engine.answers, cached)
    count = len(script.tokens(ask, engine.said, engine.answers)[0])
    act, stop = script.interruption(engine.said, count)
    async with slot(engine, ask, reply):
        last = (count if act is None else stop) - 1
        await pace(engine, ask, reply, first_at(engine, cached), max(0, last))
    if act == "error":
        raise script.RefusalError(500, "simulated failure")
    if act is not None:
        await perform(script.Beat(0, act, {}), {}, reply)
    extra = f"x-request-id: {request_id}\r\n"
    await reply.send(http.whole(200, {**frame(engine, ask, request_id), **body}, extra=extra))


def crash() -> None:
    """Die as an assertion in native code does: nothing is closed or flushed."""
    os._exit(1)


async def listen(said: argparse.Namespace) -> asyncio.Server:
    """Open the door; OSError when its port is taken."""
    engine = Engine(said)

    async def door(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await converse(engine, reader, writer)

    return await asyncio.start_server(door, said.host, said.port, backlog=1024, limit=1 << 20)
