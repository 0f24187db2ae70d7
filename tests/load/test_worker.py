"""The worker as a process: order in, records, stamps and a report out; nothing outside can move its clock."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from deploytui.load.orders import LoadOrder, Prompt, Report, Said, Snapshot, Trouble, said_decoder
from deploytui.load.stamps import unpack_stamps
from deploytui.record.trace import RequestRecord
from tests.load.replay import delta, event
from tests.load.server import HANG, HEAD, Asked, Script, Server, Step, chunk, serving, tokens
from tests.load.tcp_pairs import clock_here

WORKER = (sys.executable, "-m", "deploytui.load.worker")


class Load:
    """A worker under way on an order, with its pipes."""

    def __init__(
        self,
        folder: Path,
        url: str,
        count: int,
        *,
        argv: Sequence[str] = WORKER,
        env: dict[str, str] | None = None,
        stdout: int = subprocess.PIPE,
        **changes: object,
    ) -> None:
        self.folder = folder
        prompts = folder / "prompts.jsonl"
        prompts.write_bytes(msgspec.json.Encoder().encode_lines([Prompt(id=k, prompt=f"p{k}") for k in range(count)]))
        plain: dict[str, object] = {
            "base_url": url,
            "endpoint": "chat",
            "model": "m",
            "output_tokens": 4,
            "prompts": str(prompts),
            "concurrency": 4,
            "records": str(folder / "requests.w0.jsonl"),
            "stamps": str(folder / "stamps.w0.bin"),
        }
        self.order = msgspec.convert(plain | changes, LoadOrder)
        full = os.environ | (env or {})
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, env=full)
        self.write(msgspec.json.encode(self.order) + b"\n")

    def write(self, line: bytes) -> None:
        """A line on the worker's standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def let_go(self) -> None:
        """Close the worker's standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def said(self) -> list[Said]:
        """All it said until it ended; its standard input stays open."""
        assert self.process.stdout is not None
        lines = self.process.stdout.read().splitlines()
        self.process.wait(20)
        return [said_decoder.decode(line) for line in lines]

    def errors(self) -> str:
        """What it wrote on standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def records(self) -> list[RequestRecord]:
        """The finished requests."""
        return msgspec.json.Decoder(RequestRecord).decode_lines(Path(self.order.records).read_bytes())

    def end(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait(20)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


@contextlib.contextmanager
def loading(folder: Path, server: Server | str, count: int = 8, **options: object) -> Iterator[Load]:
    """A worker for the time of a block."""
    load = Load(folder, server if isinstance(server, str) else server.url, count, **options)  # type: ignore[arg-type]
    try:
        yield load
    finally:
        load.end()


def until(state: Callable[[], bool], limit_s: float = 20) -> None:
    """Wait for a state."""
    end = time.monotonic() + limit_s
    while not state():
        assert time.monotonic() < end, "the state did not come in time"
        time.sleep(0.005)


def report_of(said: list[Said]) -> Report:
    last = said[-1]
    assert isinstance(last, Report), last
    return last


def trouble_of(load: Load) -> Trouble:
    (last,) = [line for line in load.said() if not isinstance(line, Snapshot)]
    assert isinstance(last, Trouble)
    assert load.process.returncode == 1
    return last


def closed_port() -> str:
    with serving(lambda asked: []) as server:
        return server.url


def test_each_request_is_sent_once_and_recorded_with_its_stamps(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(4, gap_s=0.005)) as server, loading(tmp_path, server, 20) as load:
        said = load.said()
        assert load.process.returncode == 0
        assert load.errors() == ""
    report, records = report_of(said), load.records()
    assert (report.requests, report.ok, report.cancelled, report.clock) == (20, 20, False, clock_here())
    assert report.clock_jumps == 0
    assert sorted(record.id for record in records) == list(range(20))
    assert sorted(asked.id for asked in server.asked) == list(range(20))
    assert {record.user for record in records} == {0, 1, 2, 3}
    assert all(record.ok and record.output_tokens == 4 and record.prompt_tokens == 11 for record in records)
    assert all(record.chunks == 4 and record.text is None for record in records)
    stamps = dict(unpack_stamps(Path(load.order.stamps).read_bytes()))
    assert {record.id: (record.first_token_ns, record.last_token_ns) for record in records} == {
        number: (each[0], each[-1]) for number, each in stamps.items()
    }
    assert report.started_ns <= min(record.sent_ns for record in records)
    assert report.ended_ns >= max(record.end_ns for record in records)
    assert report.lag_ms_max is not None
    assert report.cpu_share is not None
    assert report.cpu_share > 0


def test_the_closed_loop_keeps_to_its_users_and_to_the_order_of_prompts(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(2, gap_s=0.005)) as server, loading(tmp_path, server, 12, concurrency=3) as load:
        report_of(load.said())
    assert server.most_answering == 3
    assert server.connections == 3
    assert {asked.id for asked in server.asked[:3]} == {0, 1, 2}
    firsts = [asked.id for asked in server.asked]
    assert all(abs(number - place) < 3 for place, number in enumerate(firsts))
    assert {asked.body["messages"][0]["content"] for asked in server.asked} == {f"p{k}" for k in range(12)}
    assert server.asked[0].body["stream"] is True
    assert server.asked[0].body["stream_options"] == {"include_usage": True}
    assert server.asked[0].headers["accept-encoding"] == "identity"


def test_a_user_thinks_between_its_requests(tmp_path: Path) -> None:
    options = {"concurrency": 1, "think_time_s": 0.05}
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, 3, **options) as load:
        report_of(load.said())
    records = load.records()
    gaps = [later.sent_ns - earlier.end_ns for earlier, later in pairwise(records)]
    assert len(gaps) == 2
    assert min(gaps) >= 45_000_000


def test_snapshots_show_the_load_under_way_and_end_at_the_total(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(20, gap_s=0.02)) as server, loading(tmp_path, server, 4) as load:
        said = load.said()
    snapshots = [line for line in said if isinstance(line, Snapshot)]
    assert len(snapshots) >= 3
    assert [snapshot.chunks for snapshot in snapshots] == sorted(snapshot.chunks for snapshot in snapshots)
    assert any(snapshot.in_flight == 4 and 0 < snapshot.chunks < 80 for snapshot in snapshots)
    last = snapshots[-1]
    assert (last.total, last.done, last.in_flight, last.failed) == (4, 4, 0, 0)
    assert (last.chunks, last.output_tokens, last.finished_chunks) == (80, 80, 80)
    assert (last.ttft_n, last.tpot_n) == (4, 4)
    assert last.tpot_sum_s / 4 > 0


def hangs_from(number: int) -> Script:
    """Requests with this id and above begin and never end."""

    def script(asked: Asked) -> list[Step]:
        begun: list[Step] = [HEAD + chunk(event(data=delta(content="a"))), HANG]
        return list(tokens(2)) if asked.id < number else begun

    return script


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


def test_each_request_has_its_time_limit(tmp_path: Path) -> None:
    with serving(hangs_from(2)) as server, loading(tmp_path, server, 4, request_timeout_s=0.3) as load:
        report = report_of(load.said())
    assert (report.requests, report.ok, report.cancelled) == (4, 2, False)
    assert [record.error_kind for record in load.records()].count("timeout") == 2


def test_refused_requests_give_no_latency(tmp_path: Path) -> None:
    body = b'{"error":{"message":"slow down"}}'
    head = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
    refusal = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with (
        serving(lambda asked: [refusal] if asked.id % 2 else tokens(3)) as server,
        loading(tmp_path, server, 10) as load,
    ):
        said = load.said()
    assert (report_of(said).requests, report_of(said).ok) == (10, 5)
    refused = [record for record in load.records() if not record.ok]
    assert {record.error_kind for record in refused} == {"http_429"}
    assert {record.error for record in refused} == {"slow down; Retry-After: 1"}
    assert {record.first_token_ns for record in refused} == {None}
    last = [line for line in said if isinstance(line, Snapshot)][-1:]
    assert all(snapshot.ttft_n <= 5 for snapshot in last)


def test_proxy_variables_are_not_followed(tmp_path: Path) -> None:
    proxy = closed_port()
    env = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"), proxy) | {"NO_PROXY": ""}
    with serving(lambda asked: tokens(2)) as server, loading(tmp_path, server, 4, env=env) as load:
        assert report_of(load.said()).ok == 4


def test_a_dead_server_fails_each_request(tmp_path: Path) -> None:
    with loading(tmp_path, closed_port(), 50) as load:
        report = report_of(load.said())
    assert (report.requests, report.ok) == (50, 0)
    assert {record.error_kind for record in load.records()} == {"connect"}


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
        ({"trust_proxy_env": True}, "proxy"),
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


def test_text_is_kept_on_request(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(2)) as server, loading(tmp_path, server, 1, keep_text=True) as load:
        report_of(load.said())
    assert [record.text for record in load.records()] == ["w0 w1 "]


def test_the_worker_loads_nothing_heavy() -> None:
    code = "import sys, deploytui.load.worker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    names = {name.partition(".")[0] for name in loaded.stdout.split()}
    assert not names & {"textual", "anyio", "aiohttp", "numpy", "psutil", "click", "tomlkit", "prometheus_client"}
    ours = {".".join(name.split(".")[:2]) for name in loaded.stdout.split() if name.startswith("deploytui.")}
    assert ours <= {f"deploytui.{name}" for name in ("load", "record", "definitions", "units", "errors")}
