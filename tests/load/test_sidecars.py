"""Records and stamps on disk: complete, hashed, and whole entries only."""

import errno
import hashlib
import os
from array import array
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from deploytui.load import sidecars
from deploytui.load.orders import LoadOrder
from deploytui.load.sidecars import Sidecars
from deploytui.load.stamps import unpack_stamps
from deploytui.load.trouble import LoadError
from deploytui.record.trace import RequestRecord


def record(number: int) -> RequestRecord:
    return RequestRecord(id=number, sent_ns=number, end_ns=number + 5, clock="kernel", ok=True)


def order(folder: Path, headers: dict[str, str] | None = None, secrets: tuple[str, ...] = ()) -> LoadOrder:
    return LoadOrder(
        base_url="http://127.0.0.1:1",
        endpoint="chat",
        model="m",
        headers=headers or {},
        output_tokens=1,
        prompts="none",
        concurrency=1,
        records=str(folder / "requests.w0.jsonl"),
        stamps=str(folder / "stamps.w0.bin"),
        secrets=secrets,
    )


def written(folder: Path, count: int, failed: list[str] | None = None) -> Sidecars:
    told = [] if failed is None else failed
    files = Sidecars(order(folder), lambda: told.append("failed"))
    for number in range(count):
        files.put(record(number), array("q", [number, number + 1]))
    return files


def test_all_that_was_put_is_on_disk_with_its_hash(tmp_path: Path) -> None:
    done = written(tmp_path, 1000).close()
    for file, told in ((tmp_path / "requests.w0.jsonl", done.records), (tmp_path / "stamps.w0.bin", done.stamps)):
        assert (told.bytes, told.sha256) == (file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest())
    lines = (tmp_path / "requests.w0.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=RequestRecord) for line in lines] == [record(k) for k in range(1000)]
    entries = list(unpack_stamps((tmp_path / "stamps.w0.bin").read_bytes()))
    assert [(e.id, e.clock, e.sent_ns, list(e.stamps)) for e in entries] == [
        (k, "kernel", k, [k, k + 1]) for k in range(1000)
    ]


def test_a_load_without_requests_leaves_whole_files(tmp_path: Path) -> None:
    done = written(tmp_path, 0).close()
    assert (done.records.bytes, done.records.sha256) == (0, hashlib.sha256(b"").hexdigest())
    assert list(unpack_stamps((tmp_path / "stamps.w0.bin").read_bytes())) == []


def test_much_data_is_brought_to_the_disk_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(sidecars, "SYNC_BYTES", 20_000)

    def noted(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)
        real(fd)

    monkeypatch.setattr(os, "fsync", noted)
    done = written(tmp_path, 2000).close()
    assert len(synced) > 4
    assert max(b - a for a, b in zip([0, *sorted(synced)], sorted(synced), strict=False)) <= 20_000 + 64 * 200
    assert done.records.bytes in synced


def test_of_a_write_that_does_not_fit_whole_entries_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def on_a_small_disk(fd: int, data: bytes) -> int:
        if not Path(f"/proc/self/fd/{fd}").readlink().is_relative_to(tmp_path):
            return real(fd, data)
        room = 5000 - os.fstat(fd).st_size
        if room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data[:room])

    monkeypatch.setattr(os, "write", on_a_small_disk)
    failed: list[str] = []
    with pytest.raises(LoadError, match=r"requests\.w0\.jsonl|stamps\.w0\.bin"):
        written(tmp_path, 500, failed).close()
    assert failed == ["failed"]
    lines = (tmp_path / "requests.w0.jsonl").read_bytes()
    assert lines.endswith(b"\n")
    ids = [msgspec.json.decode(line, type=RequestRecord).id for line in lines.splitlines()]
    assert ids == list(range(len(ids)))
    stamped = [entry.id for entry in unpack_stamps((tmp_path / "stamps.w0.bin").read_bytes())]
    assert len(ids) == min(len(stamped), _lines_within(5000))
    assert (tmp_path / "stamps.w0.bin").stat().st_size == 8 + 40 * len(stamped)


def _lines_within(size: int) -> int:
    """How many records fit."""
    ends = accumulate(len(msgspec.json.encode(record(number))) + 1 for number in range(500))
    return sum(end <= size for end in ends)


@pytest.mark.parametrize("key", ["EMPTY", "ok", "e", "error", '"', "sk-0123456789"])
@pytest.mark.parametrize("header", ["Authorization", "api-key", "X-API-Key"])
def test_a_key_that_a_server_repeats_is_hidden_and_nothing_else_changes(tmp_path: Path, key: str, header: str) -> None:
    value = f"Bearer {key}" if header == "Authorization" else key
    files = Sidecars(order(tmp_path, {header: value}), lambda: None)
    said = replace(record(1), ok=False, error_kind="http_401", error=f"no such: {key}", text=f"so {key} it is")
    files.put(said, array("q"))
    files.close()
    (line,) = (tmp_path / "requests.w0.jsonl").read_bytes().splitlines()
    kept = msgspec.json.decode(line, type=RequestRecord)
    assert kept.error is not None
    assert key not in kept.error
    assert replace(kept, error=said.error) == said


def test_a_secret_is_hidden_wherever_it_stands(tmp_path: Path) -> None:
    files = Sidecars(order(tmp_path, secrets=('long"secret',)), lambda: None)
    files.put(replace(record(1), text='it said long"secret twice: long"secret'), array("q"))
    files.close()
    (line,) = (tmp_path / "requests.w0.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(line, type=RequestRecord).text == "it said … twice: …"
