"""A paced server under test, and its truth file."""

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploytui.run.selftest_truth import Sent, read_truth
from tests.host.keepers import ENV, HOST
from tests.host.mocks import Mock

PACED = (sys.executable, "-I", "-S", str(HOST / "paced_server.py"))
QUICK = ("--ttft-ms", "5", "--itl-ms", "1")
_TLS = Path(__file__).parents[1] / "data" / "tls"
WITH_TLS = ("--cert", str(_TLS / "cert.pem"), "--key", str(_TLS / "key.pem"))
TRUSTING = ssl.create_default_context(cafile=str(_TLS / "cert.pem"))
"""What a client needs to talk to it then."""


@contextmanager
def paced(*options: str, stdin: int = subprocess.DEVNULL) -> Iterator[Mock]:
    """A paced server that is killed at the end."""
    with subprocess.Popen((*PACED, *options), stdin=stdin, stdout=subprocess.PIPE, env=ENV, bufsize=0) as process:
        try:
            ready = told(process)
            assert ready["event"] == "ready"
            assert ready["simulated"] is True
            yield Mock(process, ready["port"], b"")
        finally:
            process.kill()


def told(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """The next line it says."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the server has ended"
    words: dict[str, Any] = json.loads(line)
    return words


def truth_in(path: Path) -> list[Sent]:
    """All requests of a truth file."""
    with path.open("rb") as file:
        return list(read_truth(file)[1])
