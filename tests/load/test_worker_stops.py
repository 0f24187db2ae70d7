"""What stops a worker early or keeps it from starting, and what it says and leaves then."""

import contextlib
import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest

from deploytui.load.orders import Ready, Report, Snapshot, Trouble, said_decoder
from tests.load.server import serving, tokens
from tests.load.workers import WORKER, Load, hangs_from, loading, report_of, until


def trouble_of(load: Load) -> Trouble:
    (last,) = [line for line in load.said() if not isinstance(line, Ready | Snapshot)]
    assert isinstance(last, Trouble)
    assert load.process.returncode == 1
    return last


@pytest.mark.parametrize("how", ["leash", "word", "signal"])
def test_a_stopped_load_keeps_what_is_finished_and_says_that_it_was_cancelled(tmp_path: Path, how: str) -> None:
    with serving(hangs_from(5)) as server, loading(tmp_path, server, 20) as load:
        until(lambda: len(server.asked) >= 9)
        if how == "leash":
            load.let_go()
        elif how == "word":
            load.write(b'{"do":"something else"}\nnonsense\n{"do":"stop"}\n')
        else:
            load.process.send_signal(signal.SIGTERM)
        report = report_of(load.said())
        assert load.process.returncode == 0
    assert report.cancelled
    assert (report.requests, report.ok) == (5, 5)
    assert sorted(record.id for record in load.records()) == [0, 1, 2, 3, 4]


def test_a_leash_let_go_before_the_order_ends_the_worker_quietly() -> None:
    ended = subprocess.run(WORKER, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_reader_that_stalls_moves_nothing_and_still_gets_whole_lines(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(theirs, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(theirs, b"." * 100)
    with serving(lambda asked: tokens(5, gap_s=0.02)) as server, loading(tmp_path, server, 16, stdout=theirs) as load:
        os.close(theirs)
        records = Path(load.order.records)
        until(lambda: records.exists() and records.read_bytes().count(b"\n") == 16)
        assert load.process.poll() is None
        with os.fdopen(ours, "rb") as pipe:
            content = pipe.read()
        load.process.wait(20)
    lines = content[filled:].splitlines()
    assert isinstance(said_decoder.decode(lines[-1]), Report)
    assert all(said_decoder.decode(line) for line in lines)
    assert all(record.ok for record in load.records())


def test_a_reader_that_is_gone_ends_the_load(tmp_path: Path) -> None:
    with serving(hangs_from(0)) as server, loading(tmp_path, server, 4) as load:
        until(lambda: len(server.asked) == 4)
        assert load.process.stdout is not None
        load.process.stdout.close()
        assert load.process.wait(20) == 0


@pytest.mark.parametrize("file", ["records", "stamps"])
def test_a_full_disk_stops_the_load_and_is_said(tmp_path: Path, file: str) -> None:
    full: dict[str, object] = {file: "/dev/full"}
    with serving(hangs_from(2)) as server, loading(tmp_path, server, 20, **full) as load:
        trouble = trouble_of(load)
    assert "/dev/full" in trouble.what
    assert "No space left" in trouble.why
    assert trouble.fix


def test_a_record_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    limited = ("sh", "-c", 'ulimit -f 4; exec "$0" "$@"', *WORKER)
    with serving(lambda asked: tokens(2)) as server, loading(tmp_path, server, 200, argv=limited) as load:
        assert "requests.w0.jsonl" in trouble_of(load).what
    content = Path(load.order.records).read_bytes()
    assert content.endswith(b"\n")
    assert all(record.ok for record in load.records())


def test_results_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "requests.w0.jsonl").write_bytes(b"{}\n")
    with loading(tmp_path, "http://127.0.0.1:1", 1) as load:
        assert "already holds results" in trouble_of(load).what
    assert (tmp_path / "requests.w0.jsonl").read_bytes() == b"{}\n"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"prompts": "/nowhere/prompts.jsonl"}, "can't be read"),
        ({"prompts": "/dev/null"}, "hold no prompt"),
        ({"concurrency": 0}, "0 users"),
        ({"base_url": "nowhere"}, "no http:// or https:// URL"),
        ({"records": "/nowhere/requests.jsonl"}, "can't be opened"),
    ],
)
def test_an_order_that_cannot_be_carried_out_says_why(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    with loading(tmp_path, "http://127.0.0.1:1", 1, **changes) as load:
        assert words in trouble_of(load).what


def test_a_broken_order_says_why() -> None:
    ended = subprocess.run(WORKER, input=b'{"base_url": 3}\n', capture_output=True, timeout=20, check=False)
    trouble = said_decoder.decode(ended.stdout)
    assert isinstance(trouble, Trouble)
    assert (trouble.what, ended.returncode) == ("The order can't be read.", 1)
    assert "base_url" in trouble.why
