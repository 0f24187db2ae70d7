"""What real engines answered and wrote, out of the recorded captures."""

from pathlib import Path
from typing import Any

import msgspec

DATA = Path(__file__).parents[1] / "data"


def body(engine: str, name: str) -> str:
    """The body of a recorded answer."""
    raw = (DATA / "captures" / engine / f"{name}.raw").read_bytes()
    return raw.partition(b"\r\n\r\n")[2].decode()


def answer(engine: str, name: str) -> Any:
    """The recorded answer as JSON."""
    return msgspec.json.decode(body(engine, name))


def log(engine: str, name: str) -> list[str]:
    """The lines of a recorded log."""
    return (DATA / "logs" / engine / f"{name}.log").read_text(encoding="utf-8").splitlines()


def after(argv: tuple[str, ...], *options: str) -> tuple[str, ...]:
    """The words that follow each of some options; LookupError when one is missing."""
    return tuple(argv[argv.index(option) + 1] for option in options)
