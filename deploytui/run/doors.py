"""Control calls to an engine: is it ready, what does it serve, how does it count, what does it tell of itself.

Measured requests never go through here; they are the load worker's.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from deploytui.errors import EngineError

if TYPE_CHECKING:
    from aiohttp import ClientSession

CALL_S = 10.0
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


@asynccontextmanager
async def door(base_url: str, headers: dict[str, str]) -> AsyncIterator["ClientSession"]:
    """A session for control calls to one engine."""
    from aiohttp import ClientSession, ClientTimeout  # late: its import takes 0.16 s

    async with ClientSession(
        base_url.rstrip("/") + "/",
        headers=headers,
        timeout=ClientTimeout(total=CALL_S),
        trust_env=not on_this_host(base_url),
    ) as session:
        yield session


async def status(session: "ClientSession", path: str) -> int | None:
    """The HTTP status of a GET; None when nobody answers."""
    found = await reached(session, path)
    return found if isinstance(found, int) else None


async def reached(session: "ClientSession", path: str) -> int | str:
    """The HTTP status of a GET, or in words why there is none."""
    from aiohttp import ClientError

    try:
        async with session.get(path.lstrip("/")) as response:
            await response.read()
            return response.status
    except TimeoutError:
        return f"no answer within {CALL_S:g} s"
    except (ClientError, OSError) as error:
        return str(error) or type(error).__name__


async def get_json(session: "ClientSession", path: str) -> Any | None:
    """The JSON a GET answers with 200; None for anything else."""
    from aiohttp import ClientError

    try:
        async with session.get(path.lstrip("/")) as response:
            body = await response.read()
            return msgspec.json.decode(body) if response.status == 200 else None
    except (ClientError, TimeoutError, OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


async def served_models(session: "ClientSession") -> tuple[str, ...] | None:
    """The ids the engine lists; None when it lists nothing readable."""
    match await get_json(session, "v1/models"):
        case {"data": [*rows]}:
            return tuple(str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row)
        case _:
            return None


async def ask_one(session: "ClientSession", path: str, body: dict[str, Any], seconds: float) -> Answer:
    """The answer to one request that is not streamed; EngineError with the engine's words when it refuses."""
    from aiohttp import ClientError, ClientTimeout

    try:
        async with session.post(path, json=body, timeout=ClientTimeout(total=seconds)) as response:
            content = await response.read()
            if response.status != 200:
                raise _refused(response.status, content)
            answer = msgspec.json.decode(content)
    except (ClientError, TimeoutError, OSError) as error:
        raise EngineError("The engine did not answer a request.", kind="timeout", why=repr(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EngineError("The engine's answer is not JSON.", kind="request_rejected", why=str(error)) from error
    return answer if isinstance(answer, dict) else {}


def _refused(code: int, content: bytes) -> EngineError:
    return EngineError(
        f"The engine refused a request with HTTP {code}.",
        kind="request_rejected",
        why=content[:500].decode(errors="replace"),
        fix=REMEDIES.get(code, ""),
    )


def one_token_body(endpoint: str, model: str, text: str) -> tuple[str, dict[str, Any]]:
    """Path and body of the smallest real request with `text` as its prompt."""
    common: dict[str, Any] = {"model": model, "max_tokens": 1, "temperature": 0.0}
    if endpoint == "chat":
        return "v1/chat/completions", {**common, "messages": [{"role": "user", "content": text}]}
    return "v1/completions", {**common, "prompt": text}


def prompt_tokens(answer: Answer) -> int | None:
    """`usage.prompt_tokens` of an answer; None when the engine does not tell."""
    usage = answer.get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) and count > 0 else None
