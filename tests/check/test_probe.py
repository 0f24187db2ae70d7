import json
import os
import sys
import time
from pathlib import Path

import anyio
import pytest

from deploytui.check.probe import run_probe
from deploytui.engine.adapter import host_script, probe_with
from deploytui.engine.protocol import Probe, Probed
from deploytui.profile.schema import Candidate

HERE = Candidate(name="a", engine="llamacpp")


def asked(*argv: str, timeout_s: float = 20.0, env: dict[str, str] | None = None) -> Probed:
    return anyio.run(run_probe, Probe(argv=argv, timeout_s=timeout_s, env=env or {}))


def code(text: str) -> tuple[str, str, str]:
    return (sys.executable, "-c", text)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False


def gone_soon(pid: int) -> bool:
    limit = time.monotonic() + 10
    while alive(pid) and time.monotonic() < limit:
        os.sched_yield()
    return not alive(pid)


def test_a_package_is_found_with_its_version_and_interpreter_without_being_imported() -> None:
    told = anyio.run(run_probe, probe_with(HERE, "--dist", "pytest", "--module", "pytest"))
    assert told.found
    assert told.version == pytest.__version__
    assert told.detail["executable"] == sys.executable
    assert told.detail["distribution"] == "pytest"
    assert told.error == ""


def test_the_second_name_of_a_package_counts_too() -> None:
    told = anyio.run(run_probe, probe_with(HERE, "--dist", "no-such-dist", "--dist", "msgspec", "--module", "msgspec"))
    assert told.found
    assert told.detail["distribution"] == "msgspec"


def test_what_is_not_there_is_not_found() -> None:
    told = anyio.run(run_probe, probe_with(HERE, "--dist", "no-such-dist", "--module", "no_such_module"))
    assert not told.found
    assert told.version is None


def test_a_distribution_without_its_module_is_found_and_broken() -> None:
    told = anyio.run(run_probe, probe_with(HERE, "--dist", "pytest", "--module", "no_such_module"))
    assert told.found
    assert "no module no_such_module" in told.error


def test_a_call_tells_what_it_returned_or_why_it_could_not(tmp_path: Path) -> None:
    (tmp_path / "noisy_engine.py").write_text(
        "print('hello from a library')\ndef devices():\n    return [{'name': 'CPU', 'type': 0}]\n"
        "def broken():\n    raise OSError('libcudart.so.12: cannot open')\n",
        encoding="utf-8",
    )
    candidate = Candidate(name="a", engine="llamacpp", env={"PYTHONPATH": str(tmp_path)})
    good = anyio.run(run_probe, probe_with(candidate, "--module", "noisy_engine", "--call", "noisy_engine:devices"))
    assert good.detail["calls"]["noisy_engine:devices"] == [{"name": "CPU", "type": 0}]
    bad = anyio.run(run_probe, probe_with(candidate, "--module", "noisy_engine", "--call", "noisy_engine:broken"))
    assert bad.found
    assert "libcudart.so.12" in bad.error


def test_a_program_tells_its_version_and_its_devices(tmp_path: Path) -> None:
    program = tmp_path / "llama-server"
    program.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then echo "version: 6123 (abc)" >&2; else echo "Available devices:"; fi\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    argv = json.dumps([str(program)])
    devices = json.dumps([str(program), "--list-devices"])
    told = anyio.run(run_probe, probe_with(HERE, "--version-of", argv, "--output-of", devices))
    assert told.found
    assert told.version == "6123"
    assert told.detail["output"].strip() == "Available devices:"
    assert told.detail["program"] == str(program)


def test_a_program_that_is_not_there_is_told_in_the_systems_words() -> None:
    told = anyio.run(run_probe, probe_with(HERE, "--version-of", '["/no/such/llama-server"]'))
    assert not told.found
    assert "No such file" in told.error


def test_a_missing_interpreter_is_an_answer_not_an_exception() -> None:
    told = asked("/no/such/python", host_script("probe.py"))
    assert not told.found
    assert "/no/such/python can't be run" in told.error


def test_a_file_that_can_not_be_executed_is_an_answer(tmp_path: Path) -> None:
    plain = tmp_path / "python"
    plain.write_text("no program", encoding="utf-8")
    assert "can't be run" in asked(str(plain)).error


def test_garbage_on_standard_output_is_an_answer() -> None:
    assert "no answer" in asked(*code("print('\\x00\\xff not json')")).error
    assert "no answer" in asked(*code("print('[1, 2]')")).error
    assert "no answer" in asked(*code("pass")).error


def test_a_failing_probe_is_told_with_its_last_words() -> None:
    assert asked(*code("import sys; sys.exit('torch is broken')")).error.endswith("status 1: torch is broken")
    assert "signal 9 (SIGKILL)" in asked(*code("import os; os.kill(os.getpid(), 9)")).error


def test_a_probe_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    hang = (
        f"import subprocess, time; p = subprocess.Popen(['sleep', '600']); open({str(note)!r}, 'w').write(str(p.pid))"
    )
    told = asked(*code(f"{hang}; time.sleep(600)"), timeout_s=1.5)
    assert not told.found
    assert "did not answer within 1.5 s" in told.error
    assert gone_soon(int(note.read_text(encoding="utf-8")))


def test_a_flood_of_output_neither_hangs_nor_fills_memory() -> None:
    flood = "import sys; sys.stderr.write('x' * 5_000_000); print('{\"found\": true}')"
    assert asked(*code(flood)).found


def test_the_candidates_environment_reaches_the_probe() -> None:
    told = asked(
        *code("import json, os; print(json.dumps({'found': True, 'version': os.environ['ASKED']}))"), env={"ASKED": "7"}
    )
    assert told.version == "7"
    assert "ASKED" not in os.environ
