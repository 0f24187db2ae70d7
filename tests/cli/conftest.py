"""Calls in this process, and one finished session to look at."""

from pathlib import Path

import pytest

from tests.cli.calls import Call, in_process
from tests.run import conftest as run_fixtures
from tests.run.sessions import deploytui, only_session, write_profile

nothing_is_left = run_fixtures.nothing_is_left


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line in this process."""
    return lambda *words: in_process(capsys, *words)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a session that has ended; tests that change it take a copy."""
    folder = tmp_path_factory.mktemp("finished")
    profile = write_profile(
        folder, {"one": ["--ttft-ms", "20", "--itl-ms", "5"], "two": ["--ttft-ms", "40", "--itl-ms", "10"]}, requests=4
    )
    done = deploytui(folder / "state", "run", profile)
    assert done.code == 0, done.err
    return only_session(folder / "state")
