"""Sessions of a stand-in for a llama-server, which takes any model file: what happens before and beside a launch."""

import json
import sys
from pathlib import Path

from deploytui.engine.adapter import host_script
from tests.artifact.build import PAIRS, gguf
from tests.run.sessions import HEAD, TASK

MODEL = gguf(*PAIRS)
"""A whole, tiny GGUF."""

SERVER = """#!/bin/sh
case "$1" in
--version) echo "version: 4567 (abcdef01)" >&2; exit 0 ;;
--list-devices) echo "Available devices:"; exit 0 ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in --port) port="$2" ;; --alias) alias="$2" ;; --model|-m) model="$2" ;; esac
    shift
done
test -f "$model" || {{ echo "no such file: $model" >&2; exit 1; }}
exec {python} -I {mock} --port "$port" --model "$alias" --api-key "$LLAMA_API_KEY" --answer-file {answers}
"""


def server(folder: Path) -> Path:
    """The stand-in's program."""
    answers = folder / "answers.json"
    answers.write_text(json.dumps({"say amber": "amber"}), encoding="utf-8")
    program = folder / "llama-server"
    program.write_text(
        SERVER.format(python=sys.executable, mock=host_script("mock_engine.py"), answers=answers), encoding="utf-8"
    )
    program.chmod(0o755)
    return program


def row(folder: Path, name: str, model: str, lines: str = "") -> str:
    """A candidate of the stand-in."""
    program = json.dumps([str(server(folder))])
    return f'[[candidates]]\nname = "{name}"\nengine = "llamacpp"\nmodel = "{model}"\ncommand = {program}\n{lines}\n'


def profile(folder: Path, *rows: str, gates: str = "", below: str = "") -> Path:
    """A profile of such candidates; `gates` are further lines of that table."""
    (folder / "task.jsonl").write_text(TASK, encoding="utf-8")
    path = folder / "case.toml"
    path.write_text(f"{HEAD.format(requests=8, load=30)}{gates}\n{''.join(rows)}{below}", encoding="utf-8")
    return path
