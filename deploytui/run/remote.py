"""Control calls to an endpoint elsewhere: through a library that knows the environment's proxies."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout


class RemoteDoor:
    """Calls one endpoint over the library's session."""

    def __init__(self, session: ClientSession, base_url: str) -> None:
        self._session = session
        self.base_url = base_url

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Status and content of the answer; raises OSError."""
        try:
            async with self._session.request(method, path.lstrip("/"), json=body) as response:
                return response.status, await response.read()
        except ClientError as error:
            raise ConnectionError(str(error) or type(error).__name__) from error


@asynccontextmanager
async def remote_door(base_url: str, headers: dict[str, str]) -> AsyncIterator[RemoteDoor]:
    """A session for the time of a block."""
    url = base_url.rstrip("/")
    timeout = ClientTimeout(total=None)
    async with ClientSession(url + "/", headers=headers, timeout=timeout, trust_env=True) as session:
        yield RemoteDoor(session, url)
