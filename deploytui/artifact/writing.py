"""Files that are there as a whole or not at all."""

import secrets
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` in the place of `path`; OSError leaves what was there."""
    temporary = path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()
