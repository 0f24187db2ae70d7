"""Images that are not here: pulled in a phase of their own, with progress, a time limit and an understood failure."""

from pathlib import Path

import pytest

from deploytui.record.events import PhaseEnded, Progress
from deploytui.run.pulling import Layers
from tests.run.sessions import deploytui, events
from tests.run.test_containers import SLOW, Runtime, docker, profile

__all__ = ["docker"]


@pytest.mark.parametrize(
    ("lines", "done", "total"),
    [
        (["Using default tag: latest", "latest: Pulling from vllm/vllm-openai"], 0, None),
        (["a2318d6c47ec: Pulling fs layer", "095d327c79ae: Waiting"], 0, 2),
        (["a2318d6c47ec: Pulling fs layer", "a2318d6c47ec: Verifying Checksum", "a2318d6c47ec: Pull complete"], 1, 1),
        (["a2318d6c47ec: Already exists", "Digest: sha256:aaaa"], 1, 1),
        (["Trying to pull quay/x:1...", "Copying blob sha256:a2318d6c47ec", "Copying blob 095d327c79ae done  |"], 1, 2),
        (["Copying blob a2318d6c47ec skipped: already exists", "Writing manifest to image destination"], 1, 1),
    ],
)
def test_layers_are_counted_as_the_runtimes_tell_of_them(lines: list[str], done: int, total: int | None) -> None:
    layers = Layers()
    for line in lines:
        layers.hear(line)
    assert (layers.done, layers.total) == (done, total)


def test_an_image_that_is_not_here_is_pulled_as_a_part_of_the_downloading(tmp_path: Path, docker: Runtime) -> None:
    (docker.folder / "absent").touch()
    done = deploytui(tmp_path / "state", "run", profile(tmp_path, *SLOW), "--json", "-", "--trust")
    row = done.row("boxed")
    assert row["run"] == "ok", done.err
    assert docker.asked("pull") == [["pull", "mock:1"]]
    assert row["cold_start"]["download_s"] > 0
    heard = events(tmp_path / "state")
    phases = [event.phase for event in heard if isinstance(event, PhaseEnded)]
    assert phases.index("downloading") < phases.index("launching")
    last = [event for event in heard if isinstance(event, Progress) and event.unit == "layers"][-1]
    assert (last.done, last.total) == (2, 2)
    assert last.text.startswith("mock:1: Status: Downloaded")
    assert "The image mock:1 is not here" in done.err


def test_an_image_that_may_not_be_pulled_is_told_in_the_runtimes_words(tmp_path: Path, docker: Runtime) -> None:
    for word in ("absent", "barred"):
        (docker.folder / word).touch()
    row = deploytui(tmp_path / "state", "run", profile(tmp_path), "--json", "-", "--trust").row("boxed")
    assert (row["failure"]["kind"], row["failure"]["what"]) == ("gated", "docker could not pull the image mock:1.")
    assert "pull access denied" in row["failure"]["why"]
    assert "docker login" in row["failure"]["fix"]
    assert docker.asked("run") == []


def test_a_pull_has_the_time_of_a_download(tmp_path: Path, docker: Runtime) -> None:
    for word in ("absent", "stuck"):
        (docker.folder / word).touch()
    path = profile(tmp_path)
    path.write_text(path.read_text().replace("timeouts = {", "timeouts = { download = 1,"))
    row = deploytui(tmp_path / "state", "run", path, "--json", "-", "--trust").row("boxed")
    assert row["failure"]["kind"] == "timeout"
    assert "timeouts.download" in row["failure"]["fix"]
    assert docker.asked("run") == []


def test_a_check_tells_of_the_pull_and_does_none(tmp_path: Path, docker: Runtime) -> None:
    (docker.folder / "absent").touch()
    done = deploytui(tmp_path / "state", "check", profile(tmp_path), "--trust")
    assert "The image mock:1 is not here: it is pulled first" in done.out
    assert docker.asked("pull") == docker.asked("run") == []
