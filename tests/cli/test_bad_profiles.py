"""Profiles with something wrong in them: `check` and `run` say the same, and `run` leaves nothing behind."""

import json
from pathlib import Path

import pytest

from tests.cli.calls import MOCK, WORKLOAD, Call, assert_told
from tests.run.sessions import deploytui

RIGHT = WORKLOAD + MOCK
CHAT = '{"messages": [{"role": "user", "content": "a"}]}\n'
TRACE = '{"timestamp": 5}\n{"timestamp": 9}\n{"timestamp": 7}\n'
BROKEN_TASK = '{"id": "one", "prompt": "x", "checker": "contains", "expected": "a"}\n{"id": "two", \n'

REFUSED: dict[str, tuple[bytes, list[str]]] = {
    "empty": (b"", ["`workload` is missing", "`candidates` is missing"]),
    "binary": (b"\x7fELF\x02\x01\x00\xff\xfe\x00" * 99, ["not UTF-8"]),
    "a zip": (b"PK\x03\x04\x14\x00\x00\x00", ["not valid TOML"]),
    "syntax": (b'name = "x"\n[workload\n', ["line 2", "not valid TOML"]),
    "an unknown key": (f'{RIGHT}modle = "x"\n'.encode(), ["`candidates[a].modle`", 'Did you mean "model"?']),
    "an unknown table": (f"{RIGHT}[gate]\n".encode(), ["`gate`", 'Did you mean "gates"?']),
    "a wrong type": (RIGHT.replace("= 24", '= "24"').encode(), ["`workload.prompt_tokens`", "without quotes"]),
    "a negative number": (RIGHT.replace("requests = 2", "requests = -2").encode(), ["requests", "-2"]),
    "infinity": (f"{RIGHT}[gates]\nmin_output_tok_s = inf\n".encode(), ["`gates.min_output_tok_s`"]),
    "a name twice": (f"{RIGHT}{MOCK}".encode(), ['the name "a" more than once']),
    "a key twice": (f'{RIGHT}name = "b"\n'.encode(), ["twice", "line"]),
    "no candidates": (WORKLOAD.encode(), ["`candidates` is missing", "[[candidates]]"]),
    "an empty list of candidates": (f"candidates = []\n{WORKLOAD}".encode(), ["`candidates`"]),
    "no workload": (MOCK.encode(), ["`workload` is missing"]),
    "a baseline that is not there": (f'baseline = "b"\n{RIGHT}'.encode(), ["`baseline`", '"b"']),
    "an unknown load": (RIGHT.replace('"closed"', '"poison"').encode(), ['Did you mean "poisson"?']),
    "a newer schema": (f"schema = 7\n{RIGHT}".encode(), ["schema 7", "newer deploytui"]),
}


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_broken_profile_is_refused_with_its_place_and_remedy(
    call: Call, tmp_path: Path, command: str, name: str
) -> None:
    content, words = REFUSED[name]
    profile, state = tmp_path / "case.toml", tmp_path / "state"
    profile.write_bytes(content)
    done = call(command, profile, "--state-dir", state)
    assert_told(done, 2, str(profile), *words)
    assert done.out == ""
    assert not state.exists()


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_folder_is_no_profile(call: Call, tmp_path: Path, command: str) -> None:
    assert_told(call(command, tmp_path), 2, f"{tmp_path} is a folder")


LATER = {
    "a dataset that is not there": (
        RIGHT.replace("prompt_tokens = 24", 'dataset = "x.jsonl"'),
        ["workload.dataset", "x.jsonl can't be read", "relative"],
    ),
    "a dataset with a broken line": (
        RIGHT.replace("prompt_tokens = 24", 'dataset = "task.jsonl"'),
        ["task.jsonl", "line 2 is not JSON"],
    ),
    "a chat dataset for completions": (
        RIGHT.replace("prompt_tokens = 24", 'dataset = "chat.jsonl"'),
        ["chat.jsonl", "line 1 has messages", 'endpoint = "chat"'],
    ),
    "a trace whose times fall": (
        RIGHT.replace('{ kind = "closed", concurrency = 2 }', '{ kind = "trace", path = "trace.jsonl" }'),
        ["trace.jsonl", "line 3", "before that of the line before", "Sort the trace"],
    ),
    "a rate that never comes to an end": (
        RIGHT.replace('{ kind = "closed", concurrency = 2 }', '{ kind = "constant", rate = 1e-9 }'),
        ["takes 1e+09 s to send", "workload.max_seconds"],
    ),
    "a task file that is not there": (f'{RIGHT}[quality]\ntasks = ["absent.jsonl"]\n', ["absent.jsonl", "relative"]),
    "a broken line in a task file": (f'{RIGHT}[quality]\ntasks = ["task.jsonl"]\n', ["task.jsonl", "line 2"]),
    "an unknown built-in task": (f'{RIGHT}[quality]\ntasks = ["builtin:baisc"]\n', ["builtin:baisc", "builtin:basic"]),
    "a home nobody has": (f'{RIGHT}[quality]\ntasks = ["~nobody-has-this-name/x"]\n', ["~nobody-has-this-name/x"]),
    "an impossible file name": (f'{RIGHT}[quality]\ntasks = ["a\\u0000b"]\n', ["can't be read"]),
}


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("name", LATER)
def test_what_can_not_be_run_is_told_before_anything_starts(
    call: Call, tmp_path: Path, command: str, name: str
) -> None:
    text, words = LATER[name]
    for name_, content in {"task": BROKEN_TASK, "chat": CHAT, "trace": TRACE}.items():
        (tmp_path / f"{name_}.jsonl").write_text(content, encoding="utf-8")
    profile, state, result = tmp_path / "case.toml", tmp_path / "state", tmp_path / "result.json"
    profile.write_text(text, encoding="utf-8")
    done = call(command, profile, "--state-dir", state, *(["--json", result] if command == "run" else []))
    assert done.code == 2
    told = done.out if command == "check" else done.err
    for word in words:
        assert word in told
    assert "Traceback" not in done.err
    assert not state.exists()
    assert not result.exists()


def test_check_as_json_tells_the_same(call: Call, tmp_path: Path) -> None:
    profile = tmp_path / "case.toml"
    profile.write_text(f'{RIGHT}[quality]\ntasks = ["absent.jsonl"]\n', encoding="utf-8")
    done = call("check", profile, "--json")
    assert done.code == 2
    assert "absent.jsonl" in json.loads(done.out)["tasks"][0]
    assert json.loads(done.out)["cases"][0]["status"] == "ready"


CANDIDATES = """
[[candidates]]
name = "engine"
engine = "llamacp"
model = "x.gguf"
[[candidates]]
name = "model"
engine = "llamacpp"
model = "absent.gguf"
[[candidates]]
name = "home"
engine = "llamacpp"
model = "~nobody-has-this-name/x.gguf"
[[candidates]]
name = "long"
engine = "llamacpp"
model = "LONG"
[[candidates]]
name = "address"
engine = "openai"
base_url = "ftp://x"
""".replace("LONG", "x" * 5000)
CAUSES = {
    "engine": 'Did you mean "llamacpp"?',
    "model": "There is no such path: model 'absent.gguf'",
    "home": "~nobody-has-this-name/x.gguf",
    "long": "File name too long",
    "address": "is no HTTP address",
}


def test_candidates_that_are_wrong_are_cases_of_their_own(call: Call, tmp_path: Path) -> None:
    profile = tmp_path / "case.toml"
    profile.write_text(RIGHT + CANDIDATES, encoding="utf-8")
    done = call("check", profile)
    assert done.code == 2
    assert "1 of 6 candidates ready" in done.out
    for name, cause in CAUSES.items():
        assert any(line.split()[:2] == ["invalid_config", name] for line in done.out.splitlines())
        assert cause in done.out


def test_the_others_are_measured_all_the_same(tmp_path: Path) -> None:
    profile = tmp_path / "case.toml"
    profile.write_text(RIGHT + CANDIDATES, encoding="utf-8")
    done = deploytui(tmp_path / "state", "run", profile, "--json", "-")
    assert done.row("a")["run"] == "ok"
    for name, cause in CAUSES.items():
        row = done.row(name)
        assert row["status"] == "invalid_config"
        assert cause in f"{row['failure']['what']} {row['failure']['why']} {row['failure']['fix']}"
    assert done.code == 3


def test_when_all_are_wrong_the_session_rejects_with_the_causes(tmp_path: Path) -> None:
    profile = tmp_path / "case.toml"
    profile.write_text(WORKLOAD + CANDIDATES, encoding="utf-8")
    done = deploytui(tmp_path / "state", "run", profile, "--json", "-")
    assert done.code == 4
    codes = [reason["code"] for reason in done.result()["decision"]["reasons"]]
    assert codes == ["no_comparable_candidate", *(["invalid_config"] * 5)]
    for cause in CAUSES.values():
        assert cause in done.err
