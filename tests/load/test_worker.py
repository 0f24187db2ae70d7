"""The worker as a process: order in, records, stamps and a report out; nothing outside can move its clock."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from deploytui.load.orders import Snapshot
from deploytui.load.stamps import unpack_stamps
from tests.load.server import serving, tokens
from tests.load.tcp_pairs import clock_here
from tests.load.workers import hangs_from, loading, report_of


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
    entries = list(unpack_stamps(Path(load.order.stamps).read_bytes()))
    assert {(r.id, r.clock, r.sent_ns, r.first_token_ns, r.last_token_ns) for r in records} == {
        (entry.id, entry.clock, entry.sent_ns, entry.stamps[0], entry.stamps[-1]) for entry in entries
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
        loading(tmp_path, server, 10, request_timeout_s=0.5) as load,
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


def test_text_is_kept_on_request(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(2)) as server, loading(tmp_path, server, 1, keep_text=True) as load:
        report_of(load.said())
    assert [record.text for record in load.records()] == ["w0 w1 "]


def test_the_library_is_a_way_too_and_the_report_says_so(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(3)) as server, loading(tmp_path, server, 6, transport="aiohttp") as load:
        report = report_of(load.said())
        assert load.errors() == ""
    assert (report.path, report.clock, report.ok) == ("aiohttp", "user", 6)
    assert report.lag_ms_max is not None
    assert report.reads == sum(record.reads for record in load.records()) > 0


def test_more_requests_than_memory_shall_hold_are_sent_as_they_are(tmp_path: Path) -> None:
    code = (
        "import sys; import deploytui.load.spool as spool; spool.IN_MEMORY_BYTES = 1000; "
        "from deploytui.load.worker import main; sys.exit(main())"
    )
    argv = (sys.executable, "-c", code)
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, 30, argv=argv) as load:
        assert report_of(load.said()).ok == 30
    assert {asked.body["messages"][0]["content"] for asked in server.asked} == {f"p{k}" for k in range(30)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prompts.jsonl", "requests.w0.jsonl", "stamps.w0.bin"]


def test_the_worker_loads_nothing_heavy() -> None:
    code = "import sys, deploytui.load.worker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    names = {name.partition(".")[0] for name in loaded.stdout.split()}
    assert not names & {"textual", "anyio", "aiohttp", "numpy", "psutil", "click", "tomlkit", "prometheus_client"}
    ours = {".".join(name.split(".")[:2]) for name in loaded.stdout.split() if name.startswith("deploytui.")}
    assert ours <= {f"deploytui.{name}" for name in ("load", "record", "definitions", "units", "errors")}
