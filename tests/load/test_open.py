"""The open loop: requests leave by their schedule, whatever became of those before them."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from deploytui.load.orders import Prompt, Trouble
from deploytui.record.trace import RequestRecord
from deploytui.units import NS
from tests.load.server import HANG, HEAD, Asked, Script, Step, serving, tokens
from tests.load.test_patience import refused
from tests.load.workers import WORKER, Load, loading, report_of

GAP_S = 0.03
OPEN: dict[str, Any] = {"loop": "open", "concurrency": 4}


def every(count: int, gap_s: float = GAP_S) -> list[Prompt]:
    return [Prompt(id=k, prompt=f"p{k}", at_s=k * gap_s) for k in range(count)]


def by_id(load: Load) -> list[RequestRecord]:
    return sorted(load.records(), key=lambda record: record.id)


def scheduled(record: RequestRecord) -> int:
    assert record.scheduled_ns is not None
    return record.scheduled_ns


def test_a_slow_server_holds_no_request_back(tmp_path: Path) -> None:
    slow: Script = lambda asked: [0.6, *tokens(2)]  # noqa: E731
    with serving(slow) as server, loading(tmp_path, server, lines=every(12), **OPEN) as load:
        report = report_of(load.said())
    assert (report.requests, report.ok) == (12, 12)
    assert server.most_answering == 12
    records = by_id(load)
    assert [later - earlier for earlier, later in pairwise(map(scheduled, records))] == [round(GAP_S / NS)] * 11
    assert scheduled(records[0]) == report.started_ns
    assert all(record.sent_ns >= scheduled(record) for record in records)
    assert all(later.sent_ns < earlier.end_ns for earlier, later in pairwise(records))
    late = [record.sent_ns - scheduled(record) for record in records]
    assert report.late_sends == sum(each > 1_000_000 for each in late)
    assert report.late_send_ms_max == pytest.approx(max(late) / 1e6)


def test_connections_are_used_again_and_grow_with_the_need(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, lines=every(20), **OPEN) as load:
        report = report_of(load.said())
    assert report.ok == 20
    assert server.connections < 10
    with serving(lambda asked: [0.5, *tokens(1)]) as server:
        (tmp_path / "burst").mkdir()
        with loading(tmp_path / "burst", server, lines=every(16, 0.0), **OPEN) as load:
            report = report_of(load.said())
    assert (report.ok, server.connections) == (16, 16)


def test_requests_leave_in_the_order_of_their_times_not_of_the_file(tmp_path: Path) -> None:
    lines = [Prompt(id=k, prompt="x", at_s=at_s) for k, at_s in enumerate([0.3, 0.0, 0.15])]
    with serving(lambda asked: tokens(1)) as server, loading(tmp_path, server, lines=lines, **OPEN) as load:
        report_of(load.said())
    assert [asked.id for asked in server.asked] == [1, 2, 0]


def test_the_turns_of_a_conversation_wait_for_their_answers_and_other_talks_do_not(tmp_path: Path) -> None:
    lines = [
        Prompt(id=0, prompt="a", at_s=0.0, conversation=0),
        Prompt(id=1, prompt="b", at_s=0.05, conversation=1),
        Prompt(id=2, prompt="a2", at_s=0.0, conversation=0),
        Prompt(id=3, prompt="a3", at_s=0.9, conversation=0),
    ]
    with serving(lambda asked: [0.2, *tokens(2)]) as server, loading(tmp_path, server, lines=lines, **OPEN) as load:
        report = report_of(load.said())
    first, other, second, third = by_id(load)
    assert [record.conversation for record in (first, other, second, third)] == [0, 1, 0, 0]
    assert first.user == second.user == third.user != other.user
    assert other.sent_ns < first.end_ns <= second.sent_ns
    assert scheduled(second) >= first.end_ns
    assert scheduled(third) == report.started_ns + round(0.9 / NS)
    assert second.connect_ns is None


def test_a_refusal_is_a_failure_that_counts(tmp_path: Path) -> None:
    script: Script = lambda asked: [refused("1")] if asked.id % 2 else list(tokens(1))  # noqa: E731
    with serving(script) as server, loading(tmp_path, server, lines=every(10, 0.01), **OPEN) as load:
        report = report_of(load.said())
    assert (report.requests, report.ok, report.refused) == (10, 5, 5)
    assert len(server.asked) == 10
    assert {record.error_kind for record in load.records() if record.id % 2} == {"http_429"}


def test_a_server_that_answers_nothing_is_still_sent_everything(tmp_path: Path) -> None:
    options = {**OPEN, "request_timeout_s": 0.5}
    begun: Script = lambda asked: [HEAD, HANG]  # noqa: E731
    with serving(begun) as server, loading(tmp_path, server, lines=every(10), **options) as load:
        report = report_of(load.said())
    assert (report.requests, report.ok) == (10, 0)
    assert {record.error_kind for record in load.records()} == {"timeout"}
    assert all(later.sent_ns < earlier.end_ns for earlier, later in pairwise(by_id(load)))


def test_a_server_that_resets_connections_loses_nothing(tmp_path: Path) -> None:
    def script(asked: Asked) -> list[Step]:
        return [HEAD, "reset"] if asked.id % 3 == 0 else list(tokens(1))

    with serving(script) as server, loading(tmp_path, server, lines=every(9, 0.01), **OPEN) as load:
        report = report_of(load.said())
    assert (report.requests, report.ok) == (9, 6)
    assert [record.error_kind for record in by_id(load)] == ["reset", None, None] * 3


def test_files_that_are_used_up_fail_the_request_and_say_what_to_do(tmp_path: Path) -> None:
    few = ("sh", "-c", 'ulimit -n 100; exec "$0" "$@"', *WORKER)
    options = {**OPEN, "argv": few, "lines": every(120, 0.0)}
    with serving(lambda asked: [1.0, *tokens(1)]) as server, loading(tmp_path, server, **options) as load:
        report = report_of(load.said())
    assert report.requests == 120
    assert 20 < report.ok < 100
    failed = [record for record in load.records() if not record.ok]
    assert {record.error_kind for record in failed} == {"connect"}
    assert all("no open file left" in str(record.error) and "ulimit -n" in str(record.error) for record in failed)


def test_a_prompt_without_a_time_is_named(tmp_path: Path) -> None:
    lines = [Prompt(id=0, prompt="x", at_s=0.0), Prompt(id=5, prompt="x")]
    with loading(tmp_path, "http://127.0.0.1:1", lines=lines, **OPEN) as load:
        said = load.said()[-1]
    assert isinstance(said, Trouble)
    assert "prompt 5 has no time" in said.what
