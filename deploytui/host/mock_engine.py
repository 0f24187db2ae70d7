"""A scriptable OpenAI-compatible engine process for tests: paced tokens on demand, and rude on demand.

Run by path: `python -I mock_engine.py --port 8000 --model NAME [options]`; `--help` lists the options.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deploytui.host import mock_script as script
    from deploytui.host import mock_server as server
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import mock_script as script
    import mock_server as server

OOM_LOG = (
    "(EngineCore_0 pid=%d) INFO Loading model weights",
    "(EngineCore_0 pid=%d) ERROR EngineCore failed to start.",
    "(EngineCore_0 pid=%d) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. "
    "GPU 0 has a total capacity of 79.25 GiB of which 12.31 GiB is free.",
    "RuntimeError: Engine core initialization failed. See root cause above.",
)
LINE = "INFO mock engine: the quick brown fox loads weights that do not exist, shard after shard after shard %08d\n"


def log(line: str) -> None:
    """Write a line as engines do, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def fail_as_told(said: argparse.Namespace) -> None:
    """End while loading, with the log of such an end."""
    for line in OOM_LOG if said.oom else ():
        log(line.replace("%d", str(os.getpid())))
    if said.fail_load is not None:
        log(said.fail_load)
    if said.oom or said.fail_load is not None:
        sys.exit(1)


def chatter(mebibytes: int) -> None:
    """Fill the log."""
    for number in range((mebibytes << 20) // len(LINE % 0)):
        sys.stdout.write(LINE % number)
    sys.stdout.flush()


def leave_children(said: argparse.Namespace) -> list[subprocess.Popen[bytes]]:
    """Start what does not end with this process; their numbers are in the log."""
    children = []
    if said.grandchild:
        children.append(subprocess.Popen(("sleep", "3600"), start_new_session=True))
        log(f"grandchild {children[0].pid}")
    if said.daemon:
        orphan = ("sh", "-c", "sleep 3600 >/dev/null 2>&1 & echo $!")
        done = subprocess.run(orphan, stdout=subprocess.PIPE, start_new_session=True, check=True)
        log(f"daemon {int(done.stdout)}")
    return children


def bye() -> None:
    """End as a polite engine does."""
    log("shutting down")
    os._exit(0)


async def serve(said: argparse.Namespace) -> None:
    """Serve until a signal comes."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, bye)
    if not said.deaf:
        loop.add_signal_handler(signal.SIGTERM, bye)
    door = await server.listen(said)
    log(f"listening on {said.host}:{door.sockets[0].getsockname()[1]}")
    await door.serve_forever()


def main() -> None:
    """Be the engine that the command line describes."""
    said = script.options().parse_args()
    if said.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    children = leave_children(said)
    log(f"mock engine {script.VERSION}, simulated, pid {os.getpid()}, {len(children)} children")
    if said.log_env is not None:
        log("Invalid user token. %s=%s" % (said.log_env, os.environ.get(said.log_env)))
    chatter(said.log_mb)
    fail_as_told(said)
    try:
        asyncio.run(serve(said))
    except OSError as error:
        log(f"ERROR: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
