"""Several load workers as one workload: a common start, one stream of snapshots, all stopped when one fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.errors import DeployError
from deploytui.load.orders import LoadOrder, Prompt, Report, Snapshot
from deploytui.record.trace import RequestRecord
from deploytui.run.loads import Newest, merged, run_load
from deploytui.run.sharing import busiest_second, shared, worker_count
from deploytui.run.spares import Spares
from tests.load.server import CLOSE, HEAD, Asked, Step, serving, tokens
from tests.load.workers import hangs_from

pytestmark = pytest.mark.anyio

SUMS = [name for name in Snapshot.__struct_fields__ if name != "at_ns"]


def orders(folder: Path, url: str, count: int, *, workers: int = 2, **changes: Any) -> tuple[LoadOrder, ...]:
    prompts = folder / "prompts.jsonl"
    prompts.write_bytes(msgspec.json.Encoder().encode_lines([Prompt(id=k, prompt="x") for k in range(count)]))
    plain = {"base_url": url, "endpoint": "chat", "model": "m", "output_tokens": 2, "concurrency": 6}
    files = {"records": str(folder / "x.requests.w0.jsonl"), "stamps": str(folder / "x.stamps.w0.bin")}
    return shared(msgspec.convert({**plain, **files, "prompts": str(prompts), **changes}, LoadOrder), workers)


async def put(
    folder: Path, asked: tuple[LoadOrder, ...], hear: Callable[[Snapshot], None] = lambda _: None
) -> tuple[Report, ...]:
    with anyio.fail_after(40):
        return await run_load(asked, spares=Spares("none", folder / "workers.log"), hear=hear)


def records(order: LoadOrder) -> list[RequestRecord]:
    return msgspec.json.Decoder(RequestRecord).decode_lines(Path(order.records).read_bytes())


async def test_two_workers_are_one_workload(tmp_path: Path) -> None:
    heard: list[Snapshot] = []
    with serving(lambda asked: tokens(2, gap_s=0.1)) as server:
        asked = orders(tmp_path, server.url, 21, concurrency=5)
        reports = await put(tmp_path, asked, heard.append)
    assert [report.requests for report in reports] == [11, 10]
    assert [order.concurrency for order in asked] == [3, 2]
    each = [records(order) for order in asked]
    assert sorted(record.id for part in each for record in part) == list(range(21))
    assert [{record.worker for record in part} for part in each] == [{0}, {1}]
    assert reports[0].started_ns == reports[1].started_ns
    assert server.most_answering == 5
    last = heard[-1]
    assert (last.total, last.done, last.in_flight, last.chunks) == (21, 21, 0, 42)
    assert any(snapshot.in_flight == 5 for snapshot in heard)
    assert [snapshot.done for snapshot in heard] == sorted(snapshot.done for snapshot in heard)


async def test_one_worker_alone_waits_for_nobody(tmp_path: Path) -> None:
    with serving(lambda asked: tokens(2)) as server:
        (report,) = await put(tmp_path, orders(tmp_path, server.url, 5, workers=1))
    assert (report.requests, report.ok) == (5, 5)


async def test_a_worker_that_fails_stops_the_others_and_their_results_stay(tmp_path: Path) -> None:
    with serving(hangs_from(10)) as server:
        asked = orders(tmp_path, server.url, 40)
        broken = msgspec.structs.replace(asked[1], records="/dev/full")
        with pytest.raises(DeployError, match="/dev/full"):
            await put(tmp_path, (asked[0], broken))
    assert {record.id for record in records(asked[0])} <= set(range(0, 10, 2))


async def test_a_load_that_is_cancelled_keeps_what_is_finished(tmp_path: Path) -> None:
    with serving(hangs_from(8)) as server:
        asked = orders(tmp_path, server.url, 40)
        async with anyio.create_task_group() as group:
            group.start_soon(put, tmp_path, asked)
            with anyio.fail_after(30):
                while len(server.asked) < 14:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
    assert sorted(record.id for order in asked for record in records(order)) == list(range(8))


async def test_too_many_failures_of_one_worker_end_the_load_of_all(tmp_path: Path) -> None:
    def script(asked: Asked) -> list[Step]:
        return [HEAD, CLOSE] if asked.id % 2 else [0.05, *tokens(1)]

    with serving(script) as server:
        asked = orders(tmp_path, server.url, 400, concurrency=2, max_error_rate=0.5)
        reports = await put(tmp_path, asked)
    assert [report.stopped for report in reports] == ["errors", "errors"]
    assert reports[1].requests == 20
    assert reports[0].requests + reports[0].not_sent == 200
    assert reports[0].not_sent > 0


async def test_a_worker_that_is_killed_is_said(tmp_path: Path) -> None:
    asked = orders(tmp_path, "http://127.0.0.1:1", 4, workers=1)
    broken = msgspec.structs.replace(asked[0], prompts=str(tmp_path / "gone"))
    with pytest.raises(DeployError, match="can't be read"):
        await put(tmp_path, (broken,))


def snapshot(number: int) -> Snapshot:
    return Snapshot(at_ns=number, **dict.fromkeys(SUMS, number))


@given(numbers=st.lists(st.integers(0, 1000), min_size=1, max_size=5))
def test_merged_snapshots_are_sums_at_the_newest_time(numbers: list[int]) -> None:
    told = merged([snapshot(number) for number in numbers])
    assert told.at_ns == max(numbers)
    assert {getattr(told, name) for name in SUMS} == {sum(numbers)}


def test_snapshots_are_told_when_each_worker_has_said_something_new() -> None:
    told: list[int] = []
    newest = Newest(2, lambda snapshot: told.append(snapshot.done))
    for place, done in ((0, 1), (0, 2), (1, 10), (1, 20), (0, 3)):
        newest.take(place, snapshot(done))
    assert told == [12, 23]
    newest.leave_out(1)
    newest.take(0, snapshot(4))
    assert told == [12, 23, 24]


def test_a_worker_that_ends_without_a_new_word_holds_nobody_up() -> None:
    told: list[int] = []
    newest = Newest(2, lambda snapshot: told.append(snapshot.done))
    newest.take(0, snapshot(1))
    newest.leave_out(1)
    assert told == [1]


@pytest.mark.parametrize(
    ("cores", "streams", "workers"), [(2, 1000, 1), (9, 64, 1), (9, 65, 2), (9, 1000, 8), (4, 1, 1)]
)
def test_no_worker_has_too_little_to_do(
    monkeypatch: pytest.MonkeyPatch, cores: int, streams: int, workers: int
) -> None:
    monkeypatch.setattr("deploytui.run.sharing.usable_cores", lambda: cores)
    assert worker_count(None, streams) == workers


def test_as_many_workers_as_are_asked_for_but_none_without_a_stream() -> None:
    assert [worker_count(asked, streams) for asked, streams in ((3, 40), (3, 2), (1, 1000))] == [3, 2, 1]


def test_one_core_is_left_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, workers in ((1, 1), (2, 1), (8, 7)):
        monkeypatch.setattr("deploytui.run.sharing.usable_cores", lambda cores=cores: cores)
        assert worker_count(None, 10_000) == workers


def test_the_busiest_second_is_found_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    times = [0.0, 5.0, 5.2, 5.9, 6.0, 6.1, 20.0]
    path.write_bytes(msgspec.json.Encoder().encode_lines([Prompt(id=k, at_s=at_s) for k, at_s in enumerate(times)]))
    assert busiest_second(path) == 4
    path.write_bytes(msgspec.json.Encoder().encode_lines([Prompt(id=k, at_s=0.0) for k in range(30)]))
    assert busiest_second(path) == 30
