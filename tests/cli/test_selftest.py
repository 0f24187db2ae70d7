"""`deploytui selftest` as a user calls it: a whole measurement, and what may go wrong before and in it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import Call, assert_told, process
from tests.host.living import all_die, children, until
from tests.run.sessions import LIMIT_S, marked

QUICK = ("selftest", "--quick", "--streams", "8")


def test_a_quick_self_test_tells_the_error_of_this_machine(tmp_path: Path) -> None:
    target = tmp_path / "selftest.json"
    done = process(*QUICK, "--itl-ms", "5", "--workers", "2", "--json", target)
    assert done.code == 0, done.err
    assert done.out.startswith("SIMULATED")
    assert "8 streams" in done.err
    result = json.loads(target.read_bytes())
    assert (result["simulated"], result["itl_ms"], result["tokens"]) == (True, 5.0, 32)
    [row] = result["rows"]
    assert (row["streams"], row["workers"], row["requests"], row["failed"], row["tokens"]) == (8, 2, 8, 0, 256)
    assert row["itl_error_us_p99"] >= 0
    assert row["ttft_error_us_p99"] is None
    assert result["sentence"] in done.out


def test_json_on_standard_output_is_alone_there() -> None:
    done = process(*QUICK, "--tokens", "2", "--json", "-")
    [row] = json.loads(done.out)["rows"]
    assert (done.code, row["verdict"], row["tokens"]) == (1, "not measured", 16)
    assert "SIMULATED" in done.err


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl program")
def test_the_tls_path_is_measured_with_a_certificate_of_its_own() -> None:
    done = process(*QUICK, "--tls", "--itl-ms", "5", "--json", "-")
    result = json.loads(done.out)
    assert (done.code, result["tls"], result["rows"][0]["path"]) == (0, True, "tls"), done.err


def test_without_openssl_tls_is_said_to_be_impossible(tmp_path: Path) -> None:
    assert_told(process(*QUICK, "--tls", env={"PATH": str(tmp_path)}), 1, "openssl", "--tls")


def test_too_few_open_files_are_said_in_the_row() -> None:
    done = process(*QUICK, wrapper=("bash", "-c", 'ulimit -n 100; exec "$@"', "_"))
    assert done.code == 1
    assert "open files" in done.out
    assert "Traceback" not in done.err


@pytest.mark.parametrize("streams", ["", "0", "many", "8,,9", "-3"])
def test_a_list_of_streams_that_is_none_is_refused(call: Call, streams: str) -> None:
    assert call("selftest", "--streams", streams).code == 2


def test_a_target_that_can_not_be_written_is_said_before_it_measures(call: Call, tmp_path: Path) -> None:
    assert_told(call(*QUICK, "--json", tmp_path / "missing" / "x.json"), 2, "can't be written")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_it_is_interrupted(tmp_path: Path, sign: signal.Signals) -> None:
    argv = (sys.executable, "-m", "deploytui", *QUICK, "--tokens", "100000")
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as running:
        try:
            until(lambda: len(marked(f"selftest-{running.pid}")) == 2)
            started = children(running.pid)
            running.send_signal(sign)
            running.communicate(timeout=LIMIT_S)
        finally:
            running.kill()
    assert all_die(started)
    assert running.returncode == (-9 if sign == signal.SIGKILL else 130)
    assert list(tmp_path.iterdir()) == [] or sign == signal.SIGKILL
