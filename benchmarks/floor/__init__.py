"""The floor: the same load carried by a client in C."""

import json
import os
import subprocess
from pathlib import Path

from msgspec import Struct

from benchmarks.compiled import compiled
from benchmarks.cores import favour, on_cores
from benchmarks.server import Server


class Floor(Struct):
    """What the load cost the client in C."""

    cpu_s: float
    wall_s: float
    events: int
    done: int
    """Answers that said [DONE]."""


def carry(
    server: Server,
    core: int,
    *,
    requests: int,
    streams: int,
    tokens: int,
    stamps: Path | None = None,
    clock: str = "user",
    rest_us: int = 0,
) -> Floor:
    """Send a load from C; with `stamps` each event's arrival goes to that file, by the `user` or `kernel` clock.

    With `rest_us` it sleeps so long before each look, and is nearly idle: what it gets is what the server can send.
    """
    more = [clock, str(stamps)] if stamps is not None else []
    argv: list[str] = [str(compiled("client")), *map(str, (server.port, requests, streams, tokens)), *more]
    env = os.environ | ({"REST_US": str(rest_us)} if rest_us else {})
    with on_cores(core):
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=env
        )
    favour(process.pid)
    said, complaint = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the client in C failed: {complaint}")
    return Floor(**json.loads(said))
