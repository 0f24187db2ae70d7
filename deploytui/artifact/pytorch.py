"""PyTorch's pickled weights: which files there are and whether they are whole. They are never unpickled."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

from deploytui.artifact.reading import FaultError, check_content, damaged, opened
from deploytui.artifact.shards import read_index, without_index
from deploytui.artifact.weights import Weights, size_of
from deploytui.record.facts import Failure

INDEX = "pytorch_model.bin.index.json"
SINGLE = "pytorch_model.bin"
ZIP = b"PK\x03\x04"
PICKLE = b"\x80"


def read_pytorch(folder: Path) -> Weights:
    """The pickled weights in a folder; how many parameters they hold only loading them would tell."""
    try:
        index = read_index(folder, INDEX)
    except FaultError as error:
        return Weights(faults=(error.failure,))
    return read_pickles([folder / name for name in sorted(set(index.values())) or _names(folder)])


def read_pickles(paths: Sequence[Path]) -> Weights:
    """These files."""
    faults: list[Failure] = []
    for path in paths:
        try:
            check_pickle(path)
        except FaultError as error:
            faults.append(error.failure)
    return Weights(files=tuple(paths), bytes=size_of(paths) or None, faults=tuple(faults))


def _names(folder: Path) -> list[str]:
    if (folder / SINGLE).exists():
        return [SINGLE]
    shards = [name for name in without_index(folder, ".bin") if name.startswith("pytorch_model")]
    return shards or sorted(path.name for suffix in ("*.pth", "*.pt") for path in folder.glob(suffix))


def check_pickle(path: Path) -> None:
    """FaultError when the file is neither an archive with its end nor an old plain pickle."""
    with opened(path) as (file, size):
        head = file.read(512)
        check_content(path, head, size)
        if head.startswith(ZIP):
            if not zipfile.is_zipfile(file):
                raise damaged(path, "the archive's directory, which is at its end, is not there")
        elif not head.startswith(PICKLE):
            raise damaged(path, f"it begins {head[:4].hex(' ')}, as no file of PyTorch does")
