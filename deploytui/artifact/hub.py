"""Models from a hub: asked for and fetched by a child process, or used from the client's cache."""

import os
import shutil
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec import Struct

from deploytui.artifact.ending import end_group
from deploytui.artifact.fetch import Progress
from deploytui.artifact.hub_cache import (
    cached_commit,
    cached_files,
    hub_cache,
    is_cached,
    keep_listing,
    keep_reference,
    kept_listing,
    snapshot_dir,
)
from deploytui.artifact.hub_faults import fault_failure
from deploytui.artifact.hub_files import Chosen, HubFile, HubModel, wanted_files
from deploytui.artifact.hub_words import Fault, FaultKind, Fetched, Got, Listing, said_decoder
from deploytui.record.facts import Failure

CHILD = (sys.executable, "-m", "deploytui.artifact.hub_child")
ASK_S = 60.0
"""How long the hub may take to tell what a repository holds [s]."""
GRACE_S = 5.0
LINE_CAP = 64 << 20
SPARE_BYTES = 256 << 20
"""What shall stay free on the cache's disk [bytes]."""

CAUSES: dict[FaultKind, str] = {"offline": "this node is told to stay offline", "unreachable": "no hub answers"}


class HubRequest(Struct, frozen=True, kw_only=True):
    """What a candidate wants of a hub. `env` is what its environment has on top of ours."""

    model: HubModel
    revision: str | None = None
    formats: frozenset[str] = frozenset()
    """Those that an engine loads; empty: any."""
    prepared_formats: frozenset[str] = frozenset()
    """Those that something can be made of, where none of `formats` is there."""
    quantization: str | None = None
    env: dict[str, str] = {}


class HubDownload(Struct, frozen=True, kw_only=True):
    """Files of one commit, of which some have to be fetched."""

    repo: str
    revision: str | None
    """As asked; None for the repository's own default."""
    commit: str
    cache: str
    """The client's."""
    files: tuple[HubFile, ...]
    model: str
    """The part of the snapshot that is the model; empty for all of it."""
    fetched_bytes: int
    """What has to come over the network."""
    bytes: int | None
    """Of all files; None where the hub does not tell all."""
    env: dict[str, str] = {}

    @property
    def path(self) -> Path:
        """Where the model is once everything is here."""
        return snapshot_dir(Path(self.cache), self.repo, self.commit) / self.model

    @property
    def declared(self) -> dict[str, str]:
        """The checksums that the hub names files by, relative to `path`."""
        return {_below(file.path, self.model): file.sha256 for file in self.files if file.sha256}

    @property
    def is_here(self) -> bool:
        """Whether nothing has to be fetched."""
        cache = Path(self.cache)
        return all(is_cached(cache, self.repo, self.commit, file) for file in self.files)


class HubAnswer(Struct, frozen=True, kw_only=True):
    """What is to be had: files with their place, or the failure; `notes` are for the reader."""

    download: HubDownload | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


async def ask_hub(request: HubRequest, own_cache: Path) -> HubAnswer:
    """What the hub has for a candidate now; from the cache where the hub can't be asked."""
    env = {**os.environ, **request.env}
    said = await _listed(request, env)
    if isinstance(said, Listing):
        return _chosen(request, said.commit, Path(said.cache), said.files)
    if said.kind not in CAUSES:
        return HubAnswer(failure=fault_failure(request.model.repo, request.revision, said))
    kept = await anyio.to_thread.run_sync(_from_cache, request, env, own_cache)
    if kept is None:
        return HubAnswer(failure=fault_failure(request.model.repo, request.revision, said))
    note = f"{request.model.repo} is taken from the cache as it is there: {CAUSES[said.kind]}."
    return msgspec.structs.replace(kept, notes=(note,))


async def fetch_hub(download: HubDownload, own_cache: Path, progress: Progress) -> Failure | None:
    """Bring all files into the client's cache, as far as they are not there; the failure when they can't be."""
    cache = Path(download.cache)
    if (failure := await anyio.to_thread.run_sync(_too_little_space, download)) is not None:
        return failure
    missing = [file for file in download.files if not is_cached(cache, download.repo, download.commit, file)]
    order = msgspec.json.encode([file.path for file in missing]) + b"\n"
    env = {**os.environ, **download.env}
    async with _child(("get", download.repo, download.commit), env) as (process, words):
        assert process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it is gone, and says nothing
            await process.stdin.send(order)
        async for word in words:
            match word:
                case Fetched(bytes=count):
                    progress(min(count, download.fetched_bytes), download.fetched_bytes)
                case Got():
                    keep_reference(cache, download.repo, download.revision, download.commit)
                    keep_listing(own_cache, download.repo, download.commit, download.files)
                    return None
                case Fault():
                    return fault_failure(download.repo, download.revision, word)
                case _:
                    pass
    return _died(download.repo)


async def _listed(request: HubRequest, env: Mapping[str, str]) -> Listing | Fault:
    words = ("ask", request.model.repo, *([request.revision] if request.revision else []))
    with anyio.move_on_after(ASK_S):
        async with _child(words, env) as (_, said):
            async for word in said:
                if isinstance(word, Listing | Fault):
                    return word
        return Fault(kind="other", why=_died(request.model.repo).what, token=False)
    return Fault(kind="unreachable", why=f"The hub did not answer within {ASK_S:g} s.", token=False)


@asynccontextmanager
async def _child(
    words: tuple[str, ...], env: Mapping[str, str]
) -> AsyncIterator[tuple[Process, AsyncIterator[Listing | Fetched | Got | Fault]]]:
    """The child that speaks with the hub, and what it says; gone at the end of the block, its partial files with it."""
    process = await anyio.open_process(
        (*CHILD, *words), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=env, start_new_session=True
    )
    try:
        yield process, _said(process)
    finally:
        await end_group(process, GRACE_S)


async def _said(process: Process) -> AsyncIterator[Listing | Fetched | Got | Fault]:
    assert process.stdout is not None
    stream = BufferedByteReceiveStream(process.stdout)
    with suppress(anyio.IncompleteRead, anyio.EndOfStream):
        while True:
            yield said_decoder.decode(await stream.receive_until(b"\n", LINE_CAP))


def _from_cache(request: HubRequest, env: Mapping[str, str], own_cache: Path) -> HubAnswer | None:
    cache, repo = hub_cache(env), request.model.repo
    commit = cached_commit(cache, repo, request.revision)
    if commit is None:
        return None
    files = kept_listing(own_cache, repo, commit) or cached_files(cache, repo, commit)
    answer = _chosen(request, commit, cache, files)
    return answer if answer.download is not None and answer.download.is_here else None


def _chosen(request: HubRequest, commit: str, cache: Path, listing: Collection[HubFile]) -> HubAnswer:
    repo = request.model.repo
    files, kind, part = tuple(listing), request.quantization, request.model.part
    chosen = wanted_files(repo, files, request.formats, kind, part)
    if isinstance(chosen, Failure) and chosen.kind == "unsupported_format" and request.prepared_formats:
        other = wanted_files(repo, files, request.prepared_formats, kind, part)
        chosen = other if isinstance(other, Chosen) else chosen
    if isinstance(chosen, Failure):
        return HubAnswer(failure=chosen)
    return HubAnswer(download=_download(request, commit, cache, chosen))


def _download(request: HubRequest, commit: str, cache: Path, chosen: Chosen) -> HubDownload:
    missing = [file for file in chosen.files if not is_cached(cache, request.model.repo, commit, file)]
    sizes = [file.bytes for file in chosen.files]
    return HubDownload(
        repo=request.model.repo,
        revision=request.revision,
        commit=commit,
        cache=str(cache),
        files=chosen.files,
        model=chosen.model,
        fetched_bytes=sum(file.bytes or 0 for file in missing),
        bytes=None if None in sizes else sum(size for size in sizes if size is not None),
        env=request.env,
    )


def _below(path: str, model: str) -> str:
    """A file's path relative to the model: below its folder, or beside it when the model is a file."""
    if path.startswith(f"{model}/"):
        return path[len(model) + 1 :]
    folder = model.rpartition("/")[0]
    return path[len(folder) + 1 :] if folder and path.startswith(f"{folder}/") else path


def _too_little_space(download: HubDownload) -> Failure | None:
    folder = Path(download.cache)
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    free, needed = shutil.disk_usage(folder).free, download.fetched_bytes + SPARE_BYTES
    if free >= needed:
        return None
    return Failure(
        kind="download_failed",
        what=f"Too little space for {download.repo} in {download.cache}.",
        why=f"{free >> 20} MiB are free, {needed >> 20} MiB are needed.",
        fix="Free some space, or set HF_HOME to a folder on another disk.",
    )


def _died(repo: str) -> Failure:
    what = f"The process that fetches {repo} ended without an answer."
    return Failure(kind="download_failed", what=what, fix="Try again; files that are complete are kept.")
