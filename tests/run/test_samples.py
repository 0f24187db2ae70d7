"""From a repeat's files to its sample."""

import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploytui.load.stamps import BadStamps
from deploytui.record.gaps import ListedGaps, gap_distribution
from deploytui.record.metrics import measure_many
from deploytui.record.trace import RequestRecord
from deploytui.run import gaps, samples
from deploytui.run.samples import first_error, read_records, record_blocks, repeat_sample
from tests.record.build import failure, request
from tests.run.repeats import MS, Entry, write_repeat

SENT_NS = 10**15


def an_entry(number: int, steps_ns: list[int], *, ok: bool = True) -> Entry:
    stamps = [SENT_NS + MS]
    for step in steps_ns:
        stamps.append(stamps[-1] + step)
    record = RequestRecord(
        id=number,
        sent_ns=SENT_NS,
        first_token_ns=stamps[0],
        last_token_ns=stamps[-1],
        end_ns=stamps[-1],
        chunks=len(stamps),
        output_tokens=len(stamps),
        ok=ok,
        error_kind=None if ok else "reset",
    )
    return record, stamps if steps_ns or number % 2 else []


STEPS = st.lists(st.one_of(st.integers(0, 50 * MS), st.integers(0, 2**36), st.integers(-MS, 0)), max_size=30)
WORKERS = st.lists(st.lists(st.tuples(STEPS, st.booleans()), max_size=8), min_size=1, max_size=3)


def numbered(workers: list[list[tuple[list[int], bool]]]) -> list[list[Entry]]:
    return [
        [an_entry(place * len(workers) + worker, steps, ok=ok) for place, (steps, ok) in enumerate(rows)]
        for worker, rows in enumerate(workers)
    ]


@settings(deadline=None)
@given(WORKERS, st.integers(4, 40))
def test_gaps_counted_from_the_files_are_those_between_all_stamps(
    workers: list[list[tuple[list[int], bool]]], block_words: int
) -> None:
    """Whatever the size of the blocks that the files are read in."""
    entries = numbered(workers)
    expected = [
        later - earlier for rows in entries for record, own in rows if record.ok for earlier, later in pairwise(own)
    ]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "BLOCK_WORDS", block_words)
        loads = write_repeat(Path(folder), entries)
        found, other_way = repeat_sample(loads).gaps, repeat_sample(loads[::-1]).gaps
        listed = ListedGaps(expected)
        assert found.totals == other_way.totals == listed.totals
        assert dict(found.coarse()) == dict(listed.coarse())
        assert gap_distribution([found]) == gap_distribution([other_way]) == gap_distribution([listed])
        assert dict(found.fine({*listed.coarse(), 7})) == dict(listed.fine({*listed.coarse(), 7}))


def test_the_files_of_all_workers_are_one_sample(tmp_path: Path) -> None:
    entries = [an_entry(number, [20 * MS] * 3) for number in range(6)]
    (tmp_path / "one").mkdir()
    one = repeat_sample(write_repeat(tmp_path / "one", [entries]))
    many = repeat_sample(write_repeat(tmp_path, [entries[::2], entries[1::2]]))
    (alone, both) = (measure_many([sample], asked_tokens=4, target_concurrency=2, gates=None) for sample in (one, many))
    assert both.icl.n == 18
    assert (both.icl, both.ttft, both.output_tok_s, both.ok) == (alone.icl, alone.ttft, alone.output_tok_s, alone.ok)


def test_stamps_of_failed_requests_and_of_requests_without_a_record_give_no_gap(tmp_path: Path) -> None:
    loads = write_repeat(tmp_path, [[an_entry(1, [MS]), an_entry(3, [5 * MS], ok=False), an_entry(5, [9 * MS])]])
    records = Path(loads[0][0].records)
    records.write_bytes(records.read_bytes()[:-10])
    assert gap_distribution([repeat_sample(loads).gaps]).max == pytest.approx(1e-3)


def test_an_entry_cut_off_at_the_end_of_the_stamps_is_left_out(tmp_path: Path) -> None:
    loads = write_repeat(tmp_path, [[an_entry(1, [MS]), an_entry(3, [5 * MS, 6 * MS])]])
    stamps = Path(loads[0][0].stamps)
    content = stamps.read_bytes()
    for cut in (1, 8, 20, 47):
        stamps.write_bytes(content[:-cut])
        assert repeat_sample(loads).gaps.totals.n == 1


def test_stamps_of_another_layout_are_refused(tmp_path: Path) -> None:
    loads = write_repeat(tmp_path, [[an_entry(1, [MS])]])
    Path(loads[0][0].stamps).write_bytes(b"DTSTAMP1")
    with pytest.raises(BadStamps, match="DTSTAMP1"):
        gap_distribution([repeat_sample(loads).gaps])


@settings(deadline=None)
@given(st.integers(0, 30), st.integers(1, 400), st.integers(0, 40))
def test_records_come_whole_whatever_the_size_of_the_blocks(count: int, block: int, cut: int) -> None:
    entries = [an_entry(number, [MS]) for number in range(count)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "BLOCK", block)
        path = Path(write_repeat(Path(folder), [entries])[0][0].records)
        content = path.read_bytes()
        path.write_bytes(content[: max(0, len(content) - cut)])
        whole = path.read_bytes().count(b"\n")
        assert read_records(path) == [record for record, _ in entries[:whole]]


def test_records_are_read_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "BLOCK", 500)
    loads = write_repeat(tmp_path, [[an_entry(number, [MS]) for number in range(50)]])
    assert max(len(block) for block in record_blocks(Path(loads[0][0].records))) < 10


def test_no_numpy_before_a_repeat_is_measured() -> None:
    """It takes 0.1 s to import, which neither the start nor the first request shall wait for."""
    modules = "deploytui.run.measuring, deploytui.load.worker, deploytui.tui.app"
    code = f"import sys, {modules}; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_first_error_is_the_earliest_that_the_load_itself_did_not_make(tmp_path: Path) -> None:
    failed = [
        failure(0, end_ms=1, kind="cut_off"),
        failure(1, end_ms=9, kind="timeout"),
        failure(2, end_ms=3, kind="http_500"),
        request(3),
    ]
    for rows in (failed, failed[::-1]):
        assert first_error([repeat_sample(write_repeat(tmp_path, [[(record, ()) for record in rows]]))]) == "http_500"
    assert first_error([]) == ""
