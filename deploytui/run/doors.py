"""Control calls to an engine: is it ready, what does it serve, how does it count, what does it tell of itself.

Measured requests never go through here; they are the load worker's.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import urlsplit

import anyio
import msgspec

from deploytui.errors import DeployError, EngineError
from deploytui.run.direct import DirectDoor

CALL_S = 10.0
NOT_READY = 503
NO_ENTRY = "Set api_key_env to the name of a variable that holds the server's key."
NO_SUCH_CALL = "Check that base_url is an OpenAI-compatible server that has the workload's endpoint."
REMEDIES = {401: NO_ENTRY, 403: NO_ENTRY, 404: NO_SUCH_CALL, 405: NO_SUCH_CALL, 501: NO_SUCH_CALL}
Answer = dict[str, Any]


def on_this_host(base_url: str) -> bool:
    """Whether a URL points at loopback; such calls never use a proxy, whatever the environment says."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class NotReadyError(EngineError):
    """A server answers that it can't serve just now (HTTP 503), as some do while they load."""


class Door(Protocol):
    """A way to call one engine."""

    base_url: str
    """Without a slash at its end."""

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Status and content of the answer, in whatever time it takes; raises OSError."""


@asynccontextmanager
async def door(base_url: str, headers: dict[str, str]) -> AsyncIterator[Door]:
    """For control calls to one engine: straight to one on this host, else as the environment's proxies want it."""
    if on_this_host(base_url):
        yield DirectDoor(base_url, headers)
        return
    from deploytui.run.remote import remote_door  # late: its library takes 0.16 s to import

    async with remote_door(base_url, headers) as remote:
        yield remote


async def status(door: Door, path: str) -> int | None:
    """The HTTP status of a GET; None when nobody answers."""
    found = await reached(door, path)
    return found if isinstance(found, int) else None


async def reached(door: Door, path: str) -> int | str:
    """The HTTP status of a GET, or in words why there is none."""
    try:
        with anyio.fail_after(CALL_S):
            return (await door.call("GET", path))[0]
    except TimeoutError:
        return f"no answer within {CALL_S:g} s"
    except (OSError, DeployError) as error:
        return str(error) or type(error).__name__


async def ready_status(calls: Door, headers: dict[str, str], path: str) -> int | None:
    """The HTTP status of a readiness path, or of a URL of its own; None when nobody answers."""
    parts = urlsplit(path)
    if not parts.scheme:
        return await status(calls, path)
    own = f"{parts.scheme}://{parts.netloc}"
    # The key is the engine's alone, and another address may be anybody's.
    given = headers if urlsplit(calls.base_url).netloc == parts.netloc else {}
    async with door(own, given) as elsewhere:
        return await status(elsewhere, f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}")


async def get_answer(door: Door, path: str) -> Any | None:
    """What a GET answers with 200, as JSON or else as text; None for anything else."""
    try:
        with anyio.fail_after(CALL_S):
            code, content = await door.call("GET", path)
    except (OSError, DeployError):
        return None
    if code != 200:
        return None
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content.decode(errors="replace")


async def get_json(door: Door, path: str) -> Any | None:
    """The JSON a GET answers with 200; None for anything else."""
    try:
        with anyio.fail_after(CALL_S):
            code, content = await door.call("GET", path)
        return msgspec.json.decode(content) if code == 200 else None
    except (OSError, DeployError, msgspec.DecodeError, UnicodeDecodeError):
        return None


async def served_models(door: Door) -> tuple[str, ...] | None:
    """The ids the engine lists; None when it lists nothing readable."""
    match await get_json(door, "v1/models"):
        case {"data": [*rows]}:
            return tuple(str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row)
        case _:
            return None


async def ask_one(door: Door, path: str, body: dict[str, Any], seconds: float) -> Answer:
    """The answer to one request that is not streamed; EngineError with the engine's words when it refuses."""
    try:
        with anyio.fail_after(seconds):
            code, content = await door.call("POST", path, body)
        if code != 200:
            raise _refused(code, content)
        answer = msgspec.json.decode(content)
    except OSError as error:  # running out of time is one, too
        raise EngineError("The engine did not answer a request.", kind="timeout", why=repr(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EngineError("The engine's answer is not JSON.", kind="request_rejected", why=str(error)) from error
    return answer if isinstance(answer, dict) else {}


def _refused(code: int, content: bytes) -> EngineError:
    kind = NotReadyError if code == NOT_READY else EngineError
    return kind(
        f"The engine refused a request with HTTP {code}.",
        kind="request_rejected",
        why=content[:500].decode(errors="replace"),
        fix=REMEDIES.get(code, ""),
    )


def one_token_body(endpoint: str, model: str, text: str, api: str = "openai") -> tuple[str, dict[str, Any]]:
    """Path and body of the smallest real request with `text` as its prompt."""
    if api == "tgi":
        return "generate", {"inputs": text, "parameters": {"max_new_tokens": 1}}
    common: dict[str, Any] = {"model": model, "max_tokens": 1, "temperature": 0.0}
    if endpoint == "chat":
        return "v1/chat/completions", {**common, "messages": [{"role": "user", "content": text}]}
    return "v1/completions", {**common, "prompt": text}


def prompt_tokens(answer: Answer) -> int | None:
    """`usage.prompt_tokens` of an answer; None when the engine does not tell."""
    usage = answer.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) and count > 0 else None
