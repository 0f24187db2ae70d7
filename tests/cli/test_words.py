"""Help, version, words that mean nothing, and no terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from deploytui import __version__
from deploytui.cli import cli
from tests.cli.calls import Call, assert_told
from tests.run.sessions import LIMIT_S

HEAVY = ("textual", "numpy", "aiohttp", "anyio", "asyncio", "msgspec")


@pytest.mark.parametrize("command", ["", *cli.commands])
def test_every_help_shows_an_example(call: Call, command: str) -> None:
    done = call(*command.split(), "--help")
    assert done.code == 0
    assert "Example: deploytui" in done.out
    assert done.err == ""


def test_the_version_is_told_at_once() -> None:
    argv = [sys.executable, "-X", "importtime", "-m", "deploytui", "--version"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert __version__ in done.stdout
    assert "click" in imported
    assert imported.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["doctr"], 'Did you mean "doctor"?'),
        (["exprot", "x"], 'Did you mean "export"?'),
        (["nonsense"], "There is no command, profile or session 'nonsense'. Known here: run, demo"),
        (["--nonsense"], "--nonsense"),
        (["run"], "PROFILE"),
        (["run", "--nonsense", "x.toml"], "--nonsense"),
        (["demo", "extra"], "extra"),
        (["absent.toml"], "There is no profile absent.toml."),
        (["run", "absent.toml"], "There is no profile absent.toml."),
        (["check", "absent.toml"], "There is no profile absent.toml."),
        (["export", "absent.toml"], "There is no profile absent.toml."),
        (["x" * 5000], "There is no command"),
        (["run", "~nobody-has-this-name/x.toml"], "~nobody-has-this-name/x.toml"),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest_right_one(call: Call, words: list[str], said: str) -> None:
    assert_told(call(*words), 2, said)


@pytest.mark.parametrize("words", [["20200101-000000-x-0000"], ["export", "nothing"], ["attach", "nothing"]])
def test_an_unknown_session_is_said_with_the_folder_that_was_looked_into(
    call: Call, words: list[str], tmp_path: Path
) -> None:
    assert_told(call(*words, "--state-dir", tmp_path), 1, words[-1], str(tmp_path), "deploytui sessions")


def test_without_a_terminal_the_bare_command_names_the_one_that_does_without(call: Call) -> None:
    assert_told(call(), 2, "needs a terminal", "deploytui demo --headless")


def test_without_a_terminal_a_profile_is_answered_with_how_to_run_it(call: Call, tmp_path: Path) -> None:
    profile = tmp_path / "my profile.toml"
    profile.write_text("", encoding="utf-8")
    assert_told(call(profile), 2, "needs a terminal", f"deploytui run '{profile}' --json result.json")


@pytest.mark.parametrize("command", [(), ("attach",)])
def test_without_a_terminal_a_session_is_answered_with_how_to_export_it(
    call: Call, finished: Path, command: tuple[str, ...]
) -> None:
    done = call(*command, finished.name, "--state-dir", finished.parent)
    assert_told(done, 2, "needs a terminal", f"deploytui export {finished} --format text")
    assert "status" in call("export", finished, "--format", "text").out


@pytest.mark.parametrize("term", ["", "dumb"])
@pytest.mark.parametrize("words", [(), ("demo",)])
def test_a_terminal_that_can_do_nothing_is_none(tmp_path: Path, term: str, words: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    state = ("--state-dir", str(tmp_path / "file" / "state")) if words else ()
    code, said = _on_a_terminal(term, *words, *state)
    assert (code, "\x1b" in said, "Traceback" in said) == (1 if words else 2, False, False)
    assert "needs a terminal" in said or words


def _on_a_terminal(term: str, *words: str) -> tuple[int, str]:
    """Exit status and output of a command on a pseudo terminal."""
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "deploytui", *words]
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": term}) as child:
        os.close(theirs)
        said = b""
        while part := _read(ours):
            said += part
        os.close(ours)
        return child.wait(LIMIT_S), said.decode()


def _read(fd: int) -> bytes:
    """What comes next; empty when the other side is closed, which Linux calls an error."""
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""
