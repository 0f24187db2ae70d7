"""Every stamp and every request out of a session: nothing lost, nothing made up, never loaded whole."""

import csv
import io
import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploytui.errors import DeployError, UsageError
from deploytui.export.finished import FinishedStep, finished_steps
from deploytui.export.requests import requests_jsonl
from deploytui.export.stamps import stamps_binary, stamps_csv
from deploytui.export.streams import STREAMS, Stream, export_stream
from deploytui.record.facts import Sidecar
from deploytui.record.keys import StepKey
from deploytui.record.trace import RequestRecord
from deploytui.session.folder import SessionFolder
from deploytui.session.tail import load_state
from tests.export.bulk import SENT, Asked, bulk_session, file_of

ONE, SWEPT, TASK = StepKey("a", repeat=0), StepKey("a", point=2, repeat=1), StepKey("b", task="builtin:basic")
SESSION = {
    ONE: [[Asked(0, "kernel", (10, 20)), Asked(2, "user", ())], [Asked(1, "mixed", (30,))]],
    SWEPT: [[Asked(0, "kernel", (40,))]],
    TASK: [[Asked(7, "user", (50,))]],
}
ROWS = [
    ("a", "l0.p0.r0", 0, -1, SENT, "user"),
    ("a", "l0.p0.r0", 0, 0, SENT + 10, "kernel"),
    ("a", "l0.p0.r0", 0, 1, SENT + 20, "kernel"),
    ("a", "l0.p0.r0", 2, -1, SENT + 2000, "user"),
    ("a", "l0.p0.r0", 1, -1, SENT + 1000, "user"),
    ("a", "l0.p0.r0", 1, 0, SENT + 1030, "mixed"),
    ("a", "l0.p2.r1", 0, -1, SENT, "user"),
    ("a", "l0.p2.r1", 0, 0, SENT + 40, "kernel"),
    ("b", "l0.p0.t-builtin:basic", 7, -1, SENT + 7000, "user"),
    ("b", "l0.p0.t-builtin:basic", 7, 0, SENT + 7050, "user"),
]


def steps_of(folder: SessionFolder) -> tuple[FinishedStep, ...]:
    return finished_steps(load_state(folder.journal)[0])


def written(stream: Stream, folder: SessionFolder) -> tuple[bytes, list[str]]:
    """What a stream gives, and its complaints."""
    faults: list[str] = []
    return b"".join(stream(folder, steps_of(folder), faults.append)), faults


def csv_rows(content: bytes) -> list[tuple[Any, ...]]:
    head, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    assert head == ["candidate", "step", "request_id", "k", "t_ns", "clock"]
    return [(row[0], row[1], int(row[2]), int(row[3]), int(row[4]), row[5]) for row in rows]


def binary_rows(content: bytes) -> list[tuple[Any, ...]]:
    """As the documentation of the layout says."""
    mark, begin, count = struct.unpack_from("<8sII", content)
    assert mark == b"DTROWS01"
    names, at = [], 16
    for _ in range(2 * count):
        (length,) = struct.unpack_from("<I", content, at)
        names.append(content[at + 4 : at + 4 + length].decode())
        at += 4 + length
    assert not any(content[at:begin])
    clocks = ("user", "kernel", "mixed")
    return [
        (names[2 * step], names[2 * step + 1], id_, k, t_ns, clocks[clock])
        for step, id_, k, clock, t_ns in struct.iter_unpack("<IIiB3xq", content[begin:])
    ]


def test_every_stamp_is_a_row_with_its_request_and_clock(tmp_path: Path) -> None:
    folder = bulk_session(tmp_path, SESSION)
    assert csv_rows(written(stamps_csv, folder)[0]) == ROWS
    assert binary_rows(written(stamps_binary, folder)[0]) == ROWS
    assert written(stamps_csv, folder)[1] == []


def test_every_request_is_a_line_with_all_fields(tmp_path: Path) -> None:
    content, faults = written(requests_jsonl, bulk_session(tmp_path, SESSION))
    rows = [json.loads(line) for line in content.splitlines()]
    assert faults == []
    assert [(row["candidate"], row["step"], row["id"]) for row in rows] == [
        ("a", "l0.p0.r0", 0),
        ("a", "l0.p0.r0", 2),
        ("a", "l0.p0.r0", 1),
        ("a", "l0.p2.r1", 0),
        ("b", "l0.p0.t-builtin:basic", 7),
    ]
    assert all(set(RequestRecord.__struct_fields__) <= set(row) for row in rows)
    assert (rows[3]["point"], rows[3]["repeat"], rows[3]["task"]) == (2, 1, None)
    assert (rows[4]["repeat"], rows[4]["task"], rows[4]["simulated"]) == (None, "builtin:basic", False)
    assert rows[0]["first_token_ns"] is None


ids = st.integers(0, 2**32 - 1)
asked = st.builds(Asked, ids, st.sampled_from(["user", "kernel", "mixed"]), st.lists(st.integers(0, 2**40), max_size=5))
text = st.text(max_size=12).filter(bool)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(name=text, task=text, requests=st.lists(asked, max_size=4))
def test_both_forms_say_the_same_whatever_the_names(
    tmp_path_factory: pytest.TempPathFactory, name: str, task: str, requests: list[Asked]
) -> None:
    steps = {StepKey(name, repeat=3): [requests], StepKey(name, task=task): [requests[:1]]}
    folder = bulk_session(tmp_path_factory.mktemp("names"), steps)
    table, records = written(stamps_csv, folder)[0], written(stamps_binary, folder)[0]
    assert csv_rows(table) == binary_rows(records)
    assert len(csv_rows(table)) == sum(1 + len(one.after) for one in (*requests, *requests[:1]))


def test_a_request_of_very_many_chunks_stays_in_order(tmp_path: Path) -> None:
    count = 40_000
    folder = bulk_session(tmp_path, {ONE: [[Asked(4_294_967_295, "mixed", range(count))]]})
    rows = binary_rows(written(stamps_binary, folder)[0])
    assert rows == csv_rows(written(stamps_csv, folder)[0])
    assert [row[3] for row in rows] == list(range(-1, count))


@pytest.mark.parametrize("form", sorted(STREAMS))
def test_a_missing_file_is_named_and_the_rest_is_there(tmp_path: Path, form: str) -> None:
    folder = bulk_session(tmp_path, SESSION)
    whole = written(STREAMS[form], folder)[0]
    gone = file_of(folder, ONE, "requests" if form == "requests" else "stamps", worker=1)
    gone.unlink()
    content, [fault] = written(STREAMS[form], folder)
    assert gone.name in fault
    assert "left out" in fault
    assert 0 < len(content) < len(whole)


@pytest.mark.parametrize("form", sorted(STREAMS))
def test_a_cut_file_is_named_and_what_is_whole_in_it_is_there(tmp_path: Path, form: str) -> None:
    folder = bulk_session(tmp_path, {ONE: [[Asked(0, "user", (1,)), Asked(1, "user", (2, 3))]]})
    cut = file_of(folder, ONE, "requests" if form == "requests" else "stamps")
    cut.write_bytes(cut.read_bytes()[:-5])
    content, faults = written(STREAMS[form], folder)
    assert f"has {cut.stat().st_size} bytes in place of {cut.stat().st_size + 5}" in faults[0]
    kept = {
        "requests": lambda: [(json.loads(line)["id"]) for line in content.splitlines()],
        "stamps": lambda: [row[2] for row in csv_rows(content) if row[3] == -1],
        "stamps-bin": lambda: [row[2] for row in binary_rows(content) if row[3] == -1],
    }[form]()
    assert kept == [0]


def test_files_of_another_kind_are_named(tmp_path: Path) -> None:
    folder = bulk_session(tmp_path, SESSION)
    file_of(folder, ONE, "stamps").write_bytes(b"DTSTAMP1" + bytes(40))
    file_of(folder, SWEPT, "requests").write_bytes(b"\xff\xfe\n[1]\n")
    faults = written(stamps_csv, folder)[1] + written(requests_jsonl, folder)[1]
    assert any("l0.p0.r0.stamps.w0.bin: can't be read to its end" in fault for fault in faults)
    assert any("2 of its lines are no request" in fault for fault in faults)


def test_a_journal_can_not_name_files_outside_its_session(tmp_path: Path) -> None:
    secret = tmp_path / "secret.requests.w0.jsonl"
    secret.write_bytes(Asked(1).record(text="secret"))
    folder = bulk_session(tmp_path, {})
    told = Sidecar(path="../secret.requests.w0.jsonl", bytes=secret.stat().st_size, count=1, sha256="")
    step = FinishedStep(key=ONE, simulated=False, sidecars=(told,))
    faults: list[str] = []
    assert b"".join(requests_jsonl(folder, [step], faults.append)) == b""
    assert "outside the session" in faults[0]


@pytest.mark.parametrize("form", sorted(STREAMS))
def test_ten_times_the_requests_take_no_more_memory(tmp_path: Path, form: str) -> None:
    peaks = []
    for count in (4_000, 40_000):
        folder = bulk_session(tmp_path / str(count), {ONE: [[Asked(i, "kernel", (1, 2, 3)) for i in range(count)]]})
        steps = steps_of(folder)
        tracemalloc.start()
        total = sum(map(len, STREAMS[form](folder, steps, pytest.fail)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert total > 300 * count / 4
    assert peaks[1] < 3 * peaks[0] + (4 << 20)


def test_the_result_of_a_session_never_reads_its_requests(tmp_path: Path) -> None:
    from deploytui.export.formats import FORMATS, export_text

    folder = bulk_session(tmp_path, SESSION)
    before = {form: export_text(folder, form) for form in FORMATS}
    for path in folder.path.glob("candidates/*/*"):
        path.unlink()
    assert {form: export_text(folder, form) for form in FORMATS} == before


def test_a_profile_has_no_requests_to_export(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="session's folder"):
        export_stream(tmp_path / "saved.toml", "stamps", None)


def test_a_session_is_never_written_over_with_its_own_stamps(tmp_path: Path) -> None:
    folder = bulk_session(tmp_path, SESSION)
    own = file_of(folder, ONE, "requests")
    before = own.read_bytes()
    for target in (own, folder.journal):
        with pytest.raises(UsageError, match="belongs to the session"):
            export_stream(folder, "requests", target)
    assert own.read_bytes() == before


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    folder = bulk_session(tmp_path, SESSION)
    with pytest.raises(DeployError) as caught:
        export_stream(folder, "stamps", Path("/dev/full"))
    assert "No space left" in caught.value.why


def test_simulated_stamps_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = bulk_session(tmp_path, {ONE: SESSION[ONE]}, engine="mock")
    assert export_stream(folder, "stamps", tmp_path / "out.csv") == 0
    assert "SIMULATED: a" in capsys.readouterr().err
    assert b'"simulated":true' in written(requests_jsonl, folder)[0]


def test_a_session_without_a_finished_step_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export_stream(bulk_session(tmp_path, {}), "stamps", tmp_path / "out.csv") == 0
    assert "No repeat and no quality task" in capsys.readouterr().err
    assert (tmp_path / "out.csv").read_text().splitlines() == ["candidate,step,request_id,k,t_ns,clock"]
