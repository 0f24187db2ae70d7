"""The mock engine as a process: how it loads, fails, fills its log and memory, and ends."""

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.host.keepers import ENV, MOCK
from tests.host.living import LIMIT_S, all_die, until
from tests.host.mocks import mock


def run(*options: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run((*MOCK, *options), stdout=subprocess.PIPE, env=ENV, timeout=LIMIT_S, check=False)


def test_an_out_of_memory_failure_is_in_the_log_and_the_exit_status() -> None:
    ended = run("--oom")
    assert ended.returncode == 1
    assert b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB" in ended.stdout


def test_any_failure_to_load_can_be_told() -> None:
    ended = run("--fail-load", "ValueError: no such quantisation")
    assert (ended.returncode, ended.stdout.splitlines()[-1]) == (1, b"ValueError: no such quantisation")


def test_a_taken_port_is_told() -> None:
    with mock() as engine:
        ended = run("--port", str(engine.port))
        assert ended.returncode == 1
        assert b"address already in use" in ended.stdout


def test_the_log_has_the_size_that_was_asked_for() -> None:
    ended = run("--log-mb", "3", "--fail-load", "end")
    assert abs(len(ended.stdout) - (3 << 20)) < 1000


def test_an_engine_may_never_become_ready() -> None:
    with mock("--never-ready") as engine:
        assert engine.get("/health").status == 503
        assert engine.chat().status == 503


def test_an_engine_may_take_its_time_to_become_ready() -> None:
    with mock("--ready-after-s", "0.4") as engine:
        assert engine.get("/health").status == 503
        until(lambda: engine.get("/health").status == 200)
        assert engine.chat(max_tokens=1).status == 200


def test_memory_shows() -> None:
    with mock("--host-mb", "64") as engine:
        status = Path(f"/proc/{engine.process.pid}/status").read_text(encoding="utf-8")
        resident = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert resident is not None
        assert int(resident[1]) > 64 << 10


def test_sigterm_ends_it_politely() -> None:
    with mock() as engine:
        engine.process.send_signal(signal.SIGTERM)
        assert engine.process.wait(LIMIT_S) == 0


def test_a_deaf_engine_and_its_children_do_not_hear_sigterm() -> None:
    with mock("--deaf", "--grandchild", "--daemon") as engine:
        pids = [int(pid) for pid in re.findall(rb"(?:grandchild|daemon) (\d+)", engine.log)]
        try:
            assert len(pids) == 2
            for pid in (engine.process.pid, *pids):
                masks = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
                ignored = re.search(r"SigIgn:\s+(\w+)", masks)
                assert ignored is not None
                assert int(ignored[1], 16) >> (signal.SIGTERM - 1) & 1
            engine.process.send_signal(signal.SIGTERM)
            assert engine.get("/health").status == 200
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
        assert all_die(pids[1:])
