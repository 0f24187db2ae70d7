import hashlib
import os
from pathlib import Path

import pytest

from deploytui.artifact.embedded import EMBEDDED
from deploytui.artifact.files import artifact_files, known_sha256, resolve_model, sha256_file
from deploytui.errors import DeployError
from tests.artifact.test_gguf import PAIRS, gguf

BUILT_IN = "builtin:smollm2-135m-instruct-q4_1"


def test_a_relative_path_starts_at_the_profiles_folder(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"x")
    assert resolve_model("m.gguf", tmp_path, tmp_path).path == tmp_path / "m.gguf"


def test_a_home_path_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.gguf").write_bytes(b"x")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_model("~/m.gguf", Path("/elsewhere"), tmp_path).path == tmp_path / "m.gguf"


def test_a_missing_path_is_named_as_asked_and_as_resolved(tmp_path: Path) -> None:
    failure = resolve_model("sub/m.gguf", tmp_path, tmp_path).failure
    assert failure is not None
    assert failure.kind == "invalid_config"
    assert "'sub/m.gguf'" in failure.what
    assert str(tmp_path / "sub/m.gguf") in failure.what


def test_a_dangling_link_is_named_with_its_target(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").symlink_to("blob")
    failure = resolve_model("m.gguf", tmp_path, tmp_path).failure
    assert failure is not None
    assert "link to blob" in failure.why


def test_an_embedded_model_that_is_not_cached_is_to_be_fetched(tmp_path: Path) -> None:
    assert resolve_model(BUILT_IN, tmp_path, tmp_path).download == EMBEDDED[BUILT_IN]


def test_an_unknown_embedded_model_is_answered_with_the_nearest(tmp_path: Path) -> None:
    failure = resolve_model("builtin:smollm2", tmp_path, tmp_path).failure
    assert failure is not None
    assert BUILT_IN in failure.fix


def test_no_model_has_no_place_and_no_failure(tmp_path: Path) -> None:
    place = resolve_model(None, tmp_path, tmp_path)
    assert (place.path, place.download, place.failure) == (None, None, None)


def test_the_shards_of_a_split_model_belong_together(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"m[1]-0000{number}-of-00002.gguf").write_bytes(gguf(*PAIRS))
    (tmp_path / "m1-00001-of-00002.gguf").write_bytes(b"another")
    first = tmp_path / "m[1]-00001-of-00002.gguf"
    assert len(artifact_files(first)) == 2


def test_the_checksum_is_that_of_the_bytes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"abc" * 1000)
    assert sha256_file(file, chunk=7) == hashlib.sha256(b"abc" * 1000).hexdigest()


def test_a_checksum_can_be_stopped(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"abc")
    assert sha256_file(file, stop=lambda: True) is None
    assert known_sha256(file, tmp_path / "cache", stop=lambda: True) is None


def test_a_checksum_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file, cache = tmp_path / "f", tmp_path / "cache"
    file.write_bytes(b"one")
    first = known_sha256(file, cache)
    stamp = file.stat()
    assert known_sha256(file, cache, stop=lambda: True) == first
    file.write_bytes(b"two")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1_000_000))
    assert known_sha256(file, cache) == hashlib.sha256(b"two").hexdigest()


def test_a_cache_that_can_not_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    file, blocked = tmp_path / "f", tmp_path / "blocked"
    file.write_bytes(b"one")
    blocked.write_bytes(b"a file, not a folder")
    assert known_sha256(file, blocked) == hashlib.sha256(b"one").hexdigest()


def test_a_broken_memory_of_checksums_is_not_believed(tmp_path: Path) -> None:
    file, cache = tmp_path / "f", tmp_path / "cache"
    file.write_bytes(b"one")
    known_sha256(file, cache)
    for memory in (cache / "checksums").iterdir():
        memory.write_bytes(b"{")
    assert known_sha256(file, cache) == hashlib.sha256(b"one").hexdigest()


def test_a_file_that_can_not_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(DeployError) as caught:
        known_sha256(tmp_path / "nothing", tmp_path)
    assert "nothing" in caught.value.what
