"""Whether an image is here, is pulled first, or can't be asked for."""

from pathlib import Path

import pytest

from deploytui.check.images import missing_image
from deploytui.engine.protocol import Probe, Probed
from deploytui.profile.schema import Candidate, Container

pytestmark = pytest.mark.anyio

IMAGE = "example/engine:1"
CANDIDATE = Candidate(name="a", engine="vllm", container=Container(image=IMAGE))


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


async def told(candidate: Candidate, found: bool, error: str = "") -> tuple[str | None, str | None]:
    async def ask(probe: Probe) -> Probed:
        assert IMAGE in probe.argv
        return Probed(found=found, error=error)

    image, failure = await missing_image(candidate, ask)
    return image, failure.what if failure else None


async def test_an_image_that_is_here_is_not_pulled() -> None:
    assert await told(CANDIDATE, True) == (None, None)


async def test_an_image_that_is_not_here_is_pulled() -> None:
    said = "the probe ended with status 1: Error response from daemon: No such image: example/engine:1"
    assert await told(CANDIDATE, False, said) == (IMAGE, None)


async def test_a_daemon_that_does_not_answer_is_no_missing_image() -> None:
    said = "the probe ended with status 1: Cannot connect to the Docker daemon at unix:///x. Is the daemon running?"
    assert await told(CANDIDATE, False, said) == (None, "The Docker daemon can't be reached.")


async def test_without_a_container_nobody_is_asked() -> None:
    assert await told(Candidate(name="a", engine="vllm"), False) == (None, None)
