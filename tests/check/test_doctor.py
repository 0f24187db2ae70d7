import json
import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from deploytui.check.doctor import DoctorReport, colours, doctor, terminal
from deploytui.check.doctor_engines import engine_in
from deploytui.check.doctor_text import doctor_text
from deploytui.check.environments import EngineEnvironment, found_environments, read_environment
from deploytui.engine.registry import engine_names


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> DoctorReport:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEPLOYTUI_ENGINES", str(tmp_path_factory.mktemp("engines")))
        return anyio.run(doctor, (), tmp_path_factory.mktemp("cache") / "models")


@pytest.fixture
def made_for_sglang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment as `setup-engine` leaves it, our own interpreter in it; its folder."""
    folder = tmp_path / "sglang"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    record = EngineEnvironment(
        name="sglang",
        engines=("sglang",),
        versions={"sglang": "0.5.23", "torch": None},
        seconds=60.0,
        bytes=3 << 30,
        python="3.11.7",
        date="2026-11-30T12:00:00+00:00",
        gpu=True,
    )
    (folder / "ready.json").write_bytes(msgspec.json.encode(record))
    (tmp_path / "half-made" / "bin").mkdir(parents=True)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "ready.json").write_text("{")
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path))
    return folder


@pytest.mark.usefixtures("made_for_sglang")
def test_a_finished_environment_is_told_with_its_engines_and_an_unfinished_one_is_not(tmp_path: Path) -> None:
    found = anyio.run(doctor, (), tmp_path / "models")
    (environment,) = found.environments
    assert (environment.name, environment.version, environment.device) == ("sglang", "0.5.23", "cuda")
    python = str(tmp_path / "sglang" / "bin" / "python")
    inside = [engine for engine in found.engines if engine.environment == "sglang"]
    assert [(engine.engine, engine.python) for engine in inside] == [("sglang", python)]
    assert len([engine for engine in found.engines if engine.engine == "sglang"]) == 1, "told once, where it is"
    assert f"Engines in {python} (setup-engine sglang, 3.0 GiB, of 2026-11-30):" in doctor_text(found)


def test_an_environment_that_is_named_too_is_looked_into_once(tmp_path: Path, made_for_sglang: Path) -> None:
    python = str(made_for_sglang / "bin" / "python")
    found = anyio.run(doctor, (python, python), tmp_path / "models")
    assert [engine.engine for engine in found.engines if engine.python == python] == list(engine_names())


def test_an_environment_without_a_readable_record_is_none(tmp_path: Path, made_for_sglang: Path) -> None:
    read = read_environment(made_for_sglang)
    assert read is not None
    assert read.version == "0.5.23"
    assert read_environment(tmp_path / "broken") is None
    assert read_environment(tmp_path / "half-made") is None
    assert [folder for folder, _ in found_environments()] == [made_for_sglang]


def test_no_folder_of_environments_is_no_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path / "nothing"))
    assert found_environments() == ()


def test_every_engine_has_a_row_in_our_interpreter(report: DoctorReport) -> None:
    assert [engine.engine for engine in report.engines] == list(engine_names())
    assert {engine.python for engine in report.engines} == {sys.executable}


def test_an_engine_is_usable_or_says_why_not(report: DoctorReport) -> None:
    assert all(engine.usable == (engine.failure is None) for engine in report.engines)
    usable = {engine.engine for engine in report.engines if engine.usable}
    assert {"openai", "mock"} <= usable


def test_the_node_is_described(report: DoctorReport) -> None:
    assert report.environment.host.memory_bytes
    assert report.environment.gpus or report.environment.gpu_missing
    assert report.cache_free_bytes
    assert report.models[0].path is None


def test_the_text_names_interpreter_engines_gpus_and_model(report: DoctorReport) -> None:
    text = doctor_text(report)
    assert f"Engines in {sys.executable}:" in text
    assert all(name in text for name in engine_names())
    assert "GPUs:" in text
    assert "not fetched yet, 88.6 MiB to download" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_the_report_is_plain_data(report: DoctorReport) -> None:
    told = json.loads(msgspec.json.encode(report))
    assert told["engines"][0]["engine"] == "llamacpp"


def test_an_interpreter_that_is_not_there_is_said_not_raised() -> None:
    found = anyio.run(engine_in, "/no/such/python", "vllm")
    assert not found.found
    assert found.failure is not None
    assert "/no/such/python can't be run" in found.failure.why


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "none"),
        ({"TERM": "dumb"}, "none"),
        ({"TERM": "xterm"}, "16"),
        ({"TERM": "tmux-256color"}, "256"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "none"),
    ],
)
def test_the_colours_a_terminal_promises(environment: dict[str, str], told: str) -> None:
    assert colours(environment) == told


def test_a_multiplexer_and_a_remote_line_are_seen() -> None:
    found = terminal({"TERM": "screen", "TMUX": "/tmp/x", "SSH_CONNECTION": "1 2 3 4"})
    assert (found.multiplexer, found.ssh, found.term) == ("tmux", True, "screen")


def test_a_cached_model_is_shown_with_its_path(report: DoctorReport) -> None:
    model = msgspec.structs.replace(report.models[0], path="/cache/m.gguf")
    text = doctor_text(msgspec.structs.replace(report, models=(model,)))
    assert "(Apache-2.0): /cache/m.gguf" in text
    assert Path(report.cache_dir).name == "models"
