"""The command line as a user calls it: in this process where that is enough, else in one of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from deploytui.cli import main
from tests.run.sessions import LIMIT_S, Done

Call = Callable[..., Done]
"""Runs a command in this process, without a terminal."""

MANY_LINES = 6
"""More than one or two sentences would take."""

WORKLOAD = """
timeouts = { load = 20, request = 20 }
[workload]
prompt_tokens = 24
output_tokens = 8
requests = 2
load = { kind = "closed", concurrency = 2 }
warmup_requests = 2
repeats = 1
endpoint = "completions"
"""
MOCK = '[[candidates]]\nname = "a"\nengine = "mock"\n'


def in_process(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Done:
    """Run a command line here; what it wrote and its exit status."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Done(ended.value.code, out, err)


def process(*words: str | Path, env: Mapping[str, str] | None = None, wrapper: tuple[str, ...] = ()) -> Done:
    """Run a command line in a process of its own, without a terminal; bytes that are no UTF-8 stay visible."""
    argv = [*wrapper, sys.executable, "-m", "deploytui", *(str(word) for word in words)]
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, **(env or {})},
    )
    return Done(done.returncode, done.stdout.decode(errors="backslashreplace"), done.stderr.decode(errors="replace"))


def assert_told(done: Done, code: int, *words: str) -> None:
    """It ended with this status, and said in a few lines what is wrong, with these words in it."""
    assert done.code == code, done.err
    for word in words:
        assert word in done.err
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) <= MANY_LINES, done.err
