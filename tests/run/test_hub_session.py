"""A session whose model comes from a hub."""

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploytui.record.engine_events import ArtifactRead
from deploytui.record.events import PhaseEnded
from tests.artifact.hub_server import SECRET, Hub, Repository, hub
from tests.cli.calls import process
from tests.run.model_files import MODEL, profile, row
from tests.run.sessions import begin, deploytui, ended, events

FIRST, SECOND = "1" * 40, "2" * 40
LARGE = MODEL + bytes(4096)


@pytest.fixture(autouse=True)
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub() as state:
        state.repositories["org/tiny"] = Repository()
        state.repositories["org/tiny"].push(FIRST, {"m-Q4_K_M.gguf": LARGE, "README.md": b"words"})
        for name in ("HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("DEPLOYTUI_CACHE", str(tmp_path / "cache"))
        for name, text in state.env(str(tmp_path / "hf")).items():
            monkeypatch.setenv(name, text)
        yield state


def test_the_commit_that_was_measured_is_recorded_and_the_revision_stays_as_asked(
    tmp_path: Path, served: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.token = SECRET
    served.repositories["org/tiny"].gated = served.repositories["org/tiny"].granted = True
    monkeypatch.setenv("HF_TOKEN", SECRET)
    path = profile(tmp_path, row(tmp_path, "a", "org/tiny", 'revision = "main"'))
    told = process("check", "--trust", path).out
    assert "org/tiny at commit 111111111111 (0.0 MiB in 1 files) is downloaded first." in told
    done = deploytui(tmp_path / "one", "run", path, "--trust", "--json", "-")
    artifact = done.row("a")["artifact"]
    assert done.row("a")["run"] == "ok", done.err
    assert (done.row("a")["model"]["revision"], done.row("a")["model"]["asked_revision"]) == (FIRST, "main")
    assert artifact["sha256"] == {"m-Q4_K_M.gguf": hashlib.sha256(LARGE).hexdigest()}
    assert artifact["checksum"] == "full"
    assert done.row("a")["cold_start"]["download_s"] > 0
    said = events(tmp_path / "one")
    assert any(isinstance(event, PhaseEnded) and event.phase == "downloading" for event in said)
    first = next(event for event in said if isinstance(event, ArtifactRead))
    assert (first.artifact.path, first.artifact.bytes) == (None, len(LARGE))
    served.repositories["org/tiny"].push(SECOND, {"m-Q4_K_M.gguf": LARGE + bytes(32)})
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    offline = deploytui(tmp_path / "two", "run", path, "--trust", "--json", "-")
    assert offline.row("a")["model"]["revision"] == FIRST
    assert "taken from the cache" in offline.err
    written = [path for folder in ("one", "two", "cache") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
    assert SECRET not in done.out + done.err + offline.out + offline.err


def test_a_typo_is_a_result_and_the_session_goes_on(tmp_path: Path) -> None:
    path = profile(tmp_path, row(tmp_path, "typo", "org/tyni"), row(tmp_path, "a", "org/tiny"))
    done = deploytui(tmp_path / "state", "run", path, "--trust", "--json", "-")
    assert done.row("typo")["failure"]["kind"] == "invalid_config"
    assert "'org/tyni'" in done.row("typo")["failure"]["what"]
    assert done.row("a")["run"] == "ok"


def test_an_interrupted_download_leaves_the_cache_whole(tmp_path: Path, served: Hub) -> None:
    served.hold = threading.Event()
    process = begin(tmp_path / "state", "run", profile(tmp_path, row(tmp_path, "a", "org/tiny")), "--trust")
    assert served.held.wait(60)
    process.send_signal(2)
    assert ended(process).code == 130
    assert not list((tmp_path / "hf").rglob("*.incomplete"))
