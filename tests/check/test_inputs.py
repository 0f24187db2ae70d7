"""The files of a workload, read before anything runs."""

from pathlib import Path

import pytest

from deploytui.check.inputs import read_inputs
from deploytui.errors import ProfileError
from deploytui.profile.load_schema import TraceReplay
from deploytui.profile.schema import Candidate, Profile, Workload


def asked(**workload: object) -> Profile:
    """A profile with such a workload."""
    return Profile(workload=Workload(**{"requests": 1, **workload}), candidates=(Candidate(name="a", engine="mock"),))  # type: ignore[arg-type]


def test_files_are_found_beside_the_profile_and_known_by_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"prompt": "a"}\n', encoding="utf-8")
    (tmp_path / "t.jsonl").write_text('{"timestamp": 0}\n', encoding="utf-8")
    found = read_inputs(asked(dataset="d.jsonl", load=TraceReplay(path="t.jsonl")), tmp_path)
    assert found.dataset is not None
    assert len(found.dataset.items) == 1
    assert len(found.dataset_sha256 or "") == len(found.trace_sha256 or "") == 64


def test_a_workload_without_files_needs_none(tmp_path: Path) -> None:
    found = read_inputs(asked(prompt_tokens=4), tmp_path)
    assert (found.dataset_sha256, found.trace_sha256) == (None, None)


@pytest.mark.parametrize("name", ["gone.jsonl", ".", "a\0b"])
def test_a_file_that_can_not_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProfileError, match=r"workload\.dataset: .* can't be read") as caught:
        read_inputs(asked(dataset=name), tmp_path)
    assert caught.value.why
    with pytest.raises(ProfileError, match=r"workload\.load\.path: .* can't be read"):
        read_inputs(asked(load=TraceReplay(path=name)), tmp_path)


def test_a_trace_that_is_too_short_tells_how_many_lines_it_has(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"timestamp": 0}\n', encoding="utf-8")
    with pytest.raises(ProfileError, match=r"has 1 lines, and workload\.requests needs 5"):
        read_inputs(asked(prompt_tokens=4, requests=5, load=TraceReplay(path="t.jsonl")), tmp_path)
