"""Models from a hub, against one on loopback with the real client in between."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from deploytui.artifact.hub import HubAnswer, HubDownload, HubRequest, ask_hub, fetch_hub
from deploytui.artifact.hub_files import hub_model
from deploytui.record.facts import Failure
from tests.artifact.hub_server import SECRET, Hub, Repository, hub

FIRST, SECOND = "1" * 40, "2" * 40
WEIGHTS = b"w" * 5000
FILES = {"model.safetensors": WEIGHTS, "config.json": b"{}", "pytorch_model.bin": b"p" * 5000, "README.md": b"words"}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def served() -> Iterator[Hub]:
    with hub() as state:
        state.repositories["org/small"] = Repository()
        state.repositories["org/small"].push(FIRST, FILES)
        yield state


def ask(served: Hub, folder: Path, model: str = "org/small", **more: Any) -> HubAnswer:
    """What the hub has, with its own cache in `folder`."""
    named = hub_model(model)
    assert named is not None
    env = {**served.env(str(folder / "hf")), **more.pop("env", {})}
    formats = more.pop("formats", frozenset({"safetensors", "pytorch"}))
    return anyio.run(ask_hub, HubRequest(model=named, env=env, formats=formats, **more), folder / "own")


def found(answer: HubAnswer) -> HubDownload:
    assert answer.failure is None
    assert answer.download is not None
    return answer.download


def refused(answer: HubAnswer) -> Failure:
    assert answer.failure is not None
    return answer.failure


def fetched(download: HubDownload, folder: Path) -> list[int]:
    """The bytes told while it was fetched; fails when it could not be."""
    told: list[int] = []
    assert anyio.run(fetch_hub, download, folder / "own", lambda done, whole: told.append(done)) is None
    return told


def test_only_what_the_engine_needs_is_fetched_and_its_size_is_known_before(served: Hub, tmp_path: Path) -> None:
    download = found(ask(served, tmp_path))
    assert {file.path for file in download.files} == {"model.safetensors", "config.json"}
    assert (download.commit, download.bytes, download.fetched_bytes) == (FIRST, 5002, 5002)
    assert not (tmp_path / "hf").exists()
    fetched(download, tmp_path)
    assert (download.path / "model.safetensors").read_bytes() == WEIGHTS
    assert not (download.path / "pytorch_model.bin").exists()
    assert download.declared == {"model.safetensors": hashlib.sha256(WEIGHTS).hexdigest()}


def test_what_is_in_the_cache_is_not_fetched_again(served: Hub, tmp_path: Path) -> None:
    fetched(found(ask(served, tmp_path)), tmp_path)
    again = found(ask(served, tmp_path))
    assert (again.fetched_bytes, again.is_here) == (0, True)


def test_a_branch_that_moved_is_another_commit(served: Hub, tmp_path: Path) -> None:
    fetched(found(ask(served, tmp_path, revision="main")), tmp_path)
    served.repositories["org/small"].push(SECOND, {**FILES, "model.safetensors": b"x" * 6000})
    moved = found(ask(served, tmp_path, revision="main"))
    assert (moved.commit, moved.revision) == (SECOND, "main")
    pinned = found(ask(served, tmp_path, revision=FIRST))
    assert (pinned.commit, pinned.is_here) == (FIRST, True)


@pytest.mark.parametrize("how", ["offline", "down"])
def test_without_a_hub_the_cache_is_used_with_its_commit(served: Hub, tmp_path: Path, how: str) -> None:
    fetched(found(ask(served, tmp_path)), tmp_path)
    served.repositories["org/small"].push(SECOND, FILES)
    found(ask(served, tmp_path))  # asking alone moves nothing in the cache
    env = {"HF_HUB_OFFLINE": "1"} if how == "offline" else {"HF_ENDPOINT": "http://127.0.0.1:1"}
    kept = ask(served, tmp_path, env=env)
    assert found(kept).commit == FIRST
    assert found(kept).declared == {"model.safetensors": hashlib.sha256(WEIGHTS).hexdigest()}
    assert "taken from the cache" in kept.notes[0]


def test_a_cache_that_lacks_a_file_will_not_do_offline(served: Hub, tmp_path: Path) -> None:
    download = found(ask(served, tmp_path))
    fetched(download, tmp_path)
    (download.path / "model.safetensors").unlink()
    failure = refused(ask(served, tmp_path, env={"HF_HUB_OFFLINE": "1"}))
    assert (failure.kind, "HF_HUB_OFFLINE" in failure.fix) == ("download_failed", True)


def test_each_cause_has_its_own_name_and_remedy(served: Hub, tmp_path: Path) -> None:
    served.repositories["org/gated"] = Repository(gated=True)
    served.repositories["org/gated"].push(FIRST, FILES)
    served.token = SECRET
    known = {"HF_TOKEN": SECRET}
    causes = [
        refused(ask(served, tmp_path, "org/gated")),
        refused(ask(served, tmp_path, "org/gated", env=known)),
        refused(ask(served, tmp_path, env={"HF_TOKEN": "hf_wrong"})),
        refused(ask(served, tmp_path, "org/typo")),
        refused(ask(served, tmp_path, "org/typo", env=known)),
        refused(ask(served, tmp_path, revision="gone")),
        refused(ask(served, tmp_path, env={"HF_HUB_OFFLINE": "1"})),
        refused(ask(served, tmp_path, env={"HF_ENDPOINT": "http://127.0.0.1:1"})),
    ]
    kinds = ["gated", "gated", "gated", "invalid_config", "invalid_config", "invalid_config", *["download_failed"] * 2]
    assert [failure.kind for failure in causes] == kinds
    assert len({(failure.what, failure.fix) for failure in causes}) == len(causes)
    assert len({failure.fix for failure in causes}) == len(causes)
    assert SECRET not in repr(causes)


def test_a_gated_model_comes_with_a_token_that_has_access(served: Hub, tmp_path: Path) -> None:
    served.repositories["org/gated"] = Repository(gated=True, granted=True)
    served.repositories["org/gated"].push(FIRST, FILES)
    served.token = SECRET
    download = found(ask(served, tmp_path, "org/gated", env={"HF_TOKEN": SECRET}))
    fetched(download, tmp_path)
    assert (download.path / "model.safetensors").read_bytes() == WEIGHTS


def test_a_connection_cut_in_the_middle_is_taken_up_where_it_broke(served: Hub, tmp_path: Path) -> None:
    served.cut_after = 2000
    download = found(ask(served, tmp_path))
    fetched(download, tmp_path)
    assert (download.path / "model.safetensors").read_bytes() == WEIGHTS


def test_a_download_that_is_cancelled_leaves_no_half_file_and_no_process(served: Hub, tmp_path: Path) -> None:
    served.hold = threading.Event()
    download = found(ask(served, tmp_path))

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(fetch_hub, download, tmp_path / "own", lambda done, whole: None)
            assert await anyio.to_thread.run_sync(served.held.wait, 60)
            group.cancel_scope.cancel()

    anyio.run(cancelled)
    assert not list((tmp_path / "hf").rglob("*.incomplete"))
    assert not download.is_here


def test_a_full_disk_is_said_before_a_byte_is_fetched(
    served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploytui.artifact.hub.SPARE_BYTES", 1 << 60)
    download = found(ask(served, tmp_path))
    before = len(served.asked)
    failure = anyio.run(fetch_hub, download, tmp_path / "own", lambda done, whole: None)
    assert failure is not None
    assert "HF_HOME" in failure.fix
    assert len(served.asked) == before


def test_the_format_is_the_engines_and_one_gguf_is_enough(served: Hub, tmp_path: Path) -> None:
    many = {f"m-{kind}.gguf": kind.encode() * 1000 for kind in ("Q4_K_M", "Q8_0")}
    served.repositories["org/gguf"] = Repository()
    served.repositories["org/gguf"].push(FIRST, many)
    gguf = frozenset({"gguf"})
    failure = refused(ask(served, tmp_path, "org/gguf", formats=gguf))
    assert 'model = "org/gguf:m-Q4_K_M.gguf"' in failure.fix
    for asked in ({"quantization": "q8_0"}, {"model": "org/gguf:m-Q8_0.gguf"}):
        download = found(ask(served, tmp_path, **{"model": "org/gguf", **asked}, formats=gguf))
        assert [file.path for file in download.files] == ["m-Q8_0.gguf"]
        assert download.path.name == "m-Q8_0.gguf"
    assert refused(ask(served, tmp_path, "org/gguf")).kind == "unsupported_format"
