"""Before the clock runs: files, connections, a common start."""

import errno
import json
import time
from pathlib import Path
from typing import Any

import pytest

from deploytui.load.orders import Ready, Trouble, said_decoder
from tests.load.server import serving, tokens
from tests.load.workers import WORKER, Load, loading, report_of, until


def ready(load: Load) -> Ready:
    """The first line of a worker, once it says that it is ready."""
    assert load.process.stdout is not None
    said = said_decoder.decode(load.process.stdout.readline())
    assert isinstance(said, Ready)
    return said


def test_a_worker_waits_connected_until_it_is_told_when_to_start(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, 8, wait_for_start=True) as load:
        assert ready(load).connected == 4
        until(lambda: server.connections == 4)
        assert not server.asked
        at_ns = time.monotonic_ns() + 1_000_000_000
        load.write(json.dumps({"do": "start", "at_ns": at_ns}).encode() + b"\n")
        report = report_of(load.said())
    records = load.records()
    assert report.started_ns == at_ns
    assert min(record.sent_ns for record in records) >= at_ns
    assert server.connections == 4
    assert sum(record.connect_ns is not None for record in records) == 4


def test_a_start_that_is_past_is_now(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, 2, wait_for_start=True) as load:
        told = ready(load)
        load.write(b'{"do":"start","at_ns":1}\n')
        report = report_of(load.said())
    assert (report.ok, report.started_ns > told.at_ns) == (2, True)


def test_a_worker_stopped_before_its_start_has_sent_nothing(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, 8, wait_for_start=True) as load:
        ready(load)
        load.write(b'{"do":"stop"}\n')
        report = report_of(load.said())
        assert not server.asked
    assert (report.requests, report.not_sent, report.stopped, report.cancelled) == (0, 8, "cancelled", True)
    assert load.records() == []


def test_a_server_that_is_not_there_is_no_reason_not_to_start(tmp_path: Path) -> None:
    with serving(lambda asked: []) as server:
        url = server.url
    with loading(tmp_path, url, 5, wait_for_start=True) as load:
        assert ready(load).connected == 0
        load.write(b'{"do":"start","at_ns":0}\n')
        report = report_of(load.said())
    assert (report.requests, report.ok) == (5, 0)
    assert {record.error_kind for record in load.records()} == {"connect"}


def limited(soft: int, hard: int) -> tuple[str, ...]:
    return ("sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$0" "$@"', *WORKER)


def test_the_soft_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    options: dict[str, Any] = {"concurrency": 60, "argv": limited(40, 400)}
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, 60, **options) as load:
        report = report_of(load.said())
    assert (report.ok, server.connections) == (60, 60)


def test_a_hard_limit_that_is_too_low_is_said_before_the_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {"concurrency": 60, "argv": limited(40, 100)}
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, 60, **options) as load:
        (trouble,) = load.said()
    assert isinstance(trouble, Trouble)
    assert "needs 124 open files, this user may have 100" in trouble.what
    assert "ulimit -n" in trouble.fix
    assert not server.asked
    assert not server.connections


def test_a_worker_without_a_share_says_so(tmp_path: Path) -> None:
    with loading(tmp_path, "http://127.0.0.1:1", 1, shard=1, shards=2) as load:
        (trouble,) = load.said()
    assert isinstance(trouble, Trouble)
    assert "worker 1 of 2" in trouble.what


@pytest.mark.parametrize("number", [errno.EADDRNOTAVAIL, errno.EMFILE])
def test_what_is_used_up_comes_with_a_remedy(number: int) -> None:
    import asyncio

    from deploytui.load.start import explaining
    from deploytui.load.wire import Connection

    async def dial() -> Connection:
        raise OSError(number, "the system's words")

    with pytest.raises(OSError, match=r"in use|left") as raised:
        asyncio.run(explaining(dial)())  # type: ignore[arg-type]
    assert raised.value.errno == number
    assert "fewer requests at once" in str(raised.value)
