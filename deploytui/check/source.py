"""Where a candidate's model comes from: a path, an embedded model, one that is made of it, or a hub."""

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from deploytui.artifact.embedded import DERIVED, EMBEDDED, DerivedModel, EmbeddedModel, cached_path
from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.files import BUILT_IN, resolve_model
from deploytui.artifact.hub import HubAnswer, HubDownload, HubRequest
from deploytui.artifact.hub_cache import commit_of
from deploytui.artifact.hub_files import PREFERENCE, hub_model
from deploytui.artifact.model import artifact_of
from deploytui.artifact.prepared import hub_key, source_key
from deploytui.engine.protocol import Engine
from deploytui.profile.nearest import did_you_mean
from deploytui.profile.places import user_path
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Artifact, Failure


class Source(Struct, frozen=True, kw_only=True):
    """A model's origin. One of `path`, `download`, `request` and `failure` is there, or none without a model."""

    path: Path | None = None
    """Here, and whole."""
    download: EmbeddedModel | HubDownload | None = None
    """Has to be fetched."""
    request: HubRequest | None = None
    """Has to be asked for at a hub."""
    failure: Failure | None = None
    derived: DerivedModel | None = None
    """What has to be made of it, whatever the engine."""
    declared: dict[str, str] = {}
    """The checksums that its origin names its files by."""
    revision: str | None = None
    """The commit; None where there is none, or nobody tells."""
    key: str | None = None
    """What tells this source from any other; None while it is only asked for."""
    format: str | None = None
    """Where it is known before the files are read."""
    notes: tuple[str, ...] = ()


def locate(engine: Engine, candidate: Candidate, base_dir: Path, cache_dir: Path) -> Source:
    """Where the model is, as far as this node tells; asks no hub."""
    model = candidate.model
    if model is None:
        return Source()
    if model.startswith(BUILT_IN):
        return _built_in(model, cache_dir)
    named = hub_model(model)
    if named is not None and not _is_here(base_dir / user_path(model)):
        return Source(request=_request(engine, candidate))
    place = resolve_model(model, base_dir, cache_dir)
    if place.path is None:
        return Source(failure=place.failure)
    if candidate.revision is not None:
        return Source(failure=_revision_of_path(candidate, place.path))
    return _local(place.path)


def from_hub(answer: HubAnswer) -> Source:
    """The source that a hub's answer gives."""
    download = answer.download
    if download is None:
        return Source(failure=answer.failure, notes=answer.notes)
    here = download.is_here
    return Source(
        path=download.path if here else None,
        download=None if here else download,
        declared=download.declared,
        revision=download.commit,
        key=hub_key(download),
        format=_format_of(download),
        notes=answer.notes,
    )


def artifact_from(source: Source, facts: ModelFacts | None) -> Artifact | None:
    """What the record keeps of a model: of its files where they are here, else what its origin tells."""
    if facts is not None:
        return replace(artifact_of(facts), revision=source.revision)
    match source.download:
        case EmbeddedModel() as model:
            return Artifact(format=model.format, quantization=model.quantization, bytes=model.bytes)
        case HubDownload() as model:
            return Artifact(format=source.format, bytes=model.bytes, revision=model.commit)
    return None


def _local(path: Path) -> Source:
    try:
        return Source(path=path, key=source_key(path), revision=commit_of(path))
    except OSError as error:
        return Source(
            failure=Failure(
                kind="invalid_config",
                what=f"The model {path} can't be read.",
                why=str(error),
                fix="Check who may read it, and whether all its links lead to files.",
            )
        )


def _built_in(name: str, cache_dir: Path) -> Source:
    derived = DERIVED.get(name)
    model = EMBEDDED.get(derived.source if derived else name)
    if model is None:
        fix = did_you_mean(name, (*EMBEDDED, *DERIVED))
        what = f"There is no embedded model {name!r}."
        return Source(failure=Failure(kind="invalid_config", what=what, fix=fix))
    path = cached_path(model, cache_dir)
    return Source(
        path=path,
        download=None if path else model,
        derived=derived,
        declared={model.file_name: model.sha256},
        key=f"embedded:{model.sha256}",
        format=model.format,
    )


def _request(engine: Engine, candidate: Candidate) -> HubRequest:
    assert candidate.model is not None
    named = hub_model(candidate.model)
    assert named is not None
    loaded = frozenset(engine.formats)
    if candidate.format in loaded:
        loaded = frozenset({candidate.format or ""})
    return HubRequest(
        model=named,
        revision=candidate.revision,
        formats=loaded,
        prepared_formats=_prepared_formats(engine, candidate),
        quantization=candidate.quantization,
        env=candidate.env,
    )


def _prepared_formats(engine: Engine, candidate: Candidate) -> frozenset[str]:
    """What something can be made of for the engine."""
    if candidate.prepare is not None and candidate.prepare.command is not None:
        return frozenset(PREFERENCE)
    return frozenset(kind for kind in PREFERENCE if engine.preparation(candidate, kind) is not None)


def _format_of(download: HubDownload) -> str | None:
    names = [file.path for file in download.files]
    endings = {"safetensors": ".safetensors", "gguf": ".gguf", "onnx": ".onnx", "tensorrt": ".engine"}
    found = (kind for kind, ending in endings.items() if any(name.endswith(ending) for name in names))
    return next(found, "pytorch" if any(name.endswith(".bin") for name in names) else None)


def _is_here(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return False


def _revision_of_path(candidate: Candidate, path: Path) -> Failure:
    return Failure(
        kind="invalid_config",
        what=f"{candidate.name} asks for revision {candidate.revision!r}, and its model is the path {path}.",
        fix="Leave revision out, or name the model by its hub id.",
    )


def unreadable(path: Path) -> Failure | None:
    """The failure of a model that this user may not read; None when it may be read."""
    if os.access(path, os.R_OK):
        return None
    return Failure(kind="invalid_config", what=f"The model {path} can't be read.", fix="Check who may read the file.")
