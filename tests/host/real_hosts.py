"""Hosts of real libraries as processes under test."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.host.mocks import Answer
from tests.host.toys import HOST, Toy, begun

LIMIT_S = 120.0


def host_argv(python: Path, script: str, model: Path, *options: str) -> list[str]:
    """A host of ours in an engine's interpreter, on any free port, with one thread."""
    where = ["--model", str(model), "--alias", "m", "--port", "0", "--threads", "1"]
    return [str(python), str(HOST / script), *where, *options]


@contextmanager
def serving(python: Path, script: str, model: Path, *options: str) -> Iterator[Toy]:
    """A host once it serves; killed at the end."""
    argv = host_argv(python, script, model, *options)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=quiet()) as process:
        try:
            yield begun(process)
        finally:
            process.kill()


def failing(python: Path, script: str, model: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A host that ends by itself, with all it wrote."""
    return subprocess.run(
        host_argv(python, script, model, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        env=quiet(),
        check=False,
    )


def quiet() -> dict[str, str]:
    """The environment without a key, and without a debugger that hangs."""
    return {**os.environ, "GGML_NO_BACKTRACE": "1", "DEPLOYTUI_API_KEY": ""}


def usage(answer: Answer) -> dict[str, int]:
    """The counts at the end of a stream that asked for them."""
    told: dict[str, int] = next(event["usage"] for event in answer.events if event != "[DONE]" and event.get("usage"))
    return told


def spoken(answer: Answer) -> str:
    """The text of a stream of a chat."""
    return "".join(delta.get("content") or "" for delta in answer.deltas)


GREEDY: dict[str, Any] = {"temperature": 0, "stream_options": {"include_usage": True}}
