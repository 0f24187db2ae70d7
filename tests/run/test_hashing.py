"""Checksums beside the measurement: recorded, held against what is expected, refused when they differ."""

import hashlib
import os
import sys
from pathlib import Path

import anyio
import msgspec
import psutil
import pytest

from deploytui.artifact.files import known_sha256
from deploytui.artifact.hash_words import AllHashed, Hashed, HashOrder, Read, said_decoder
from deploytui.artifact.manifest import remembered
from deploytui.check.cases import CaseCheck
from deploytui.record.engine_events import ArtifactRead, EngineRead, Freed
from deploytui.record.events import AnyEvent, Note
from deploytui.record.facts import Artifact
from deploytui.run import hashing as hashing_module
from deploytui.run.children import child, lines, own_children, tell
from deploytui.run.failing import CandidateFailed
from deploytui.run.hashing import CHILD, Hashing, hashed
from tests.cli.calls import process
from tests.run.contexts import context
from tests.run.model_files import MODEL, profile, row
from tests.run.sessions import Done, deploytui, events, wait_for

SHA256 = hashlib.sha256(MODEL).hexdigest()
WRONG = "0" * 64


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEPLOYTUI_CACHE", str(tmp_path / "cache"))
    (tmp_path / "m.gguf").write_bytes(MODEL)
    return tmp_path / "m.gguf"


def run(folder: Path, state: str, path: Path) -> Done:
    return deploytui(folder / state, "run", path, "--trust", "--json", "-")


def expecting(sha256: str) -> str:
    return f'sha256 = {{ "m.gguf" = "{sha256}" }}'


def test_every_file_is_hashed_beside_the_measurement_and_again_only_when_it_changed(
    tmp_path: Path, model: Path
) -> None:
    path = profile(tmp_path, row(tmp_path, "a", "m.gguf"))
    done = run(tmp_path, "one", path).row("a")
    assert done["artifact"]["sha256"] == {"m.gguf": SHA256}
    assert done["artifact"]["checksum"] == "full"
    assert done["cold_start"]["checksum_s"] is not None
    said = events(tmp_path / "one")
    launched = next(place for place, event in enumerate(said) if isinstance(event, EngineRead))
    read = [place for place, event in enumerate(said) if isinstance(event, ArtifactRead) and event.artifact.sha256]
    assert launched < read[0]
    again = run(tmp_path, "two", path).row("a")
    assert again["artifact"]["sha256"] == {"m.gguf": SHA256}
    assert again["cold_start"]["checksum_s"] is None


def test_a_changed_file_ends_its_candidate_and_the_next_time_before_the_launch(tmp_path: Path) -> None:
    path = profile(
        tmp_path, row(tmp_path, "a", "m.gguf", expecting(WRONG)), row(tmp_path, "b", "m.gguf", expecting(SHA256))
    )
    first = run(tmp_path, "one", path)
    assert first.row("a")["failure"]["kind"] == "checksum_mismatch"
    assert WRONG in first.row("a")["failure"]["why"]
    assert "checksum_mismatch" in {reason["code"] for reason in first.row("a")["verdict"]["reasons"]}
    assert first.row("b")["run"] == "ok"
    assert any(isinstance(event, Freed) and event.candidate == "a" for event in events(tmp_path / "one"))
    again = run(tmp_path, "two", path)
    assert again.row("a")["status"] == "load_failed"
    assert again.row("a")["failure"]["kind"] == "checksum_mismatch"
    assert not [e for e in events(tmp_path / "two") if isinstance(e, EngineRead) and e.candidate == "a"]
    told = process("check", "--trust", path).out
    assert "checksum_mismatch" in told


def test_a_change_that_is_meant_is_only_noted(tmp_path: Path) -> None:
    below = '[checks]\nchanged_files = "note"\n'
    done = run(tmp_path, "state", profile(tmp_path, row(tmp_path, "a", "m.gguf", expecting(WRONG)), below=below))
    assert done.row("a")["run"] == "ok"
    assert "m.gguf has changed" in done.err


def test_checksums_can_be_left_out(tmp_path: Path) -> None:
    done = run(tmp_path, "state", profile(tmp_path, row(tmp_path, "a", "m.gguf"), below='[checks]\nchecksum = "off"\n'))
    assert done.row("a")["run"] == "ok"
    assert not done.row("a")["artifact"]["sha256"]
    assert not (tmp_path / "cache").exists()


def test_a_saved_profile_holds_its_candidates_to_the_bytes_that_were_measured(tmp_path: Path, model: Path) -> None:
    path = profile(tmp_path, row(tmp_path, "a", "m.gguf"))
    saved = tmp_path / "saved.toml"
    run(tmp_path, "one", path)
    folder = next(entry for entry in (tmp_path / "one").iterdir() if entry.is_dir())
    told = deploytui(tmp_path / "one", "export", folder, "--format", "toml", "-o", saved)
    assert saved.is_file(), told.err
    assert run(tmp_path, "same", saved).row("a")["run"] == "ok"
    model.write_bytes(MODEL[:-1] + b"x")
    assert run(tmp_path, "changed", saved).row("a")["failure"]["kind"] == "checksum_mismatch"


def test_a_name_that_is_no_file_of_the_model_is_said(tmp_path: Path) -> None:
    lines = f'sha256 = {{ "other.gguf" = "{WRONG}" }}'
    told = process("check", "--trust", profile(tmp_path, row(tmp_path, "a", "m.gguf", lines))).out
    assert "missing_file: a: sha256 names other.gguf" in told


def test_hashing_stands_still_while_it_is_told_to_and_is_humble(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(64 << 20))

    async def watched() -> list[object]:
        said: list[object]
        order = HashOrder(files={"large": str(large)}, cache=str(tmp_path / "sums"))
        async with child(CHILD, env=dict(os.environ), errors=tmp_path / "log", grace_s=1) as process:
            await tell(process, msgspec.json.encode(order))
            await tell(process, b"pause")
            nice = await anyio.to_thread.run_sync(
                wait_for, lambda: os.getpriority(os.PRIO_PROCESS, process.pid) == 19, "its low priority"
            )
            assert nice
            await tell(process, b"go")
            said = [said_decoder.decode(line) async for line in lines(process)]
        return said

    said = anyio.run(watched)
    assert isinstance(said[-1], AllHashed)
    assert Hashed(name="large", sha256=hashlib.sha256(bytes(64 << 20)).hexdigest()) in said
    assert any(isinstance(word, Read) for word in said)
    assert known_sha256(large, tmp_path / "sums", stop=lambda: True) is not None


def test_the_process_ends_well_although_it_still_hears(tmp_path: Path, model: Path) -> None:
    async def ended() -> int:
        async with child(CHILD, env=dict(os.environ), errors=tmp_path / "log", grace_s=5) as process:
            await tell(process, msgspec.json.encode(HashOrder(files={"m": str(model)})))
            async for _ in lines(process):
                pass
            return await process.wait()

    assert anyio.run(ended) == 0
    assert (tmp_path / "log").read_text() == ""


def test_hashing_that_is_told_to_stand_still_before_it_has_begun_does_so(tmp_path: Path, model: Path) -> None:
    hashing = Hashing(pauses=True)

    async def order() -> list[bytes]:
        async with hashing.standing_still():
            code = "import sys; print(sys.stdin.readline() and sys.stdin.readline(), end='')"
            async with child((sys.executable, "-c", code), env={}, errors=tmp_path / "log", grace_s=5) as process:
                hashing.process = process
                await hashing.begin(HashOrder(files={"m": str(model)}))
                return [line async for line in lines(process)]

    assert anyio.run(order) == [b"pause"]


def test_a_hashing_process_that_cannot_be_started_ends_no_measurement(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing_module, "CHILD", (str(tmp_path / "absent"),))
    said: list[AnyEvent] = []

    async def measured() -> bool:
        ctx = context(tmp_path / "state", tmp_path, said)
        check = CaseCheck(
            name="a",
            engine="mock",
            status="ready",
            artifact=Artifact(format="gguf", path=str(model)),
            to_hash=True,
        )
        async with hashed(ctx, ctx.profile.candidates[0], check) as hashing:
            await hashing.done.wait()
        return True

    assert anyio.run(measured)
    notes = [event.text for event in said if isinstance(event, Note)]
    assert len(notes) == 1
    assert notes[0].startswith("a: 1 of its 1 files were not hashed.")


def test_a_file_that_differs_ends_its_process_before_the_candidate(tmp_path: Path, model: Path) -> None:
    gone: list[bool] = []

    async def refused() -> None:
        ctx = context(tmp_path / "state", tmp_path, [])
        (tmp_path / "state").mkdir(exist_ok=True)
        folder = tmp_path / "model"
        folder.mkdir()
        for name in ("a", "b"):
            (folder / name).write_bytes(MODEL)
        check = CaseCheck(
            name="a",
            engine="mock",
            status="ready",
            artifact=Artifact(format="gguf", path=str(folder)),
            to_hash=True,
            expected={"a": WRONG},
        )
        try:
            async with hashed(ctx, ctx.profile.candidates[0], check):
                await anyio.sleep_forever()
        finally:
            gone.append(not own_children())

    with pytest.raises(CandidateFailed):
        anyio.run(refused)
    assert gone == [True]


def test_what_is_remembered_is_not_read(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(8 << 20))
    before = psutil.Process().io_counters().read_chars
    assert remembered({"large": large}, tmp_path / "cache") == {}
    assert psutil.Process().io_counters().read_chars - before < 1 << 20
