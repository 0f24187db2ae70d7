"""The candidate's checksums, computed beside its load: at the lowest priority, and never while its figures are taken.

Hashing needs a core and the memory's bandwidth. On a node with few cores, or for an engine that computes on them, it
therefore stands still while repeats are measured; elsewhere it goes on at idle priority.
"""

import os
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
from anyio.abc import Process
from msgspec.structs import replace

from deploytui.artifact.hash_words import AllHashed, Hashed, HashOrder, Read, Unread, said_decoder
from deploytui.artifact.manifest import manifest_files, mismatch_failure, mismatches
from deploytui.check.cases import CaseCheck
from deploytui.profile.schema import Candidate
from deploytui.record.engine_events import ArtifactRead
from deploytui.record.events import Progress, Summed
from deploytui.record.facts import ColdStart
from deploytui.run.children import child, lines, marked, tell, unwrapped
from deploytui.run.context import Context
from deploytui.run.failing import CandidateFailed, EngineDied
from deploytui.run.recorder import now_ns

CHILD = (sys.executable, "-m", "deploytui.artifact.hash_child")
MANY_CORES = 16
"""From so many usable cores on, one that hashes at idle priority leaves a GPU engine's host work alone."""
NOTE_S = 1.0


@dataclass
class Hashing:
    """Checksums under way; `found` grows. `seconds` of hashing without pauses; None before the first word."""

    pauses: bool
    found: dict[str, str] = field(default_factory=dict)
    seconds: float | None = None
    done: anyio.Event = field(default_factory=anyio.Event)
    read_bytes: int = 0
    whole: bool = False
    """Whether every file was hashed."""
    process: Process | None = None
    word: bytes = b"go"
    """Whether to go on, as told last."""

    @asynccontextmanager
    async def standing_still(self) -> AsyncIterator[None]:
        """No hashing within the block, where it could be felt in what is measured there."""
        await self._tell(b"pause")
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self._tell(b"go")

    async def begin(self, order: HashOrder) -> None:
        """Give the order to the process, which may have been told to stand still before it was there."""
        assert self.process is not None
        await tell(self.process, msgspec.json.encode(order))
        await tell(self.process, self.word)

    async def _tell(self, word: bytes) -> None:
        if not self.pauses:
            return
        self.word = word
        if self.process is not None and not self.done.is_set():
            await tell(self.process, word)


@asynccontextmanager
async def hashed(ctx: Context, candidate: Candidate, check: CaseCheck) -> AsyncIterator[Hashing]:
    """Hash the candidate's files beside the block; waited for at its end, when the engine is stopped.

    Files that are not the expected ones end the block at once: CandidateFailed. A block that failed is only waited
    for where that could be the reason.
    """
    hashing = Hashing(pauses=stands_still(candidate))
    if not check.to_hash or ctx.profile.checks.checksum != "full":
        yield hashing
        return
    with unwrapped():
        async with anyio.create_task_group() as group:
            group.start_soon(_hash, ctx, candidate, check, hashing)
            try:
                yield hashing
            except (CandidateFailed, EngineDied):
                if check.expected:
                    await _waited(ctx, candidate, hashing)
                raise
            else:
                await _waited(ctx, candidate, hashing)
            finally:
                group.cancel_scope.cancel()


def stands_still(candidate: Candidate) -> bool:
    """Whether hashing would be felt while this candidate is measured."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return candidate.device == "cpu" or cores < MANY_CORES


async def hash_files(
    ctx: Context, files: Mapping[str, Path], errors: Path, cache: Path | None = None
) -> dict[str, str]:
    """The checksums of some files, remembered in `cache`; at low priority. Files that can't be read are left out."""
    hashing = Hashing(pauses=False)
    named = {name: str(path) for name, path in files.items()}
    order = HashOrder(files=named, cache=str(cache) if cache is not None else None)
    async with aclosing(_run(ctx, order, hashing, errors)) as done:
        async for _ in done:
            pass
    return hashing.found


async def _hash(ctx: Context, candidate: Candidate, check: CaseCheck, hashing: Hashing) -> None:
    """Hash to the end, look at each file as it is done, and record the whole."""
    assert check.model_path is not None
    files = {name: str(path) for name, path in manifest_files(Path(check.model_path)).items()}
    order = HashOrder(files=files, cache=str(ctx.cache_dir))
    errors = ctx.folder.candidate_dir(candidate.name) / "hashing.log"
    why = f"See {errors}."
    try:
        async with aclosing(_run(ctx, order, hashing, errors)) as done:
            async for name in done:
                compare(ctx, candidate, check.expected, {name: hashing.found[name]})
    except OSError as error:  # such as a node without a process to spare: measuring goes on without
        why = str(error)
    finally:
        hashing.done.set()
    hashing.whole = len(hashing.found) == len(files)
    if not hashing.whole:
        text = f"{candidate.name}: {len(files) - len(hashing.found)} of its {len(files)} files were not hashed. {why}"
        ctx.note("warning", text, candidate.name)
    _record(ctx, candidate, hashing)


def compare(ctx: Context, candidate: Candidate, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
    """CandidateFailed where a file is not the expected one, or a note where that is meant."""
    wrong = mismatches(expected, found)
    if wrong and ctx.profile.checks.changed_files == "refuse":
        raise CandidateFailed(mismatch_failure(candidate.name, wrong))
    for one in wrong:
        text = f"{candidate.name}: {one.file} has changed: sha256 {one.found}, expected {one.expected}."
        ctx.note("warning", text, candidate.name)


async def _run(ctx: Context, order: HashOrder, hashing: Hashing, errors: Path) -> AsyncGenerator[str]:
    """The names of the files as they are done; to be closed, so that its process ends with whoever hears it."""
    async with child(CHILD, env=marked(ctx.folder.id), errors=errors, grace_s=1.0) as hashing.process:
        await hashing.begin(order)
        async for line in lines(hashing.process):
            match said_decoder.decode(line):
                case Hashed(name=name, sha256=text):
                    hashing.found[name] = text
                    yield name
                case Read(bytes=count, seconds=seconds):
                    hashing.read_bytes, hashing.seconds = count, seconds
                case Unread(name=name, why=why):
                    ctx.note("warning", f"{name} can't be hashed: {why}")
                case AllHashed(seconds=seconds):
                    hashing.seconds = seconds


def _record(ctx: Context, candidate: Candidate, hashing: Hashing) -> None:
    known = ctx.row(candidate.name).artifact
    if known is None or not hashing.found:
        return
    newer = replace(known, sha256=dict(sorted(hashing.found.items())), checksum="full" if hashing.whole else None)
    ctx.recorder.say(ArtifactRead(at_ns=now_ns(), candidate=candidate.name, artifact=newer))


async def _waited(ctx: Context, candidate: Candidate, hashing: Hashing) -> None:
    """Wait for the end, telling how far it is; then the start's record gets its time."""
    said = 0.0
    total = ctx.row(candidate.name).artifact
    while not hashing.done.is_set():
        with anyio.move_on_after(NOTE_S):
            await hashing.done.wait()
        if not hashing.done.is_set() and time.monotonic() - said >= NOTE_S:
            said = time.monotonic()
            whole = total.bytes if total else None
            done, text = hashing.read_bytes, "checksums"
            ctx.recorder.say(
                Progress(at_ns=now_ns(), candidate=candidate.name, done=done, total=whole, unit="B", text=text)
            )
    record_seconds(ctx, candidate.name, hashing.seconds)


def record_seconds(ctx: Context, name: str, seconds: float | None) -> None:
    """Add the time of hashing to what is known of the candidate's start."""
    row = ctx.row(name)
    if seconds is None or row.memory is None:
        return
    start = replace(row.cold_start or ColdStart(), checksum_s=seconds)
    ctx.recorder.say(Summed(at_ns=now_ns(), candidate=name, memory=row.memory, cold_start=start, quality=row.quality))
