"""A profile can name programs: nothing of them runs before somebody has confirmed them, once, by hash."""

import hashlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from deploytui.run.children import marked
from tests.cli.calls import MOCK, WORKLOAD, Call, assert_told
from tests.run.sessions import LIMIT_S, deploytui

NAMED = {
    'python = "{program}"': "a: python = {program}",
    'command = ["{program}", "--flag"]': "a: command = {program} --flag",
    'env = {{ LD_PRELOAD = "{program}" }}': "a: env = LD_PRELOAD={program}",
    'container = {{ image = "{program}" }}': "a: container = {program}",
    'args = ["--trust-remote-code"]': "a: args: --trust-remote-code",
}
TOUCHING = "#!/bin/sh\necho ran > '{witness}'\n"


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    """A file that exists once the program beside it was run."""
    program = tmp_path / "program"
    program.write_text(TOUCHING.format(witness=tmp_path / "witness"), encoding="utf-8")
    program.chmod(0o755)
    return tmp_path / "witness"


def _profile(folder: Path, line: str) -> Path:
    path = folder / "case.toml"
    row = f'[[candidates]]\nname = "a"\nengine = "llamacpp"\nmodel = "x.gguf"\n{line}\n'
    path.write_text(WORKLOAD + MOCK.replace('"a"', '"b"') + row, encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("line", NAMED)
def test_what_a_profile_would_run_is_shown_and_not_run(call: Call, witness: Path, command: str, line: str) -> None:
    folder, program = witness.parent, witness.with_name("program")
    profile = _profile(folder, line.format(program=program))
    done = call(command, profile, "--state-dir", folder / "state")
    assert_told(done, 2, NAMED[line].format(program=program), "--trust")
    assert not witness.exists()
    assert not (folder / "state").exists()


def test_what_is_shown_can_not_repaint_the_terminal(call: Call, tmp_path: Path) -> None:
    profile = _profile(tmp_path, r'command = ["/bin/rm", "\u001b[2J\nb: python = /usr/bin/true", "\u202e"]')
    done = call("run", profile, "--state-dir", tmp_path / "state")
    assert_told(done, 2, r"a: command = /bin/rm \x1b[2J b: python = /usr/bin/true \u202e")
    assert "\x1b" not in done.err


def test_a_trusted_text_is_remembered_until_it_changes(call: Call, witness: Path) -> None:
    folder = witness.parent
    profile, state = _profile(folder, f'python = "{witness.with_name("program")}"'), folder / "state"
    assert call("check", profile, "--state-dir", state, "--trust").code == 0
    assert witness.read_text(encoding="utf-8") == "ran\n"
    assert hashlib.sha256(profile.read_bytes()).hexdigest() in (state / "trusted-profiles").read_text("utf-8")
    assert call("check", profile, "--state-dir", state).code == 0
    profile.write_text(f"{profile.read_text('utf-8')}# changed\n", encoding="utf-8")
    assert_told(call("check", profile, "--state-dir", state), 2, "--trust")


def test_a_variable_of_a_candidate_reaches_its_engine(tmp_path: Path) -> None:
    profile, state = tmp_path / "case.toml", tmp_path / "state"
    env = 'env = { PYTHONDONTWRITEBYTECODE = "1", session = "x", DEPLOYTUI_SESSION = "stolen" }\n'
    profile.write_text(WORKLOAD + MOCK + env, encoding="utf-8")
    done = deploytui(state, "run", profile, "--trust", "--json", "-")
    assert done.row("a")["run"] == "ok", done.err
    assert marked("mine", {"DEPLOYTUI_SESSION": "stolen"})["DEPLOYTUI_SESSION"] == "mine"


@pytest.mark.parametrize(("answer", "code"), [(b"yes\n", 0), (b"no\n", 2), (b"\x04", 2)])
def test_on_a_terminal_it_is_asked(witness: Path, answer: bytes, code: int) -> None:
    status, out = _answered(witness, answer, "check")
    assert (status, witness.exists()) == (code, code == 0)
    assert (b"candidates ready" in out) == (code == 0)


def test_a_run_that_leaves_the_terminal_asks_before_it_leaves(witness: Path) -> None:
    status, out = _answered(witness, b"no\n", "run", "--detach")
    assert (status, out) == (2, b"")
    assert not (witness.parent / "state").exists()


def _answered(witness: Path, answer: bytes, *words: str) -> tuple[int, bytes]:
    """Exit status and output of a command that asks on a terminal whether the program may run."""
    program, state = witness.with_name("program"), witness.with_name("state")
    profile = _profile(witness.parent, f'python = "{program}"')
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "deploytui", *words, str(profile), "--state-dir", str(state)]
    with subprocess.Popen(argv, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs) as child:
        os.close(theirs)
        said = b""
        while b"Type yes or no." not in said:
            said += os.read(ours, 65536)
        assert f"python = {program}".encode() in said
        os.write(ours, answer)
        out = child.communicate(timeout=LIMIT_S)[0]
        os.close(ours)
    return child.returncode, out
