"""What ends a load before all is asked: its time, its failures."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from deploytui.load.orders import Prompt, Snapshot
from deploytui.load.stamps import unpack_stamps
from tests.load.server import CLOSE, HEAD, Asked, Script, Step, serving, tokens
from tests.load.workers import hangs_from, loading, report_of


@pytest.mark.parametrize("loop", ["closed", "open"])
def test_time_that_is_over_cuts_off_what_is_under_way_and_keeps_it_apart(tmp_path: Path, loop: str) -> None:
    lines = [Prompt(id=k, prompt="x", at_s=0.0 if k < 6 else 60.0) for k in range(20)]
    options: dict[str, Any] = {"loop": loop, "concurrency": 2, "max_s": 0.6}
    with serving(hangs_from(4)) as server, loading(tmp_path, server, lines=lines, **options) as load:
        said = load.said()
    report, records = report_of(said), {record.id: record for record in load.records()}
    assert (report.stopped, report.cancelled) == ("time", False)
    assert (report.requests, report.ok, report.not_sent) == (6, 4, 14)
    assert sorted(asked.id for asked in server.asked) == list(range(6))
    cut = [records[4], records[5]]
    assert [(record.ok, record.error_kind) for record in cut] == [(False, "cut_off")] * 2
    assert all("time was over" in str(record.error) and record.chunks == 1 for record in cut)
    assert all(record.end_ns - report.started_ns >= 0.6e9 for record in cut)
    assert {entry.id for entry in unpack_stamps(Path(load.order.stamps).read_bytes())} == set(range(6))
    last = said[-2]
    assert isinstance(last, Snapshot)
    assert (last.done, last.failed, last.in_flight) == (6, 0, 0)


def test_an_answer_that_is_complete_is_not_cut_off(tmp_path: Path) -> None:
    *answer, _ = tokens(2)
    whole = b"".join(step for step in answer if isinstance(step, bytes)) + b"e\r\ndata: [DONE]\n\n\r\n"
    with serving(lambda asked: [whole, 5.0, CLOSE]) as server, loading(tmp_path, server, 1, max_s=0.15) as load:
        report = report_of(load.said())
    (record,) = load.records()
    assert (report.ok, record.ok, record.error_kind) == (1, True, None)


def test_too_many_failures_end_the_load(tmp_path: Path) -> None:
    def script(asked: Asked) -> list[Step]:
        return [HEAD, CLOSE] if asked.id >= 15 else list(tokens(1))

    options: dict[str, Any] = {"concurrency": 1, "max_error_rate": 0.5}
    with serving(script) as server, loading(tmp_path, server, 100, **options) as load:
        report = report_of(load.said())
    assert (report.stopped, report.requests, report.ok, report.not_sent) == ("errors", 31, 15, 69)
    assert len(server.asked) == 31


@pytest.mark.parametrize(("rate", "requests"), [(0.0, 20), (None, 40), (1.0, 40)])
def test_failures_are_judged_from_the_twentieth_request_on(tmp_path: Path, rate: float | None, requests: int) -> None:
    options: dict[str, Any] = {"concurrency": 1, "max_error_rate": rate}
    with serving(lambda asked: [HEAD, CLOSE]) as server, loading(tmp_path, server, 40, **options) as load:
        report = report_of(load.said())
    assert (report.requests, report.ok) == (requests, 0)


def test_conversations_in_a_closed_loop_stay_with_one_user_and_in_their_order(tmp_path: Path) -> None:
    of = [0, 1, None, 0, 1, 1, None, 0]
    lines = [Prompt(id=k, prompt="x", conversation=conversation) for k, conversation in enumerate(of)]
    script: Script = lambda asked: tokens(2, gap_s=0.01)  # noqa: E731
    with serving(script) as server, loading(tmp_path, server, lines=lines, concurrency=3) as load:
        report_of(load.said())
    for conversation in (0, 1):
        turns = sorted((r for r in load.records() if r.conversation == conversation), key=lambda r: r.id)
        assert len(turns) == 3
        assert len({turn.user for turn in turns}) == 1
        assert all(later.sent_ns >= earlier.end_ns for earlier, later in pairwise(turns))
