"""Sessions with request and stamp files, as load workers write them."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from deploytui.record.events import AnyEvent, Planned, RepeatDone, SessionStarted, TaskDone, encode
from deploytui.record.facts import Sidecar
from deploytui.record.keys import StepKey
from deploytui.record.planned import PlannedCandidate
from deploytui.record.trace import RequestRecord
from deploytui.session.folder import SessionFolder, safe_name
from tests.export.parts import PROFILE, TASK, metrics
from tests.export.sessions import started

SENT = 100_000_000_000_000


class Asked(Struct, frozen=True):
    """One request of a file: its id, who stamped its reads, and when its chunks came after it was sent [ns]."""

    id: int
    clock: str = "kernel"
    after: Sequence[int] = ()

    @property
    def sent_ns(self) -> int:
        return SENT + 1000 * self.id

    def record(self, **more: Any) -> bytes:
        known = RequestRecord(
            id=self.id, sent_ns=self.sent_ns, end_ns=self.sent_ns + 9, clock=self.clock, ok=True, chunks=len(self.after)
        )
        return msgspec.json.encode(msgspec.structs.replace(known, **more)) + b"\n"

    def stamps(self) -> bytes:
        """By the documented layout, not by the code that is tested."""
        code = ("user", "kernel", "mixed").index(self.clock)
        times = [self.sent_ns + ns for ns in self.after]
        return struct.pack(f"<IIB7xq{len(times)}q", self.id, len(times), code, self.sent_ns, *times)


def bulk_session(
    place: Path, steps: Mapping[StepKey, Sequence[Sequence[Asked]]], *, engine: str = "llamacpp"
) -> SessionFolder:
    """A session whose finished steps have the requests of each of their workers."""
    folder = SessionFolder(place / "20250101-bulk-ab12")
    folder.path.mkdir(parents=True)
    folder.profile.write_text(PROFILE, encoding="utf-8")
    names = dict.fromkeys(key.candidate for key in steps)
    rows = tuple(PlannedCandidate(name=name, engine=engine, artifact="") for name in names)
    planned = Planned(at_ns=1, candidates=rows, steps=(), workload_key="w")
    start: SessionStarted = started()
    events: list[AnyEvent] = [start, planned, *(_done(folder, key, workers) for key, workers in steps.items())]
    folder.journal.write_bytes(b"".join(map(encode, events)))
    return folder


def file_of(folder: SessionFolder, key: StepKey, kind: str, worker: int = 0) -> Path:
    """Where a worker's file of a kind lies."""
    what = f"r{key.repeat}" if key.repeat is not None else f"task-{safe_name(key.task or '')}"
    end = "jsonl" if kind == "requests" else "bin"
    return folder.candidate_dir(key.candidate) / f"l{key.launch}.p{key.point}.{what}.{kind}.w{worker}.{end}"


def _done(folder: SessionFolder, key: StepKey, workers: Sequence[Sequence[Asked]]) -> AnyEvent:
    files = []
    for worker, asked in enumerate(workers):
        files.append(_written(folder, file_of(folder, key, "requests", worker), [one.record() for one in asked]))
        stamps = [b"DTSTAMP2", *(one.stamps() for one in asked)]
        files.append(_written(folder, file_of(folder, key, "stamps", worker), stamps))
    if key.repeat is None:
        return TaskDone(at_ns=3, step=key, score=TASK, sidecars=tuple(files))
    return RepeatDone(at_ns=2, step=key, metrics=metrics(), sidecars=tuple(files))


def _written(folder: SessionFolder, path: Path, parts: Iterable[bytes]) -> Sidecar:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = b"".join(parts)
    path.write_bytes(content)
    return Sidecar(path=str(path.relative_to(folder.path)), bytes=len(content), count=1, sha256="0" * 64)
