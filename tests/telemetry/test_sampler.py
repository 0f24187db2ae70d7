import fcntl
import json
import os
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploytui.load.lines_out import LineOut
from deploytui.telemetry.messages import Sample, TelemetryOrder, sample_decoder
from deploytui.telemetry.nvml import Gpus
from deploytui.telemetry.sampler import GpuAsker, Sampler
from tests.telemetry.conftest import FakeDriver

KEEPS = "import sys; kept = b'x' * (64 << 20); print('up', flush=True); sys.stdin.read()"
Process = subprocess.Popen[bytes]


@contextmanager
def sampler(*, pids: tuple[int, ...] = (), interval_s: float = 0.02, **environment: str) -> Iterator[Process]:
    argv = [sys.executable, "-m", "deploytui.telemetry.sampler"]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ | environment) as process:
        try:
            say(process, {"pids": pids, "interval_s": interval_s})
            yield process
        finally:
            process.kill()


def say(process: Process, line: object) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(line).encode() + b"\n")
    process.stdin.flush()


def heard(process: Process) -> Sample:
    assert process.stdout is not None
    return sample_decoder.decode(process.stdout.readline())


def heard_until(process: Process, wanted: Callable[[Sample], bool], within_s: float = 20.0) -> Sample:
    end = time.monotonic() + within_s
    while not wanted(sample := heard(process)):
        assert time.monotonic() < end, "no such sample came"
    return sample


@contextmanager
def eater() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", KEEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            yield child.pid
        finally:
            child.kill()


def test_samples_tell_the_host_and_the_watched_tree() -> None:
    with eater() as pid, sampler(pids=(pid,)) as process:
        first = heard(process)
        assert first.cpu_percent is None
        assert first.host_used_bytes is not None
        assert first.host_total_bytes is not None
        assert 0 < first.host_used_bytes < first.host_total_bytes
        assert first.gpu_missing is None or first.devices == ()
        size = first.rss[pid]
        assert size is not None
        assert size > 64 << 20
        second = heard(process)
        assert second.at_ns > first.at_ns
        assert second.cpu_percent is not None


def test_other_trees_are_watched_from_then_on() -> None:
    with eater() as pid, sampler() as process:
        assert heard(process).rss == {}
        say(process, {"do": "watch", "pids": [pid]})
        sample = heard_until(process, lambda sample: pid in sample.rss)
        assert sample.rss[pid] is not None
        say(process, {"do": "dance"})
        say(process, {"do": "watch", "pids": []})
        heard_until(process, lambda sample: not sample.rss)


def test_a_tree_that_is_gone_is_unknown_not_zero() -> None:
    with eater() as pid, sampler(pids=(pid,)) as process:
        assert heard(process).rss[pid] is not None
        os.kill(pid, 9)
        heard_until(process, lambda sample: sample.rss[pid] is None)


def test_it_ends_when_its_input_closes() -> None:
    with sampler() as process:
        heard(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def test_it_ends_when_nobody_reads() -> None:
    with sampler() as process:
        heard(process)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(10) == 0


def test_a_rubbish_order_is_refused_on_standard_error() -> None:
    argv = [sys.executable, "-m", "deploytui.telemetry.sampler"]
    done = subprocess.run(argv, input=b'{"pids": "all"}\n', capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert b"no order" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="needs a small pipe")
def test_a_reader_that_did_not_read_gets_whole_newer_samples() -> None:
    with sampler() as process:
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        heard(process)
        wait_until_full(process)
        before = heard(process)
        while (after := heard(process)).at_ns < before.at_ns + 100_000_000:
            before = after
        assert after.host_used_bytes is not None


def wait_until_full(process: Process) -> None:
    """Return when the pipe has taken nothing more for ten intervals."""
    assert process.stdout is not None
    waiting, since, end = b"", time.monotonic(), time.monotonic() + 20
    while time.monotonic() < since + 0.2:
        assert time.monotonic() < end
        now = fcntl.ioctl(process.stdout, termios.FIONREAD, b"\0\0\0\0")
        if now != waiting or now == b"\0\0\0\0":
            waiting, since = now, time.monotonic()
        time.sleep(0.01)


def test_a_gpu_sample_comes_from_the_driver(driver: FakeDriver, nvml_folder: Path) -> None:
    driver.set(0, used=4321)
    with sampler(LD_LIBRARY_PATH=str(nvml_folder)) as process:
        sample = heard_until(process, lambda sample: bool(sample.devices))
        assert [device.used_bytes for device in sample.devices] == [4321]
        driver.set(0, error=15)
        lost = heard_until(process, lambda sample: bool(sample.devices and sample.devices[0].lost))
        assert lost.devices[0].used_bytes is None
        assert lost.host_used_bytes is not None


def test_a_blocked_driver_stops_neither_the_host_figures_nor_the_end(driver: FakeDriver, nvml_folder: Path) -> None:
    with sampler(LD_LIBRARY_PATH=str(nvml_folder)) as process:
        heard_until(process, lambda sample: bool(sample.devices))
        driver.set(0, block_s=30)
        stalled = heard_until(process, lambda sample: sample.gpu_missing is not None)
        assert "has not answered" in str(stalled.gpu_missing)
        assert stalled.devices == ()
        assert heard(process).host_used_bytes is not None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_driver_that_answers_again_is_read_again() -> None:
    gate = threading.Event()

    class Slow(Gpus):
        def read(self) -> tuple[()]:
            assert gate.wait(20)
            return ()

    order = TelemetryOrder(interval_s=0.02)
    sampling = Sampler(order, GpuAsker(lambda: Slow(missing="none here")))
    assert "has not answered" in str(sampling.sample().gpu_missing)
    gate.set()
    end = time.monotonic() + 20
    while (missing := sampling.sample().gpu_missing) != "none here":
        assert time.monotonic() < end, missing


def test_a_full_pipe_drops_lines_and_never_half_a_line() -> None:
    reading, writing = os.pipe()
    try:
        out = LineOut(writing)
        line = b"x" * 5000 + b"\n"
        sent = [out.offer(line) for _ in range(200)]
        assert out.dropped == sent.count(False) > 0
        received = os.read(reading, 1 << 20)
        assert out.offer(b"last\n")
        received += os.read(reading, 1 << 20)
        assert received == line * sent.count(True) + b"last\n"
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("interval_s", [0.0, -1.0])
def test_a_senseless_interval_does_not_spin(interval_s: float) -> None:
    assert Sampler(TelemetryOrder(interval_s=interval_s), GpuAsker()).interval_s > 0
