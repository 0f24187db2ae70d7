"""The safetensors of a folder: which files belong to the model, by index or by name, and whether all are whole."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from deploytui.artifact.packed import parameters_of
from deploytui.artifact.reading import FaultError, fault, inside, read_json
from deploytui.artifact.safetensors import TensorFile, read_safetensors
from deploytui.artifact.weights import Weights, by_size, file_size
from deploytui.record.facts import Failure

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
NUMBERED = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.safetensors|\.bin)$")
MOST_FILES = 10_000
MOST_NAMED = 5
"""Names that a message lists; the rest is counted."""


def read_shards(folder: Path, bits: int | None, *, quantized: bool) -> Weights:
    """All weights in a folder."""
    try:
        index = read_index(folder, INDEX)
    except FaultError as error:
        return Weights(faults=(error.failure,))
    names = sorted(set(index.values())) if index else without_index(folder, ".safetensors")
    return read_files([folder / name for name in names], index, bits, quantized=quantized)


def read_files(paths: Iterable[Path], index: Mapping[str, str], bits: int | None, *, quantized: bool) -> Weights:
    """These files, held against the index where there is one."""
    files: list[TensorFile] = []
    faults: list[Failure] = []
    for path in paths:
        try:
            files.append(read_safetensors(path))
        except FaultError as error:
            faults.append(error.failure)
    faults += _contradictions(files, index)
    mix = Counter[str]()
    for file in files:
        for tensor in file.tensors.values():
            mix[tensor.dtype] += tensor.bytes
    tensors = {name: tensor for file in files for name, tensor in file.tensors.items()}
    return Weights(
        files=tuple(file.path for file in files),
        bytes=sum(file.size for file in files) or None,
        parameters=parameters_of(tensors, bits, quantized=quantized) if files and not faults else None,
        mix=by_size(mix),
        tensors=frozenset(tensors),
        faults=tuple(faults),
    )


def read_index(folder: Path, name: str) -> dict[str, str]:
    """Tensor → file name, from the index of that name; empty without one, FaultError when it is none."""
    path = folder / name
    if file_size(path) is None and not path.is_symlink():
        return {}
    told = read_json(path).get("weight_map")
    if not isinstance(told, dict) or not told or not all(isinstance(value, str) for value in told.values()):
        raise fault("corrupt", f"{name} names no tensors.", "It has no weight_map of tensors and files.")
    files = set(told.values())
    if len(files) > MOST_FILES:
        raise fault("corrupt", f"{name} names {len(files)} files.")
    for file in files:
        inside(folder, file)
    return told


def without_index(folder: Path, suffix: str) -> list[str]:
    """The names of a model's files without an index: the single one, or a numbered set with all its members."""
    here = sorted(path.name for path in folder.glob(f"*{suffix}"))[:MOST_FILES]
    if SINGLE in here and suffix == ".safetensors":
        return [SINGLE]
    for name in here:
        if (match := NUMBERED.match(name)) and 0 < int(match["count"]) <= MOST_FILES:
            stem, count = match["stem"], match["count"]
            return [f"{stem}-{number:05}-of-{count}{suffix}" for number in range(1, int(count) + 1)]
    main = [name for name in here if not name.startswith(("consolidated", "adapter_"))]
    return main or [name for name in here if name.startswith("consolidated")]


def _contradictions(files: list[TensorFile], index: Mapping[str, str]) -> Iterator[Failure]:
    """Tensors that the index and the files don't agree on, and tensors that are in two files."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in files:
        for name in file.tensors:
            places[name].append(file.path.name)
    twice = [name for name, where in places.items() if len(where) > 1]
    if twice:
        where = " and ".join(places[twice[0]][:2])
        yield _stale(f"{_some(twice)} in more than one file: {where}.", "Remove the files of another model.")
    if not index:
        return
    read = {file.path.name for file in files}
    lost = [name for name, file in index.items() if file in read and file not in places.get(name, ())]
    if lost:
        what = f"{INDEX} does not fit its files: {_some(lost)} not in {index[lost[0]]}."
        yield _stale(what, "Fetch index and files again, of one revision.")


def _stale(what: str, fix: str) -> Failure:
    return Failure(kind="corrupt", what=what, fix=fix)


def _some(names: list[str]) -> str:
    shown = ", ".join(name[:100] for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more are" if more > 0 else f"{shown} {'is' if len(names) == 1 else 'are'}"


def notes_of(folder: Path, weights: Weights) -> Iterator[str]:
    """What else lies there that an engine might take."""
    index = file_size(folder / INDEX) is not None
    if index and file_size(folder / SINGLE) is not None and folder / SINGLE not in weights.files:
        yield f"{SINGLE} lies beside {INDEX}: some engines load one, some the other."
    if not index and len(weights.files) > 1:
        yield f"There is no {INDEX}: Transformers can't load {len(weights.files)} files without it."
    others = sorted(folder.glob("consolidated*.safetensors"))
    if others and not set(others) & set(weights.files):
        yield f"{others[0].name} lies there too, the same weights in Mistral's own layout: not counted."
    if any(folder.glob("pytorch_model*.bin")):
        yield "Pickled weights lie there too; the safetensors are used."
    if (folder / "adapter_config.json").exists():
        yield "A LoRA adapter lies there too; it is not counted."
