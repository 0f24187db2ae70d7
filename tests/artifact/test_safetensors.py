import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.artifact.reading import FaultError
from deploytui.artifact.safetensors import read_safetensors
from tests.artifact.build import WEIGHTS, raw_tensors, save, tensors_file

GOOD = tensors_file(WEIGHTS, {"format": "pt"})


def fault(folder: Path, data: bytes) -> FaultError:
    save(folder, {"m.safetensors": data})
    with pytest.raises(FaultError) as caught:
        read_safetensors(folder / "m.safetensors")
    return caught.value


def row(kind: str = "F32", shape: tuple[int, ...] = (2,), start: int = 0, end: int = 8) -> dict[str, object]:
    return {"dtype": kind, "shape": list(shape), "data_offsets": [start, end]}


def test_names_types_and_sizes_are_read_from_the_header(tmp_path: Path) -> None:
    save(tmp_path, {"m.safetensors": GOOD})
    found = read_safetensors(tmp_path / "m.safetensors")
    assert {name: (tensor.dtype, tensor.elements, tensor.bytes) for name, tensor in found.tensors.items()} == {
        "model.embed_tokens.weight": ("BF16", 48, 96),
        "model.norm.weight": ("BF16", 8, 16),
    }
    assert (found.size, found.metadata) == (len(GOOD), {"format": "pt"})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (GOOD[:-1], "its tensors need 112 bytes, and 111 are there"),
        (GOOD + b"x", "its tensors end at 112 bytes, and 113 are there"),
        (GOOD[:60], "and the file has 60"),
        (GOOD[:5], "less than a header's length takes"),
        (struct.pack("<Q", 1 << 62) + GOOD[8:], "the format allows"),
        (struct.pack("<Q", 4) + b"{{{{", "the header can't be read"),
        (struct.pack("<Q", 4) + b"\xff\xfe\x00\x00", "the header can't be read"),
        (struct.pack("<Q", 2) + b"[]", "the header can't be read"),
        (struct.pack("<Q", 100_000) + b"[" * 100_000, "the header can't be read"),
        (raw_tensors({"a": row(), "b": row(start=4, end=12)}, 12), "the one before it ends at 8"),
        (raw_tensors({"a": row(start=8, end=0)}, 8), "lies at 8 to 0"),
        (raw_tensors({"a": row(shape=(3,))}, 8), "does not take 8 bytes"),
        (raw_tensors({"a": row(shape=(-2,))}, 8), "negative"),
        (raw_tensors({"a": {"dtype": "F32"}}, 8), "missing required field"),
        (raw_tensors({"a": row(end=1 << 60)}, 8), "does not take"),
    ],
)
def test_a_header_that_does_not_fit_its_file_is_told(tmp_path: Path, data: bytes, why: str) -> None:
    failure = fault(tmp_path, data).failure
    assert failure.kind == "corrupt"
    assert "m.safetensors" in failure.what
    assert why in failure.why
    assert failure.fix


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (b"", "corrupt", "is empty"),
        (b"version https://git-lfs test\noid sha256:00\nsize 269060552\n", "missing_file", "Git-LFS pointer"),
        (b"\n<!doctype html>", "corrupt", "web page"),
    ],
)
def test_what_lies_in_place_of_weights_is_named(tmp_path: Path, data: bytes, kind: str, words: str) -> None:
    failure = fault(tmp_path, data).failure
    assert failure.kind == kind
    assert words in failure.what


def test_a_pointer_tells_the_size_of_what_it_stands_for(tmp_path: Path) -> None:
    failure = fault(tmp_path, b"version https://git-lfs test\noid sha256:00\nsize 269060552\n").failure
    assert "269,060,552 bytes" in failure.why
    assert "git lfs pull" in failure.fix


def test_a_folder_and_a_loop_of_links_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "d.safetensors").mkdir()
    (tmp_path / "l.safetensors").symlink_to("l.safetensors")
    for name, words in (("d", "is a folder"), ("l", "leads back to itself")):
        with pytest.raises(FaultError) as caught:
            read_safetensors(tmp_path / f"{name}.safetensors")
        assert words in caught.value.failure.what


@given(st.binary(max_size=300))
def test_no_bytes_make_it_raise_anything_else(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.safetensors"
    for content in (data, struct.pack("<Q", len(data)) + data, struct.pack("<Q", len(data)) + data + bytes(8)):
        path.write_bytes(content)
        with suppress(FaultError):
            read_safetensors(path)


@given(st.data())
def test_a_changed_header_is_read_or_told(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(GOOD)
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.safetensors"
    path.write_bytes(whole)
    with suppress(FaultError):
        assert read_safetensors(path).size == len(whole)
