"""References to bulk files."""

import hashlib
from pathlib import Path

from deploytui.run.sidecars import sidecar

CONTENT = b"a line\n" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def a_file(folder: Path) -> Path:
    path = folder / "candidates" / "requests.w0.jsonl"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


def test_a_file_is_referenced_by_place_size_and_content(tmp_path: Path) -> None:
    found = sidecar(a_file(tmp_path), tmp_path, 1000)
    assert (found.path, found.bytes, found.count) == ("candidates/requests.w0.jsonl", len(CONTENT), 1000)
    assert found.sha256 == SHA256


def test_a_hash_that_is_known_is_not_taken_again(tmp_path: Path) -> None:
    path = a_file(tmp_path)
    assert sidecar(path, tmp_path, 1, "known").sha256 == "known"
    assert sidecar(path, tmp_path, 1, "known", len(CONTENT)).sha256 == "known"


def test_a_known_hash_of_another_size_is_not_believed(tmp_path: Path) -> None:
    found = sidecar(a_file(tmp_path), tmp_path, 1, "known", 5)
    assert (found.sha256, found.bytes) == (SHA256, len(CONTENT))
