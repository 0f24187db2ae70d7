"""A server that answers 429: waited for in a closed loop."""

from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load.patience import retry_after_s
from tests.load.server import Asked, Script, Step, serving, tokens
from tests.load.workers import loading, report_of

NOW_S = 1_700_000_000.0


def refused(retry_after: str | None = None) -> bytes:
    said = f"Retry-After: {retry_after}\r\n" if retry_after is not None else ""
    body = b'{"error": {"message": "too many"}}'
    head = (
        f"HTTP/1.1 429 Too Many Requests\r\n{said}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def refuses_at_first(times: int, retry_after: str | None = None) -> Script:
    """Each request is refused so many times."""
    seen: dict[int, int] = {}

    def script(asked: Asked) -> list[Step]:
        seen[asked.id] = seen.get(asked.id, 0) + 1
        return [refused(retry_after)] if seen[asked.id] <= times else list(tokens(2))

    return script


def test_a_refused_request_is_asked_again_when_the_server_wishes(tmp_path: Path) -> None:
    with serving(refuses_at_first(2, "0.1")) as server, loading(tmp_path, server, 3, concurrency=1) as load:
        report = report_of(load.said())
    assert (report.requests, report.ok, report.refused, report.not_sent) == (3, 3, 6, 0)
    assert [asked.id for asked in server.asked] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    records = load.records()
    assert [record.flags for record in records] == [("retried",)] * 3
    # The clock starts with the try that was answered, not with the waiting before it.
    assert records[1].sent_ns - records[0].end_ns >= 2 * 100_000_000
    assert all(record.http_status == 200 and record.error is None for record in records)


def test_without_a_word_from_the_server_the_wait_is_short(tmp_path: Path) -> None:
    with serving(refuses_at_first(1)) as server, loading(tmp_path, server, 1) as load:
        report = report_of(load.said())
    assert (report.ok, report.refused) == (1, 1)
    assert [record.flags for record in load.records()] == [("retried",)]


@pytest.mark.parametrize("retry_after", ["30", "0.2"])
def test_a_request_that_is_refused_until_its_time_is_over_has_failed(tmp_path: Path, retry_after: str) -> None:
    options: dict[str, Any] = {"concurrency": 1, "request_timeout_s": 0.5}
    with serving(refuses_at_first(1000, retry_after)) as server, loading(tmp_path, server, 1, **options) as load:
        report = report_of(load.said())
    (record,) = load.records()
    assert (report.requests, report.ok, report.refused) == (1, 0, len(server.asked))
    assert (record.error_kind, record.http_status) == ("http_429", 429)
    assert f"Retry-After: {retry_after}" in str(record.error)
    assert record.flags == (("retried",) if len(server.asked) > 1 else ())


def test_a_load_stopped_while_a_request_waits_keeps_its_refusal(tmp_path: Path) -> None:
    with (
        serving(refuses_at_first(1000, "10")) as server,
        loading(tmp_path, server, 5, concurrency=1, max_s=0.3) as load,
    ):
        report = report_of(load.said())
    assert (report.stopped, report.requests, report.refused, report.not_sent) == ("time", 1, 1, 4)
    assert [record.error_kind for record in load.records()] == ["http_429"]


@given(seconds=st.integers(0, 10**6))
def test_a_wait_in_seconds_is_taken_as_it_is(seconds: int) -> None:
    assert retry_after_s(f" {seconds} ", NOW_S) == seconds


@given(ahead=st.integers(-(10**6), 10**6))
def test_a_date_is_waited_for(ahead: int) -> None:
    assert retry_after_s(formatdate(NOW_S + ahead, usegmt=True), NOW_S) == max(ahead, 0)


@pytest.mark.parametrize("value", [None, "", "soon", "-5", "inf", "1e3", "Mon, 99 Jan 2024 00:00:00 GMT"])
def test_what_says_neither_says_nothing(value: str | None) -> None:
    assert retry_after_s(value, NOW_S) is None
