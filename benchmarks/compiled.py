"""The C programs of `floor/`, compiled when they are first needed."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "floor"
PROGRAMS = {"server": ("server.c", "request.c", "stream.c", "log.c"), "client": ("client.c",)}


def compiled(name: str) -> Path:
    """The program `server` or `client`; SystemExit without a compiler, or when it does not compile."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit(
            "There is no C compiler (cc): the benchmark measures beside a floor in C. Install gcc or clang."
        )
    sources = [SOURCES / source for source in PROGRAMS[name]]
    program = _cache() / f"{name}-{_digest(sources)}"
    if not program.exists():
        fresh = program.with_suffix(".new")
        done = subprocess.run([compiler, "-O2", "-o", fresh, *sources], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name} does not compile:\n{done.stderr}")
        fresh.rename(program)
    return program


def _cache() -> Path:
    folder = Path(tempfile.gettempdir()) / "deploytui-benchmarks"
    folder.mkdir(exist_ok=True)
    return folder


def _digest(sources: list[Path]) -> str:
    content = b"".join(path.read_bytes() for path in (*sources, SOURCES / "server.h"))
    return hashlib.sha256(content).hexdigest()[:12]
