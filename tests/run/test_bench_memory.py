"""What an engine's framework tells of its memory, and what is said of an engine that left something behind."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from deploytui.engine.adapter import Adapter
from deploytui.profile.schema import Candidate
from deploytui.record.engine_events import Freed
from deploytui.run.bench import Bench, framework_memory
from deploytui.run.freeing import freed
from deploytui.run.keeping import Kept
from tests.load.server import Asked, Step, serving


class Telling(Adapter):
    """An engine that tells its framework's memory."""

    name = title = "telling"
    memory_path = "/memory"


def _bench(url: str, engine: Adapter | None = None) -> Bench:
    return Bench(Candidate(name="x", engine="telling"), engine or Telling(), url, Path("/nowhere"))


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (
            b'{"peak_allocated_bytes": 5, "peak_reserved_bytes": 7, "batching": "static"}',
            200,
            {"peak_allocated_bytes": 5, "peak_reserved_bytes": 7},
        ),
        (b'{"peak_allocated_bytes": null, "peak_reserved_bytes": 7}', 200, {"peak_reserved_bytes": 7}),
        (b'{"peak_allocated_bytes": 0}', 200, {}),
        (b"[]", 200, {}),
        (b"rubbish", 200, {}),
        (b"{}", 500, {}),
    ],
)
def test_only_what_the_framework_tells_is_taken(body: bytes, status: int, told: dict[str, int]) -> None:
    def script(asked: Asked) -> list[Step]:
        assert asked.target == "/memory"
        return [b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)]

    with serving(script) as server:
        assert anyio.run(framework_memory, _bench(server.url)) == told


def test_an_engine_without_such_a_path_or_without_life_is_not_asked() -> None:
    nobody = "http://127.0.0.1:9"
    assert anyio.run(framework_memory, _bench(nobody, Adapter())) == {}

    async def asked_dead() -> dict[str, int]:
        dead = _bench(nobody)
        dead.kept = Kept(None)  # type: ignore[arg-type]
        dead.kept.end()
        return await framework_memory(dead)

    assert anyio.run(asked_dead) == {}


def test_what_could_not_be_ended_is_listed_by_name() -> None:
    said: list[Any] = []
    notes: list[str] = []

    async def unwatch() -> int | None:
        return None

    ctx: Any = SimpleNamespace(
        recorder=SimpleNamespace(say=said.append),
        ticker=SimpleNamespace(unwatch=unwatch),
        note=lambda level, text, name: notes.append(f"{level}: {text}"),
    )

    async def stopped() -> None:
        bench = _bench("http://127.0.0.1:9")
        bench.kept = Kept(None, survivors=(os.getpid(), 2**22 + 1))  # type: ignore[arg-type]
        await freed(ctx, bench, 0, ["deploytui-s-x"])

    anyio.run(stopped)
    (event,) = (event for event in said if isinstance(event, Freed))
    assert event.survivors == (os.getpid(), 2**22 + 1)
    assert event.survivor_names[0].startswith("py")
    assert event.survivor_names[1] == "?"
    assert f"{os.getpid()} ({event.survivor_names[0]})" in notes[0]
    assert notes[1] == "error: The container deploytui-s-x of x could not be removed."
