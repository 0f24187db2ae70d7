"""Loads of other kinds than one closed loop, as whole runs of the command on the mock engine."""

import hashlib
from itertools import pairwise
from pathlib import Path

import msgspec

from deploytui.load.stamps import unpack_stamps
from deploytui.record.events import Measured, Note, RepeatDone
from deploytui.record.trace import RequestRecord
from tests.run.sessions import deploytui, events, only_session, write_profile

STAMPS = ("stamps.w0.bin", "stamps.w1.bin")


def profile(folder: Path, load: str, *, requests: int, repeats: int = 1, more: str = "", top: str = "") -> Path:
    """A profile of one mock candidate with this load."""
    path = write_profile(folder, {"one": ["--ttft-ms", "5", "--itl-ms", "1"]}, requests=requests)
    text = path.read_text(encoding="utf-8")
    for old, new in (
        ('load = { kind = "closed", concurrency = 2 }', f"load = {load}\n{more}"),
        ("repeats = 3", f"repeats = {repeats}"),
        ('name = "case"', f'name = "case"\n{top}'),
        ('tasks = ["task.jsonl"]', "tasks = []"),
        ("min_quality = 0.5\n", ""),
    ):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


def run(folder: Path, path: Path) -> tuple[list[RepeatDone], list[Measured], list[str]]:
    """What a run of the profile said of its repeats and points, and its warnings."""
    state = folder / "state"
    done = deploytui(state, "run", path)
    assert done.code in (0, 3, 4), done.err
    said = events(state)
    return (
        [event for event in said if isinstance(event, RepeatDone)],
        [event for event in said if isinstance(event, Measured)],
        [event.text for event in said if isinstance(event, Note) and event.level == "warning"],
    )


def records(folder: Path, done: RepeatDone) -> list[RequestRecord]:
    """The requests of a repeat from the files it names; each file is as it was hashed."""
    root, found = only_session(folder / "state"), []
    for file in done.sidecars:
        content = (root / file.path).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256)
        if file.path.endswith(".jsonl"):
            own = msgspec.json.Decoder(RequestRecord).decode_lines(content)
            assert len(own) == file.count
            found += own
        else:
            assert len(list(unpack_stamps(content))) == file.count
    return found


def test_two_workers_are_one_workload(tmp_path: Path) -> None:
    path = profile(tmp_path, '{ kind = "closed", concurrency = 65 }', requests=140, top="load_workers = 2")
    (done,), (pooled,), _ = run(tmp_path, path)
    names = sorted(Path(file.path).name for file in done.sidecars)
    assert names == [f"l0.p0.r0.{name}" for name in ("requests.w0.jsonl", "requests.w1.jsonl", *STAMPS)]
    found = records(tmp_path, done)
    assert sorted(record.id for record in found) == list(range(140))
    assert {record.worker for record in found} == {0, 1}
    assert all(record.ok and record.asked_tokens is None for record in found)
    assert (pooled.metrics.requests, pooled.metrics.ok, pooled.metrics.tool.workers) == (140, 140, 2)


def test_an_open_loop_is_measured_from_its_schedule_too(tmp_path: Path) -> None:
    path = profile(tmp_path, '{ kind = "constant", rate = 40.0 }', requests=40)
    (done,), (pooled,), _ = run(tmp_path, path)
    found = records(tmp_path, done)
    assert all(record.ok and record.scheduled_ns is not None for record in found)
    due = sorted(record.scheduled_ns or 0 for record in found)
    assert [later - earlier for earlier, later in pairwise(due)] == [25_000_000] * 39
    assert pooled.metrics.e2e_scheduled is not None
    assert pooled.metrics.e2e_scheduled.n == 40
    assert pooled.metrics.steady_output_tok_s is None


def test_each_point_of_a_sweep_is_measured(tmp_path: Path) -> None:
    load = '{ kind = "closed", concurrency = [1, 3] }'
    path = profile(tmp_path, load, requests=9, repeats=2, more="decide_at = 3")
    repeats, measured, _ = run(tmp_path, path)
    assert sorted((done.step.point, done.step.repeat) for done in repeats) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for done in repeats:
        found = records(tmp_path, done)
        assert {record.user for record in found} == set(range((1, 3)[done.step.point]))
    assert {event.point: event.metrics.requests for event in measured} == {0: 18, 1: 18}


def test_a_load_that_time_ends_says_so_and_what_it_measured_stays(tmp_path: Path) -> None:
    load = '{ kind = "constant", rate = 10.0 }'
    path = profile(tmp_path, load, requests=100, more="max_seconds = 1.0")
    (done,), (pooled,), warnings = run(tmp_path, path)
    found = records(tmp_path, done)
    assert 5 <= len(found) <= 11
    assert pooled.metrics.requests == len(found)
    assert any("ended after 1 s (max_seconds)" in text and "of 100 requests were sent" in text for text in warnings)


def test_a_load_whose_requests_fail_ends_early_and_says_so(tmp_path: Path) -> None:
    path = profile(tmp_path, '{ kind = "closed", concurrency = 2 }', requests=100, more="max_error_rate = 0.2")
    path.write_text(path.read_text(encoding="utf-8").replace('"--ttft-ms"', '"--cut-after", "4", "--ttft-ms"'))
    (done,), _, warnings = run(tmp_path, path)
    assert 20 <= done.metrics.requests < 30
    assert any("more than 20 % of its requests failed" in text for text in warnings)
