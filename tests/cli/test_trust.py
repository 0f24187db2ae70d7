"""A profile can name programs: nothing of them runs before somebody has confirmed them, once, by hash."""

import hashlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from deploytui.run.children import marked
from tests.artifact.hub_server import hub
from tests.cli.calls import MOCK, WORKLOAD, Call, assert_told
from tests.run.sessions import LIMIT_S, deploytui
from tests.run.test_engine_servers import interpreter

NAMED = {
    'python = "{program}"': "a: python = {program}",
    'command = ["{program}", "--flag"]': "a: command = {program} --flag",
    'env = {{ LD_PRELOAD = "{program}" }}': "a: env = LD_PRELOAD={program}",
    'container = {{ image = "{program}" }}': "a: container = {program}",
    'container = {{ image = "i", args = ["--volume", "/:/host"] }}': "a: container.args = --volume /:/host",
    'args = ["--trust-remote-code"]': "a: args: --trust-remote-code",
    'args = ["--tool-parser-plugin={program}"]': "a: args: --tool-parser-plugin={program}",
    "trust_remote_code = true": "a: trust_remote_code = true",
    "allow_pickle = true": "a: allow_pickle = true",
    'prepare = {{ command = ["{program}", "{{model}}", "{{out}}"], format = "gguf" }}': (
        "a: prepare.command = {program} {{model}} {{out}}"
    ),
    'prepare = {{ python = "{program}" }}': "a: prepare.python = {program}",
    'prepare = {{ args = ["{program}"] }}': "a: prepare.args = {program}",
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


def test_a_search_for_capacity_asks_as_a_run_does(call: Call, witness: Path) -> None:
    folder, program = witness.parent, witness.with_name("program")
    profile = _profile(folder, f'python = "{program}"')
    profile.write_text(profile.read_text("utf-8").replace("[[cand", "[gates]\nmin_success_rate = 0.5\n[[cand", 1))
    assert_told(call("capacity", profile, "--state-dir", folder / "state"), 2, f"a: python = {program}", "--trust")
    assert not witness.exists()


def test_a_containers_runtime_is_not_asked_before_the_profile_is_trusted(
    call: Call, witness: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = witness.parent
    witness.with_name("program").rename(folder / "docker")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    profile = _profile(folder, 'container = { image = "who/knows:1" }')
    assert_told(call("check", profile, "--state-dir", folder / "state"), 2, "a: container = who/knows:1")
    assert not witness.exists()
    call("check", profile, "--state-dir", folder / "state", "--trust")
    assert witness.exists()


def test_a_hub_is_not_asked_for_remote_code_before_the_profile_is_trusted(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = interpreter(tmp_path, "vllm", "vllm", "0.32.0")
    profile = _profile(tmp_path, f'python = "{python}"\ntrust_remote_code = true')
    text = profile.read_text("utf-8").replace('"llamacpp"', '"vllm"').replace('"x.gguf"', '"org/model"')
    profile.write_text(text, encoding="utf-8")
    with hub() as served:
        for name, value in served.env(str(tmp_path / "home")).items():
            monkeypatch.setenv(name, value)
        assert_told(call("check", profile, "--state-dir", tmp_path / "state"), 2, "a: trust_remote_code = true")
        assert served.asked == []
        told = call("check", profile, "--state-dir", tmp_path / "state", "--trust")
        assert served.asked != [], told.out


def test_one_changed_byte_is_another_profile(call: Call, witness: Path) -> None:
    folder = witness.parent
    profile, state = _profile(folder, f'python = "{witness.with_name("program")}"'), folder / "state"
    assert call("check", profile, "--state-dir", state, "--trust").code == 0
    witness.unlink()
    text = profile.read_text("utf-8")
    profile.write_text(text.replace("repeats = 1", "repeats = 2"), encoding="utf-8")
    for command in ("check", "run"):
        assert_told(call(command, profile, "--state-dir", state), 2, "--trust")
    assert not witness.exists()
    profile.write_text(text, encoding="utf-8")
    assert call("check", profile, "--state-dir", state).code == 0


def test_what_another_node_trusted_is_asked_here(call: Call, witness: Path) -> None:
    profile = _profile(witness.parent, f'python = "{witness.with_name("program")}"')
    assert call("check", profile, "--state-dir", witness.parent / "there", "--trust").code == 0
    witness.unlink()
    assert_told(call("check", profile, "--state-dir", witness.parent / "here"), 2, "--trust")
    assert not witness.exists()


@pytest.mark.parametrize("command", ["run", "check", "capacity"])
def test_a_profile_with_a_secret_is_refused_and_nothing_of_it_is_kept(call: Call, tmp_path: Path, command: str) -> None:
    profile, secret = tmp_path / "case.toml", "hf_marker0token1of2the3hub4"
    profile.write_text(WORKLOAD + MOCK + f'env = {{ HF_TOKEN = "{secret}" }}\n', encoding="utf-8")
    done = call(command, profile, "--state-dir", tmp_path / "state", "--trust")
    assert_told(done, 2, "`candidates[a].env.HF_TOKEN` holds a secret", "export HF_TOKEN")
    assert secret not in done.out + done.err
    assert not (tmp_path / "state").exists()


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
