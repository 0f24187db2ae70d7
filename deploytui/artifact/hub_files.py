"""Which files of a hub repository an engine needs: a pure choice over the repository's listing."""

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from deploytui.record.facts import Failure

_HUB_MODEL = re.compile(r"^(?P<repo>\w[\w.-]*/[\w.-]+)(?::(?P<part>[^:\s]+))?$")
_SHARD = re.compile(r"-\d{5}-of-(?P<count>\d{5})(?=\.)")

PREFERENCE = ("safetensors", "onnx", "gguf", "tensorrt", "pytorch")
"""Where a repository has several formats that an engine takes, the first is fetched."""

SIDE_SUFFIXES = frozenset({".json", ".txt", ".model", ".tiktoken", ".jinja", ".py"})
"""Tokenizer, template, configuration and code beside the weights."""

FILE_ENDINGS = (".gguf", ".safetensors", ".onnx", ".engine", ".bin", ".pt", ".pth")
"""What ends like this is meant as a path: repositories are not called so."""

NOT_WEIGHTS = ("training_args", "optimizer", "scheduler", "rng_state", "mmproj", "imatrix")


class HubModel(Struct, frozen=True):
    """A model as a profile names it on a hub: `org/repo`, or one file or folder of it as `org/repo:part`."""

    repo: str
    part: str | None = None


class HubFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of a repository, as the hub tells."""

    path: str
    bytes: int | None = None
    sha256: str | None = None
    """None for small files, which the hub names by another hash."""


class Chosen(Struct, frozen=True, kw_only=True):
    """The files to have; `model` is the file or folder among them that an engine loads, empty for all of them."""

    files: tuple[HubFile, ...]
    model: str = ""


def hub_model(model: str) -> HubModel | None:
    """The hub's model that a profile may mean; None when the text can't be one."""
    found = _HUB_MODEL.match(model)
    if found is None or (found["part"] is None and model.lower().endswith(FILE_ENDINGS)):
        return None
    return HubModel(found["repo"], found["part"])


def wanted_files(
    repo: str, listing: Sequence[HubFile], formats: Collection[str], quantization: str | None, part: str | None
) -> Chosen | Failure:
    """What an engine that loads `formats` (empty: any) needs of a repository, or why nothing in it will do."""
    if part is not None:
        return _named(repo, listing, part)
    there = [kind for kind in PREFERENCE if (not formats or kind in formats) and _weights(listing, kind)]
    if not there:
        return _nothing(repo, listing, formats)
    match there[0]:
        case "gguf":
            return _one_gguf(repo, _weights(listing, "gguf"), quantization)
        case "onnx":
            return _one_onnx(repo, listing)
        case kind:
            return Chosen(files=(*_weights(listing, kind), *_side_files(listing)))


def _weights(listing: Iterable[HubFile], kind: str) -> tuple[HubFile, ...]:
    """The files that hold the weights in one format; of safetensors and pickles those at the top."""
    files = [file for file in listing if not _name(file).startswith(NOT_WEIGHTS)]
    match kind:
        case "safetensors":
            return _without_copies(file for file in files if _is_top(file) and file.path.endswith(".safetensors"))
        case "gguf":
            return tuple(file for file in files if file.path.endswith(".gguf"))
        case "onnx":
            return tuple(file for file in files if _name(file) == "genai_config.json")
        case "tensorrt":
            return tuple(file for file in files if _is_top(file) and file.path.endswith(".engine"))
        case _:
            return tuple(file for file in files if _is_top(file) and file.path.endswith((".bin", ".pt", ".pth")))


def _without_copies(files: Iterable[HubFile]) -> tuple[HubFile, ...]:
    """Without the weights in the maker's own layout where the common one is there, too."""
    found = tuple(files)
    common = tuple(file for file in found if not _name(file).startswith("consolidated"))
    return common or found


def _side_files(listing: Iterable[HubFile]) -> tuple[HubFile, ...]:
    return tuple(file for file in listing if _is_top(file) and PurePosixPath(file.path).suffix in SIDE_SUFFIXES)


def _named(repo: str, listing: Sequence[HubFile], part: str) -> Chosen | Failure:
    """One file with its other shards, or everything below a folder."""
    folder = part.rstrip("/")
    below = tuple(file for file in listing if file.path.startswith(f"{folder}/"))
    if below:
        return Chosen(files=below, model=folder)
    shards = _shards(listing, part)
    if not shards:
        names = ", ".join(file.path for file in listing[:20])
        fix = "Correct the part after the colon."
        return _unfit(f"{repo} has no file or folder {part!r}.", f"It has: {names}.", fix)
    return Chosen(files=shards, model=shards[0].path)


def _shards(listing: Iterable[HubFile], path: str) -> tuple[HubFile, ...]:
    """A file with the other parts of a split model, the first part first."""
    stem = _stem(path)
    return tuple(sorted((file for file in listing if _stem(file.path) == stem), key=lambda file: file.path))


def _stem(path: str) -> str:
    return _SHARD.sub(lambda found: f"-of-{found['count']}", path)


def _one_gguf(repo: str, files: Sequence[HubFile], quantization: str | None) -> Chosen | Failure:
    kept = [file for file in files if quantization is None or _is_of(file, quantization)]
    stems = list(dict.fromkeys(_stem(file.path) for file in kept))
    if len(stems) == 1:
        shards = _shards(files, kept[0].path)
        return Chosen(files=shards, model=shards[0].path)
    names = ", ".join(file.path for file in (kept or files)[:20])
    example = (kept or files)[0].path
    what = f"{repo} has {len(stems) or 'no'} GGUF files" + (
        f" of quantization {quantization}." if quantization else "."
    )
    return _unfit(what, f"It has: {names}.", f'Name one, as in model = "{repo}:{example}".')


def _is_of(file: HubFile, quantization: str) -> bool:
    word = re.escape(quantization.lower())
    return re.search(rf"(?<![a-z0-9]){word}(?![a-z0-9_])", file.path.lower()) is not None


def _one_onnx(repo: str, listing: Sequence[HubFile]) -> Chosen | Failure:
    folders = [str(PurePosixPath(file.path).parent) for file in _weights(listing, "onnx")]
    if len(folders) == 1:
        inside = "" if folders[0] == "." else folders[0]
        files = tuple(file for file in listing if (file.path.startswith(f"{inside}/") if inside else _is_top(file)))
        return Chosen(files=files, model=inside)
    why = f"It has: {', '.join(sorted(folders))}."
    fix = f'Name one, as in model = "{repo}:{sorted(folders)[0]}".'
    return _unfit(f"{repo} has {len(folders)} ONNX folders.", why, fix)


def _nothing(repo: str, listing: Sequence[HubFile], formats: Collection[str]) -> Failure:
    found = [kind for kind in PREFERENCE if _weights(listing, kind)]
    return Failure(
        kind="unsupported_format",
        what=f"{repo} holds no {' or '.join(sorted(formats)) or 'model'}.",
        why=f"It holds {', '.join(found)}." if found else "It holds no weights in a format that is known here.",
        fix="Choose another model, or an engine that loads this one.",
    )


def _unfit(what: str, why: str, fix: str) -> Failure:
    return Failure(kind="invalid_config", what=what, why=why, fix=fix)


def _is_top(file: HubFile) -> bool:
    return "/" not in file.path


def _name(file: HubFile) -> str:
    return PurePosixPath(file.path).name
