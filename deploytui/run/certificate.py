"""A certificate for one self-test, made by the openssl program and trusted by nobody else."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from deploytui.errors import DeployError

TRUST = "SSL_CERT_FILE"
"""Where OpenSSL finds the certificates it trusts."""
LIMIT_S = 30.0
SUBJECT = ("-subj", "/CN=deploytui selftest", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")


async def write_certificate(folder: Path) -> Path:
    """Certificate and key for loopback in one file; DeployError where they can't be made."""
    program = shutil.which("openssl")
    if program is None:
        raise DeployError(
            "The TLS path can't be measured: there is no openssl program here to make a certificate.",
            fix="Install it, or leave out --tls.",
        )
    path, key = folder / "selftest.pem", folder / "selftest.key"
    new = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1")
    argv = (program, "req", *new, *SUBJECT, "-keyout", str(key), "-out", str(path))
    with anyio.move_on_after(LIMIT_S):
        done = await anyio.run_process(argv, stdin=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            path.write_bytes(path.read_bytes() + key.read_bytes())
            return path
        raise DeployError("openssl made no certificate.", why=done.stderr.decode(errors="replace").strip())
    raise DeployError("openssl made no certificate in time.", fix="Leave out --tls.")


@contextmanager
def trusted(certificate: Path | None) -> Iterator[None]:
    """Have children that are started meanwhile trust it."""
    if certificate is None:
        yield
        return
    before = os.environ.get(TRUST)
    os.environ[TRUST] = str(certificate)
    try:
        yield
    finally:
        del os.environ[TRUST]
        if before is not None:
            os.environ[TRUST] = before
