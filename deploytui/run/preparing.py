"""Preparations of a candidate's model, as a phase of their own: conversions and builds, kept for the next time."""

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import replace

from deploytui.artifact.files import remember_sha256
from deploytui.artifact.manifest import manifest_files
from deploytui.artifact.prepared import (
    LOG,
    OUT,
    RECORD,
    PreparedRecord,
    found,
    place_of,
    preparation_of,
    prepared_dir,
    total_bytes,
)
from deploytui.check.cases import CaseCheck
from deploytui.check.preparing import PlannedPreparation
from deploytui.engine.protocol import Engine
from deploytui.profile.schema import Candidate
from deploytui.record.engine_events import PreparationDone
from deploytui.record.events import Progress
from deploytui.record.facts import Failure
from deploytui.run.children import marked
from deploytui.run.context import Context
from deploytui.run.exclusive import exclusive
from deploytui.run.failing import CandidateFailed, how_it_ended, last_line, root_cause, too_long
from deploytui.run.hashing import compare, hash_files
from deploytui.run.keeping import Kept, kept
from deploytui.run.recorder import now_ns

GRACE_S = 5.0
"""How long a preparation that is stopped may take to end nicely [s]."""
NOTE_S = 1.0
SPARE_BYTES = 256 << 20
SHARE = 0.25
"""The least share of the source's bytes that what is made of it takes: 4-bit weights of 16-bit ones."""
STALE_S = 7 * 24 * 3600.0
"""A work folder older than this was left by a runner that was killed [s]."""


async def prepare_model(ctx: Context, candidate: Candidate, engine: Engine, check: CaseCheck, folder: Path) -> None:
    """Do what is not done yet, one step after the other; each step is recorded, also one that was found done.

    CandidateFailed says why a step could not be done.
    """
    assert check.source is not None, "what is prepared was fetched before"
    async with ctx.phase(candidate.name, "preparing") as evidence:
        with anyio.move_on_after(ctx.profile.timeouts.prepare) as limit:
            model, reused = Path(check.source), 0
            await _verified(ctx, candidate, model, folder)
            for number, step in enumerate(check.preparations):
                work = _Step(ctx, candidate, engine, step, model, folder / f"prepare.{number}")
                reused += await work.done()
                model = step.output(ctx.cache_dir)
        if limit.cancelled_caught:
            raise CandidateFailed(too_long("The preparation", "prepare", ctx.profile.timeouts.prepare))
        evidence["steps"], evidence["reused"] = len(check.preparations), reused


async def _verified(ctx: Context, candidate: Candidate, source: Path, folder: Path) -> None:
    """Hold the source to the checksums that the candidate names; CandidateFailed when it is not that one."""
    if not candidate.sha256 or ctx.profile.checks.checksum != "full":
        return
    files = await to_thread.run_sync(manifest_files, source)
    named = {name: file for name, file in files.items() if name in candidate.sha256}
    found = await hash_files(ctx, named, folder / "hashing.log", cache=ctx.cache_dir)
    compare(ctx, candidate, candidate.sha256, found)


@dataclass
class _Step:
    """One preparation on its way."""

    ctx: Context
    candidate: Candidate
    engine: Engine
    step: PlannedPreparation
    source: Path
    logs: Path
    """The session's folder for what its command says."""

    async def done(self) -> bool:
        """Have it done; whether it was found done, perhaps by another session that it was waited for."""
        cache, key = self.ctx.cache_dir, self.step.key
        record = await to_thread.run_sync(found, cache, key)
        if record is None:
            async with exclusive(prepared_dir(cache) / f".{key}.lock", self._waits):
                record = await to_thread.run_sync(found, cache, key)
                if record is None:
                    return await self._make()
        self._say(record, reused=True, log=str(place_of(cache, key) / LOG))
        return True

    async def _make(self) -> bool:
        record = await self._made()
        self._say(record, reused=False, log=str((self.logs / "engine.log").relative_to(self.ctx.folder.path)))
        return False

    def _waits(self) -> None:
        self._progress("waits for another session that prepares the same")

    def _progress(self, text: str) -> None:
        event = Progress(at_ns=now_ns(), candidate=self.candidate.name, done=0, text=f"{self.step.plan.name}: {text}")
        self.ctx.recorder.say(event)

    def _say(self, record: PreparedRecord, *, reused: bool, log: str) -> None:
        done = preparation_of(record, reused=reused, log=log)
        self.ctx.recorder.say(PreparationDone(at_ns=now_ns(), candidate=self.candidate.name, preparation=done))

    async def _made(self) -> PreparedRecord:
        """Run the command in a folder of its own on the cache's disk, and put what it made in its place."""
        async with _work_folder(self.ctx.cache_dir, self.source, self.step.plan.name) as work:
            began = time.monotonic()
            await self._run(work)
            record = await self._record(work, time.monotonic() - began)
            place = place_of(self.ctx.cache_dir, self.step.key)
            try:
                await to_thread.run_sync(_keep, work, place, record, self.logs)
            except OSError as error:
                raise CandidateFailed(_unwritable(place.parent, error)) from error
        await to_thread.run_sync(_remember, place / OUT / self.step.plan.output, record, self.ctx.cache_dir)
        return record

    async def _run(self, work: Path) -> None:
        """The command to its end; CandidateFailed when that is no good one."""
        await to_thread.run_sync(lambda: self.logs.mkdir(parents=True, exist_ok=True))
        words = {"{model}": str(self.source), "{out}": str(work / OUT)}
        argv = tuple(_filled(word, words) for word in self.step.plan.argv)
        env = marked(self.ctx.folder.id, {"TMPDIR": str(work / "tmp"), **self.step.plan.env, **self.candidate.env})
        async with kept(
            argv,
            env=env,
            session=self.ctx.folder.id,
            folder=self.logs,
            grace_s=GRACE_S,
            hurry=self.ctx.halt.hurry,
            secrets=self.ctx.recorder.secrets,
        ) as process:
            await self._watched(process)
        if process.spawn_error or process.exit_code != 0 or process.exit_signal:
            raise CandidateFailed(await to_thread.run_sync(self._why, process))

    async def _watched(self, process: Kept) -> None:
        said = ""
        self._progress("starts")
        while not process.exited.is_set():
            with anyio.move_on_after(NOTE_S):
                await process.exited.wait()
            line = self._without_script(await to_thread.run_sync(last_line, self.logs))[:200]
            if line != said:
                said = line
                self._progress(line)

    def _without_script(self, line: str) -> str:
        """The line without the name of the script that says it."""
        for script in self.step.plan.scripts:
            line = line.removeprefix(f"{Path(script).stem}: ")
        return line

    def _why(self, process: Kept) -> Failure:
        """The engine's words for what went wrong, or the last lines of the log."""
        name, log = self.step.plan.name, self.logs / "engine.log"
        if process.spawn_error:
            what = f"The command that prepares {name} could not be started."
            return Failure(kind="prepare_failed", what=what, why=process.spawn_error, fix="Correct prepare.command.")
        known = root_cause(self.engine, process, self.logs)
        if known is not None:
            return replace(known, what=f"While preparing {name}: {known.what}")
        ended = how_it_ended(process, self.logs, f"preparing {name}")
        return replace(ended, kind="prepare_failed", fix=f"See {log}, and correct prepare.")

    async def _record(self, work: Path, seconds: float) -> PreparedRecord:
        """What was made, with the checksums of all its files; CandidateFailed when nothing was."""
        out, plan = work / OUT, self.step.plan
        made = out / plan.output
        files = await to_thread.run_sync(manifest_files, made) if made.exists() else {}
        if not files:
            what = f"The command that prepares {plan.name} ended well, and made nothing."
            fix = "Let it write into the folder {out}."
            raise CandidateFailed(Failure(kind="prepare_failed", what=what, why=f"{made} is empty.", fix=fix))
        self._progress("checksums of what was made")
        return PreparedRecord(
            name=plan.name,
            key=self.step.key,
            argv=plan.argv,
            scripts=self.step.scripts,
            versions=self.step.versions,
            seconds=seconds,
            output_bytes=await to_thread.run_sync(total_bytes, out),
            output_sha256=dict(sorted((await hash_files(self.ctx, files, self.logs / "hashing.log")).items())),
        )


def _filled(word: str, words: Mapping[str, str]) -> str:
    for mark, text in words.items():
        word = word.replace(mark, text)
    return word


@asynccontextmanager
async def _work_folder(cache_dir: Path, source: Path, name: str) -> AsyncIterator[Path]:
    """A folder beside the kept models, gone at the end whatever happens."""
    work = await to_thread.run_sync(_new_folder, cache_dir, source, name)
    try:
        yield work
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(work, ignore_errors=True))


def _new_folder(cache_dir: Path, source: Path, name: str) -> Path:
    parent = prepared_dir(cache_dir)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(parent)
        _check_space(parent, source, name)
        work = Path(tempfile.mkdtemp(prefix=".work-", dir=parent))
        (work / OUT).mkdir()
        (work / "tmp").mkdir()
    except OSError as error:
        raise CandidateFailed(_unwritable(parent, error)) from error
    return work


def _unwritable(parent: Path, error: OSError) -> Failure:
    what, fix = f"The model cache {parent} can't be written.", "Make room, or set DEPLOYTUI_CACHE to another folder."
    return Failure(kind="prepare_failed", what=what, why=str(error), fix=fix)


def _remove_stale(parent: Path) -> None:
    for folder in parent.glob(".work-*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)


def _check_space(parent: Path, source: Path, name: str) -> None:
    """Refuse what can't succeed: less room than the smallest thing that is made of such a source."""
    needed = int(sum(file.stat().st_size for file in manifest_files(source).values()) * SHARE) + SPARE_BYTES
    free = shutil.disk_usage(parent).free
    if free < needed:
        raise CandidateFailed(
            Failure(
                kind="prepare_failed",
                what=f"Too little space to prepare {name} in {parent}.",
                why=f"{free >> 20} MiB are free, at least {needed >> 20} MiB are needed.",
                fix="Free some space, or set DEPLOYTUI_CACHE to a folder on another disk.",
            )
        )


def _keep(work: Path, place: Path, record: PreparedRecord, logs: Path) -> None:
    """Put record and log beside what was made, and all of it in its place at once."""
    shutil.rmtree(work / "tmp", ignore_errors=True)
    log = logs / "engine.log"
    if log.is_file():
        shutil.copyfile(log, work / LOG)
    (work / RECORD).write_bytes(msgspec.json.encode(record))
    if place.exists():  # what is there is not whole, or it would have been found
        shutil.rmtree(place)
    work.rename(place)


def _remember(made: Path, record: PreparedRecord, cache_dir: Path) -> None:
    """Its checksums are known as long as its files stay as they are."""
    for name, text in record.output_sha256.items():
        with suppress(OSError):
            remember_sha256(made / name, cache_dir, text)
